"""Lives: an engine's, from its start to its end, or to the crash point at which it stops dead.

Crash points are in two places, and the engine knows of neither: around each write of its store
(`CrashingStore`) and around each function of a step (`watched.py`). They are numbered from 1 in the
order in which a life reaches them, and named:

    before commit 1     after commit 1      the first write of the store, not yet there; there
    before charge       after charge        the function of a step: not called; called, not recorded
    before ~charge      after ~charge       its undo
    before charge (attempt 2)

At its point a life ends as a killed process does: the loop stops in its next round, by Crash, and
whatever the engine wants to keep or call from then on waits for ever. Nothing is cleaned up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from wfe.model import Changes, Event, Execution, ExecutionKey, event_told
from wfe.store.contract import CheckpointStore, Peers, Reader, Settled
from wfe.store.ledger import Ledger
from wfe.store.notices import Notices


class Crash(SystemExit):
    """The engine has stopped dead. A SystemExit, because asyncio keeps any other exception."""

    def __init__(self, point: str) -> None:
        super().__init__(f"crashed {point}")
        self.point = point


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a step's function, or of its undo."""

    #: `charge`, `~charge`: see `timeline`.
    name: str
    attempt: int
    idempotency_key: str


class Life:
    """One life of an engine. It crashes `at` a point, by name or number; None: it does not."""

    def __init__(self, at: int | str | None = None) -> None:
        self._at = at
        self._commits = 0
        self._is_buried = False
        #: The points that were reached, the last one included.
        self.points: list[str] = []
        #: The point at which it ended; None: it did not crash.
        self.crashed_at: str | None = None
        #: What was recorded in this life, in order.
        self.events: list[Event] = []
        #: What was called in this life, in order.
        self.calls: list[Call] = []

    async def reach(self, point: str) -> None:
        """Go on past a point, unless the life ends here or has ended."""
        if self.crashed_at is None:
            self.points.append(point)
            if self._at not in (point, len(self.points)):
                return
            self.crashed_at = point
            asyncio.get_running_loop().call_soon(_stop, point)
        if self._is_buried:
            raise asyncio.CancelledError
        await asyncio.get_running_loop().create_future()

    def bury(self) -> None:
        """The loop is about to be closed: let no task that ends for it wait for ever again."""
        self._is_buried = True

    async def commit(self, write: Callable[[], Awaitable[Any]]) -> Any:
        """Write to the store, between two points."""
        self._commits += 1
        number = self._commits
        await self.reach(f"before commit {number}")
        written = await write()
        await self.reach(f"after commit {number}")
        return written


def _stop(point: str) -> None:
    raise Crash(point)


# --- around the store ----------------------------------------------------------------------------


class CrashingStore:
    """A store whose engine stops dead `at` a crash point: `"after commit 2"`, or its number."""

    def __init__(self, store: CheckpointStore, at: int | str | None = None) -> None:
        self._store = store
        self.life = Life(at)

    @property
    def peers(self) -> Peers | None:
        return self._store.peers

    @property
    def ledger(self) -> Ledger:
        return self._store.ledger

    @property
    def notices(self) -> Notices:
        return self._store.notices

    @property
    def reader(self) -> Reader:
        return self._store.reader

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def insert(self, execution: Execution, changes: Changes, *, lone: bool = False) -> bool:
        async def write() -> bool:
            kept = await self._store.insert(execution, changes, lone=lone)
            if kept:
                self._note(changes)
            return kept

        return bool(await self.life.commit(write))

    async def commit(
        self,
        execution: Execution,
        changes: Changes,
        *,
        settled: Sequence[Settled] = (),
        lone: bool = False,
    ) -> None:
        async def write() -> None:
            await self._store.commit(execution, changes, settled=settled, lone=lone)
            self._note(changes)

        await self.life.commit(write)

    def _note(self, changes: Changes) -> None:
        self.life.events += [event_told(changes.head, entry) for entry in changes.events]

    async def delete(
        self, key: ExecutionKey, run_id: str, *, settled: Sequence[Settled] = ()
    ) -> bool:
        async def write() -> bool:
            return await self._store.delete(key, run_id, settled=settled)

        return bool(await self.life.commit(write))

    async def delete_children(self, root: ExecutionKey) -> int:
        return int(await self.life.commit(lambda: self._store.delete_children(root)))

    async def delete_expired(self, now: datetime) -> int:
        return int(await self.life.commit(lambda: self._store.delete_expired(now)))

    async def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        return await self._store.load(key, run_id)

    async def interrupted(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        return await self._store.interrupted(now, limit=limit)

    async def due(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        return await self._store.due(now, limit=limit)
