"""Processes that share a file: their leases, their signals, and word of what they write."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.support import NOW, begun, changed, keep, move, new, on_loop
from tests.store.support import fill, locked
from wfe.errors import SkipExecutionError, StoreError, StoreUnusable
from wfe.model import Execution, ExecutionKey, ExecutionState
from wfe.store import heartbeat, owners, trouble
from wfe.store.bell import Bell
from wfe.store.connection import Connection
from wfe.store.contract import Query, Settled, Signal
from wfe.store.sqlite import SQLiteStore

KEY = ExecutionKey("order", "t1")

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="nobody tells who writes")


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "wfe.db")


@asynccontextmanager
async def another(store: SQLiteStore) -> AsyncIterator[SQLiteStore]:
    """A second store of the same file, as another process has it."""
    other = SQLiteStore(store.path)
    await other.open()
    try:
        yield other
    finally:
        await other.close()


def signal(execution: Execution, kind: str = "cancel") -> Signal:
    return Signal(
        execution_id=execution.head.execution_id,
        key=execution.head.key,
        kind=kind,
        payload=b'{"by":"kim"}',
        sender="kim",
        sent_at=NOW,
    )


def ask(store: SQLiteStore, question: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        return connection.execute(question).fetchall()


# --- leases --------------------------------------------------------------------------------------


@on_loop
async def test_an_execution_is_in_the_hand_of_its_owner_while_the_lease_lasts(
    store: SQLiteStore,
) -> None:
    me = owners.claim()
    await store.peers.hold(me)
    await keep(store, new(), owner=me, running=1)

    async def seen() -> tuple[str | None, str]:
        loaded = await store.load(KEY)
        assert loaded is not None
        (summary,) = store.reader.list(Query())
        assert summary.holder == loaded.holder
        return loaded.holder, summary.shown

    assert await seen() == (me, "running")
    assert await store.interrupted(NOW) == []
    await store.peers.release(me)
    assert await seen() == (None, "interrupted")
    assert await store.interrupted(NOW) == [KEY]
    await store.peers.hold(me)
    assert await seen() == (me, "running")
    owners.release(me)
    assert await seen() == (None, "interrupted"), "its process has ended"


@on_loop
async def test_an_owner_without_a_lease_holds_nothing(store: SQLiteStore) -> None:
    me = owners.claim()
    await keep(store, new(), owner=me, running=1)
    loaded = await store.load(KEY)
    assert loaded is not None
    assert loaded.head.owner == me
    assert loaded.holder is None
    owners.release(me)


@on_loop
async def test_leases_of_the_dead_are_cleared_away_by_the_next_who_takes_one_out(
    store: SQLiteStore,
) -> None:
    dead, alive = owners.claim(), owners.claim()
    async with another(store) as other:
        await other.peers.hold(dead)
        owners.release(dead)
        await store.peers.hold(alive)
        assert ask(store, "SELECT id FROM owner") == [(alive,)]
    owners.release(alive)


@on_loop
async def test_a_lease_is_renewed_beside_a_loop_that_is_blocked(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "RENEWAL", 0.0)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.001)
    me = owners.claim()
    await store.peers.hold(me)
    (first,) = ask(store, "SELECT beats_until FROM owner")
    while ask(store, "SELECT beats_until FROM owner") == [first]:
        pass  # blocks the loop until the other thread has renewed it
    owners.release(me)


@on_loop
async def test_a_lease_that_was_cleared_away_comes_back(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "RENEWAL", 0.0)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.001)
    me = owners.claim()
    await store.peers.hold(me)
    with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DELETE FROM owner")
    while not ask(store, "SELECT id FROM owner"):
        pass
    owners.release(me)


@on_loop
async def test_a_closed_store_renews_nothing(store: SQLiteStore) -> None:
    me = owners.claim()
    await store.peers.hold(me)
    await store.close()
    await store.open()
    assert ask(store, "SELECT count(*) FROM owner") == [(1,)], "giving it up is the engine's"
    owners.release(me)


# --- signals -------------------------------------------------------------------------------------


@on_loop
async def test_a_signal_reaches_whoever_has_the_execution_in_hand(store: SQLiteStore) -> None:
    me = owners.claim()
    execution = await keep(store, new(), owner=me, running=1)
    await keep(store, new("t2"), owner="somebody", running=1)
    async with another(store) as other:
        number = await other.peers.send(signal(execution))
        assert await other.peers.outcome(number) is None
    (found,) = await store.peers.pending_for(me)
    assert found == replace(signal(execution), id=number)
    assert await store.peers.pending_of(execution.head.execution_id) == [found]
    assert await store.peers.pending_for("somebody") == []
    owners.release(me)


@on_loop
async def test_a_signal_is_settled_in_the_commit_of_its_effect(store: SQLiteStore) -> None:
    execution = await keep(store, new(), running=1)
    number = await store.peers.send(signal(execution))
    changes = changed(execution, begun())
    await store.commit(execution, changes, settled=[Settled(number)])
    assert await store.peers.outcome(number) == Settled(number)
    assert await store.peers.pending_of(execution.head.execution_id) == []


@on_loop
async def test_a_stale_commit_settles_nothing(store: SQLiteStore) -> None:
    execution = await keep(store, new(), running=1)
    number = await store.peers.send(signal(execution))
    stale = await store.load(KEY)
    assert stale is not None
    await move(store, execution, begun())
    with pytest.raises(SkipExecutionError):
        await store.commit(stale, changed(stale, begun()), settled=[Settled(number)])
    assert await store.peers.outcome(number) is None


@on_loop
async def test_a_refusal_is_kept_and_the_first_outcome_counts(store: SQLiteStore) -> None:
    execution = await keep(store, new(), running=1)
    number = await store.peers.send(signal(execution))
    await store.peers.settle([Settled(number, b'{"type":"NotAllowed"}')])
    await store.peers.settle([Settled(number)])
    assert await store.peers.outcome(number) == Settled(number, b'{"type":"NotAllowed"}')


@on_loop
async def test_the_outcome_outlives_an_execution_that_is_not_kept(store: SQLiteStore) -> None:
    execution = await keep(store, new(), running=1)
    number = await store.peers.send(signal(execution))
    assert await store.delete(KEY, "r1", settled=[Settled(number)])
    assert await store.peers.outcome(number) == Settled(number)


@on_loop
async def test_signals_come_in_the_order_in_which_they_were_sent(store: SQLiteStore) -> None:
    execution = await keep(store, new(), running=1)
    numbers = [await store.peers.send(signal(execution, kind)) for kind in ("retry", "cancel")]
    found = await store.peers.pending_of(execution.head.execution_id)
    assert [each.id for each in found] == numbers
    assert [each.kind for each in found] == ["retry", "cancel"]


# --- word of what others write -------------------------------------------------------------------


@on_loop
async def test_who_watches_is_told_of_a_write_of_another_process(store: SQLiteStore) -> None:
    told: asyncio.Queue[StoreError | None] = asyncio.Queue()
    store.peers.watch(told.put_nowait)
    await told.get()  # the first look
    fill(store.path, "from-outside")
    assert await told.get() is None


class Resting(Bell):
    """Says when it rests for so long, and that not until the end of time."""

    def __init__(self, folder: Path, rest: float, is_quiet: asyncio.Event) -> None:
        super().__init__(folder)
        self.waits: list[float] = []
        self._rest, self._is_quiet = rest, is_quiet
        self._loop = asyncio.get_running_loop()

    def wait(self, seconds: float, *, deaf: bool = False) -> bool:
        self.waits.append(seconds)
        if seconds == self._rest:
            self._loop.call_soon_threadsafe(self._is_quiet.set)
        return super().wait(seconds if seconds == heartbeat.REST else 0.0001, deaf=deaf)


@pytest.mark.parametrize("is_told", [False, pytest.param(True, marks=on_linux)])
@on_loop
async def test_what_is_written_after_a_long_quiet_is_told_too(
    store: SQLiteStore, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system tells of it, however long a rest was to be; otherwise at the next look."""
    is_quiet, bells = asyncio.Event(), list[Resting]()
    monkeypatch.setattr(heartbeat, "REST", 3600.0)
    rest = heartbeat.REST if is_told else heartbeat.LONG_INTERVAL
    if not is_told:
        monkeypatch.setattr("wfe.store.bell._watch", lambda _: None)

    def made(folder: Path) -> Bell:
        bells.append(Resting(folder, rest, is_quiet))
        return bells[0]

    monkeypatch.setattr(heartbeat, "Bell", made)
    beat = heartbeat.Heartbeat(store.path, busy_timeout=1)
    told: asyncio.Queue[StoreError | None] = asyncio.Queue()
    beat.watch(told.put_nowait)
    assert await told.get() is None
    await is_quiet.wait()
    patience = heartbeat.LINGERING if is_told else heartbeat.PATIENCE
    assert bells[0].waits.index(rest) >= patience
    assert told.empty()
    await keep(store, new())
    assert await told.get() is None
    beat.stop()


