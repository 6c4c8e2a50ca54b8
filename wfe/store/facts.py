"""What there is to say about a database file without judging it: its size, its settings, what it holds.

Any version of the schema will do: what a file has to tell of itself is asked for before it is migrated,
or after it has been written by a newer version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec

from wfe.store import trouble
from wfe.store.connection import Connection
from wfe.store.database import BUSY_TIMEOUT, open_for_reading
from wfe.store.migrations import MIGRATIONS, schema_version
from wfe.store.moments import from_micros_or_none
from wfe.store.sweep import last_sweep

#: The newest schema that this version of wfe writes.
NEWEST = MIGRATIONS[-1].version

#: The version of SQLite in use.
SQLITE = sqlite3.sqlite_version


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A database as it is. Sizes are in bytes."""

    path: Path
    size: int
    #: Of the write-ahead log: commits that are not in the file itself yet.
    wal_size: int
    #: The version of its schema; 0: it is empty.
    schema: int
    journal_mode: str
    #: A part of `size` that nothing is stored in: it is used before the file grows.
    free: int
    last_sweep: datetime | None
    #: State → executions. Empty where the schema is one that this version of wfe does not know.
    states: Mapping[str, int] = {}
    #: When the first and the last of them were created.
    oldest: datetime | None = None
    newest: datetime | None = None

    @property
    def is_known(self) -> bool:
        """Whether this version of wfe knows what the file holds."""
        return 0 < self.schema <= NEWEST

    @property
    def executions(self) -> int:
        return sum(self.states.values())


def facts(path: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> Facts:
    """
    Raises:
        StoreError: there is no such file, it is no database of ours, or it cannot be read.
    """
    with (
        trouble.translated(path),
        closing(open_for_reading(path, busy_timeout=busy_timeout, any_schema=True)) as connection,
    ):
        return _facts(connection)


def _facts(connection: Connection) -> Facts:
    path = connection.path
    log = path.with_name(f"{path.name}-wal")
    found = Facts(
        path=path,
        size=path.stat().st_size,
        wal_size=log.stat().st_size if log.exists() else 0,
        schema=schema_version(connection),
        journal_mode=connection.pragma("journal_mode"),
        free=connection.pragma("freelist_count") * connection.pragma("page_size"),
        last_sweep=last_sweep(connection),
    )
    if not found.is_known:
        return found
    ask = connection.raw.execute
    states = ask("SELECT state, count(*) FROM workflow_execution GROUP BY state ORDER BY state")
    ends = ask("SELECT min(created_at), max(created_at) FROM workflow_execution").fetchone()
    oldest, newest = map(from_micros_or_none, ends)
    return msgspec.structs.replace(found, states=dict(states), oldest=oldest, newest=newest)
