"""One test of a condition as SQL, over a column or any other expression. `conditions` says what it means."""

from __future__ import annotations

from collections.abc import Sequence
from operator import and_, or_
from typing import Any

from peewee import SQL, NodeList, Value, fn

from wfe.store.queries.conditions import Operator, Pattern

NOTHING = SQL("0")
EVERYTHING = SQL("1")


def compared(column: Any, operator: Operator, asked: Any) -> Any:
    """Whether `column` answers a test."""
    match operator:
        case Operator.IN:
            return _in(column, asked)
        case Operator.NOT_IN:
            return _not_in(column, asked)
        case Operator.LIKE:
            return like(column, asked)
        case Operator.GREATER:
            return column > asked
        case Operator.AT_LEAST:
            return column >= asked
        case Operator.LESS:
            return column < asked
        case Operator.AT_MOST:
            return column <= asked


def _in(column: Any, values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not None]
    parts = [column.in_(present)] if present else []
    if None in values:
        parts.append(column.is_null())
    return any_of(parts)


def _not_in(column: Any, values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not None]
    other = column.not_in(present) if present else EVERYTHING
    if None in values:
        return and_(column.is_null(False), other)
    return or_(column.is_null(), other) if present else EVERYTHING


def like(column: Any, pattern: Pattern) -> Any:
    """Whether `column` meets the pattern."""
    text = fn.casefold(column) if pattern.folded else column
    escaped = "%".join(_escaped(part) for part in pattern.parts)
    return NodeList((text, SQL("LIKE"), Value(escaped), SQL(r"ESCAPE '\'")), parens=True)


def _escaped(part: str) -> str:
    return part.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def all_of(parts: Sequence[Any]) -> Any:
    return _joined(and_, parts, EVERYTHING)


def any_of(parts: Sequence[Any]) -> Any:
    return _joined(or_, parts, NOTHING)


def _joined(join: Any, parts: Sequence[Any], none: Any) -> Any:
    """Halves of halves, because SQLite limits how deep an expression may be."""
    if len(parts) < 2:
        return parts[0] if parts else none
    half = len(parts) // 2
    return join(_joined(join, parts[:half], none), _joined(join, parts[half:], none))