@on_linux
@on_loop
async def test_who_begins_to_watch_while_it_rests_is_told_at_once(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "REST", 3600.0)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.001)
    beat = heartbeat.Heartbeat(store.path, busy_timeout=1)
    for _ in range(3):
        told: asyncio.Queue[StoreError | None] = asyncio.Queue()
        beat.watch(told.put_nowait)
        assert await told.get() is None
    beat.stop()


@on_loop
async def test_who_watches_is_told_that_the_file_is_gone(store: SQLiteStore) -> None:
    told: asyncio.Queue[StoreError | None] = asyncio.Queue()
    store.peers.watch(told.put_nowait)
    store.path.unlink()
    while (error := await told.get()) is None:
        pass
    assert isinstance(error, StoreUnusable)
    assert "deleted" in error.message


@on_loop
async def test_a_file_that_is_taken_away_during_a_beat_is_told_to_be_gone(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beat(self: heartbeat.Heartbeat, connection: Connection, bell: Bell) -> None:
        store.path.unlink()
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(heartbeat.Heartbeat, "_beat", beat)
    told: asyncio.Queue[StoreError | None] = asyncio.Queue()
    beating = heartbeat.Heartbeat(store.path, busy_timeout=1)
    beating.watch(told.put_nowait)
    error = await told.get()
    assert isinstance(error, StoreUnusable)
    assert "deleted" in error.message
    beating.stop()


@on_loop
async def test_a_lock_that_others_hold_is_waited_for(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "RENEWAL", 0.0)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.001)
    impatient = SQLiteStore(store.path, busy_timeout=0)
    await impatient.open()
    me = owners.claim()
    await impatient.peers.hold(me)
    with locked(store.path):
        (before,) = ask(store, "SELECT beats_until FROM owner")
        told: asyncio.Queue[StoreError | None] = asyncio.Queue()
        impatient.peers.watch(told.put_nowait)
    while ask(store, "SELECT beats_until FROM owner") == [before]:
        pass
    assert all(error is None for error in (told.get_nowait() for _ in range(told.qsize())))
    await impatient.close()
    owners.release(me)


