"""Serving through days of kills, restarts and clocks that are set: the ledger has every tick, once.

Here a day of 40 schedules; `SCHEDULES=full`: two weeks of 200.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import datetime, timedelta

import pytest

from tests.scheduling.serving import IS_FULL, START, World
from wfe import Recording, Schedule
from wfe.scheduling.plan import Plan
from wfe.scheduling.upkeep import Upkeep
from wfe.store.contract import Query
from wfe.store.ledger import Tick
from wfe.store.memory import MemoryStore

SCHEDULES, DAYS, SEEDS = (200, 7, 2) if IS_FULL else (40, 1, 1)

HAPPENINGS = {"pause", "clock set forward", "clock set back", "kill"}

#: Takes longer than the time between two of its ticks.
LONG = "long"

_ZONES = ("UTC", "Europe/London", "America/New_York", "Asia/Kolkata")
_POLICIES = ("none", "last", "all")


class Week(World):
    """As `wfe serve`: with upkeep of what was left."""

    def __init__(self) -> None:
        super().__init__(MemoryStore, Recording.EVERY_STEP)
        self.takes = 40.0
        self.durations = {LONG: 5 * 3600.0}
        for number in range(SCHEDULES - 1):
            self.job(f"job-{number}", _schedule(number))
        self.job(LONG, Schedule(cron="20 * * * *"))

    async def begin(self, **options: object) -> None:
        await super().begin(**options)
        self._upkeep = Upkeep(self.engine, on_taken=lambda key, error: None)
        await self._upkeep.start()

    async def end(self) -> None:
        await self._upkeep.stop()
        await super().end()

    def first_begun(self) -> dict[tuple[str, datetime | None], datetime]:
        """When the step of each tick began, by schedule and moment."""
        return {(name, tick): began for name, tick, began in reversed(self.runs)}

    async def kill(self, turns: int) -> None:
        """At the moment of the next tick, so many turns of the loop after it has come."""
        moments = [one.next for one in self.scheduler.upcoming if one.next is not None]
        await self.clock.sleep_until(min(moments))
        for _ in range(turns):
            await asyncio.sleep(0)
        await self.end()


def _schedule(number: int) -> Schedule:
    chance = random.Random(f"schedule {number}")
    hours = chance.choice(["*", f"*/{chance.randint(2, 6)}", f"{chance.randrange(24)}"])
    minute = chance.randrange(60)
    policy = _POLICIES[number % 3]
    concurrency = "allow" if number % 5 == 0 else "forbid"
    if number % 7 == 0:
        return Schedule(
            interval=chance.randint(20, 300) * 60.0,
            catch_up=policy,  # type: ignore[arg-type]  # one of three
            concurrency=concurrency,  # type: ignore[arg-type]  # one of two
        )
    return Schedule(
        cron=f"{minute} {hours} * * *",
        timezone=_ZONES[number % 4],
        catch_up=policy,  # type: ignore[arg-type]  # one of three
        concurrency=concurrency,  # type: ignore[arg-type]  # one of two
        jitter=300.0 if number % 11 == 0 else 0.0,
    )


async def suffer(week: Week, chance: random.Random, until: float) -> Counter[str]:
    """One thing after the other, for so many seconds; how often what happened."""
    loop = asyncio.get_running_loop()
    happened: Counter[str] = Counter()
    while loop.time() < until:
        await asyncio.sleep(chance.uniform(600, 2 * 3600))
        match chance.randrange(6):
            case 0:
                happened["pause"] += 1
                await week.pause(chance.uniform(1, 6 * 3600))
            case 1:
                happened["clock set forward"] += 1
                week.clock.set(timedelta(seconds=chance.uniform(1, 8 * 3600)))
            case 2:
                happened["clock set back"] += 1
                week.clock.set(-timedelta(seconds=chance.uniform(1, 3600)))
            case _:
                happened["kill"] += 1
                await week.kill(chance.randrange(30))
                await asyncio.sleep(chance.uniform(0, 60))
                await week.begin()
    return happened


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_each_tick_is_accounted_for_once(seed: int) -> None:
    week = Week()

    async def test(world: World) -> None:
        plans = [one.plan for one in week.scheduler.upcoming]
        happened = await suffer(week, random.Random(f"week {seed}"), DAYS * 86_400)
        await week.wait(6 * 3600)
        assert happened.keys() == HAPPENINGS
        assert happened["kill"] >= 2 * DAYS
        end = week.clock.now() - timedelta(minutes=10)
        outcomes: Counter[str] = Counter()
        begun = week.first_begun()
        for plan in plans:
            ticks = week.ticks(plan.name)
            check_ledger(plan, ticks, end)
            check_executions(week, plan, ticks)
            fired = [tick.scheduled_for for tick in ticks if tick.state == "fired"]
            assert all(begun[plan.name, moment] >= moment for moment in fired), "never early"
            outcomes.update(tick.reason or tick.state for tick in ticks)
        # It was not too easy.
        assert min(outcomes[each] for each in ("fired", "overlap", "missed")) > DAYS

    week.play(test)


def check_ledger(plan: Plan, ticks: list[Tick], end: datetime) -> None:
    """Every tick that there was has its row, and is decided on; there is no other."""
    known = [tick.scheduled_for for tick in ticks]
    assert known == sorted(set(known))
    due = list(plan.timetable.between(START, end))
    assert [moment for moment in known if moment <= end] == due, plan.name
    # Those of a queue wait for one that works; of the others none waits.
    waiting = [tick for tick in ticks if tick.state == "due" and tick.scheduled_for <= end]
    assert not waiting or plan.name == LONG, waiting


def check_executions(week: Week, plan: Plan, ticks: list[Tick]) -> None:
    """What was fired has one execution, which had one step that ended well; nothing else has one."""
    fired = [tick for tick in ticks if tick.state == "fired"]
    found = week.store.reader.list(Query(where={"workflow_id": plan.workflow_id}))
    by_id = {one.transaction_id: one for one in found}
    assert len(found) == len(by_id)
    assert by_id.keys() == {tick.transaction_id for tick in fired}
    unfinished = [one for one in found if not one.state.is_final]
    assert len(unfinished) <= 1 + (plan.schedule.concurrency == "allow") or plan.name == LONG
    for tick in fired:
        assert by_id[tick.transaction_id].execution_id == tick.execution_id
