"""One open connection to a database file.

Peewee owns it and runs the queries that are built from models; SQL text that was compiled once runs
through `raw`, ten times cheaper. Both are in autocommit: a transaction begins where `transaction` says.
A connection may move between threads; whoever shares one holds a lock while using it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peewee import Query, SqliteDatabase

from wfe.errors import StoreUnusable

#: How a file is opened to be read; and, where not even the -shm file of a reader can be made or used, as
#: one that never changes.
READING = "mode=ro"
FROZEN = "mode=ro&immutable=1"


def needs_frozen(error: sqlite3.OperationalError, path: Path) -> bool:
    """Whether READING has failed only because of the -shm file. Without a log nobody writes, and the
    file may be read as one that never changes.

    Raises:
        StoreUnusable: there is a log, and without that file it cannot be read.
    """
    if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return False
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size > 0:
        raise StoreUnusable(
            f"The newest commits of {path} are in {log.name}, which cannot be read here.",
            hint="Copy both files into a folder of yours and read them there.",
        )
    return True


class Connection:
    """Errors are those of sqlite3 and Peewee; `trouble.translated` makes them ours."""

    def __init__(
        self, path: Path, *, mode: str, busy_timeout: float, pragmas: Mapping[str, Any]
    ) -> None:
        """Open an existing file. `mode` is the query of SQLite's file URI, such as `mode=rw`;
        `busy_timeout` is in seconds."""
        self.path = path
        self._database = SqliteDatabase(
            f"{path.as_uri()}?{mode}",
            pragmas=dict(pragmas),
            timeout=busy_timeout,
            uri=True,
            check_same_thread=False,
            cached_statements=256,
            thread_safe=False,
        )
        self._busy_timeout = busy_timeout
        self._database.connect()
        self.raw: sqlite3.Connection = self._database.connection()  # type: ignore[no-untyped-call]  # stubs

    def run(self, query: Query) -> sqlite3.Cursor:
        """Execute a query built from models."""
        cursor: sqlite3.Cursor = self._database.execute(query)  # type: ignore[no-untyped-call]  # stubs
        return cursor

    def pragma(self, name: str) -> Any:
        return self.raw.execute(f"PRAGMA {name}").fetchone()[0]

    def wait_for_locks(self, seconds: float) -> None:
        """How long a statement waits for another process's lock, from now on."""
        if seconds != self._busy_timeout:
            self.raw.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}").fetchone()
            self._busy_timeout = seconds

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A write transaction; rolled back where the block raises."""
        self.raw.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.raw.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        # Some errors have ended the transaction already (a full disk does).
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")

    def function(self, name: str, arguments: int, function: Any) -> None:
        """Make a pure function callable from SQL."""
        self.raw.create_function(name, arguments, function, deterministic=True)

    def close(self) -> None:
        self._database.close()
