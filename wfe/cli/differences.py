"""Differences: where two executions of one workflow part.

In the order in which they came about: the definition, the input, then each step in the order of the flow
(its conditions, what became of it, its error, its output), the undos, the end. The first one is where they
part; whatever follows may be its consequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wfe.cli import text
from wfe.model import ErrorRecord, Execution, Json, StepRecord, StepState


class _Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


class Difference(NamedTuple):
    """What differs, and how; one side may be MISSING."""

    #: `definition`, `input`, `condition`, `state`, `attempts`, `error`, `output`, `undo`, `end` or
    #: `result`.
    kind: str
    #: The step; None where it is about the whole.
    step: str | None
    #: The place inside of a value: `address.lines[2]`; empty: the whole value.
    path: str
    a: Any
    b: Any

    @property
    def where(self) -> str:
        """`input.address.city`, `charge output.total`, `ship state`."""
        separator = "" if not self.path or self.path.startswith("[") else "."
        place = f"{self.kind}{separator}{self.path}"
        return place if self.step is None else f"{self.step} {place}"


class Duration(NamedTuple):
    """How long a step took in each, from its first start to its end, in seconds."""

    step: str
    a: float | None
    b: float | None


def differences(a: Execution, b: Execution) -> Iterator[Difference]:
    """Everything in which they differ but for moments and durations."""
    yield from _of_definitions(a, b)
    yield from _of_values("input", None, a.input, b.input)
    for name in a.flow.steps:
        if name in b.flow.steps:
            yield from _of_steps(a, b, name)
    for name in reversed(list(a.flow.steps)):
        if name in b.flow.steps:
            yield from _of("undo", name, *(_undone(e.step(name)) for e in (a, b)))
    yield from _of("end", None, _end(a), _end(b))
    yield from _of_values("result", None, a.result, b.result)


def durations(a: Execution, b: Execution) -> list[Duration]:
    """Of the steps that ran in both."""
    found = []
    for name in a.flow.steps:
        if name in b.flow.steps:
            took = [text.seconds(e.step(name).started_at, e.step(name).ended_at) for e in (a, b)]
            if None not in took:
                found.append(Duration(name, *took))
    return found


def total(execution: Execution) -> float | None:
    """Seconds from the begin of an execution to its end; None while it has none."""
    return text.seconds(execution.head.started_at, execution.head.ended_at)


# --- parts ---------------------------------------------------------------------------------------


def _of(kind: str, step: str | None, a: Any, b: Any) -> Iterator[Difference]:
    if a != b:
        yield Difference(kind, step, "", a, b)


def _of_definitions(a: Execution, b: Execution) -> Iterator[Difference]:
    steps = {**dict.fromkeys(a.flow.steps), **dict.fromkeys(b.flow.steps)}
    for name in steps:
        stages = [e.flow.steps[name].stage if name in e.flow.steps else MISSING for e in (a, b)]
        if MISSING in stages:
            told = ["there" if stage is not MISSING else MISSING for stage in stages]
            yield Difference("definition", name, "", *told)
        elif stages[0] != stages[1]:
            yield Difference("definition", name, "", *(f"stage {stage}" for stage in stages))


def _of_steps(a: Execution, b: Execution, name: str) -> Iterator[Difference]:
    first, second = a.step(name), b.step(name)
    for guard in a.flow.steps[name].guards:
        held = [e.head.guards.get(guard, MISSING) for e in (a, b)]
        if MISSING not in held:
            yield from _of(f"condition {guard}", name, *held)
    yield from _of("state", name, str(first.invoke), str(second.invoke))
    if first.action is second.action:
        yield from _of("attempts", name, first.attempts, second.attempts)
    yield from _of("error", name, _failed_with(first), _failed_with(second))
    yield from _of_values("output", name, first.output, second.output)


def _undone(record: StepRecord) -> Any:
    return MISSING if record.compensate is StepState.DORMANT else str(record.compensate)


def _failed_with(record: StepRecord) -> Any:
    return MISSING if record.error is None else _said(record.error)


def _said(error: ErrorRecord) -> str:
    return text.failure(error.name, error.message)


def _end(execution: Execution) -> str:
    head = execution.head
    if head.cancelled_at is not None:
        return f"{head.state}, cancelled"
    return f"{head.state}, timed out" if head.timed_out else str(head.state)


# --- values --------------------------------------------------------------------------------------


def _of_values(kind: str, step: str | None, a: Json | None, b: Json | None) -> Iterator[Difference]:
    if a == b:
        return
    from wfe.store import codec

    first, second = (MISSING if value is None else codec.decode(value) for value in (a, b))
    for path, one, other in values(first, second):
        yield Difference(kind, step, path, one, other)


def values(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places in which two JSON values differ, each with what both have there."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in (*a, *(key for key in b if key not in a)):
            place = _inside(path, key)
            yield from values(a.get(key, MISSING), b.get(key, MISSING), place)
    elif isinstance(a, list) and isinstance(b, list):
        for number in range(max(len(a), len(b))):
            one = a[number] if number < len(a) else MISSING
            other = b[number] if number < len(b) else MISSING
            yield from values(one, other, f"{path}[{number}]")
    elif a != b or isinstance(a, bool) is not isinstance(b, bool):
        yield path, a, b


def _inside(path: str, key: str) -> str:
    if key.replace("-", "_").isidentifier():
        return f"{path}.{key}" if path else key
    import json

    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