@on_loop
async def test_what_is_written_while_the_heartbeat_is_kept_out_is_told(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks again by another connection, whose count of changes begins anew."""
    monkeypatch.setattr(heartbeat, "RENEWAL", 0.0)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.001)
    loop, kept_out = asyncio.get_running_loop(), asyncio.Event()
    told: asyncio.Queue[StoreError | None] = asyncio.Queue()

    me = owners.claim()
    beat = heartbeat.Heartbeat(store.path, busy_timeout=0)
    beat.watch(told.put_nowait)
    assert await told.get() is None
    store_error = trouble.store_error

    def busy(error: BaseException, path: Path) -> StoreError:
        loop.call_soon_threadsafe(kept_out.set)
        return store_error(error, path)

    monkeypatch.setattr("wfe.store.trouble.store_error", busy)
    with locked(store.path) as other:
        beat.hold(me)
        await kept_out.wait()
        other.execute("CREATE TABLE written_meanwhile (x)")
        other.execute("COMMIT")
        assert await asyncio.wait_for(told.get(), 10) is None
    beat.stop()
    owners.release(me)


@on_loop
async def test_a_store_that_nobody_watches_has_no_further_thread(store: SQLiteStore) -> None:
    execution = await keep(store, new())
    await move(store, execution, state=ExecutionState.INVOKING)
    assert "wfe-store-beat" not in {thread.name for thread in threading.enumerate()}
