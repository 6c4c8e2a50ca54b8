"""What a `Query` asks, checked and in one form: a condition, an order and a page.

`conditions` says what a condition means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from wfe.clock import utc
from wfe.errors import UsageError
from wfe.store.contract import QUERY_FIELDS, ExecutionSummary, Query
from wfe.store.queries.conditions import (
    All,
    Condition,
    Either,
    Operator,
    Pattern,
    Test,
    Word,
    containing,
    well_formed,
    without_case,
)

_MOMENTS = ("created_at", "updated_at")
_NUMBERS = ("retention_time",)

#: The most values that `$in` and its kind take.
_MAX_VALUES = 10_000


class Plan(msgspec.Struct, frozen=True):
    condition: All
    #: Field, and whether it descends. The last one is the execution id, which makes the order total.
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int


def plan(query: Query) -> Plan:
    """
    Raises:
        UsageError: an unknown field or operator, or a value that its field cannot have.
    """
    if query.offset < 0 or (query.limit is not None and query.limit < 0):
        raise UsageError("A limit and an offset are at least 0.")
    words = tuple(Word(containing(word)) for word in query.q.split())
    condition = All((*words, *_where(query.where), *query.conditions))
    return Plan(condition, _order(query), query.limit, query.offset)


def _where(where: Mapping[str, Any]) -> list[Condition]:
    conditions: list[Condition] = []
    for name, value in where.items():
        if name in ("$and", "$or"):
            joined = tuple(All(tuple(_where(part))) for part in _mappings(name, value))
            conditions.append(All(joined) if name == "$and" else Either(joined))
        else:
            conditions += _tests(_field(name), value)
    return conditions


def _mappings(name: str, value: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(value, list | tuple) and all(isinstance(part, Mapping) for part in value):
        return value
    raise UsageError(f"{name} takes a list of conditions, such as [{{'state': 'done'}}].")


def _field(name: str) -> str:
    if name in QUERY_FIELDS:
        return name
    from difflib import get_close_matches

    near = get_close_matches(str(name), QUERY_FIELDS, n=1)
    raise UsageError(
        f"Executions have no field {name!r}." + (f" Did you mean {near[0]}?" if near else ""),
        hint=f"There are: {', '.join(QUERY_FIELDS)}.",
    )


def _tests(field: str, value: Any) -> list[Condition]:
    if isinstance(value, Mapping):
        if not value:
            raise UsageError(f"The condition of {field} is empty.", hint=_operators())
        return [_test(field, operator, operand) for operator, operand in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_test(field, "$in", value)]
    return [Test(field, Operator.IN, (_value(field, value),))]


def _operators() -> str:
    return f"There are: $ne, {', '.join(Operator)}."


def _test(field: str, operator: str, operand: Any) -> Test:
    if operator == "$ne":
        return Test(field, Operator.NOT_IN, (_value(field, operand),))
    try:
        known = Operator(operator)
    except ValueError:
        raise UsageError(
            f"{field} has an unknown operator {operator!r}.", hint=_operators()
        ) from None
    match known:
        case Operator.IN | Operator.NOT_IN:
            return Test(field, known, _values(field, operand))
        case Operator.LIKE:
            return Test(field, known, _like(field, operand))
    if operand is None:
        raise UsageError(f"{known} of {field} takes a value, not None.")
    return Test(field, known, _value(field, operand))


def _values(field: str, operand: Any) -> tuple[Any, ...]:
    if not isinstance(operand, list | tuple | set | frozenset):
        raise UsageError(f"$in and $nin of {field} take a list.")
    if len(operand) > _MAX_VALUES:
        raise UsageError(f"$in and $nin of {field} take at most {_MAX_VALUES} values.")
    return tuple(_value(field, value) for value in operand)


def _value(field: str, value: Any) -> Any:
    """The value as the field has it: a plain str, a float, or an aware datetime."""
    if value is None:
        return None
    if field in _MOMENTS:
        return _moment(field, value)
    if field in _NUMBERS:
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = _float(value)
            if math.isfinite(number):
                return number
        raise UsageError(f"{field} is a number of seconds, and {value!r} is none.")
    return _text(field, value)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{field} is a text, and {value!r} is none.")
    return well_formed(value)


def _moment(field: str, value: Any) -> datetime:
    try:
        return utc(datetime.fromisoformat(value) if isinstance(value, str) else value)
    except (ValueError, AttributeError, OverflowError):
        raise UsageError(
            f"{field} is a moment, and {value!r} is none.",
            hint="Give an aware datetime, or a text such as 2026-11-29T20:15:00Z.",
        ) from None


def _like(field: str, operand: Any) -> Pattern:
    if field in _MOMENTS or field in _NUMBERS:
        raise UsageError(f"$like looks into texts, and {field} is none.")
    return _pattern(_text(field, operand))


def _pattern(text: str) -> Pattern:
    small, folded = without_case(text)
    parts = tuple(_unescaped_parts(small))
    return Pattern(("", *parts, "") if len(parts) == 1 else parts, folded)


def _unescaped_parts(pattern: str) -> list[str]:
    """The texts between the % signs that are not escaped."""
    parts = [""]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            parts.append("")
            continue
        if character == "\\":
            escaped = next(characters, "\\")
            character = escaped if escaped in "\\%" else f"\\{escaped}"
        parts[-1] += character
    return parts


def _order(query: Query) -> tuple[tuple[str, bool], ...]:
    order = [(_field(name.removeprefix("-")), name.startswith("-")) for name in query.order_by]
    # In the direction of the last field, so that an index serves both.
    return (*order, ("execution_id", bool(order) and order[-1][1]))


def arranged(rows: Iterable[ExecutionSummary], asked: Plan) -> list[ExecutionSummary]:
    """`rows` in the order of the plan, and the part of them that it wants. Absent values come first,
    and last where the order descends."""
    ordered = list(rows)
    for field, descending in reversed(asked.order):
        ordered.sort(key=lambda row: _place(getattr(row, field)), reverse=descending)
    end = None if asked.limit is None else asked.offset + asked.limit
    return ordered[asked.offset : end]


def _place(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else 0)
