"""The conditions of a query as SQL over `workflow_execution`. `conditions` says what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from peewee import SQL, Case, ModelSelect, NodeList, Value, fn

from wfe.model import FINAL_STATES, ExecutionState
from wfe.store.connection import Connection
from wfe.store.queries import facts_sql
from wfe.store.queries.conditions import SEARCHED, All, Condition, Either, Operator, Test, Word
from wfe.store.queries.facts import Fact
from wfe.store.queries.filters import Plan
from wfe.store.queries.sql_tests import all_of, any_of, compared, like
from wfe.store.tables import FINISHED, UNFINISHED, WorkflowExecution

_row = WorkflowExecution

_WORKING = "(running != 0 OR held != 0)"
_WAITING = "(awaiting != 0 OR parked != 0)"
_RUNNING = f"({UNFINISHED} AND ({_WORKING} OR (NOT {_WAITING} AND wake_at IS NULL)))"

#: What each status is, in terms that the indexes know.
_STATUS: dict[str, Any] = {
    **{str(state): _row.state == str(state) for state in FINAL_STATES},
    "running": SQL(_RUNNING),
    "waiting": SQL(f"({UNFINISHED} AND NOT {_WORKING} AND {_WAITING})"),
    "sleeping": SQL(
        f"({UNFINISHED} AND NOT {_WORKING} AND NOT {_WAITING} AND wake_at IS NOT NULL)"
    ),
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
            (SQL(_WORKING), "running"),
            (SQL(_WAITING), "waiting"),
            (SQL("wake_at IS NOT NULL"), "sleeping"),
        ],
        "running",
    ),
    "created_at": _row.created_at,
    "updated_at": _row.updated_at,
    "retention_time": _row.retention_time,
    "parent_step_idempotency_key": _row.parent_step_idempotency_key,
}

_NO_CHILD = Test("parent_step_idempotency_key", Operator.IN, (None,))

#: Fields of few values, each of which has an index.
_CHOICES = ("state", "status", "shown")

#: Of more states than this no page each is read.
_MOST_STATES = 20


class View(NamedTuple):
    """What the rows alone do not tell."""

    now: datetime
    #: The owners whose leases hold.
    holders: Sequence[str] = ()
    #: The serials of all executions that may meet the condition, as a JSON array; None: any may.
    candidates: str | None = None


def prepare(connection: Connection) -> None:
    """Give SQLite the functions of ours that conditions use."""
    connection.function("casefold", 1, _casefold)
    facts_sql.prepare(connection)


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()


def asks_who_holds(plan: Plan) -> bool:
    """Whether the owners whose leases hold have to be known."""
    ordered = any(field == "shown" for field, _ in plan.order)
    return ordered or _names_shown(plan.condition)


def _names_shown(condition: Condition) -> bool:
    match condition:
        case All(parts) | Either(parts):
            return any(map(_names_shown, parts))
        case Test(field):
            return field == "shown"
    return False


def selected(
    query: ModelSelect[WorkflowExecution], plan: Plan, view: View
) -> ModelSelect[WorkflowExecution]:
    """`query` narrowed to the rows that the plan wants, in its order."""
    query = _ordered(query.where(*_narrowed(plan, view)), plan, view)
    if plan.limit is not None:
        query = query.limit(plan.limit)
    return query.offset(plan.offset) if plan.offset else query


def counted(plan: Plan, view: View) -> list[ModelSelect[WorkflowExecution]]:
    """Queries for numbers: so many rows meet the plan's condition as the first one says, less those that
    the others do."""
    left_out = _left_out(plan.condition.parts)
    if left_out is not None:
        # SQLite counts a whole table by its pages, and these parts of it by the entries in an index.
        return [_count(), *(_count().where(*part) for part in left_out)]
    choice = _choice(plan)
    if choice is None or not any(map(_is_of_few, _states(choice))):
        return [_count().where(*_met(plan.condition, view))]
    alternatives = [_row.serial.in_(each) for each in _alternatives(plan, view)]
    return [_count().where(any_of(alternatives))]


def _left_out(parts: Sequence[Condition]) -> list[tuple[Any, ...]] | None:
    """The rows that a condition leaves out, where those are easier to count: it asks for all, for all
    that are no children, and that only in states of which one is `done`, as most are."""
    present = _row.deleted_at.is_null()
    left_out: list[tuple[Any, ...]] = [(_row.deleted_at.is_null(False),)]
    no_child: tuple[Any, ...] = ()
    if _NO_CHILD in parts:
        left_out.append((present, _row.parent_step_idempotency_key.is_null(False)))
        no_child = (_row.parent_step_idempotency_key.is_null(),)
    match [part for part in parts if part != _NO_CHILD]:
        case []:
            return left_out
        case [Test("state", Operator.IN, states)] if ExecutionState.DONE in states:
            others = [str(state) for state in ExecutionState if state not in states]
            return [*left_out, (present, _row.state.in_(others), *no_child)]
    return None


def _count() -> ModelSelect[WorkflowExecution]:
    return _row.select(fn.COUNT(SQL("*")))


def _narrowed(plan: Plan, view: View) -> tuple[Any, ...]:
    """The condition of a page. Where it asks for one of several states, a page is among the pages of
    each state; without that, SQLite would sort all that are in one of them."""
    if _choice(plan) is None or plan.limit is None or view.candidates is not None:
        return _met(plan.condition, view)
    end = plan.limit + plan.offset
    pages = [_ordered(each, plan, view).limit(end) for each in _alternatives(plan, view)]
    return (any_of([_row.serial.in_(page) for page in pages]),)


def _ordered(query: Any, plan: Plan, view: View) -> Any:
    columns = [(_column(field, view), descends) for field, descends in plan.order]
    return query.order_by(*(column.desc() if down else column.asc() for column, down in columns))


def _met(condition: All, view: View) -> tuple[Any, ...]:
    met = (_row.deleted_at.is_null(), _sql(condition, view))
    if view.candidates is None:
        return met
    named = NodeList((SQL("(SELECT value FROM json_each("), Value(view.candidates), SQL("))")))
    return (NodeList((_row.serial, SQL("IN"), named)), *met)


# --- one of several states -----------------------------------------------------------------------


def _choice(plan: Plan) -> Condition | None:
    """The part of the condition that asks for one of several states, each of which has an index in the
    order of a list."""
    choices = (part for part in plan.condition.parts if 1 < len(_states(part)) <= _MOST_STATES)
    return next(choices, None)


def _alternatives(plan: Plan, view: View) -> Iterator[Any]:
    """The serials of what meets the condition in one state, for each of those states."""
    choice = _choice(plan)
    assert choice is not None
    others = tuple(part for part in plan.condition.parts if part is not choice)
    for state in _states(choice):
        yield _row.select(_row.serial).where(*_met(All((state, *others)), view))


def _states(condition: Condition) -> Sequence[Test]:
    """The states of which it asks for one, each as a test; empty where it asks for something else."""
    parts = condition.parts if isinstance(condition, Either) else (condition,)
    found: list[Test] = []
    for part in parts:
        if not (isinstance(part, Test) and part.field in _CHOICES and part.operator is Operator.IN):
            return ()
        found += (Test(part.field, Operator.IN, (value,)) for value in part.value)
    return found


def _is_of_few(condition: Condition) -> bool:
    """Whether only unfinished executions can be meant."""
    match condition:
        case Test("status" | "shown", Operator.IN, values):
            return FINAL_STATES.isdisjoint(values)
    return False


# --- conditions ----------------------------------------------------------------------------------


def _sql(condition: Condition, view: View) -> Any:
    match condition:
        case All(parts):
            return all_of([_sql(part, view) for part in parts])
        case Either(parts):
            return any_of([_sql(part, view) for part in parts])
        case Word(pattern):
            return any_of([like(_FIELDS[field], pattern) for field in SEARCHED])
        case Test(Fact() as fact, operator, asked):
            return facts_sql.answered(fact, operator, asked)
        case Test("status" | "shown" as field, Operator.IN, values):
            return any_of([*_in_status(str(field), values, view)])
        case Test():
            column = _column(str(condition.field), view)
            return compared(column, condition.operator, condition.value)


def _in_status(field: str, values: Sequence[Any], view: View) -> Iterator[Any]:
    for value in values:
        if field == "shown" and value == "interrupted":
            yield _interrupted(view)
        elif value in FINAL_STATES or (value in _STATUS and field == "status"):
            yield _STATUS[value]
        elif value in _STATUS:
            yield _STATUS[value] & ~_interrupted(view)


def _column(field: str, view: View) -> Any:
    if field == "shown":
        return Case(None, [(_interrupted(view), "interrupted")], _FIELDS["status"])
    return _FIELDS[field]


def _interrupted(view: View) -> Any:
    """It could go on, and nobody has it in hand: as `contract.shown_status`."""
    nobody = _row.owner.is_null() | _row.owner.not_in(view.holders)
    is_due = _row.wake_at.is_null(False) & (_row.wake_at <= view.now)
    return SQL(UNFINISHED) & nobody & (SQL(_RUNNING) | is_due)
