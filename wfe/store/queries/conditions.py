"""Conditions: tests of single facts about an execution, joined by All and Either, and what they mean.

`filters` makes them from a `Query`, `typed` from what a person types. The memory store evaluates them
here (`holds`); `selection` translates them into SQL. What a test means is therefore written down once:

- A value None means absent. An absent field matches only None, `$ne` and `$nin`.
- A list is any of its values, as with `$in`.
- Texts are equal, and sort, by code points. Moments may be given as ISO 8601 texts with an offset.
- `$like` and words ignore case. In `$like`, % stands for any text, \\% for a percent sign and \\\\ for a
  backslash; a pattern without % may stand anywhere, like a word.
- Ignoring case: a pattern of ASCII characters meets a text in which A to Z were made small; any other
  pattern and its text are compared as `str.casefold` gives them. (SQLite does the former by itself and
  fast; the latter it must ask Python for.)
- A fact that has several values (the failures of an execution, say) meets a test where one of its values
  does, and `$ne` and `$nin` where none of them is meant.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from wfe.errors import UsageError
from wfe.store.queries import facts
from wfe.store.queries.facts import Fact

if TYPE_CHECKING:
    from wfe.model import Execution
    from wfe.store.contract import ExecutionSummary

#: The fields that a word is looked for in.
SEARCHED = ("workflow_id", "transaction_id", "state", "run_id")

#: The longest pattern, in characters; SQLite has a limit of its own further up.
_MAX_PATTERN = 4000

_ASCII_SMALL = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Operator(StrEnum):
    IN = "$in"
    NOT_IN = "$nin"
    GREATER = "$gt"
    AT_LEAST = "$gte"
    LESS = "$lt"
    AT_MOST = "$lte"
    LIKE = "$like"


class Pattern(msgspec.Struct, frozen=True):
    """A `$like`: the texts between the % signs, in order, small already."""

    parts: tuple[str, ...]
    #: The case is ignored by `str.casefold`, not only that of A to Z.
    folded: bool

    def matches(self, text: str) -> bool:
        text = text.casefold() if self.folded else text.translate(_ASCII_SMALL)
        first, *middle, last = self.parts
        if not text.startswith(first):
            return False
        position = len(first)
        for part in middle:
            found = text.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        return len(text) - position >= len(last) and text.endswith(last)


class Test(msgspec.Struct, frozen=True):
    """`field` is a column of a list, or a fact that lies deeper. `value` is a tuple of values for IN
    and NOT_IN, a Pattern for LIKE, one value for the others."""

    field: str | Fact
    operator: Operator
    value: Any


class Word(msgspec.Struct, frozen=True):
    """One of SEARCHED meets the pattern."""

    pattern: Pattern


class All(msgspec.Struct, frozen=True):
    parts: tuple[Condition, ...]


class Either(msgspec.Struct, frozen=True):
    parts: tuple[Condition, ...]


Condition = Test | Word | All | Either


def containing(text: str) -> Pattern:
    """The pattern of texts that have `text` in them.

    Raises:
        UsageError: it is too long, or no text.
    """
    small, folded = without_case(text)
    return Pattern(("", small, ""), folded)


def without_case(text: str) -> tuple[str, bool]:
    """A pattern's text without its case, and whether that took more than A to Z. Raises as above."""
    if len(well_formed(text)) > _MAX_PATTERN:
        raise UsageError(f"A pattern has at most {_MAX_PATTERN} characters.")
    folded = not text.isascii()
    return (text.casefold() if folded else text.lower()), folded


def well_formed(text: str) -> str:
    """
    Raises:
        UsageError: it holds half of a surrogate pair, as arguments do that are no UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!a} holds bytes that are no text; nothing stored does.") from None
    return str(text)


# --- in memory -----------------------------------------------------------------------------------


def holds(condition: Condition, row: ExecutionSummary, execution: Execution) -> bool:
    """Whether an execution, and the row that a list shows of it, meets the condition."""
    match condition:
        case All(parts):
            return all(holds(part, row, execution) for part in parts)
        case Either(parts):
            return any(holds(part, row, execution) for part in parts)
        case Word(pattern):
            return any(pattern.matches(getattr(row, field)) for field in SEARCHED)
        case Test(Fact() as fact, operator, value):
            return _fact_answers(fact, operator, value, execution)
        case Test():
            return answers(condition.operator, condition.value, getattr(row, str(condition.field)))


def _fact_answers(fact: Fact, operator: Operator, asked: Any, execution: Execution) -> bool:
    if operator is Operator.NOT_IN:
        return not _fact_answers(fact, Operator.IN, asked, execution)
    if fact.is_json:
        found = facts.json_values(fact, execution)
        return any(json_answers(operator, asked, path, value) for value, path in found)
    return any(answers(operator, asked, value) for value in facts.values(fact, execution))


def json_answers(operator: Operator, asked: Any, path: tuple[str, ...], value: bytes) -> bool:
    """Whether what lies at `path` in the JSON text `value` answers a test other than NOT_IN. A number
    may be asked for as any text of it."""
    found = facts.at(value, path)
    if found is facts.ABSENT:
        return False
    match operator:
        case Operator.IN:
            return any(facts.equals(found, text) for text in asked)
        case Operator.LIKE:
            return answers(operator, asked, facts.as_text(found))
    pair = facts.comparable(found, asked)
    return pair is not None and answers(operator, pair[1], pair[0])


def answers(operator: Operator, asked: Any, value: Any) -> bool:
    """Whether one value, None where it is absent, answers a test."""
    match operator:
        case Operator.IN:
            return value in asked
        case Operator.NOT_IN:
            return value not in asked
    if value is None:
        return False
    match operator:
        case Operator.LIKE:
            return bool(asked.matches(value))
        case Operator.GREATER:
            return bool(value > asked)
        case Operator.AT_LEAST:
            return bool(value >= asked)
        case Operator.LESS:
            return bool(value < asked)
        case Operator.AT_MOST:
            return bool(value <= asked)
