"""Opening a database file: who may read it, how durable it is, and what stands in its place.

A file that is made here is readable by its owner alone (0600, in a folder of 0700), whatever the
umask; SQLite gives -wal and -shm the mode of the file. Writers use the write-ahead log, so that
readers never wait for them. A reader changes nothing: it makes no database, migrates no schema, and
works where it may not write at all. (Where it may, SQLite makes -wal and -shm for it.)
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Literal

from wfe.clock import SystemClock
from wfe.errors import SchemaTooOld, StoreUnusable
from wfe.store import private, trouble
from wfe.store.connection import FROZEN, READING, Connection, needs_frozen
from wfe.store.migrations import MIGRATIONS, Migrated, check_not_newer, migrate, schema_version

if TYPE_CHECKING:
    from wfe.store.reader import SQLiteReader

#: `full`: what was committed survives a loss of power; `normal`: it survives the death of the
#: process, and a loss of power may take the newest commits (never a part of one).
Synchronous = Literal["full", "normal"]

#: Seconds that a statement waits for another process's lock.
BUSY_TIMEOUT = 5.0

#: The size in bytes to which a -wal file that has grown is cut back.
_WAL_LIMIT = 64_000_000

#: The first SQLite that knows UPDATE … FROM.
_OLDEST_SQLITE = (3, 33, 0)

#: The size in bytes of the smallest page that a database can consist of.
_SHORTEST = 512


def absolute(path: str | os.PathLike[str]) -> Path:
    """The file that is meant, links followed: its -wal lies beside it."""
    return Path(path).resolve()


def open_for_writing(
    path: Path, *, synchronous: Synchronous = "full", busy_timeout: float = BUSY_TIMEOUT
) -> Connection:
    """A connection to the database `path` (absolute), which is made where there is none, and brought to
    the newest schema.

    Raises:
        StoreUnusable: no folder, a folder in its place, not ours, not writable, or damaged.
        SchemaTooNew: a newer version wrote it. Nothing is changed.
        StoreBusy: locked for longer than `busy_timeout` seconds, or no space left.
    """
    connection, _ = _open_up_to_date(path, synchronous, busy_timeout)
    return connection


def upgrade(path: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> Migrated:
    """Bring the database `path` (absolute), which is there, to the newest schema.

    Raises:
        StoreUnusable, SchemaTooNew, StoreBusy: as `open_for_writing`.
    """
    if not path.exists():
        raise trouble.missing(path)
    connection, migrated = _open_up_to_date(path, "full", busy_timeout)
    connection.close()
    return migrated


def _open_up_to_date(
    path: Path, synchronous: Synchronous, busy_timeout: float
) -> tuple[Connection, Migrated]:
    pragmas = {
        "synchronous": synchronous.upper(),
        "foreign_keys": "ON",
        "temp_store": "MEMORY",
        "journal_size_limit": _WAL_LIMIT,
    }
    with trouble.translated(path):
        _refuse_what_is_no_database(path)
        _make_file(path)
        _check_writable(path)
        connection = Connection(path, mode="mode=rw", busy_timeout=busy_timeout, pragmas=pragmas)
        try:
            check_not_newer(schema_version(connection), path)  # before anything is changed
            _use_write_ahead_log(connection, busy_timeout)
            migrated = migrate(connection, now=SystemClock().now())
        except BaseException:
            connection.close()
            raise
        return connection, migrated


def open_for_reading(
    path: Path, *, busy_timeout: float = BUSY_TIMEOUT, any_schema: bool = False
) -> Connection:
    """A connection that cannot write. `any_schema`: whoever asks goes by the version it finds.

    Raises:
        StoreUnusable: there is no such database, it is not ours, of an older schema, or damaged.
        SchemaTooNew: a newer version wrote it.
        StoreBusy: locked for longer than `busy_timeout` seconds.
    """
    with trouble.translated(path):
        if not path.exists():
            raise trouble.missing(path)
        _refuse_what_is_no_database(path)
        try:
            return _reading(path, READING, busy_timeout, any_schema)
        except sqlite3.OperationalError as error:
            if not needs_frozen(error, path):
                raise
        return _reading(path, FROZEN, busy_timeout, any_schema)


def _reading(path: Path, mode: str, busy_timeout: float, any_schema: bool) -> Connection:
    connection = Connection(path, mode=mode, busy_timeout=busy_timeout, pragmas={})
    try:
        version = schema_version(connection)
        if not any_schema:
            _check_current(version, path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(
    path: str | os.PathLike[str], *, busy_timeout: float = BUSY_TIMEOUT
) -> SQLiteReader:
    """A reader of the database at `path`; a context manager. Raises as `open_for_reading`."""
    from wfe.store.reader import SQLiteReader

    return SQLiteReader(open_for_reading(absolute(path), busy_timeout=busy_timeout))


# --- files ---------------------------------------------------------------------------------------


def _make_file(path: Path) -> None:
    """Make the file, empty, and its folder, where they are missing."""
    try:
        private.make_folder(path.parent)
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise StoreUnusable(
            f"There is no folder {path.parent.parent} to keep the database {path} in.",
            hint="Make the folder, or name another file with --db PATH.",
        ) from None
    with suppress(FileExistsError):
        private.make_file(path)


def _check_writable(path: Path) -> None:
    # SQLite opens such a file without a word, and complains at the first write.
    effective = os.access in os.supports_effective_ids
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=effective):
        raise trouble.read_only(path)


def _refuse_what_is_no_database(path: Path) -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnusable(
            f"This Python has SQLite {sqlite3.sqlite_version}, too old for the database {path}.",
            hint="Use a Python that comes with SQLite 3.33 or newer.",
        )
    if path.is_dir():
        raise StoreUnusable(
            f"{path} is a folder, not a database.", hint="Name a file in it with --db PATH."
        )
    # SQLite tells the rest, but takes a file that is shorter than its header for an empty one.
    if path.exists() and 0 < path.stat().st_size < _SHORTEST:
        raise trouble.no_database(path)


def _use_write_ahead_log(connection: Connection, busy_timeout: float) -> None:
    if connection.pragma("journal_mode") == "wal":
        return
    # Of processes that do this at once, SQLite tells all but one that the file is locked, and does
    # so at once, whatever its own timeout says. So the waiting is done here.
    connection.wait_for_locks(0)
    for pause in _pauses(busy_timeout):
        try:
            mode = connection.pragma("journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            sleep(pause)
    else:
        raise trouble.locked(connection.path)
    connection.wait_for_locks(busy_timeout)
    if mode != "wal":
        raise StoreUnusable(
            f"The database {connection.path} cannot use a write-ahead log here ({mode}).",
            hint="Keep it on a local disk; name another file with --db PATH.",
        )


def _pauses(total: float) -> Iterator[float]:
    """Seconds to pause between attempts, doubled up to a tenth; together about `total`."""
    pause = 0.001
    yield pause
    while total > 0:
        yield pause
        total -= pause
        pause = min(2 * pause, 0.1)


def _check_current(version: int, path: Path) -> None:
    check_not_newer(version, path)
    if version == 0:
        raise SchemaTooOld(
            f"{path} is empty.", hint="The first `wfe run` fills it; name another with --db PATH."
        )
    if version < MIGRATIONS[-1].version:
        raise SchemaTooOld(
            f"The database {path} has the older schema {version}.",
            hint="Bring it up to date with: wfe db migrate",
        )
