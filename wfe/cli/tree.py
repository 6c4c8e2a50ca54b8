"""An execution as rows, one per step: what a tree of steps says, whoever draws it.

Going backwards has a column of its own, so that a step that was done and then undone shows both. The steps
of a child stand below the step that runs it, as far as there is more to tell of them (`family`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from wfe.cli import family, text
from wfe.cli.family import Children
from wfe.model import (
    Execution,
    ExecutionKey,
    Flow,
    Head,
    StepKey,
    StepRecord,
    StepSpec,
    StepState,
    StepStatus,
)

#: Rows of a child; with more, those that are not under way are left out.
_LONGEST = 12


class Side(NamedTuple):
    """One side of a step, invoke or compensate: the word for its state, and how long it took."""

    #: A word of the vocabulary, or `running`, `interrupted`, `waiting`, `sleeping`, `retrying` or
    #: `parked` where that says too little.
    word: str
    seconds: float | None = None


class Row(NamedTuple):
    """What a line of the tree says about a step."""

    step: str
    #: Its place in a stage of several steps: `first`, `middle`, `last`; empty where it is alone.
    #: `fold`: it is no step, but says which steps of a child are left out.
    bracket: str
    #: How many conditions surround it.
    depth: int
    #: None for a step of a workflow that is not an execution's.
    invoke: Side | None
    #: None while nothing is to be undone.
    compensate: Side | None
    notes: tuple[str, ...]
    #: Of a step of a child: bracket and depth of the steps that it is a part of, the outermost first.
    stem: tuple[tuple[str, int], ...] = ()


class Progress(NamedTuple):
    """The newest that a step has told of itself."""

    fraction: float | None
    message: str | None

    def __str__(self) -> str:
        percent = "" if self.fraction is None else f"{self.fraction:.0%}"
        return " ".join(part for part in (percent, self.message) if part)


def rows(
    execution: Execution,
    now: datetime,
    progress: Mapping[str, Progress] | None = None,
    *,
    is_past: bool = False,
    children: Children = family.NONE,
) -> list[Row]:
    """The steps in the order of the flow. `is_past`: so it was at `now`, whoever had it in hand."""
    return _rows(_places(execution, children), now, progress or {}, is_past=is_past)


class _Place(NamedTuple):
    """A step, and where it stands in its stage."""

    execution: Execution
    step: str
    bracket: str
    stem: tuple[tuple[str, int], ...]
    #: Its own steps follow.
    is_open: bool


class _Fold(NamedTuple):
    """Steps of a child that are left out, in words."""

    told: str
    stem: tuple[tuple[str, int], ...]


def _places(
    execution: Execution, children: Children, stem: tuple[tuple[str, int], ...] = ()
) -> list[_Place | _Fold]:
    found: list[_Place | _Fold] = []
    for stage in execution.flow.stages:
        for number, step in enumerate(stage):
            bracket, child = _bracket(number, len(stage)), children.get(step)
            found.append(_Place(execution, step, bracket, stem, child is not None))
            if child is not None:
                own = (*stem, (bracket, len(execution.flow.steps[step].guards)))
                found += _folded(_places(child.execution, child.children, own), own)
    return found


def _folded(
    places: Sequence[_Place | _Fold], stem: tuple[tuple[str, int], ...]
) -> list[_Place | _Fold]:
    """Those of a child; of many steps those around the first that is under way."""
    start, end = _window(places, _LONGEST)
    before, after = _counted(places[:start], stem), _counted(places[end:], stem)
    return [
        *([_Fold(f"{told(before)} before", stem)] if before else []),
        *places[start:end],
        *([_Fold(f"{told(after)} after", stem)] if after else []),
    ]


def told(counts: Mapping[str, int]) -> str:
    """How many steps are in which state, in words."""
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def _rows(
    places: Sequence[_Place | _Fold],
    now: datetime,
    progress: Mapping[str, Progress],
    *,
    is_past: bool,
) -> list[Row]:
    found = []
    for place in places:
        if isinstance(place, _Fold):
            found.append(Row(place.told, "fold", 0, None, None, (), place.stem))
            continue
        execution, step = place.execution, place.step
        spec, record = execution.flow.steps[step], execution.step(step)
        at_work = "running" if is_past or execution.holder is not None else "interrupted"
        own = None if place.stem else progress.get(step)
        found.append(
            Row(
                step=step,
                bracket=place.bracket,
                depth=len(spec.guards),
                invoke=_invoke(spec, record, now, at_work),
                compensate=_compensate(spec, record, now, at_work),
                notes=tuple(_notes(execution.head, spec, record, now, own)),
                stem=place.stem,
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
            notes += told_options(spec.options)
            bracket = _bracket(place, len(stage))
            found.append(Row(name, bracket, len(spec.guards), None, None, tuple(notes)))
    return found


def told_options(options: msgspec.Struct) -> list[str]:
    """The options that have another value than their default, each as a person reads it."""
    return [_option(*option) for option in given(options).items()]


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
    """Those rows that a screen has room for, and how many steps in which state are left out before
    and after them."""

    before: Mapping[str, int]
    rows: list[Row]
    after: Mapping[str, int]


def part(
    execution: Execution,
    now: datetime,
    progress: Mapping[str, Progress],
    room: int,
    children: Children = family.NONE,
) -> Part:
    """All rows where they fit into `room` lines; else without the steps of some children, and where
    even that is too much those around the first that is under way. Costs little for a step that is left
    out, so that a thousand of them can be drawn while they move."""
    places, shown = _places(execution, children), dict(children)
    while len(places) > room and shown:
        shown.popitem()
        places = _places(execution, shown)
    start, end = _window(places, room)
    return Part(
        _counted(places[:start], ()),
        _rows(places[start:end], now, progress, is_past=False),
        _counted(places[end:], ()),
    )


def _window(places: Sequence[_Place | _Fold], room: int) -> tuple[int, int]:
    """From where to where there is room for them."""
    if len(places) <= room:
        return 0, len(places)
    room = max(room - 2, 1)
    start = min(max(_current(places) - room // 3, 0), len(places) - room)
    return start, start + room


def _current(places: Sequence[_Place | _Fold]) -> int:
    """Where something happens; where nothing does, the first step that is not over."""
    under_way, to_come = None, None
    for number, place in enumerate(places):
        if isinstance(place, _Fold):
            continue
        if place.step in place.execution.active:
            if not place.is_open:
                return number
            under_way = number if under_way is None else under_way
        elif (
            to_come is None and under_way is None and _is_to_come(place.execution.step(place.step))
        ):
            to_come = number
    if under_way is not None:
        return under_way
    return len(places) - 1 if to_come is None else to_come


def _is_to_come(record: StepRecord) -> bool:
    if record.compensate not in (StepState.DORMANT, StepState.REVERTED, StepState.FAILED):
        return True
    return record.invoke in (StepState.NOT_STARTED, StepState.INVOKING)


def _counted(
    places: Sequence[_Place | _Fold], stem: tuple[tuple[str, int], ...]
) -> Mapping[str, int]:
    """The steps of one execution by state, without those of its children."""
    own = (p for p in places if isinstance(p, _Place) and p.stem == stem)
    known = (place.execution.steps.get(place.step) for place in own)
    return Counter(_NOT_STARTED if record is None else str(record.state) for record in known)


_NOT_STARTED = str(StepState.NOT_STARTED)


def waiting_keys(execution: Execution) -> list[StepKey]:
    """The keys of the steps that wait for an answer from outside, in the order of the flow."""
    head = execution.head
    return [
        StepKey(head.workflow_id, head.transaction_id, record.name, record.action)
        for record in _awaiting(execution)
        if execution.flow.steps[record.name].child is None
    ]


def waiting_children(execution: Execution) -> list[tuple[str, ExecutionKey]]:
    """The steps that wait for the end of the workflow that they run, and the key of that."""
    found = []
    for record in _awaiting(execution):
        key = family.child_key(execution, record.name)
        if key is not None:
            found.append((record.name, key))
    return found


def _awaiting(execution: Execution) -> list[StepRecord]:
    records = [execution.step(name) for stage in execution.flow.stages for name in stage]
    return [record for record in records if record.awaiting]


def settled(execution: Execution) -> tuple[int, int]:
    """How many steps are over, and how many there are."""
    records = [execution.step(name) for name in execution.flow.steps]
    over = sum(r.invoke not in (StepState.NOT_STARTED, StepState.INVOKING) for r in records)
    return over, len(records)


def _bracket(place: int, length: int) -> str:
    if length == 1:
        return ""
    return "first" if place == 0 else "last" if place == length - 1 else "middle"


def _invoke(spec: StepSpec, record: StepRecord, now: datetime, at_work: str) -> Side:
    if record.invoke in (StepState.SKIPPED, StepState.SKIPPED_FAILURE):
        return Side(str(record.invoke))
    if record.invoke is not StepState.INVOKING:
        return Side(str(record.invoke), text.seconds(record.started_at, record.ended_at))
    return Side(_word_in_progress(spec, record, at_work), text.seconds(record.started_at, now))


def _compensate(spec: StepSpec, record: StepRecord, now: datetime, at_work: str) -> Side | None:
    if record.compensate is StepState.DORMANT:
        return None
    since, ended = record.last_attempt_at, record.ended_at
    if since is not None and ended is not None and since < ended:
        since = None  # that was invoke's: undoing it is no call
    if record.compensate is StepState.COMPENSATING:
        word = _word_in_progress(spec, record, at_work)
        word = "compensating" if word == "running" else word
        return Side(word, text.seconds(since, now))
    return Side(str(record.compensate), text.seconds(since, record.undone_at))


def _word_in_progress(spec: StepSpec, record: StepRecord, at_work: str) -> str:
    if record.awaiting:
        return "waiting"
    if record.sleeping:
        return "sleeping"
    failed_for_now = record.invoke_status, record.compensate_status
    if StepStatus.TEMP_FAILURE in failed_for_now and not record.running:
        return "retrying" if spec.options.auto_retry else "parked"
    return at_work


def _notes(
    head: Head, spec: StepSpec, record: StepRecord, now: datetime, progress: Progress | None
) -> list[str]:
    notes = [guard(head, name) for name in spec.guards]
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


def guard(head: Head, name: str) -> str:
    """A condition, and whether it held where that is known."""
    held = head.guards.get(name)
    return f"when {name}" + ("" if held is None else ": yes" if held else ": no")


def _is_failing(record: StepRecord) -> bool:
    bad = (StepState.FAILED, StepState.TIMEOUT)
    temporary = StepStatus.TEMP_FAILURE in (record.invoke_status, record.compensate_status)
    return temporary or record.invoke in bad or record.compensate in bad
