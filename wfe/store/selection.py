"""The conditions of a query as SQL over `workflow_execution`. `filters` says what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from operator import and_, or_
from typing import Any

from peewee import SQL, Case, ModelSelect, NodeList, Value, fn

from wfe.model import FINAL_STATES
from wfe.store.connection import Connection
from wfe.store.filters import All, Condition, Either, Operator, Pattern, Plan, Test
from wfe.store.tables import FINISHED, UNFINISHED, WorkflowExecution

_NOTHING = SQL("0")
_EVERYTHING = SQL("1")

_row = WorkflowExecution

#: What each derived status is, in terms that the indexes know.
_STATUS: dict[str, Any] = {
    **{str(state): _row.state == str(state) for state in FINAL_STATES},
    "running": SQL(f"{UNFINISHED} AND (running != 0 OR (awaiting = 0 AND wake_at IS NULL))"),
    "waiting": SQL(f"{UNFINISHED} AND running = 0 AND awaiting > 0"),
    "sleeping": SQL(f"{UNFINISHED} AND running = 0 AND awaiting = 0 AND wake_at IS NOT NULL"),
}

_FIELDS: dict[str, Any] = {
    "execution_id": _row.id,
    "workflow_id": _row.workflow_id,
    "transaction_id": _row.transaction_id,
    "run_id": _row.run_id,
    "state": _row.state,
    "status": Case(
        None,
        [
            (SQL(FINISHED), _row.state),
            (SQL("running != 0"), "running"),
            (SQL("awaiting != 0"), "waiting"),
            (SQL("wake_at IS NOT NULL"), "sleeping"),
        ],
        "running",
    ),
    "created_at": _row.created_at,
    "updated_at": _row.updated_at,
    "retention_time": _row.retention_time,
    "parent_step_idempotency_key": _row.parent_step_idempotency_key,
}


def prepare(connection: Connection) -> None:
    """Give SQLite the one function of ours that conditions use."""
    connection.function("casefold", 1, _casefold)


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()


def selected(query: ModelSelect[WorkflowExecution], plan: Plan) -> ModelSelect[WorkflowExecution]:
    """`query` narrowed to the rows that the plan wants, in its order."""
    order = [_FIELDS[f].desc() if descends else _FIELDS[f].asc() for f, descends in plan.order]
    query = counted(query, plan).order_by(*order)
    if plan.limit is not None:
        query = query.limit(plan.limit)
    return query.offset(plan.offset) if plan.offset else query


def counted(query: ModelSelect[WorkflowExecution], plan: Plan) -> ModelSelect[WorkflowExecution]:
    """`query` narrowed to the rows that meet the plan's condition."""
    return query.where(_row.deleted_at.is_null(), _sql(plan.condition))


def _sql(condition: Condition) -> Any:
    match condition:
        case All(parts):
            return _joined(and_, [_sql(part) for part in parts], _EVERYTHING)
        case Either(parts):
            return _joined(or_, [_sql(part) for part in parts], _NOTHING)
        case Test():
            return _test(condition)


def _joined(join: Any, parts: Sequence[Any], none: Any) -> Any:
    """Halves of halves, because SQLite limits how deep an expression may be."""
    if len(parts) < 2:
        return parts[0] if parts else none
    half = len(parts) // 2
    return join(_joined(join, parts[:half], none), _joined(join, parts[half:], none))


def _test(test: Test) -> Any:
    column = _FIELDS[test.field]
    match test.operator:
        case Operator.IN:
            return _status_in(test.value) if test.field == "status" else _in(column, test.value)
        case Operator.NOT_IN:
            return _not_in(column, test.value)
        case Operator.LIKE:
            return _like(column, test.value)
        case Operator.GREATER:
            return column > test.value
        case Operator.AT_LEAST:
            return column >= test.value
        case Operator.LESS:
            return column < test.value
        case Operator.AT_MOST:
            return column <= test.value


def _in(column: Any, values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not None]
    parts = [column.in_(present)] if present else []
    if None in values:
        parts.append(column.is_null())
    return _joined(or_, parts, _NOTHING)


def _status_in(values: Sequence[Any]) -> Any:
    parts = [NodeList((SQL("("), _STATUS[v], SQL(")"))) for v in values if v in _STATUS]
    return _joined(or_, parts, _NOTHING)


def _not_in(column: Any, values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not None]
    other = column.not_in(present) if present else _EVERYTHING
    if None in values:
        return and_(column.is_null(False), other)
    return or_(column.is_null(), other) if present else _EVERYTHING


def _like(column: Any, pattern: Pattern) -> Any:
    text = fn.casefold(column) if pattern.folded else column
    like = "%".join(_escaped(part) for part in pattern.parts)
    return NodeList((text, SQL("LIKE"), Value(like), SQL(r"ESCAPE '\'")), parens=True)


def _escaped(part: str) -> str:
    return part.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
