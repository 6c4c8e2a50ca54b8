"""Who serves and has nothing to do does nothing: it is counted what wakes it, and what stands ready to."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from tests.scheduling.serving import IS_FULL, World
from wfe import Recording, Schedule, step, workflow
from wfe.scheduling.upkeep import Upkeep
from wfe.store.memory import MemoryStore
from wfe.testing import VirtualLoop

SCHEDULES, EXECUTIONS = (1_000, 10_000) if IS_FULL else (200, 500)

#: How long it is watched.
MINUTES = 3


class Counting(VirtualLoop):
    """Counts how often time has moved: each time, something was woken."""

    wakes = 0

    def jump(self, seconds: float) -> None:
        self.wakes += 1
        super().jump(seconds)


class Load(NamedTuple):
    """What is there while nothing is to be done."""

    tasks: int
    timers: int
    wakes_per_minute: float


def load(schedules: int, executions: int) -> Load:
    """With so many schedules of once a year, and executions that wait for an answer or a timer."""
    world = World(MemoryStore, Recording.EVERY_STEP)
    for number in range(schedules):
        yearly = Schedule(cron="0 3 31 12 *") if number % 20 == 0 else Schedule(interval=3e7)
        world.job(f"job-{number}", yearly)
    with world.registry.scope():

        @step(async_=True, timeout=30 * 86_400.0)
        async def ask() -> None: ...

        @workflow("asking")
        def asking() -> None:
            ask()

    measured: list[Load] = []

    async def test(world: World) -> None:
        upkeep = Upkeep(world.engine, on_taken=lambda key, error: None)
        await upkeep.start()
        for _ in range(executions):
            await world.engine.run("asking")
        await world.wait(31)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Counting)
        before = loop.wakes
        await world.wait(MINUTES * 60)
        measured.append(
            Load(
                tasks=len(asyncio.all_tasks()),
                timers=len(vars(loop)["_scheduled"]),
                wakes_per_minute=(loop.wakes - before) / MINUTES,
            )
        )
        assert world.runs == []
        await upkeep.stop()

    world.play(test, loop=Counting)
    return measured[0]


@pytest.fixture(scope="module")
def nothing() -> Load:
    return load(0, 1)


@pytest.fixture(scope="module")
def much() -> Load:
    return load(SCHEDULES, EXECUTIONS)


def test_neither_a_schedule_nor_an_execution_that_waits_costs_a_task_or_a_timer(
    nothing: Load, much: Load
) -> None:
    assert (much.tasks, much.timers) == (nothing.tasks, nothing.timers)
    assert much.tasks < 12
    assert much.timers < 12


def test_much_that_waits_wakes_nobody_more_often(nothing: Load, much: Load) -> None:
    assert much.wakes_per_minute <= nothing.wakes_per_minute + 1
    # Every two seconds upkeep asks whether anybody has written; every half minute the clock is compared.
    assert much.wakes_per_minute < 40
