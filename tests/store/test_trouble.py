"""Locked, full, broken: nothing is written, the sentence says what to do, and work goes on."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import peewee
import pytest

from tests.contract.support import begun, changed, keep, new, on_loop, parts_of
from tests.store.support import kept, locked, parcel
from wfe.errors import StoreBusy, StoreError, StoreUnusable
from wfe.model import ExecutionKey, ExecutionState
from wfe.store.commits import Commits
from wfe.store.connection import Connection
from wfe.store.contract import Query
from wfe.store.database import open_for_writing
from wfe.store.sqlite import SQLiteStore
from wfe.store.trouble import store_error
from wfe.store.writer import Outcome, Packer, Writer

KEY = ExecutionKey("order", "t1")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(open_for_writing(tmp_path / "wfe.db", synchronous="normal")) as connection:
        yield connection


def store(file: Path, *, busy_timeout: float) -> SQLiteStore:
    return SQLiteStore(file, synchronous="normal", busy_timeout=busy_timeout)


# --- locked --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lone", [True, False])
def test_a_lock_that_stays_is_store_busy_and_nothing_is_written(tmp_path: Path, lone: bool) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        execution = await keep(store, new())
        changes = changed(execution, begun())
        with locked(store.path):
            with pytest.raises(StoreBusy, match="is locked by another process"):
                await store.commit(execution, changes, lone=lone)
            with pytest.raises(StoreBusy):
                await store.delete(KEY, "r1")
            with pytest.raises(StoreBusy):
                await store.delete_children(KEY)
            assert parts_of(await store.load(KEY)) == parts_of(execution)
        await store.commit(execution, changes, lone=lone)
        execution.take(changes)
        assert parts_of(await store.load(KEY)) == parts_of(execution)

    use(store=store(tmp_path / "wfe.db", busy_timeout=0.02))


@pytest.mark.parametrize("lone", [True, False])
def test_a_lock_that_goes_is_waited_for_while_the_loop_goes_on(tmp_path: Path, lone: bool) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        execution = await keep(store, new())
        with locked(store.path) as other:
            commit = asyncio.ensure_future(
                store.commit(execution, changed(execution, running=1), lone=lone)
            )
            for _ in range(100):
                await asyncio.sleep(0)
            assert not commit.done()
            other.execute("ROLLBACK")
            await commit
        loaded = await store.load(KEY)
        assert loaded is not None
        assert loaded.head.running == 1

    use(store=store(tmp_path / "wfe.db", busy_timeout=30))


def test_a_locked_group_fails_as_a_whole(tmp_path: Path) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        executions = [new(f"t{number}") for number in range(20)]
        with locked(store.path):
            outcomes = await asyncio.gather(
                *(store.insert(e, changed(e)) for e in executions), return_exceptions=True
            )
        assert all(isinstance(outcome, StoreBusy) for outcome in outcomes)
        assert store.reader.count(Query()) == 0

    use(store=store(tmp_path / "wfe.db", busy_timeout=0.01))


# --- full ----------------------------------------------------------------------------------------


def test_a_full_disk_is_store_busy_and_nothing_is_written(connection: Connection) -> None:
    writer = Writer(connection, busy_timeout=5)
    assert writer.write([parcel("t1")]) == [True]
    pages = connection.pragma("page_count")
    connection.pragma(f"max_page_count = {pages + 3}")
    outcomes = writer.write([parcel("t2"), parcel("t3", padding=100_000)])
    assert [type(outcome) for outcome in outcomes] == [StoreBusy, StoreBusy]
    assert "no space left" in str(outcomes[0])
    assert kept(connection.path) == ["t1"]
    connection.pragma("max_page_count = 1000000")
    assert writer.write([parcel("t2"), parcel("t3", padding=100_000)]) == [True, True]
    assert kept(connection.path) == ["t1", "t2", "t3"]


# --- one bad parcel, and worse -------------------------------------------------------------------


def test_a_parcel_that_cannot_be_written_fails_alone(connection: Connection) -> None:
    writer = Writer(connection, busy_timeout=5)
    execution = new("bad")
    unstorable = changed(execution, begun("half \ud800"), state=ExecutionState.INVOKING)
    bad = Packer().insertion(execution, unstorable)
    outcomes = writer.write([parcel("t1"), bad, parcel("t2")])
    assert outcomes[0] is True
    assert isinstance(outcomes[1], UnicodeEncodeError)
    assert outcomes[2] is True
    assert kept(connection.path) == ["t1", "t2"]


def test_values_that_cannot_be_packed_fail_their_caller(tmp_path: Path) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        execution = new(metadata={"it": object()})
        with pytest.raises(TypeError):
            await store.insert(execution, changed(execution))
        assert await store.load(KEY) is None

    use(store=store(tmp_path / "wfe.db", busy_timeout=5))


class Dying(Writer):
    """A writer that dies at the first group it is given."""

    died = False

    def write(self, group: object, *, wait: bool = True) -> list[Outcome]:
        if not self.died:
            self.died = True
            raise SystemExit("dying")
        return super().write(group, wait=wait)  # type: ignore[arg-type]  # passed on as it came


def test_whatever_happens_in_the_thread_reaches_those_who_wait(connection: Connection) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as thread:
            commits = Commits(Dying(connection, busy_timeout=5), thread)
            with pytest.raises(SystemExit, match="dying"):
                await commits.put(parcel("t1"), lone=False)
            assert await commits.put(parcel("t2"), lone=False)
            await commits.finish()

    try:
        asyncio.run(main())
    except SystemExit:  # the loop lets it through
        pytest.fail("it was not raised where it was awaited")
    assert kept(connection.path) == ["t2"]


def test_a_commit_that_nobody_waits_for_any_more_is_written_all_the_same(tmp_path: Path) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        execution = new()
        insert = asyncio.ensure_future(store.insert(execution, changed(execution)))
        await asyncio.sleep(0)
        insert.cancel()
        await asyncio.wait([insert])
        second = new("t2")
        assert await store.insert(second, changed(second))
        assert await store.load(KEY) is not None

    use(store=store(tmp_path / "wfe.db", busy_timeout=5))


def test_close_waits_for_what_was_handed_over(tmp_path: Path) -> None:
    async def main() -> None:
        closing_store = store(tmp_path / "wfe.db", busy_timeout=5)
        await closing_store.open()
        executions = [new(f"t{number}") for number in range(50)]
        inserts = [asyncio.ensure_future(closing_store.insert(e, changed(e))) for e in executions]
        await asyncio.sleep(0)
        await closing_store.close()
        assert await asyncio.gather(*inserts) == [True] * 50

    asyncio.run(main())
    assert len(kept(tmp_path / "wfe.db")) == 50


# --- sentences -----------------------------------------------------------------------------------


def sqlite_error(kind: type[sqlite3.Error], code: int, text: str = "reason") -> sqlite3.Error:
    error = kind(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_BUSY), StoreBusy, "locked"),
        (sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_BUSY_SNAPSHOT), StoreBusy, "locked"),
        (sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_LOCKED), StoreBusy, "locked"),
        (sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_FULL), StoreBusy, "no space left"),
        (
            sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_SHMSIZE),
            StoreBusy,
            "no space left",
        ),
        (
            sqlite_error(sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB),
            StoreUnusable,
            "not a database",
        ),
        (sqlite_error(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT), StoreUnusable, "damaged"),
        (
            sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_READONLY),
            StoreUnusable,
            "read-only",
        ),
        (
            sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_READONLY_DBMOVED),
            StoreUnusable,
            "deleted or replaced",
        ),
        (
            sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_CANTOPEN),
            StoreUnusable,
            "may not be",
        ),
        (
            sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_READ),
            StoreUnusable,
            "disk failed",
        ),
        (sqlite_error(sqlite3.IntegrityError, sqlite3.SQLITE_CONSTRAINT), StoreUnusable, "reason"),
        (sqlite3.ProgrammingError("closed"), StoreUnusable, "closed"),
        (OSError(errno.ENOSPC, "full"), StoreBusy, "no space left"),
        (OSError(errno.EDQUOT, "full"), StoreBusy, "no space left"),
        (PermissionError(errno.EACCES, "no"), StoreUnusable, "may not be"),
        (OSError(errno.EROFS, "no"), StoreUnusable, "may not be"),
        (OSError(errno.EIO, "Input/output error"), StoreUnusable, "Input/output error"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value))[:40],
)
def test_every_error_becomes_one_sentence_that_names_the_file(
    error: Exception, kind: type[StoreError], sentence: str
) -> None:
    said = store_error(error, Path("/data/wfe.db"))
    assert type(said) is kind
    assert sentence in said.message
    assert "/data/wfe.db" in said.message
    assert said.message.endswith(".")
    assert said.message.count("\n") == 0


def test_what_peewee_wraps_is_told_apart_all_the_same(connection: Connection) -> None:
    with pytest.raises(peewee.PeeweeException) as caught:
        connection.run(peewee.Table("nowhere").select(peewee.SQL("x")))
    assert "nowhere" in store_error(caught.value, connection.path).message
    wrapped = peewee.OperationalError(
        sqlite_error(sqlite3.OperationalError, sqlite3.SQLITE_BUSY, "database is locked")
    )
    assert isinstance(store_error(wrapped, connection.path), StoreBusy)
