"""The ledger of a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from wfe.store import owners
from wfe.store.ledger import (
    Claim,
    Claimed,
    Registration,
    ScheduleRow,
    Settlement,
    Tick,
    counts,
    fires_after,
    registered,
    row_of,
    verdict,
)


class MemoryLedger:
    """The Ledger that ends with its process."""

    def __init__(self) -> None:
        self._schedules: dict[str, ScheduleRow] = {}
        self._ticks: dict[str, dict[datetime, Tick]] = {}
        #: Of all schedules: what is due, and what is open.
        self._due: dict[tuple[str, datetime], Tick] = {}
        self._open: dict[tuple[str, datetime], Tick] = {}

    # --- reading ---

    def schedules(self) -> Sequence[ScheduleRow]:
        rows = sorted(self._schedules.values(), key=lambda row: row.name)
        return [replace(row, holder=_living(row.holder)) for row in rows]

    def ticks(self, name: str, *, limit: int | None = None) -> Sequence[Tick]:
        ticks = list(self._ticks.get(name, {}).values())
        ticks.sort(key=lambda tick: tick.scheduled_for, reverse=True)
        return ticks[:limit]

    def owed(self) -> int:
        return len(self._due)

    async def known(self) -> Sequence[ScheduleRow]:
        return self.schedules()

    async def pending(self) -> Sequence[Tick]:
        found = [tick for tick in self._due.values() if _living(tick.owner) is None]
        return sorted(found, key=lambda tick: (tick.scheduled_for, tick.schedule))

    async def unfinished(self, name: str) -> Sequence[Tick]:
        claimed = [tick for tick in self._due.values() if _living(tick.owner) is not None]
        found = [tick for tick in (*self._open.values(), *claimed) if tick.schedule == name]
        return sorted(found, key=lambda tick: tick.scheduled_for)

    # --- writing ---

    async def register(
        self, registrations: Sequence[Registration], *, owner: str, now: datetime
    ) -> Sequence[ScheduleRow]:
        return [self._register(registration, owner, now) for registration in registrations]

    def _register(self, registration: Registration, owner: str, now: datetime) -> ScheduleRow:
        known = self._schedules.get(registration.name)
        if known is not None:
            known = replace(known, holder=_living(known.holder))
        row = self._schedules[registration.name] = registered(registration, known, owner, now)
        return row

    async def claim(self, claims: Sequence[Claim], *, now: datetime) -> Sequence[Claimed]:
        return [self._claim(claim, now) for claim in claims]

    def _claim(self, claim: Claim, now: datetime) -> Claimed:
        row = self._schedules.get(claim.schedule)
        known = self._ticks.get(claim.schedule, {}).get(claim.scheduled_for)
        found = verdict(row, claim, None if known is None else known.state)
        if row is not None and found != "superseded" and claim.kind == "tick":
            until = max(row.accounted_until, claim.scheduled_for)
            fires = fires_after(row, claim)
            self._schedules[row.name] = replace(row, accounted_until=until, fires=fires)
        if found in ("kept", "paused"):
            self._put(row_of(claim, found, now))
        return found

    async def take(self, ticks: Sequence[Tick], *, owner: str) -> Sequence[Tick]:
        taken = []
        for tick in ticks:
            known = self._due.get((tick.schedule, tick.scheduled_for))
            if known is not None and known.owner == tick.owner:
                taken.append(replace(tick, owner=owner))
                self._put(taken[-1])
        return taken

    async def settle(self, settlements: Sequence[Settlement], *, now: datetime) -> None:
        for given in settlements:
            tick = self._due.get((given.tick.schedule, given.tick.scheduled_for))
            if tick is not None:
                self._put(
                    replace(
                        tick,
                        state=given.state,
                        reason=given.reason,
                        execution_id=given.execution_id,
                        error=given.error,
                        is_open=given.is_open,
                        owner=None,
                        decided_at=now,
                    )
                )

    async def end(self, ticks: Sequence[Tick]) -> None:
        for tick in ticks:
            known = self._open.get((tick.schedule, tick.scheduled_for))
            if known is not None:
                self._put(replace(known, is_open=False))

    async def pause(self, name: str, *, now: datetime) -> bool:
        return self._change(
            name, lambda row: row if row.is_paused else replace(row, paused_at=now, resumed_at=None)
        )

    async def resume(self, name: str, *, now: datetime) -> bool:
        return self._change(
            name, lambda row: replace(row, resumed_at=now) if row.is_paused else row
        )

    async def forget(self, name: str) -> bool:
        for tick in self.ticks(name):
            self._drop(tick)
        self._ticks.pop(name, None)
        return self._schedules.pop(name, None) is not None

    async def sweep(self, before: datetime) -> int:
        going = [
            tick
            for ticks in self._ticks.values()
            for tick in ticks.values()
            if tick.decided_at < before and tick.state != "due" and not tick.is_open
        ]
        for tick in going:
            self._drop(tick)
        return len(going)

    def _change(self, name: str, change: Callable[[ScheduleRow], ScheduleRow]) -> bool:
        row = self._schedules.get(name)
        if row is not None:
            self._schedules[name] = change(row)
        return row is not None

    def _put(self, tick: Tick) -> None:
        ticks = self._ticks.setdefault(tick.schedule, {})
        before = ticks.get(tick.scheduled_for)
        ticks[tick.scheduled_for] = tick
        added = counts(tick) - (before is not None and counts(before))
        if added:
            row = self._schedules[tick.schedule]
            self._schedules[tick.schedule] = replace(row, fired=row.fired + added)
        key = (tick.schedule, tick.scheduled_for)
        for rows, belongs in ((self._due, tick.state == "due"), (self._open, tick.is_open)):
            if belongs:
                rows[key] = tick
            else:
                rows.pop(key, None)

    def _drop(self, tick: Tick) -> None:
        key = (tick.schedule, tick.scheduled_for)
        del self._ticks[tick.schedule][tick.scheduled_for]
        self._due.pop(key, None)
        self._open.pop(key, None)


def _living(owner: str | None) -> str | None:
    return owner if owner is not None and owners.is_there(owner) else None
