"""What stands in a database that somebody may have to look after: commands that nobody took, unfinished
executions by the definition that they go by, schedules that nobody serves.

Questions of a connection that reads; none of them takes longer for what is finished, but for `faults`
and `newest`, which look at everything once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import NamedTuple

from wfe.model import ExecutionKey
from wfe.store import signals
from wfe.store.connection import Connection
from wfe.store.moments import from_micros, from_micros_or_none, to_micros
from wfe.store.tables import UNFINISHED

_PENDING = """
SELECT s.kind, s.step, s.sender, s.sent_at, e.workflow_id, e.transaction_id, e.owner
FROM signal s JOIN workflow_execution e ON e.id = s.execution_id
WHERE s.state = 'pending' AND s.sent_at <= ? ORDER BY s.id
"""

_UNFINISHED = f"""
SELECT workflow_id, definition, count(*), min(transaction_id) FROM workflow_execution
WHERE {UNFINISHED} AND deleted_at IS NULL GROUP BY workflow_id, definition
"""

_SCHEDULES = """
SELECT name, workflow_id, holder FROM schedule
WHERE origin = 'workflow' AND (paused_at IS NULL OR resumed_at IS NOT NULL) ORDER BY name
"""


class Pending(NamedTuple):
    """A command for an execution that another process has, or had, in hand; not taken yet."""

    kind: str
    step: str | None
    sender: str | None
    sent_at: datetime
    key: ExecutionKey
    #: Whether that process lives and holds its lease.
    is_held: bool


class Group(NamedTuple):
    """Unfinished executions of one workflow that go by one definition."""

    workflow_id: str
    #: `Flow.hash`.
    definition: str
    number: int
    #: One of them.
    example: ExecutionKey


def faults(connection: Connection, *, limit: int) -> Sequence[str]:
    """What SQLite finds wrong at a quick look, at most `limit`."""
    try:
        told = connection.raw.execute(f"PRAGMA quick_check({limit})").fetchall()
    except sqlite3.DatabaseError as error:
        return [f"{error}"]
    return [line for (text,) in told for line in str(text).splitlines() if line != "ok"]


def has_fts5() -> bool:
    """Whether the SQLite in use has its full-text search."""
    with closing(sqlite3.connect(":memory:")) as connection:
        options = connection.execute("PRAGMA compile_options").fetchall()
    return ("ENABLE_FTS5",) in options


def pending(connection: Connection, before: datetime) -> Sequence[Pending]:
    """Commands that were sent before that moment, the oldest first."""
    holding = set(signals.holding(connection))
    return [
        Pending(kind, step, sender, from_micros(sent), ExecutionKey(*key), owner in holding)
        for kind, step, sender, sent, *key, owner in connection.raw.execute(
            _PENDING, (to_micros(before),)
        )
    ]


def unfinished(connection: Connection) -> Sequence[Group]:
    """All that is unfinished, by workflow and definition."""
    return [
        Group(workflow, definition, number, ExecutionKey(workflow, example))
        for workflow, definition, number, example in connection.raw.execute(_UNFINISHED)
    ]


def unfinished_of(connection: Connection, group: Group, *, limit: int) -> Sequence[ExecutionKey]:
    """Those of a group, the oldest first."""
    question = f"""
    SELECT transaction_id FROM workflow_execution
    WHERE {UNFINISHED} AND deleted_at IS NULL AND workflow_id = ? AND definition = ?
    ORDER BY serial LIMIT ?
    """
    found = connection.raw.execute(question, (group.workflow_id, group.definition, limit))
    return [ExecutionKey(group.workflow_id, transaction) for (transaction,) in found]


def newest(connection: Connection) -> datetime | None:
    """When something was written last, by the clock of whoever wrote it."""
    (found,) = connection.raw.execute("SELECT max(updated_at) FROM workflow_execution").fetchone()
    return from_micros_or_none(found)


def schedules(connection: Connection) -> Sequence[tuple[str, str]]:
    """Name and workflow of every schedule that a workflow itself has, that is not paused, and that no
    living process serves."""
    holding = set(signals.holding(connection))
    found = connection.raw.execute(_SCHEDULES)
    return [(name, workflow) for name, workflow, holder in found if holder not in holding]
