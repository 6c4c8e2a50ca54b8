"""Plain sqlite3 writing rows that wfe has made, the way a script would: the floor of what is durable."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain

from wfe.store import rows
from wfe.store.writer import Parcel


def _insert(table: str, columns: Sequence[str]) -> str:
    places = ", ".join("?" * len(columns))
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({places})"


def _update(columns: Sequence[str]) -> str:
    changes = ", ".join(f"{column} = ?{number}" for number, column in enumerate(columns, 3))
    return f"UPDATE workflow_execution SET {changes} WHERE id = ?1 AND version = ?2"


INSERT_EXECUTION = _insert("workflow_execution", rows.INSERT_COLUMNS)
UPDATE_QUIET = _update(rows.QUIET_COLUMNS)
UPDATE_MOVING = _update(rows.MOVING_COLUMNS)
PUT_STEP = _insert("execution_step", rows.STEP_COLUMNS)
INSERT_EVENT = _insert("execution_event", rows.EVENT_COLUMNS)
INSERT_INPUT = _insert("execution_payload", ("execution_id", "input"))
SET_RESULT = "UPDATE execution_payload SET result = ?2 WHERE execution_id = ?1"


def _rows(values: Iterable[Sequence[object]], width: int) -> list[rows.Row]:
    """Of values that lie one after the other."""
    each = chain.from_iterable(values)
    return list(zip(*[each] * width, strict=True))


def commit(connection: sqlite3.Connection, group: Sequence[Parcel]) -> None:
    """One transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for statement, values in (
        (INSERT_EXECUTION, [p.row for p in group if p.is_new]),
        (UPDATE_QUIET, [p.row for p in group if p.is_quiet]),
        (UPDATE_MOVING, [p.row for p in group if not p.is_new and not p.is_quiet]),
        (INSERT_INPUT, [(p.execution_id, p.input) for p in group if p.input is not None]),
        (SET_RESULT, [(p.execution_id, p.result) for p in group if p.result is not None]),
        (PUT_STEP, _rows((p.steps for p in group), len(rows.STEP_COLUMNS))),
        (INSERT_EVENT, _rows((p.events for p in group), len(rows.EVENT_COLUMNS))),
    ):
        if values:
            connection.executemany(statement, values)
    connection.execute("COMMIT")
