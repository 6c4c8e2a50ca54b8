"""Copies of a database file: of one moment, whole, for their owner alone, and standing alone.

A copy is made while others write. It is read in one transaction, so that it is the database as it was
at one moment, with what its -wal held; page by page, so that who waits can be told how far it is and
can give up. It has no write-ahead log: it is one file, to be carried away.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from wfe.errors import StoreUnusable, UsageError
from wfe.store import private, trouble
from wfe.store.connection import FROZEN, READING, needs_frozen

#: Seconds that another process's exclusive lock is waited for, and between two looks at it.
PATIENCE = 5.0
_PAUSE = 0.05

#: Pages between two reports.
_PORTION = 2_000

_WRITING = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
)

#: Is told how many pages are left, and how many there are.
Progress = Callable[[int, int], None]


def back_up(
    source: Path,
    target: Path,
    *,
    replace: bool = False,
    patience: float = PATIENCE,
    on_progress: Progress | None = None,
) -> None:
    """Copy a database to `target`, which exists afterwards if and only if the copy is whole: it is made
    beside it, checked, and then named. `replace`: a file that is there gives way, and stays where the
    copy fails.

    Raises:
        UsageError: `target` cannot be the name of a copy: it is there, is a folder, or in none.
        StoreUnusable: `target` cannot be written; the source is damaged or no database.
        StoreBusy: the source was locked for longer than `patience` seconds, or no space is left.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with trouble.translated(target):
            _check_target(source, target, replace)
            part.unlink(missing_ok=True)
            private.make_file(part)
        with _translated(source, target):
            copy_into(part, source, patience=patience, on_progress=on_progress)
        if found := damage(part):
            raise StoreUnusable(
                f"The database {source} is damaged ({found}).",
                hint="No copy was kept; see how far it is readable with: wfe db check",
            )
        with trouble.translated(target):
            _check_target(source, target, replace)
            publish(part, target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def copy_into(
    target: Path,
    source: Path,
    *,
    patience: float = PATIENCE,
    on_progress: Progress | None = None,
) -> None:
    """Fill the empty file `target` with a copy of a database. Errors are those of sqlite3, and of the
    system; where one is raised, `target` holds nothing of use."""
    waited = 0.0

    def report(status: int, left: int, pages: int) -> None:
        nonlocal waited
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            waited += _PAUSE
            if waited > patience:
                raise _locked()
        elif on_progress is not None:
            on_progress(left, pages)

    with (
        closing(_at_one_moment(source, patience)) as original,
        closing(_opened(target, "mode=rw", patience)) as copy,
    ):
        original.backup(copy, pages=_PORTION, progress=report, sleep=_PAUSE)
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()


def damage(file: Path) -> str:
    """The first thing that SQLite finds wrong with the structure of a database; empty where it is
    whole."""
    try:
        with closing(_at_one_moment(file, PATIENCE)) as connection:
            found = faults(connection, limit=1)
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    return found[0] if found else ""


def faults(connection: sqlite3.Connection, *, limit: int) -> list[str]:
    """What SQLite finds wrong with the structure of a database, `limit` faults or a few more."""
    try:
        told = connection.execute(f"PRAGMA integrity_check({limit})").fetchall()
    except sqlite3.DatabaseError:
        if limit == 1:
            raise
        return faults(connection, limit=limit // 4)  # a fault may keep it from looking further
    lines = [line for (text,) in told for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def known(database: Path) -> list[Path]:
    """Copies of a database that lie beside it, or in the folder `backups` beside it; the newest first."""
    beside = database.parent.glob(f"{private.literal(database.name)}.backup-v*")
    folder = (database.parent / "backups").glob(f"{private.literal(database.stem)}*.db")
    found = [path for path in (*beside, *folder) if path.is_file() and path.suffix != ".part"]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def publish(part: Path, target: Path) -> None:
    """Give a finished file its name, so that the name survives a loss of power, too."""
    part.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _translated(source: Path, target: Path) -> Iterator[None]:
    """Errors of either file, as ours: what can only be said of one that is written is the copy's."""
    try:
        yield
    except trouble.TROUBLE as error:
        code = getattr(error, "sqlite_errorcode", 0)
        is_of_copy = isinstance(error, OSError) or code & 0xFF == sqlite3.SQLITE_FULL
        is_of_copy = is_of_copy or code in _WRITING
        raise trouble.store_error(error, target if is_of_copy else source) from error


def _at_one_moment(path: Path, patience: float) -> sqlite3.Connection:
    """A connection that reads, in one transaction. Without it, each commit of others would start a
    copy again."""
    try:
        return _begun(_opened(path, READING, patience))
    except sqlite3.OperationalError as error:
        if not needs_frozen(error, path):
            raise
    return _begun(_opened(path, FROZEN, patience))


def _begun(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _opened(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)


def _locked() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


def _check_target(source: Path, target: Path, replace: bool) -> None:
    if target.is_dir():
        raise UsageError(f"{target} is a folder.", hint="Name a file in it.")
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder {target.parent}.", hint="Make it first.")
    if not target.exists():
        return
    if target.samefile(source):
        raise UsageError(f"{target} is the database itself.", hint="Name another file.")
    if not replace:
        raise UsageError(f"{target} exists.", hint="Name another file, or replace it: --force.")
    log = target.with_name(f"{target.name}-wal")
    if log.exists() and log.stat().st_size > 0:
        # The log would be taken for one of the copy, and spoil it.
        raise UsageError(
            f"{target} is a database in use: it has the log {log.name}.", hint="Name another file."
        )
