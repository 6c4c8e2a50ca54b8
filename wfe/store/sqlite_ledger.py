"""The ledger of a store in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from wfe.store import schedule_rows
from wfe.store.commits import Commits
from wfe.store.connection import Connection
from wfe.store.ledger import (
    Claim,
    Claimed,
    LedgerReader,
    Registration,
    ScheduleRow,
    Settlement,
    Tick,
)
from wfe.store.writer import Writer

_T = TypeVar("_T")


class SQLiteLedger:
    """The Ledger of a store in a SQLite file, while it is open."""

    def __init__(self, writer: Writer, commits: Commits, reader: LedgerReader) -> None:
        self._writer = writer
        self._commits = commits
        self._reader = reader

    def schedules(self) -> Sequence[ScheduleRow]:
        return self._reader.schedules()

    def ticks(self, name: str, *, limit: int | None = None) -> Sequence[Tick]:
        return self._reader.ticks(name, limit=limit)

    def owed(self) -> int:
        return self._reader.owed()

    # --- reading ---

    async def known(self) -> Sequence[ScheduleRow]:
        return await self._read(schedule_rows.schedules)

    async def pending(self) -> Sequence[Tick]:
        return await self._read(schedule_rows.pending)

    async def unfinished(self, name: str) -> Sequence[Tick]:
        return await self._read(lambda connection: schedule_rows.unfinished(connection, name))

    # --- writing ---

    async def register(
        self, registrations: Sequence[Registration], *, owner: str, now: datetime
    ) -> Sequence[ScheduleRow]:
        if not registrations:
            return []
        return await self._write(lambda c: schedule_rows.register(c, registrations, owner, now))

    async def claim(self, claims: Sequence[Claim], *, now: datetime) -> Sequence[Claimed]:
        if not claims:
            return []
        return await self._write(lambda c: schedule_rows.claim(c, claims, now))

    async def take(self, ticks: Sequence[Tick], *, owner: str) -> Sequence[Tick]:
        if not ticks:
            return []
        return await self._write(lambda c: schedule_rows.take(c, ticks, owner))

    async def settle(self, settlements: Sequence[Settlement], *, now: datetime) -> None:
        if settlements:
            await self._write(lambda c: schedule_rows.settle(c, settlements, now))

    async def end(self, ticks: Sequence[Tick]) -> None:
        if ticks:
            await self._write(lambda c: schedule_rows.end(c, ticks))

    async def pause(self, name: str, *, now: datetime) -> bool:
        return await self._write(lambda c: schedule_rows.pause(c, name, now))

    async def resume(self, name: str, *, now: datetime) -> bool:
        return await self._write(lambda c: schedule_rows.resume(c, name, now))

    async def forget(self, name: str) -> bool:
        return await self._write(lambda c: schedule_rows.forget(c, name))

    async def sweep(self, before: datetime) -> int:
        return await self._write(lambda c: schedule_rows.sweep(c, before))

    async def _write(self, change: Callable[[Connection], _T]) -> _T:
        return await self._commits.run(lambda: self._writer.transact(change))

    async def _read(self, question: Callable[[Connection], _T]) -> _T:
        # By the connection that writes: what was committed before is seen, whoever did it.
        return await self._commits.run(lambda: self._writer.ask(question))
