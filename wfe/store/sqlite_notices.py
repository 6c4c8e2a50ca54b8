"""The notices of a store in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from wfe.model import ExecutionKey, TimelineEvent
from wfe.store import rows, signals
from wfe.store.commits import Commits
from wfe.store.connection import Connection
from wfe.store.moments import from_micros
from wfe.store.notices import Notice
from wfe.store.writer import Writer

_T = TypeVar("_T")

_OWED = """
SELECT n.execution_id, e.workflow_id, e.transaction_id, e.run_id, n.version, n.owed_since, n.owner
FROM execution_notice n JOIN workflow_execution e ON e.id = n.execution_id
ORDER BY n.owed_since, n.execution_id
"""
_TAKE = """
UPDATE execution_notice SET owner = ? WHERE execution_id = ? AND version = ? AND owner IS ?
"""
_SETTLE = "DELETE FROM execution_notice WHERE execution_id = ? AND version = ?"

#: Behind all entries that there are; nothing where the execution is gone.
_NOTE = f"""
INSERT INTO execution_event ({", ".join(rows.EVENT_COLUMNS)})
SELECT e.id, e.version, 1 + coalesce(
    (SELECT max(seq) FROM execution_event v WHERE v.execution_id = e.id AND v.version = e.version), -1
), {", ".join("?" * len(rows.EVENT_COLUMNS[3:]))}
FROM workflow_execution e WHERE e.id = ?
"""


class SQLiteNotices:
    """The Notices of a store in a SQLite file, while it is open."""

    def __init__(self, writer: Writer, commits: Commits) -> None:
        self._writer = writer
        self._commits = commits

    async def owed(self, *, limit: int = 100) -> Sequence[Notice]:
        # By the connection that writes: what was committed before is seen, whoever did it.
        return await self._commits.run(lambda: self._writer.ask(lambda c: owed(c, limit)))

    async def take(self, notice: Notice, *, owner: str) -> bool:
        values = (owner, notice.execution_id, notice.version, notice.owner)
        return await self._write(lambda c: c.raw.execute(_TAKE, values).rowcount > 0)

    async def settle(self, notice: Notice, entry: TimelineEvent | None) -> None:
        def settle(connection: Connection) -> None:
            connection.raw.execute(_SETTLE, (notice.execution_id, notice.version))
            if entry is not None:
                values = (*rows.event_values(entry), notice.execution_id)
                connection.raw.execute(_NOTE, values)

        await self._write(settle)

    async def _write(self, change: Callable[[Connection], _T]) -> _T:
        return await self._commits.run(lambda: self._writer.transact(change))


def owed(connection: Connection, limit: int) -> list[Notice]:
    """See `Notices.owed`."""
    found = connection.raw.execute(_OWED).fetchall()
    living = signals.holding(connection) if found else ()
    return [_notice(row) for row in found if row[-1] not in living][:limit]


def _notice(row: rows.Row) -> Notice:
    execution_id, workflow_id, transaction_id, run_id, version, owed_since, owner = row
    return Notice(
        execution_id=execution_id,
        key=ExecutionKey(workflow_id, transaction_id),
        run_id=run_id,
        version=version,
        owed_since=from_micros(owed_since),
        owner=owner,
    )
