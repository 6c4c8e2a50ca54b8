"""Firing: from ticks that are due to rows of the ledger and executions.

    claim (one transaction for all that are due) → begin the executions → settle (one again)

Whatever stops in between leaves a claim, which this scheduler takes up again, or, when it is gone,
another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from msgspec.structs import replace

from wfe.model import Event, EventKind
from wfe.runtime.engine import Engine
from wfe.scheduling.plan import Plan
from wfe.scheduling.starts import Starts
from wfe.store.ledger import Claim, Claimed, Settlement, Tick, row_of


class Firing:
    """Claims, begins and settles ticks in the name of one scheduler.

    `on_tick` is called with each tick that was decided on here; `wake` when one that waits for another
    may be begun.
    """

    def __init__(
        self,
        engine: Engine,
        owner: str,
        *,
        on_tick: Callable[[Tick], None],
        wake: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._starts = Starts(engine)
        self._owner = owner
        self._on_tick = on_tick
        self._wake = wake
        #: Whose ticks are begun here, by name.
        self.plans: dict[str, Plan] = {}
        #: Claimed here, and not settled yet.
        self._claimed: dict[tuple[str, datetime], Tick] = {}
        #: Those of them that are being begun, by the loop or by who has asked for one.
        self._at_work: set[tuple[str, datetime]] = set()
        #: Schedules that have ticks which wait for others.
        self._queues: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Nothing that was claimed is waiting for its beginning."""
        return not self._claimed and not self._queues

    def claims(
        self, plan: Plan, since: datetime, now: datetime, present_since: datetime, *, vain: str = ""
    ) -> list[Claim]:
        """A claim for each tick of a plan that has come after `since`, in order; none where as many as
        can be caught up with at a time are still to be begun. `vain`: why none of them can be."""
        dues = plan.dues(since, now, present_since=present_since)
        has_turns = plan.schedule.concurrency == "forbid"
        if dues.is_queue and has_turns and plan.name in self._queues:
            return []
        found: list[Claim] = []
        for tick in dues.all:
            claim = self.claim_of(plan, tick)
            if tick not in dues.run:
                note = "Ticks before it are not listed." if dues.is_cut and not found else None
                claim = replace(claim, state="skipped", reason="missed", error=note, owner=None)
            elif vain:
                claim = replace(claim, state="error", error=vain, owner=None)
            elif has_turns and (dues.is_queue or tick != dues.run[0]):
                claim = replace(claim, owner=None)  # it is begun when the one before has ended
            found.append(claim)
        return found

    def claim_of(self, plan: Plan, tick: datetime) -> Claim:
        """The claim to begin a tick here and now."""
        return Claim(
            schedule=plan.name,
            scheduled_for=tick,
            state="due",
            owner=self._owner,
            transaction_id=plan.transaction_id(tick),
            timing=plan.timing,
            limit=plan.schedule.number_of_executions,
            reckoned_by=plan.reckoned_by,
        )

    async def fire(self, claims: Sequence[Claim], now: datetime) -> Sequence[Claimed]:
        """Claim, begin and settle; what became of each claim.

        Raises:
            StoreError: nothing was claimed; or what was claimed is begun another time, by `go_on`.
        """
        outcomes = await self._engine.store.ledger.claim(claims, now=now)
        kept = [
            row_of(claim, outcome, now)
            for claim, outcome in zip(claims, outcomes, strict=True)
            if outcome in ("kept", "paused")
        ]
        for tick in kept:
            if tick.state != "due":
                self._on_tick(tick)
            elif tick.owner is None:
                self._queues.add(tick.schedule)
                self._wake()
        await self._begin([tick for tick in kept if tick.owner is not None])
        return outcomes

    async def begin_now(self, plan: Plan, now: datetime) -> Tick | None:
        """Begin an execution of a plan beside its ticks; what came of it. None: its claim stands, and
        whoever comes begins it.

        Raises:
            StoreError: as `fire`.
        """
        claim = replace(self.claim_of(plan, now), kind="manual", limit=None, timing=None)
        (outcome,) = await self._engine.store.ledger.claim([claim], now=now)
        decided = await self._begin([row_of(claim, outcome, now)]) if outcome == "kept" else []
        return decided[0] if decided else None

    async def put_off(
        self, plan: Plan, moments: Sequence[datetime], now: datetime
    ) -> list[datetime]:
        """Have moments of the past begun by whoever looks; which ones: those of which there is no
        execution, be it that they were put off before by somebody who is gone.

        Raises:
            StoreError: none of them will be.
        """
        claims = [
            replace(self.claim_of(plan, m), kind="backfill", limit=None, timing=None, owner=None)
            for m in moments
        ]
        ledger = self._engine.store.ledger
        outcomes = await ledger.claim(claims, now=now)
        owed = {t.scheduled_for for t in await ledger.pending() if t.schedule == plan.name}
        self._wake()
        kept = zip(moments, outcomes, strict=True)
        return [moment for moment, outcome in kept if outcome == "kept" or moment in owed]

    async def go_on(self) -> None:
        """Begin, or settle, what a store that was busy has left.

        Raises:
            StoreError: it is still busy.
        """
        left = [tick for key, tick in self._claimed.items() if key not in self._at_work]
        if left:
            await self._begin(left)

    async def look(self) -> None:
        """Begin what is pending: claimed by somebody who is gone, or to be run after another.

        Raises:
            StoreError
        """
        ledger = self._engine.store.ledger
        pending = [tick for tick in await ledger.pending() if tick.schedule in self.plans]
        self._queues = {tick.schedule for tick in pending}
        wanted: list[Tick] = []
        seen: set[str] = set()
        for tick in pending:
            plan = self.plans[tick.schedule]
            is_queue = plan.schedule.concurrency == "forbid"
            if is_queue and tick.schedule in seen:
                continue
            seen.add(tick.schedule)
            if await self._starts.busy(plan, tick) is None:
                wanted.append(tick)
        await self._begin(await ledger.take(wanted, owner=self._owner))

    async def _begin(self, ticks: Collection[Tick]) -> list[Tick]:
        """Begin claimed ticks, together, and settle them; those that were decided on."""
        claimed = {_key(tick): tick for tick in ticks}
        self._claimed |= claimed
        self._at_work |= claimed.keys()
        try:
            return await self._begin_and_settle(ticks)
        finally:
            self._at_work -= claimed.keys()

    async def _begin_and_settle(self, ticks: Collection[Tick]) -> list[Tick]:
        for tick in ticks:
            self._listen(tick)
        found = await asyncio.gather(
            *(self._starts.begin(self.plans[tick.schedule], tick) for tick in ticks),
            return_exceptions=True,
        )
        for tick, each in zip(ticks, found, strict=True):
            if not (isinstance(each, Settlement) and each.is_open):
                self._stop_listening(tick)
        settled = [each for each in found if isinstance(each, Settlement)]
        now = self._engine.clock.now()
        await self._engine.store.ledger.settle(settled, now=now)
        decided = [_decided(each, now) for each in settled]
        for tick in decided:
            self._claimed.pop(_key(tick), None)
            self._on_tick(tick)
        for error in found:
            if isinstance(error, BaseException):
                raise error
        return decided

    def _listen(self, tick: Tick) -> None:
        """Wake when this one has ended, where others wait for it."""
        if tick.schedule not in self._queues:
            return
        workflow_id = self.plans[tick.schedule].workflow_id

        def on_event(event: Event) -> None:
            if event.kind is EventKind.FINISH:
                self._wake()

        self._engine.subscribe(
            workflow_id,
            on_event,
            transaction_id=tick.transaction_id,
            subscriber_id=_subscriber(tick),
        )

    def _stop_listening(self, tick: Tick) -> None:
        """It has no execution that will end."""
        workflow_id = self.plans[tick.schedule].workflow_id
        subscriber = _subscriber(tick)
        self._engine.unsubscribe(workflow_id, subscriber, transaction_id=tick.transaction_id)


def _subscriber(tick: Tick) -> str:
    return f"wfe schedule {tick.schedule}"


def _decided(settlement: Settlement, now: datetime) -> Tick:
    """A tick as a settlement has left it."""
    return replace(
        settlement.tick,
        state=settlement.state,
        reason=settlement.reason,
        execution_id=settlement.execution_id,
        error=settlement.error,
        is_open=settlement.is_open,
        owner=None,
        decided_at=now,
    )


def _key(tick: Tick) -> tuple[str, datetime]:
    return tick.schedule, tick.scheduled_for
