"""The SQL of the hot path, compiled once from the tables.

A statement that takes rows is never run once per row: beside a thread that computes in Python, each
run waits for that thread to let go of the interpreter (5 ms). It is compiled for blocks of rows, in
sizes of powers of two, so that any number of rows takes few runs and few texts, which the connection
keeps prepared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from wfe.store import rows, tables

_SIZES = (256, 128, 64, 32, 16, 8, 4, 2, 1)


class Statement:
    """A statement over rows of values: `head VALUES (…), (…) tail`."""

    def __init__(self, head: str, width: int, tail: str = "") -> None:
        self._head = head
        self._width = width
        self._row = f"({', '.join('?' * width)})"
        self._tail = tail
        self._texts: dict[int, str] = {}

    def run(self, connection: sqlite3.Connection, values: Sequence[object]) -> int:
        """Execute it for rows, whose values lie one after the other; how many rows of the table it
        touched."""
        touched = 0
        for text, block in self._blocks(values):
            touched += connection.execute(text, block).rowcount
        return touched

    def ask(self, connection: sqlite3.Connection, values: Sequence[object]) -> list[str]:
        """Execute it as a query that gives one text for a block."""
        return [
            connection.execute(text, block).fetchone()[0] for text, block in self._blocks(values)
        ]

    def _blocks(self, values: Sequence[object]) -> list[tuple[str, Sequence[object]]]:
        blocks = []
        start = 0
        for size in _SIZES:
            width = size * self._width
            while len(values) - start >= width:
                blocks.append((self._text(size), values[start : start + width]))
                start += width
        return blocks

    def _text(self, size: int) -> str:
        text = self._texts.get(size)
        if text is None:
            block = ", ".join([self._row] * size)
            text = self._texts[size] = f"{self._head} VALUES {block}{self._tail}"
        return text


def _insert(table: type[tables.Table], columns: Sequence[str], conflict: str = "") -> Statement:
    name = table._meta.table_name
    tail = f" ON CONFLICT {conflict}" if conflict else ""
    return Statement(f"INSERT INTO {name} ({', '.join(columns)})", len(columns), tail)


def _replacing(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} = excluded.{column}" for column in columns)


def _update(columns: Sequence[str]) -> Statement:
    """Rows of execution id, the version they were computed from, and the columns."""
    changes = ", ".join(f"{column} = v.column{n}" for n, column in enumerate(columns, 3))
    return Statement(
        f"UPDATE workflow_execution SET {changes} FROM (",
        2 + len(columns),
        ") AS v WHERE workflow_execution.id = v.column1 AND workflow_execution.version = v.column2",
    )


#: Rows of digest, hash, workflow id, flow, creation.
INSERT_DEFINITIONS = _insert(
    tables.Definition, tables.columns(tables.Definition), "(digest) DO NOTHING"
)

#: Rows of `rows.insert_row`. Leaves out those whose key or run is taken.
INSERT_EXECUTIONS = _insert(tables.WorkflowExecution, rows.INSERT_COLUMNS, "DO NOTHING")

#: Execution id, expected version, and `rows.quiet_row` or `rows.moving_row`.
UPDATE_QUIET = _update(rows.QUIET_COLUMNS)
UPDATE_MOVING = _update(rows.MOVING_COLUMNS)

#: Rows of execution id and input.
INSERT_INPUTS = _insert(tables.ExecutionPayload, ("execution_id", "input"))

#: Rows of execution id and result.
PUT_RESULTS = _insert(
    tables.ExecutionPayload,
    ("execution_id", "result"),
    "(execution_id) DO UPDATE SET result = excluded.result",
)

#: Rows of `rows.step_row`.
PUT_STEPS = _insert(
    tables.ExecutionStep,
    rows.STEP_COLUMNS,
    f"(execution_id, name) DO UPDATE SET {_replacing(rows.STEP_COLUMNS[2:])}",
)

#: Rows of execution id, version, number within the commit, and `rows.event_values`.
INSERT_EVENTS = _insert(tables.ExecutionEvent, rows.EVENT_COLUMNS)

#: Rows of execution id, version and moment. Of one execution the last end is told.
OWE_NOTICES = _insert(
    tables.ExecutionNotice,
    ("execution_id", "version", "owed_since"),
    "(execution_id) DO UPDATE SET version = excluded.version, owed_since = excluded.owed_since, "
    "owner = NULL",
)

#: Rows of any number, workflow id, transaction id, run id and execution id: the numbers, as a JSON
#: array, of those whose key has an unfinished run, or whose run is there.
FIND_TAKEN = Statement(
    "SELECT json_group_array(v.column1) FROM (",
    5,
    f""") AS v
    WHERE EXISTS (
        SELECT 1 FROM workflow_execution
        WHERE workflow_id = v.column2 AND transaction_id = v.column3 AND deleted_at IS NULL
          AND ({tables.UNFINISHED} OR run_id = v.column4)
    ) OR EXISTS (SELECT 1 FROM workflow_execution WHERE id = v.column5)""",
)

#: Rows of any number, execution id and version: the numbers of those of which the store has another
#: version, or nothing.
FIND_STALE = Statement(
    "SELECT json_group_array(v.column1) FROM (",
    3,
    """) AS v LEFT JOIN workflow_execution e ON e.id = v.column2
    WHERE e.version IS NOT v.column3""",
)
