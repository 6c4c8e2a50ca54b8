"""Workflows are loaded anew while their schedules are served: what they want by now is served."""

from __future__ import annotations

import asyncio

from tests.scheduling.serving import World
from wfe import Registry, Schedule, Scheduler
from wfe.model import ExecutionKey

MINUTELY = Schedule(cron="* * * * *")


#: It was a zone when the workflow was composed.
OF_A_LOST_ZONE = Schedule(cron="* * * * *", timezone="Mars/Olympus")


async def renew(world: World, *jobs: tuple[str, Schedule | None]) -> None:
    """The modules hold these workflows by now."""
    kept, world.registry = world.registry, Registry()
    for name, schedule in jobs:
        world.job(name, None)
        world.registry.get(name).schedule = schedule
    loaded, world.registry = world.registry, kept
    world.engine.renew(loaded)
    await world.scheduler.renew()


def test_a_schedule_that_is_new_is_served(world: World) -> None:
    world.job("old", MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await renew(world, ("old", MINUTELY), ("new", MINUTELY))
        await world.wait(60)
        assert world.told("old") == ["30 fired", "90 fired"]
        assert world.told("new") == ["90 fired"]

    world.play(test)


def test_one_that_is_taken_out_is_served_no_more_and_not_missed(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await renew(world, ("job", None))
        await world.wait(120)
        assert world.told() == ["30 fired"]
        assert world.scheduler.is_over

    world.play(test)


def test_of_a_changed_one_only_the_new_one_fires(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await renew(world, ("job", Schedule(cron="*/2 * * * *")))
        await world.wait(200)
        assert world.told() == ["30 fired", "90 fired", "210 fired"]

    world.play(test)


def test_an_unchanged_one_keeps_its_beat_and_its_count(world: World) -> None:
    schedule = Schedule(interval=60, number_of_executions=3)
    world.job(schedule=schedule)

    async def test(world: World) -> None:
        for _ in range(10):
            await world.wait(25)
            await renew(world, ("job", schedule))
        assert world.began == [60, 120, 180]
        assert world.scheduler.is_over

    world.play(test)


def test_ticks_of_a_workflow_that_is_gone_are_errors_until_it_is_back(world: World) -> None:
    world.job("job", MINUTELY)
    world.job("other", MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await renew(world, ("other", MINUTELY))
        await world.wait(60)
        await renew(world, ("other", MINUTELY))
        await world.wait(60)
        await renew(world, ("job", MINUTELY), ("other", MINUTELY))
        await world.wait(60)
        assert world.told() == ["30 fired", "90 error", "150 error", "210 fired"]
        assert world.told("other") == [f"{second} fired" for second in (30, 90, 150, 210)]

    world.play(test)


def test_one_that_means_nothing_by_now_is_told_and_the_others_go_on(world: World) -> None:
    world.job("job", MINUTELY)
    world.job("other", MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await renew(world, ("job", OF_A_LOST_ZONE), ("other", MINUTELY))
        await world.wait(60)
        assert list(world.scheduler.failures) == ["job"]
        assert world.told() == ["30 fired"]
        assert world.told("other") == ["30 fired", "90 fired"]

    world.play(test)


def test_a_job_that_is_at_work_goes_on_with_what_it_began_with(world: World) -> None:
    world.job(schedule=MINUTELY)
    world.takes = 50.0

    async def test(world: World) -> None:
        await world.wait(40)
        await renew(world, ("job", Schedule(cron="*/4 * * * *")))
        await world.wait(50)
        (tick,) = world.ticks()
        execution = await world.store.load(ExecutionKey("job", tick.transaction_id))
        assert execution is not None
        assert str(execution.head.state) == "done"

    world.play(test)


def test_nobody_waits_for_a_scheduler_that_serves_nothing(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        idle = Scheduler(world.engine)
        await idle.renew()
        await world.scheduler.stop()
        await world.scheduler.renew()

    world.play(test)


def test_nobody_waits_for_a_scheduler_that_is_being_stopped(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await asyncio.gather(world.scheduler.renew(), world.scheduler.stop())

    world.play(test)
