"""What SQLite, Peewee and the operating system report, as one sentence of ours.

Two kinds matter to a caller. `StoreBusy`: trying again may succeed (locked, no space left).
`StoreUnusable`: it will not, until a person does something; the hint says what.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peewee import PeeweeException

from wfe.errors import StoreBusy, StoreError, StoreUnusable

#: What an operation on the database may raise.
TROUBLE = (sqlite3.Error, PeeweeException, OSError)

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_PERMITTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})

_ANOTHER = "or name another file with --db PATH"


def locked(path: Path) -> StoreBusy:
    return StoreBusy(
        f"The database {path} is locked by another process.",
        hint="Nothing was written; try again when that process has finished.",
    )


def no_space(path: Path) -> StoreBusy:
    return StoreBusy(
        f"There is no space left to write the database {path}.",
        hint="Nothing was written; free some space and try again.",
    )


def not_permitted(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"The database {path} may not be read and written by this user.",
        hint=f"Check the permissions of the file and of its folder, {_ANOTHER}.",
    )


def no_database(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"{path} is not a database.", hint=f"Nothing was changed; move it away, {_ANOTHER}."
    )


def read_only(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"The database {path} is read-only.",
        hint=f"Make the file and its folder writable, {_ANOTHER}.",
    )


def gone(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"The database {path} was deleted or replaced while it was in use.",
        hint="Nothing was written; restore it from a backup, or start again with a new one.",
    )


def missing(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"There is no database {path}.",
        hint="The first `wfe run` makes one; name another file with --db PATH.",
    )


def identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from another one that has taken its name; None: there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises StoreBusy or StoreUnusable for whatever goes wrong with the database inside."""
    try:
        yield
    except TROUBLE as error:
        raise store_error(error, path) from error


def store_error(error: BaseException, path: Path) -> StoreError:
    """One of TROUBLE as ours."""
    if isinstance(error, PeeweeException):
        error = getattr(error, "orig", error)
    if isinstance(error, OSError):
        return _of_system(error, path)
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return StoreUnusable(f"The database {path} could not be used: {error}.")
    return _of_sqlite(code, error, path)


def _of_system(error: OSError, path: Path) -> StoreError:
    if error.errno in _NO_SPACE:
        return no_space(path)
    if error.errno in _NOT_PERMITTED:
        return not_permitted(path)
    reason = error.strerror or str(error)
    return StoreUnusable(
        f"The database {path} could not be used: {reason}.", hint=f"Repair that, {_ANOTHER}."
    )


def _of_sqlite(code: int, error: BaseException, path: Path) -> StoreError:
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return locked(path)
        case sqlite3.SQLITE_FULL:
            return no_space(path)
        case sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_IOERR_SHMSIZE:
            return no_space(path)  # the -shm file could not grow
        case sqlite3.SQLITE_NOTADB:
            return no_database(path)
        case sqlite3.SQLITE_CORRUPT:
            return StoreUnusable(
                f"The database {path} is damaged ({error}).",
                hint="See how far with `wfe db check`, and restore the newest backup.",
            )
        case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY_DBMOVED:
            return gone(path)
        case sqlite3.SQLITE_READONLY:
            return read_only(path)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return not_permitted(path)
        case sqlite3.SQLITE_IOERR:
            return StoreUnusable(
                f"The disk failed under the database {path} ({error}).",
                hint="Check the disk; what was accepted before is in the file and its -wal.",
            )
    return StoreUnusable(f"The database {path} could not be used: {error}.")
