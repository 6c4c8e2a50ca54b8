"""The other processes on a database file: leases, signals, and word of what they write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from wfe.clock import SystemClock
from wfe.store import signals
from wfe.store.commits import Commits
from wfe.store.connection import Connection
from wfe.store.contract import Settled, Signal
from wfe.store.heartbeat import Heartbeat, OnChange
from wfe.store.writer import Writer

_T = TypeVar("_T")


class SQLitePeers:
    """The Peers of a store in a SQLite file, while it is open."""

    def __init__(self, writer: Writer, commits: Commits, heartbeat: Heartbeat) -> None:
        self._writer = writer
        self._commits = commits
        self._heartbeat = heartbeat
        self._holding: set[str] = set()

    async def hold(self, owner: str) -> None:
        if owner in self._holding:
            return

        def take_out(connection: Connection) -> None:
            signals.clear_away(connection)
            signals.renew(connection, [owner])

        await self._write(take_out)
        self._holding.add(owner)
        self._heartbeat.hold(owner)

    async def release(self, owner: str) -> None:
        if owner not in self._holding:
            return
        self._holding.discard(owner)
        self._heartbeat.drop(owner)
        await self._write(lambda connection: signals.give_up(connection, owner))

    async def send(self, signal: Signal) -> int:
        return await self._write(lambda connection: signals.send(connection, signal))

    async def pending_of(self, execution_id: str) -> Sequence[Signal]:
        return await self._read(lambda connection: signals.pending_of(connection, execution_id))

    async def pending_for(self, owner: str) -> Sequence[Signal]:
        return await self._read(lambda connection: signals.pending_for(connection, owner))

    async def outcome(self, signal: int) -> Settled | None:
        return await self._read(lambda connection: signals.outcome(connection, signal))

    async def settle(self, settled: Sequence[Settled]) -> None:
        now = SystemClock().now()
        await self._write(lambda connection: signals.settle(connection, settled, now))

    def watch(self, on_change: OnChange) -> None:
        self._heartbeat.watch(on_change)

    def unwatch(self) -> None:
        self._heartbeat.unwatch()

    async def _write(self, change: Callable[[Connection], _T]) -> _T:
        return await self._commits.run(lambda: self._writer.transact(change))

    async def _read(self, question: Callable[[Connection], _T]) -> _T:
        # By the connection that writes: what was committed before is seen, whoever did it.
        return await self._commits.run(lambda: self._writer.ask(question))
