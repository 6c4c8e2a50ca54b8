"""One execution, from its rows.

Beside a thread that computes in Python, every row that SQLite hands over waits for that thread to let
go (5 ms), so the steps of an execution come as one row, a JSON array that SQLite puts together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from wfe.model import Execution, ExecutionKey, Flow, StepRecord
from wfe.store import owners, rows

#: Values of up to so many characters in all come in one row; SQLite limits a text to 1 GB.
_ONE_ROW = 16_000_000

_LOAD = f"""
SELECT {", ".join(f"e.{column}" for column in rows.HEAD_COLUMNS)},
       o.expires_at, o.beats_until,
       EXISTS (SELECT 1 FROM signal WHERE execution_id = e.id AND state = 'pending'), p.input, p.result, e.flow, d.flow,
       CASE WHEN (SELECT total(length(output)) + total(length(compensate_with))
                  FROM execution_step WHERE execution_id = e.id) <= {_ONE_ROW}
            THEN (SELECT json_group_array({rows.STEP_AS_JSON})
                  FROM execution_step WHERE execution_id = e.id)
       END
FROM workflow_execution e
JOIN definition d ON d.digest = e.flow
LEFT JOIN execution_payload p ON p.execution_id = e.id
LEFT JOIN owner o ON o.id = e.owner
WHERE e.workflow_id = ? AND e.transaction_id = ? AND e.deleted_at IS NULL
"""

_LOAD_NEWEST = f"{_LOAD} ORDER BY e.serial DESC LIMIT 1"
_LOAD_RUN = f"{_LOAD} AND e.run_id = ?"

_STEPS_ONE_BY_ONE = f"SELECT {rows.STEP_AS_JSON} FROM execution_step WHERE execution_id = ?"


def execution(
    connection: sqlite3.Connection,
    key: ExecutionKey,
    run_id: str | None,
    flow_of: Callable[[str, str], Flow],
) -> Execution | None:
    """That run of `key`, or its newest; None: there is none. `flow_of` makes a flow of its digest and
    its text."""
    found = _found(connection, key, run_id)
    if found is None:
        return None
    row, steps = found
    *columns, expires_at, beats_until, has_signals, given, result, digest, text, _ = row
    flow = flow_of(digest, text)
    head = rows.head_of(tuple(columns))
    return Execution(
        flow,
        head,
        holder=owners.holder(head.owner, expires_at, beats_until),
        has_signals=bool(has_signals),
        input=rows.json_of(given),
        steps=_as_begun(steps, flow),
        result=rows.json_of(result),
    )


def _found(
    connection: sqlite3.Connection, key: ExecutionKey, run_id: str | None
) -> tuple[Any, list[StepRecord]] | None:
    """The row of an execution and its steps."""
    row = _execution_row(connection, key, run_id)
    if row is None:
        return None
    if row[-1] is not None:
        return row, rows.steps_of(row[-1])
    with one_state(connection):
        row = _execution_row(connection, key, run_id)
        if row is None:
            return None
        steps = connection.execute(_STEPS_ONE_BY_ONE, (row[0],)).fetchall()
        return row, [rows.step_of(step) for (step,) in steps]


def _execution_row(connection: sqlite3.Connection, key: ExecutionKey, run_id: str | None) -> Any:
    names = (key.workflow_id, key.transaction_id)
    if run_id is None:
        return connection.execute(_LOAD_NEWEST, names).fetchone()
    return connection.execute(_LOAD_RUN, (*names, run_id)).fetchone()


def _as_begun(steps: list[StepRecord], flow: Flow) -> list[StepRecord]:
    """In the order in which they began; together: as the flow has them."""
    position = {name: number for number, name in enumerate(flow.steps)}
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(steps, key=lambda s: (s.started_at or never, position.get(s.name, 0)))


@contextmanager
def one_state(connection: sqlite3.Connection) -> Iterator[None]:
    """Several questions to one state of the database."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # some errors have ended it
            connection.execute("COMMIT")
