"""What each field of a search takes, and the condition that it makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from wfe.durations import duration
from wfe.errors import UsageError
from wfe.model import FINAL_STATES, ExecutionState, StepState
from wfe.store.queries import times
from wfe.store.queries.conditions import All, Condition, Either, Operator, Test, containing
from wfe.store.queries.facts import Fact, FactKind

#: The words for an execution: what a list shows.
STATUSES = ("running", "waiting", "sleeping", "interrupted", *sorted(FINAL_STATES))

_STEP_WORDS = ("running", "waiting", "sleeping", "retrying", *StepState)

OPERATORS = {
    "=": Operator.IN,
    "!=": Operator.NOT_IN,
    "~": Operator.LIKE,
    ">": Operator.GREATER,
    ">=": Operator.AT_LEAST,
    "<": Operator.LESS,
    "<=": Operator.AT_MOST,
}
_COMPARISONS = (">", ">=", "<", "<=")


class Asked(NamedTuple):
    """A condition as it was typed."""

    word: str
    #: The field with its path, for messages.
    name: str
    path: tuple[str, ...]
    sign: str
    values: tuple[str, ...]
    now: datetime

    @property
    def operator(self) -> Operator:
        return OPERATORS[self.sign]

    def refuse(self, sentence: str) -> UsageError:
        return UsageError(f"{self.word!r}: {sentence}", hint="wfe help query tells more.")

    def only(self, *signs: str) -> None:
        """Refuse the other operators."""
        if self.sign not in signs:
            raise self.refuse(f"{self.name} takes {' '.join(signs)}.")

    def value(self) -> str:
        """The one value that is compared with."""
        if len(self.values) > 1:
            raise self.refuse(f"{self.sign} takes one value.")
        return self.values[0]


def unknown(what: str, name: str, known: Sequence[str]) -> UsageError:
    close = near(name, known)
    return UsageError(
        f"There is no {what} {name!r}.",
        hint=f"Did you mean {close}?"
        if close
        else f"There are: {', '.join(dict.fromkeys(known))}.",
    )


def near(name: str, known: Sequence[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, n=1)), None)


# --- kinds of fields -----------------------------------------------------------------------------


def either(parts: Sequence[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else Either(tuple(parts))


def _tests(field: str | Fact, asked: Asked) -> Condition:
    """Of texts."""
    match asked.operator:
        case Operator.IN | Operator.NOT_IN:
            return Test(field, asked.operator, asked.values)
        case Operator.LIKE:
            return either([Test(field, Operator.LIKE, containing(v)) for v in asked.values])
    return Test(field, asked.operator, asked.value())


def _plain(asked: Asked) -> None:
    if asked.path:
        raise asked.refuse(f"{asked.name.partition('.')[0]} has no parts.")


def _text(column: str) -> Callable[[Asked], Condition]:
    def make(asked: Asked) -> Condition:
        _plain(asked)
        return _tests(column, asked)

    return make


def _choice(column: str, what: str, known: Sequence[str]) -> Callable[[Asked], Condition]:
    def make(asked: Asked) -> Condition:
        _plain(asked)
        return _chosen(column, what, known, asked)

    return make


def _chosen(field: str | Fact, what: str, known: Sequence[str], asked: Asked) -> Condition:
    asked.only("=", "!=", "~")
    for value in asked.values:
        if asked.sign != "~" and value not in known:
            raise unknown(what, value, [str(each) for each in known])
    return _tests(field, asked)


def _moment(column: str) -> Callable[[Asked], Condition]:
    def make(asked: Asked) -> Condition:
        _plain(asked)
        asked.only("=", "!=", *_COMPARISONS)
        if asked.sign in _COMPARISONS:
            return Test(column, asked.operator, _moment_of(asked))
        spans = _spans_of(asked)
        if asked.operator is Operator.IN:
            return either([_during(column, *span) for span in spans])
        return All(tuple(_not_during(column, *span) for span in spans))

    return make


def _moment_of(asked: Asked) -> datetime:
    try:
        return times.moment(asked.value(), asked.now)
    except ValueError as error:
        raise asked.refuse(f"{error}. Write 2h, 2026-11-30 or 2026-11-30T08:00Z.") from None


def _spans_of(asked: Asked) -> Sequence[tuple[datetime, datetime]]:
    try:
        return [times.span(value) for value in asked.values]
    except ValueError as error:
        raise asked.refuse(f"{error}, such as 2026-11-30 or 2026-11-30T08:00Z.") from None


def _during(column: str, begin: datetime, end: datetime) -> Condition:
    return All((Test(column, Operator.AT_LEAST, begin), Test(column, Operator.LESS, end)))


def _not_during(column: str, begin: datetime, end: datetime) -> Condition:
    return Either((Test(column, Operator.LESS, begin), Test(column, Operator.AT_LEAST, end)))


#: An age is the greater the earlier something began.
_OF_AGE = {
    ">": Operator.LESS,
    ">=": Operator.AT_MOST,
    "<": Operator.GREATER,
    "<=": Operator.AT_LEAST,
}


def _age(asked: Asked) -> Condition:
    _plain(asked)
    asked.only(*_COMPARISONS)
    try:
        moment = asked.now - timedelta(seconds=duration(asked.value()))
    except ValueError as error:
        raise asked.refuse(f"{error}.") from None
    except OverflowError:
        raise asked.refuse("nothing is that old.") from None
    return Test("created_at", _OF_AGE[asked.sign], moment)


def _attempts(asked: Asked) -> Condition:
    _plain(asked)
    asked.only("=", "!=", *_COMPARISONS)
    fact = Fact(FactKind.ATTEMPTS)
    if not all(re.fullmatch(r"\d{1,15}", value, re.ASCII) for value in asked.values):
        raise asked.refuse("attempts is a whole number.")
    numbers = tuple(map(int, asked.values))
    if asked.sign in _COMPARISONS:
        return Test(fact, asked.operator, int(asked.value()))
    return Test(fact, asked.operator, numbers)


def _error(asked: Asked) -> Condition:
    _plain(asked)
    asked.only("=", "!=", "~")
    return _tests(Fact(FactKind.ERROR), asked)


def _step(asked: Asked) -> Condition:
    if not asked.path or not asked.path[0]:
        raise asked.refuse("step wants the name of one, as in step.charge=failed.")
    name = ".".join(asked.path)  # a name may have dots
    return _chosen(Fact(FactKind.STEP, (name,)), "state of a step", _STEP_WORDS, asked)


def _value(kind: FactKind) -> Callable[[Asked], Condition]:
    def make(asked: Asked) -> Condition:
        if "" in asked.path:
            field = asked.name.partition(".")[0]
            raise asked.refuse(f"a name is missing between or after the dots, as in {field}.id=42.")
        return _tests(Fact(kind, asked.path), asked)

    return make


FIELDS: dict[str, Callable[[Asked], Condition]] = {
    "workflow": _text("workflow_id"),
    "transaction": _text("transaction_id"),
    "run": _text("run_id"),
    "state": _choice("state", "state", tuple(ExecutionState)),
    "status": _choice("shown", "status", STATUSES),
    "created": _moment("created_at"),
    "updated": _moment("updated_at"),
    "age": _age,
    "attempts": _attempts,
    "error": _error,
    "step": _step,
    "input": _value(FactKind.INPUT),
    "output": _value(FactKind.OUTPUT),
}
