"""Facts about an execution that are in no column of a list: its failures, its steps, its values.

`facts_sql` looks for the same facts in the tables. What is said of a value of JSON is said here alone;
SQLite asks for it.

- The value at a path: each part is the key of an object, or the number, from 0, of an item of an array.
- Compared with a text, a value of JSON is its own text: a string itself, anything else as JSON is
  written. Where both are numbers, they are compared as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from wfe.model import ErrorRecord, Json, StepRecord, StepState, StepStatus

if TYPE_CHECKING:
    from wfe.model import Execution

#: What `at` gives where there is nothing.
ABSENT = object()

_NUMBER = r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"

#: A text from so many characters on is no number: Python would refuse to convert it.
_LONGEST = 4000


class FactKind(StrEnum):
    #: How often the step was called that was called most.
    ATTEMPTS = "attempts"
    #: The failures of steps: the name, the message, and both as they are shown.
    ERROR = "error"
    #: The state of a step that was touched, of its undo, and what it does at the moment.
    STEP = "step"
    #: What the execution was given.
    INPUT = "input"
    #: What it came to, and what its steps returned; of one step, where the path begins with its name.
    OUTPUT = "output"


class Fact(msgspec.Struct, frozen=True):
    kind: FactKind
    #: The name of a step, or where to look in a value.
    path: tuple[str, ...] = ()

    @property
    def is_json(self) -> bool:
        """Whether it lies in users' values."""
        return self.kind in (FactKind.INPUT, FactKind.OUTPUT)


# --- of an execution -----------------------------------------------------------------------------


def values(fact: Fact, execution: Execution) -> Sequence[Any]:
    """The values of a fact that is no user's value."""
    match fact.kind:
        case FactKind.ATTEMPTS:
            return [_most_attempts(execution)]
        case FactKind.ERROR:
            return [text for error in _errors(execution) for text in error_texts(error)]
        case FactKind.STEP:
            record = execution.steps.get(fact.path[0])
            return [] if record is None else step_words(record)
        case FactKind.INPUT | FactKind.OUTPUT:
            raise AssertionError("users' values come with paths")


def _most_attempts(execution: Execution) -> int:
    """The undo of a step counts anew; what its failure had counted is in the error."""
    counts = [record.attempts for record in execution.steps.values()]
    counts += [error.attempts or 0 for error in execution.head.errors]
    return max(counts, default=0)


def _errors(execution: Execution) -> Iterator[ErrorRecord]:
    yield from execution.head.errors
    for record in execution.steps.values():
        if record.error is not None:
            yield record.error


def error_texts(error: ErrorRecord) -> Sequence[str]:
    if error.name is None:
        return [error.message]
    return [error.name, error.message, f"{error.name}: {error.message}"]


def step_words(record: StepRecord) -> Sequence[str]:
    words = [str(record.invoke)]
    if record.compensate is not StepState.DORMANT:
        words.append(str(record.compensate))
    if StepState.INVOKING in words or StepState.COMPENSATING in words:
        words.append(_present_word(record))
    return words


def _present_word(record: StepRecord) -> str:
    if record.awaiting:
        return "waiting"
    if record.sleeping:
        return "sleeping"
    between = StepStatus.TEMP_FAILURE in (record.invoke_status, record.compensate_status)
    return "retrying" if between and not record.running else "running"


def json_values(fact: Fact, execution: Execution) -> Iterator[tuple[Json, tuple[str, ...]]]:
    """The users' values that a fact may lie in, and where in each."""
    if fact.kind is FactKind.INPUT:
        yield from _there(execution.input, fact.path)
        return
    yield from _there(execution.result, fact.path)
    step, *rest = fact.path or (None,)
    for record in execution.steps.values():
        if step in (None, record.name):
            yield from _there(record.output, tuple(rest))


def _there(value: Json | None, path: tuple[str, ...]) -> Iterator[tuple[Json, tuple[str, ...]]]:
    if value is not None:
        yield value, path


# --- of a value of JSON --------------------------------------------------------------------------


def at(value: Json, path: Sequence[str]) -> Any:
    """What lies at `path` in the JSON text `value`; ABSENT where nothing does."""
    from wfe.store import codec  # which costs much to import, for what few ask

    found: Any = codec.decode(value)
    for part in path:
        if isinstance(found, dict):
            found = found.get(part, ABSENT)
        elif isinstance(found, list) and part.isascii() and part.isdigit() and len(part) < 10:
            found = found[int(part)] if int(part) < len(found) else ABSENT
        else:
            return ABSENT
    return found


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    from wfe.store import codec

    return codec.encode(value).decode()


def equals(value: Any, text: str) -> bool:
    if as_text(value) == text:
        return True
    number = _number(text)
    return number is not None and _is_number(value) and bool(value == number)


def comparable(value: Any, text: str) -> tuple[Any, Any] | None:
    """The two so that < means something; None where it does not."""
    number = _number(text)
    if _is_number(value):
        return None if number is None else (value, number)
    if not isinstance(value, str):
        return None
    own = _number(value)
    return (value, text) if own is None or number is None else (own, number)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> int | float | None:
    match = re.fullmatch(_NUMBER, text, re.ASCII) if len(text) < _LONGEST else None
    if match is None:
        return None
    return int(text) if match[2] is None and match[3] is None else float(text)
