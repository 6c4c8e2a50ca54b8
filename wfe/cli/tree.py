"""An execution as rows, one per step: what a tree of steps says, whoever draws it.

Going backwards has a column of its own, so that a step that was done and then undone shows both.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from wfe.cli import text
from wfe.model import (
    Execution,
    Flow,
    Head,
    StepKey,
    StepRecord,
    StepSpec,
    StepState,
    StepStatus,
)


class Side(NamedTuple):
    """One side of a step, invoke or compensate: the word for its state, and how long it took."""

    #: A word of the vocabulary, or `running`, `waiting`, `sleeping` or `retrying` where that
    #: says too little.
    word: str
    seconds: float | None = None


class Row(NamedTuple):
    """What a line of the tree says about a step."""

    step: str
    #: Its place in a stage of several steps: `first`, `middle`, `last`; empty where it is alone.
    bracket: str
    #: How many conditions surround it.
    depth: int
    #: None for a step of a workflow that is not an execution's.
    invoke: Side | None
    #: None while nothing is to be undone.
    compensate: Side | None
    notes: tuple[str, ...]

    @property
    def is_settled(self) -> bool:
        """Whether the step is over, for now."""
        words = [side.word for side in (self.invoke, self.compensate) if side is not None]
        return not any(word in _ACTIVE or word == StepState.NOT_STARTED for word in words)


_ACTIVE = ("running", "waiting", "sleeping", "retrying", "compensating")


class Progress(NamedTuple):
    """The newest that a step has told of itself."""

    fraction: float | None
    message: str | None

    def __str__(self) -> str:
        percent = "" if self.fraction is None else f"{self.fraction:.0%}"
        return " ".join(part for part in (percent, self.message) if part)


def rows(
    execution: Execution, now: datetime, progress: Mapping[str, Progress] | None = None
) -> list[Row]:
    """The steps in the order of the flow."""
    found = []
    for stage in execution.flow.stages:
        for place, name in enumerate(stage):
            spec, record = execution.flow.steps[name], execution.step(name)
            told = (progress or {}).get(name)
            found.append(
                Row(
                    step=name,
                    bracket=_bracket(place, len(stage)),
                    depth=len(spec.guards),
                    invoke=_invoke(record, now),
                    compensate=_compensate(record, now),
                    notes=tuple(_notes(execution.head, spec, record, now, told)),
                )
            )
    return found


def outline(flow: Flow) -> list[Row]:
    """The steps of a workflow, with what it says of them."""
    found = []
    for stage in flow.stages:
        for place, name in enumerate(stage):
            spec = flow.steps[name]
            notes = [f"when {guard}" for guard in spec.guards]
            notes += [f"runs {spec.child}"] if spec.child else []
            notes += ["has an undo"] if spec.has_compensation else []
            notes += [_option(*option) for option in given(spec.options).items()]
            bracket = _bracket(place, len(stage))
            found.append(Row(name, bracket, len(spec.guards), None, None, tuple(notes)))
    return found


def _option(name: str, value: object) -> str:
    if value is True:
        return name
    if isinstance(value, float) and name not in ("retry_backoff", "retry_jitter"):
        return f"{name} {text.elapsed(value)}"
    return f"{name} {value}"


def given(options: msgspec.Struct) -> dict[str, object]:
    """The options that have another value than their default."""
    default = type(options)()
    named = {name: getattr(options, name) for name in options.__struct_fields__}
    return {
        name.rstrip("_"): value for name, value in named.items() if value != getattr(default, name)
    }


class Part(NamedTuple):
    """Those rows that a screen has room for, and how many it leaves out before and after them."""

    before: int
    rows: list[Row]
    after: int


def part(rows: list[Row], room: int) -> Part:
    """All rows where they fit into `room` lines; else those around the first that is under way."""
    if len(rows) <= room:
        return Part(0, rows, 0)
    room = max(room - 2, 1)
    current = next((i for i, row in enumerate(rows) if not row.is_settled), len(rows) - 1)
    start = min(max(current - room // 3, 0), len(rows) - room)
    return Part(start, rows[start : start + room], len(rows) - start - room)


def waiting_keys(execution: Execution) -> list[StepKey]:
    """The keys of the steps that wait for an answer from outside, in the order of the flow."""
    head = execution.head
    return [
        StepKey(head.workflow_id, head.transaction_id, name, record.action)
        for stage in execution.flow.stages
        for name in stage
        if (record := execution.step(name)).awaiting
    ]


def settled(execution: Execution) -> tuple[int, int]:
    """How many steps are over, and how many there are."""
    records = [execution.step(name) for name in execution.flow.steps]
    over = sum(r.invoke not in (StepState.NOT_STARTED, StepState.INVOKING) for r in records)
    return over, len(records)


def _bracket(place: int, length: int) -> str:
    if length == 1:
        return ""
    return "first" if place == 0 else "last" if place == length - 1 else "middle"


def _invoke(record: StepRecord, now: datetime) -> Side:
    if record.invoke in (StepState.SKIPPED, StepState.SKIPPED_FAILURE):
        return Side(str(record.invoke))
    if record.invoke is not StepState.INVOKING:
        return Side(str(record.invoke), text.seconds(record.started_at, record.ended_at))
    return Side(_word_in_progress(record), text.seconds(record.started_at, now))


def _compensate(record: StepRecord, now: datetime) -> Side | None:
    if record.compensate is StepState.DORMANT:
        return None
    since, ended = record.last_attempt_at, record.ended_at
    if since is not None and ended is not None and since < ended:
        since = None  # that was invoke's: undoing it is no call
    if record.compensate is StepState.COMPENSATING:
        word = _word_in_progress(record)
        word = "compensating" if word == "running" else word
        return Side(word, text.seconds(since, now))
    return Side(str(record.compensate), text.seconds(since, record.undone_at))


def _word_in_progress(record: StepRecord) -> str:
    if record.awaiting:
        return "waiting"
    if record.sleeping:
        return "sleeping"
    failed_for_now = record.invoke_status, record.compensate_status
    if StepStatus.TEMP_FAILURE in failed_for_now and not record.running:
        return "retrying"
    return "running"


def _notes(
    head: Head, spec: StepSpec, record: StepRecord, now: datetime, progress: Progress | None
) -> list[str]:
    notes = [_guard(head, guard) for guard in spec.guards]
    if record.attempts > 1:
        most = max(spec.options.max_retries + 1, record.attempts)
        notes.append(f"attempt {record.attempts} of {most}")
    if record.retry_at is not None:
        wait = text.seconds(now, record.retry_at)
        notes.append(f"again in {text.elapsed(wait)}" if wait and wait > 0 else "again now")
    if progress is not None and record.invoke is StepState.INVOKING:
        notes.append(str(progress))
    if record.reason:
        notes.append(record.reason)
    if record.error is not None and _is_failing(record):
        if record.undo and (record.error.attempts or 1) > 1:
            # Its counter has begun anew with the undo.
            notes.append(f"failed {record.error.attempts} times")
        notes.append(text.failure(record.error.name, record.error.message))
    return [text.safe(note) for note in notes if note]


def _guard(head: Head, guard: str) -> str:
    held = head.guards.get(guard)
    return f"when {guard}" + ("" if held is None else ": yes" if held else ": no")


def _is_failing(record: StepRecord) -> bool:
    bad = (StepState.FAILED, StepState.TIMEOUT)
    temporary = StepStatus.TEMP_FAILURE in (record.invoke_status, record.compensate_status)
    return temporary or record.invoke in bad or record.compensate in bad
