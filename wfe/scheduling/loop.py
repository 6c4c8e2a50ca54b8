"""The loop: fires the ticks of schedules when they are due.

    async with Engine(...) as engine, Scheduler(engine):
        ...

One task for all schedules. It sleeps until the first of them is due, half a minute at most, and then
compares the wall clock, which may have been set, or gone on while the machine was suspended. Never early:
what is not due by the clock stays where it is. Never twice: the ledger has a tick once. Never silently
missed: ticks that came while nobody was there, or that must not run, have their rows as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from wfe.clock import LONGEST_SLEEP
from wfe.errors import InvalidSchedule, StoreBusy, StoreError, UsageError
from wfe.runtime.engine import Engine
from wfe.scheduling.firing import Firing
from wfe.scheduling.orphans import Orphans
from wfe.scheduling.others import Others
from wfe.scheduling.plan import Plan, own_plan
from wfe.scheduling.reading import changed_reading
from wfe.scheduling.served import Agenda, Served, Upcoming
from wfe.store import owners
from wfe.store.ledger import Claim, Tick

logger = logging.getLogger("wfe")

_SLEEP = timedelta(seconds=LONGEST_SLEEP)

#: From one look at what others have left pending to the next; and from one look at whose schedules are.
_LOOK = timedelta(seconds=5)
_REVIEW = timedelta(seconds=60)

#: From one look at whether the other processes that hold what is served here live, to the next.
_DEATHS = timedelta(seconds=1)

#: Until the next attempt, where the store was busy, or too many ticks are still to be begun.
_AGAIN = timedelta(seconds=1)

#: A clock that was set back by more than this is followed.
_SET_BACK = timedelta(seconds=1)


class Scheduler:
    """Serves schedules through an engine, in its event loop: those of the engine's workflows, and what
    is added. Start it when the engine has been started, and stop it before.

    `own=False` leaves the workflows' own schedules to others. `on_tick` is called with each tick that
    was decided on here.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        own: bool = True,
        on_tick: Callable[[Tick], None] | None = None,
    ) -> None:
        self._engine = engine
        self._clock = engine.clock
        self._own = own
        self._tell = on_tick
        #: This scheduler, as the ledger names it.
        self.owner = owners.claim()
        #: Schedules of workflows that mean nothing, by the workflow's id: they are not served.
        self.failures: dict[str, InvalidSchedule] = {}
        self._firing = Firing(engine, self.owner, on_tick=self._on_tick, wake=self.wake)
        self._agenda = Agenda()
        self._others = Others(self.owner)
        self._woken = asyncio.Event()
        #: When pending ticks are looked at next: as soon as it is started.
        self._look_at = datetime.min.replace(tzinfo=UTC)
        #: Is set as long as what is served is what the workflows want.
        self._is_fresh = asyncio.Event()
        self._is_fresh.set()
        self._task: asyncio.Task[None] | None = None

    # --- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve; idempotent. A schedule that means nothing is left out, and told in `failures`.

        Raises:
            StoreError: the ledger cannot be written.
            UsageError: it was stopped: what it had claimed may be in other hands.
        """
        if self._task is not None:
            return
        if owners.is_there(self.owner) is False:
            raise UsageError(
                "A scheduler that was stopped does not serve again.",
                hint="Make another Scheduler(engine).",
            )
        self._now = self._present_since = self._review_at = self._clock.now()
        store = self._engine.store
        self._orphans = Orphans(store.ledger, self._engine.registry, self.owner)
        if store.peers is not None:
            await store.peers.hold(self.owner)
        if self._own:
            await self.add(*self._own_plans())
        self._task = asyncio.get_running_loop().create_task(self._run(), name="wfe schedules")

    async def stop(self) -> None:
        """Begin nothing more. What was begun goes on; what was claimed is left to others."""
        task, self._task = self._task, None
        owners.release(self.owner)
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError, StoreError):
            await task
        peers = self._engine.store.peers
        if peers is not None:
            with suppress(StoreError):  # it counts as gone all the same
                await peers.release(self.owner)

    async def wait(self) -> None:
        """Return when it is stopped.

        Raises:
            StoreError: the ledger is out of reach for good, and nothing is served any more.
        """
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # --- what is served --------------------------------------------------------------------------

    async def renew(self) -> None:
        """The engine's workflows were loaded anew: serve the schedules that they have by now. Returns
        when that is so, or when nothing is served: `start` looks at what they have."""
        task = self._task
        if task is None:
            return
        self._is_fresh.clear()
        self._woken.set()
        is_fresh = asyncio.ensure_future(self._is_fresh.wait())
        try:
            await asyncio.wait((is_fresh, task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_fresh.cancel()

    async def _renew(self) -> None:
        self.failures.clear()
        wanted = {plan.name: plan for plan in self._own_plans()} if self._own else {}
        for entry in self._agenda:
            plan = entry.plan
            if plan.origin == "command" or (entry.vain and plan.name not in wanted):
                continue
            if plan.name not in wanted:
                self._agenda.drop(plan.name)
                if plan.workflow_id not in self._engine.registry.ids():
                    self._enter(Served(plan, entry.since, entry.fired, vain=_no_workflow(plan)))
            elif not entry.vain and wanted[plan.name].registration == plan.registration:
                del wanted[plan.name]
        await self.add(*wanted.values())
        self._is_fresh.set()

    def _own_plans(self) -> Iterator[Plan]:
        registry = self._engine.registry
        for workflow_id in registry.ids():
            try:
                plan = own_plan(registry.get(workflow_id), self._now)
            except InvalidSchedule as error:
                self.failures[workflow_id] = error
            else:
                if plan is not None:
                    yield plan

    async def add(self, *plans: Plan) -> None:
        """Serve plans from now on."""
        now = self._clock.now()
        # An interval is counted from there: to the millisecond, as moments are shown and named.
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        ledger = self._engine.store.ledger
        known = {row.name: row for row in await ledger.known()}
        registrations = [plan.registration_after(known.get(plan.name), now) for plan in plans]
        rows = await ledger.register(registrations, owner=self.owner, now=now)
        for plan, row in zip(plans, rows, strict=True):
            plan.anchor(row)
            if (change := changed_reading(plan, row)) is not None:
                logger.warning("%s See: %s", change.sentence, change.preview)
            self._firing.plans[plan.name] = plan
            self._enter(Served(plan, min(row.accounted_until, now), row.fired))
        self._others.note(rows, self._agenda)

    async def trigger(self, plan: Plan) -> Tick | None:
        """Begin an execution of a schedule now, beside its ticks; what came of it: where executions
        must not overlap, and one goes on, it is passed over. None: this scheduler is being stopped.

        Raises:
            StoreError: it was not begun, or will be by whoever looks.
        """
        self._firing.plans[plan.name] = plan
        return await self._firing.begin_now(plan, self._clock.now())

    async def backfill(self, plan: Plan, moments: Sequence[datetime]) -> list[datetime]:
        """Have executions begun for ticks of the past, in order; for which ones: those that have none.

        Raises:
            StoreError: nothing will be begun.
        """
        self._firing.plans[plan.name] = plan
        return await self._firing.put_off(plan, moments, self._clock.now())

    def wake(self) -> None:
        """Look at what is pending now."""
        self._look_at = datetime.min.replace(tzinfo=UTC)
        self._woken.set()

    @property
    def upcoming(self) -> list[Upcoming]:
        """What is served, by name."""
        return [Upcoming(entry.plan, entry.due) for entry in self._agenda]

    @property
    def is_over(self) -> bool:
        """Nothing that is served fires any more, nor waits for its beginning."""
        return not self._agenda and self._firing.is_idle

    def _enter(self, entry: Served) -> None:
        self._agenda.enter(entry)
        self._woken.set()

    def _on_tick(self, tick: Tick) -> None:
        entry = self._agenda.get(tick.schedule)
        if entry is not None and tick.kind == "tick":
            entry.fired += tick.state == "fired"
            entry.is_exhausted &= tick.state == "fired"
            if entry.is_over:
                self._agenda.drop(tick.schedule)
        if self._tell is not None:
            self._tell(tick)

    # --- the task --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._pass()
                pause = _SLEEP
            except StoreBusy as error:
                logger.warning("Schedules wait for the database: %s", error)
                pause = _AGAIN
            except StoreError:
                raise
            except Exception:
                logger.exception("Serving schedules failed")
                pause = _AGAIN
            await self._sleep(pause)

    async def _pass(self) -> None:
        before, self._now = self._now, self._clock.now()
        if self._now < before - _SET_BACK:
            self._follow_back()
        if not self._is_fresh.is_set():
            await self._renew()
        await self._firing.go_on()
        await self._fire(self._due())
        if self._now >= self._review_at or self._others.has_lost_one():
            await self._review()
            # Who was stopped, or is on another host, is gone when its lease is: only the ledger tells.
            self._review_at = self._now + (_LOOK if self._others else _REVIEW)
        if self._now >= self._look_at:
            self._look_at = self._now + (_SLEEP if self._engine.store.peers is None else _LOOK)
            await self._firing.look()

    async def _sleep(self, longest: timedelta) -> None:
        """Until there is something to do, or somebody has woken us."""
        moments = [self._now + longest]
        if longest == _SLEEP:
            moments += filter(None, (self._look_at, self._agenda.next()))
            moments += [self._now + _DEATHS] if self._others else []
        sleep = asyncio.ensure_future(self._clock.sleep_until(min(moments)))
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            # The clock may be set back meanwhile, so that the moment does not come.
            await asyncio.wait(
                (sleep, woken), timeout=LONGEST_SLEEP, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            sleep.cancel()
            woken.cancel()

    def _follow_back(self) -> None:
        """The clock was set back: what it goes through again has its rows, and what comes next comes
        sooner than it seemed."""
        self._present_since = min(self._present_since, self._now)
        self._look_at = self._review_at = self._now
        self._agenda.go_back(self._now)

    def _due(self) -> list[Served]:
        return list(filter(self._is_there, self._agenda.take_due(self._now)))

    def _is_there(self, entry: Served) -> bool:
        """A workflow that is unregistered takes its own schedule along."""
        plan = entry.plan
        if entry.vain or plan.origin == "command":
            return True
        if plan.workflow_id in self._engine.registry.ids():
            return True
        self._agenda.drop(plan.name)
        return False

    async def _review(self) -> None:
        """Hold what is served here, and whose holder is gone; serve what nobody can serve any more."""
        ledger = self._engine.store.ledger
        rows = await ledger.known()
        left = [
            entry.plan.registration
            for row in rows
            if row.holder is None and (entry := self._agenda.get(row.name)) is not None
            if not entry.vain and entry.plan.timing == row.timing
        ]
        self._others.clear()
        self._others.note(rows, self._agenda)
        self._others.note(
            await ledger.register(left, owner=self.owner, now=self._now), self._agenda
        )
        for plan, row in self._orphans.among(rows, self._agenda) if self._own else ():
            since = min(row.accounted_until, self._now)
            self._enter(Served(plan, since, row.fired, vain=_no_workflow(plan)))

    # --- firing ----------------------------------------------------------------------------------

    async def _fire(self, due: Sequence[Served]) -> None:
        """Fire what is due; where that fails, it is due again soon."""
        if not due:
            return
        try:
            claims = {entry.plan.name: self._claims(entry) for entry in await self._ours(due)}
            flat = [claim for each in claims.values() for claim in each]
            outcomes = await self._firing.fire(flat, self._now)
        except BaseException:
            for entry in due:
                entry.due = self._now + _AGAIN
                self._agenda.put(entry)
            raise
        for claim, outcome in zip(flat, outcomes, strict=True):
            if outcome == "superseded":
                self._leave(claim.schedule)
            elif outcome == "exhausted" and (served := self._agenda.get(claim.schedule)):
                served.is_exhausted = True
        for entry in due:
            if self._agenda.holds(entry):
                claimed = _moments(claims[entry.plan.name])
                entry.since = max([entry.since, *claimed])
                entry.due = entry.plan.next(entry.since) if claimed else self._now + _AGAIN
                self._agenda.put(entry)

    async def _ours(self, due: Sequence[Served]) -> list[Served]:
        """Without orphans that somebody has begun to serve."""
        orphans = [entry.plan for entry in due if entry.vain]
        still = await self._orphans.without_holder(orphans)
        for plan in orphans:
            if plan.name not in still:
                self._agenda.drop(plan.name)
        return [entry for entry in due if not entry.vain or entry.plan.name in still]

    def _claims(self, entry: Served) -> list[Claim]:
        return self._firing.claims(
            entry.plan, entry.since, self._now, self._present_since, vain=entry.vain
        )

    def _leave(self, name: str) -> None:
        if self._agenda.drop(name):
            logger.info("Schedule %s has another timing now, or is gone: it is left alone.", name)


def _no_workflow(plan: Plan) -> str:
    return f"There is no workflow {plan.workflow_id!r} any more."


def _moments(claims: Sequence[Claim]) -> list[datetime]:
    return [claim.scheduled_for for claim in claims]
