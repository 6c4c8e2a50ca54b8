"""The facts of `facts` as SQL: what is known of an execution in other tables than its own, and
in the JSON of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec
from peewee import SQL, NodeList, Value

from wfe.store.connection import Connection
from wfe.store.queries.conditions import Operator, Pattern, json_answers
from wfe.store.queries.facts import Fact, FactKind
from wfe.store.queries.sql_tests import any_of, compared
from wfe.store.tables import WorkflowExecution

_row = WorkflowExecution

#: What a step does at the moment.
_PRESENT = """(
CASE WHEN s.invoke = 'invoking' OR s.compensate = 'compensating' THEN CASE
    WHEN s.awaiting THEN 'waiting'
    WHEN json_extract(s.record, '$.sleeping') THEN 'sleeping'
    WHEN 'temp_failure' IN (s.invoke_status, s.compensate_status)
        AND json_extract(s.record, '$.running') IS NOT 1 THEN 'retrying'
    ELSE 'running' END
END)"""

#: The words for a row of `execution_step AS s`.
_WORDS = ("s.invoke", "nullif(s.compensate, 'dormant')", _PRESENT)


class _Question(msgspec.Struct, frozen=True, array_like=True):
    """What is asked of a value of JSON, as SQLite hands it to us: a test, and where to look."""

    operator: Operator
    asked: tuple[str, ...] | Pattern | str
    path: tuple[str, ...]


def prepare(connection: Connection) -> None:
    """Give SQLite the function of ours that looks into users' values."""
    connection.function("json_answers", 2, _json_answers)


def _json_answers(value: str | None, question: str) -> bool:
    if value is None:
        return False
    asked = _decoded(question)
    return json_answers(asked.operator, asked.asked, asked.path, value.encode())


@functools.lru_cache(maxsize=64)
def _decoded(question: str) -> _Question:
    return msgspec.json.decode(question, type=_Question)


def answered(fact: Fact, operator: Operator, asked: Any) -> Any:
    """Whether an execution answers a test of `fact`."""
    if operator is Operator.NOT_IN:
        return _sql("NOT", answered(fact, Operator.IN, asked))

    def answers(*columns: str) -> Any:
        return any_of([compared(SQL(column), operator, asked) for column in columns])

    match fact.kind:
        case FactKind.ATTEMPTS:
            return compared(_most_attempts(), operator, asked)
        case FactKind.ERROR:
            return _error(answers)
        case FactKind.STEP:
            return _some_step("s.name =", Value(fact.path[0]), "AND", answers(*_WORDS))
        case FactKind.INPUT:
            return _payload("input", operator, asked, fact.path)
        case FactKind.OUTPUT:
            return _output(operator, asked, fact.path)


def _most_attempts() -> Any:
    return _sql(
        "SELECT max(coalesce((SELECT max(s.attempts) FROM execution_step AS s WHERE s.execution_id =",
        _row.id,
        "), 0), coalesce((SELECT max(json_extract(value, '$.attempts')) FROM json_each(",
        _row.execution,
        ", '$.errors')), 0))",
    )


def _error(answers: Callable[..., Any]) -> Any:
    of_execution = _sql(
        "EXISTS (SELECT 1 FROM json_each(",
        _row.execution,
        ", '$.errors') AS failure WHERE",
        answers(*_texts("failure.value")),
        ")",
    )
    return any_of(
        [of_execution, _some_step("s.error IS NOT NULL AND", answers(*_texts("s.error")))]
    )


def _texts(error: str) -> tuple[str, ...]:
    name, message = f"json_extract({error}, '$.name')", f"json_extract({error}, '$.message')"
    return name, message, f"({name} || ': ' || {message})"


def _output(operator: Operator, asked: Any, path: tuple[str, ...]) -> Any:
    """`path` may begin with the name of a step; where it is empty, every output is meant."""
    step, rest = path[:1], path[1:]
    named = ("s.name =", Value(step[0]), "AND") if step else ()
    of_steps = _some_step(*named, *_json("s.output", operator, asked, rest))
    return any_of([_payload("result", operator, asked, path), of_steps])


def _payload(column: str, operator: Operator, asked: Any, path: tuple[str, ...]) -> Any:
    of_this = (
        "EXISTS (SELECT 1 FROM execution_payload AS p WHERE p.execution_id =",
        _row.id,
        "AND",
    )
    return _sql(*of_this, *_json(f"p.{column}", operator, asked, path), ")")


def _json(column: str, operator: Operator, asked: Any, path: tuple[str, ...]) -> tuple[Any, ...]:
    question = msgspec.json.encode(_Question(operator, asked, path)).decode()
    return f"json_answers({column},", Value(question), ")"


def _some_step(*condition: Any) -> Any:
    of_this = ("EXISTS (SELECT 1 FROM execution_step AS s WHERE s.execution_id =", _row.id, "AND")
    return _sql(*of_this, *condition, ")")


def _sql(*parts: Any) -> Any:
    """An expression of pieces of SQL and of nodes, in parentheses."""
    nodes = [SQL(part) if isinstance(part, str) else part for part in parts]
    return NodeList(nodes, parens=True)
