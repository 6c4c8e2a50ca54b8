"""The loop: never early, never twice, never silently missed. Cases S1 to S9 are real bugs of others."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.scheduling.serving import IS_FULL, START, World
from wfe import Recording, Schedule, Scheduler
from wfe.errors import UsageError
from wfe.model import ExecutionKey
from wfe.scheduling.plan import LISTED, Plan
from wfe.scheduling.schedule import Timetable
from wfe.store import owners
from wfe.store.ledger import Claim
from wfe.store.memory import MemoryStore

MINUTELY = Schedule(cron="* * * * *")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_fires_each_tick_once_at_its_moment(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(200)
        assert world.began == [30, 90, 150]
        assert [tick for _, tick, _ in world.runs] == [at(30), at(90), at(150)]
        assert world.told() == ["30 fired", "90 fired", "150 fired"]
        assert {tick.late_by for tick in world.ticks()} == {0}
        tick = world.ticks()[0]
        assert tick.transaction_id == "sched-job-20260302T120100.000Z"
        execution = await world.store.load(ExecutionKey("job", tick.transaction_id))
        assert execution is not None
        assert (execution.head.execution_id, execution.head.scheduled_for) == (
            tick.execution_id,
            at(30),
        )
        assert [t.state for t in world.decided] == ["fired"] * 3

    world.play(test)


def test_s1_who_wakes_too_early_does_not_fire_twice(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(29.997)
        world.scheduler.wake()
        await world.wait(0.001)
        assert world.runs == []
        await world.wait(20)
        assert world.told() == ["30 fired"]
        assert world.began == [30]

    world.play(test)


def test_s2_two_schedulers_on_one_store_fire_once(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        second = Scheduler(world.engine)
        await second.start()
        await world.wait(200)
        await second.stop()
        assert world.began == [30, 90, 150]

    world.play(test)


def test_who_goes_on_alone_holds_the_schedule(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        second = Scheduler(world.engine)
        await second.start()
        await world.wait(70)
        assert world.store.ledger.schedules()[0].holder == world.scheduler.owner
        await world.scheduler.stop()
        await world.wait(70)
        assert world.store.ledger.schedules()[0].holder == second.owner
        await second.stop()
        assert world.began == [30, 90]

    world.play(test)


def test_who_goes_on_alone_holds_the_schedule_at_once(world: World) -> None:
    """Whoever asks is told that it is served, long before it fires again."""
    world.job(schedule=Schedule(cron="0 3 * * *"))
    world.job("other", schedule=Schedule(interval=86_400))

    def holders() -> set[str | None]:
        return {row.holder for row in world.store.ledger.schedules()}

    async def test(world: World) -> None:
        others = [Scheduler(world.engine), Scheduler(world.engine)]
        for other in others:
            await other.start()
        await world.wait(100)
        assert holders() == {world.scheduler.owner}
        await world.scheduler.stop()
        assert holders() == {None}
        await world.wait(1.5)
        first, second = sorted(others, key=lambda other: other.owner not in holders())
        assert holders() == {first.owner}
        await first.stop()
        await world.wait(1.5)
        assert holders() == {second.owner}
        await second.stop()

    world.play(test)


def test_s3_ticks_of_a_workflow_that_is_gone_are_errors_and_others_go_on(world: World) -> None:
    world.job("old", MINUTELY)

    async def test(world: World) -> None:
        await world.wait(60)
        await world.end()
        world.registry.remove("old")
        world.job("new", MINUTELY)
        await world.begin()
        await world.wait(60)
        assert world.told("new") == ["90 fired"]
        assert world.told("old") == ["30 fired", "90 error"]
        assert "no workflow 'old'" in (world.ticks("old")[-1].error or "")

    world.play(test)


def test_s4_a_changed_expression_fires_alone(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(60)
        await world.end()
        world.registry.remove("job")
        world.job(schedule=Schedule(cron="*/2 * * * *"))
        await world.begin()
        await world.wait(180)
        assert world.told() == ["30 fired", "90 fired", "210 fired"]

    world.play(test)


@pytest.mark.parametrize(
    ("catch_up", "runs"), [("none", []), ("last", [570]), ("all", list(range(30, 571, 60)))]
)
def test_s6_what_was_missed_is_caught_up_with_as_asked(
    world: World, catch_up: str, runs: list[int]
) -> None:
    world.takes = 2.0
    world.job(schedule=Schedule(cron="* * * * *", catch_up=catch_up))  # type: ignore[arg-type]

    async def test(world: World) -> None:
        await world.pause(600)
        await world.wait(25)
        assert [tick for _, tick, _ in world.runs] == [at(each) for each in runs]
        assert len(world.ticks()) == 10
        expected = {each: "fired" if each in runs else "missed" for each in range(30, 571, 60)}
        assert world.told() == [f"{each} {state}" for each, state in expected.items()]
        assert all(tick.late_by >= 29 for tick in world.ticks())

    world.play(test)


@pytest.mark.parametrize("concurrency", ["forbid", "allow"])
def test_all_are_caught_up_with_however_many_there_are(concurrency: Any) -> None:
    count = LISTED + 1
    world = World(MemoryStore, Recording.EVERY_STEP)
    world.job(schedule=Schedule(interval=1, catch_up="all", concurrency=concurrency))

    async def test(world: World) -> None:
        await world.pause(count + 0.5)
        await world.wait(60)
        expected = [at(each) for each in range(1, count + 1)]
        assert [tick for _, tick, _ in world.runs][:count] == expected
        assert {tick.state for tick in world.ticks()[:count]} == {"fired"}

    world.play(test)


def test_s6_after_a_suspension_it_fires_within_one_poll(world: World) -> None:
    world.job(schedule=Schedule(cron="0 15 * * *"))

    async def test(world: World) -> None:
        await world.wait(40)
        world.clock.set(timedelta(hours=8))
        await world.wait(30)
        assert [tick for _, tick, _ in world.runs] == [START.replace(hour=15, minute=0, second=0)]
        assert [tick.state for tick in world.ticks()] == ["fired"]

    world.play(test)


def test_a_clock_that_is_set_back_fires_nothing_twice_and_stops_nothing(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(100)
        world.clock.set(-timedelta(hours=1))
        await world.wait(120)
        assert len(world.runs) == 4
        assert len({tick for _, tick, _ in world.runs}) == 4
        world.clock.set(timedelta(hours=1))
        await world.wait(120)
        moments = [tick for _, tick, _ in world.runs]
        assert len(moments) == len(set(moments))

    world.play(test)


def test_s8_a_long_run_makes_ticks_be_passed_over(world: World) -> None:
    world.takes = 130.0
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(340)
        assert world.told() == [
            "30 fired",
            "90 overlap",
            "150 overlap",
            "210 fired",
            "270 overlap",
            "330 overlap",
        ]
        assert "is not finished" in (world.ticks()[1].error or "")

    world.play(test)


def test_s8_a_run_that_is_dead_is_taken_up_and_then_blocks_nothing(world: World) -> None:
    world.takes = 50.0
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await world.end()  # in the middle of a step
        await world.begin()
        await world.wait(60)
        assert world.told() == ["30 fired", "90 overlap"]  # it was taken up, and runs again
        await world.wait(100)
        assert world.told()[2] == "150 fired"

    world.play(test)


def test_s8_a_run_that_cannot_go_on_blocks_nothing(world: World) -> None:
    world.takes = 50.0
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await world.end()
        world.registry.remove("job")
        with world.registry.scope():
            from wfe import WorkflowResponse, step, workflow

            @step
            def another() -> None: ...

            @workflow("job", schedule=MINUTELY)
            def job() -> WorkflowResponse[None]:
                return WorkflowResponse(another())

        await world.begin()
        await world.wait(60)
        assert world.told() == ["30 fired", "90 fired"]

    world.play(test)


def test_overlap_is_allowed_where_asked(world: World) -> None:
    world.takes = 130.0
    world.job(schedule=Schedule(cron="* * * * *", concurrency="allow"))

    async def test(world: World) -> None:
        await world.wait(200)
        assert world.told() == ["30 fired", "90 fired", "150 fired"]

    world.play(test)


def test_the_number_of_executions_counts_across_restarts(world: World) -> None:
    world.job(schedule=Schedule(interval=60, number_of_executions=3))

    async def test(world: World) -> None:
        await world.wait(130)
        assert len(world.runs) == 2
        await world.end()
        await world.begin()
        await world.wait(300)
        assert world.began == [60, 120, 180]
        assert world.scheduler.upcoming == []
        assert world.scheduler.is_over
        await world.end()
        await world.begin()
        assert world.scheduler.is_over

    world.play(test)


def test_what_is_passed_over_does_not_count(world: World) -> None:
    world.takes = 90.0
    world.job(schedule=Schedule(interval=60, number_of_executions=2))

    async def test(world: World) -> None:
        await world.wait(600)
        assert world.told() == ["60 fired", "120 overlap", "180 fired"]

    world.play(test)


def test_an_interval_keeps_its_beat_over_restarts(world: World) -> None:
    world.job(schedule=Schedule(interval=60))

    async def test(world: World) -> None:
        await world.wait(70)
        await world.pause(20)
        await world.wait(60)
        assert world.began == [60, 120]

    world.play(test)


def test_start_and_end_bound_it(world: World) -> None:
    world.job(schedule=Schedule(cron="* * * * *", start=at(90), end=at(150)))

    async def test(world: World) -> None:
        await world.wait(400)
        assert world.began == [90, 150]
        assert world.scheduler.is_over

    world.play(test)


def test_jitter_puts_off_but_never_hastens(world: World) -> None:
    world.job(schedule=Schedule(cron="* * * * *", jitter=20))

    async def test(world: World) -> None:
        await world.wait(600)
        late = [(began - (tick or began)).total_seconds() for _, tick, began in world.runs]
        assert len(late) in (9, 10)
        assert all(0 <= each <= 20 for each in late)
        assert len(set(late)) > 5

    world.play(test)


def test_the_moment_can_be_the_input(world: World) -> None:
    world.job(schedule=Schedule(cron="* * * * *", input="scheduled_for"))
    world.job("other", schedule=Schedule(cron="* * * * *", input={"a": 1}))

    async def test(world: World) -> None:
        await world.wait(60)
        assert world.inputs == [at(30).isoformat().replace("+00:00", "Z"), {"a": 1}]

    world.play(test)


def test_an_input_that_does_not_fit_is_an_error_that_stops_nothing(world: World) -> None:
    from wfe import WorkflowResponse, step, workflow

    with world.registry.scope():

        @step
        def double(number: int) -> int:
            return 2 * number

        @workflow("typed", schedule=Schedule(cron="* * * * *", input="many"))
        def typed(number: int) -> WorkflowResponse[int]:
            return WorkflowResponse(double(number))

    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(100)
        assert world.told("typed") == ["30 error", "90 error"]
        assert world.told() == ["30 fired", "90 fired"]

    world.play(test)


def test_a_pause_is_written_down_tick_by_tick(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await world.store.ledger.pause("job", now=world.clock.now())
        await world.wait(120)
        await world.store.ledger.resume("job", now=world.clock.now())
        await world.wait(60)
        assert world.told() == ["30 fired", "90 paused", "150 paused", "210 fired"]

    world.play(test)


def test_ticks_of_a_pause_are_not_caught_up_with(world: World) -> None:
    world.job(schedule=Schedule(cron="* * * * *", catch_up="all"))

    async def test(world: World) -> None:
        await world.store.ledger.pause("job", now=world.clock.now())
        await world.end()
        await asyncio.sleep(130)
        await world.begin()
        await world.store.ledger.resume("job", now=world.clock.now())
        await world.wait(30)
        assert world.told() == ["30 paused", "90 paused", "150 fired"]

    world.play(test)


def test_a_claim_whose_process_is_gone_is_begun_by_whoever_comes(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        gone = owners.claim()
        row = world.store.ledger.schedules()[0]
        claim = Claim(
            schedule="job",
            scheduled_for=at(30),
            state="due",
            owner=gone,
            transaction_id="sched-job-20260302T120100.000Z",
            timing=row.timing,
        )
        if world.store.peers is not None:
            await world.store.peers.hold(gone)
        await world.store.ledger.claim([claim], now=at(30))
        await world.wait(10)
        assert world.runs == []  # it lives, and may begin it at any moment
        owners.release(gone)
        await world.wait(35)
        assert world.told() == ["30 fired"]
        assert [tick for _, tick, _ in world.runs] == [at(30)]

    world.play(test)


def test_what_was_begun_before_its_process_died_is_not_begun_again(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        transaction_id = "sched-job-20260302T120100.000Z"
        await world.engine.run("job", transaction_id=transaction_id, until="finished")
        claim = Claim(
            schedule="job",
            scheduled_for=at(30),
            state="due",
            transaction_id=transaction_id,
            owner=None,
        )
        await world.store.ledger.claim([claim], now=at(30))
        await world.wait(45)
        assert world.told() == ["30 fired"]
        assert len(world.runs) == 1

    world.play(test)


def test_an_unregistered_workflow_takes_its_schedule_along(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        world.engine.unregister("job")
        await world.wait(180)
        assert world.told() == ["30 fired"]

    world.play(test)


def test_a_schedule_that_means_nothing_is_told_and_stops_nothing(world: World) -> None:
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        await world.end()
        world.job("never", MINUTELY)  # in a zone that has been there when it was composed
        gone = Schedule(cron="0 0 * * *", timezone="Mars/Olympus")
        world.registry.get("never").schedule = gone
        await world.begin()
        assert list(world.scheduler.failures) == ["never"]
        await world.wait(40)
        assert world.told() == ["30 fired"]

    world.play(test)


def test_a_year_of_seconds_that_were_missed_is_not_listed(world: World) -> None:
    world.job(schedule=Schedule(cron="* * * * * *"))

    async def test(world: World) -> None:
        await world.pause(365 * 86_400)
        await world.wait(0)
        ticks = world.ticks()
        assert len(ticks) == 1000
        assert ticks[0].error == "Ticks before it are not listed."
        assert [tick.state for tick in ticks[-2:]] == ["skipped", "fired"]

    world.play(test)


@pytest.mark.parametrize("schedule", [Schedule(interval=1), Schedule(cron="* * * * * *")])
def test_seconds_do_not_drift(schedule: Schedule) -> None:
    """For a quarter of an hour; in the long form for a day."""
    seconds = 86_400 if IS_FULL else 900
    world = World(MemoryStore, Recording.REFERENCE)
    world.job(schedule=schedule)

    async def test(world: World) -> None:
        await world.wait(seconds)
        assert world.began == [float(n) for n in range(1, seconds + 1)]

    world.play(test)


@pytest.mark.parametrize("schedule", [Schedule(interval=1), Schedule(cron="* * * * * *")])
def test_a_day_has_86400_seconds(schedule: Schedule) -> None:
    timetable = Timetable(schedule, anchor=START)
    fires = timetable.between(START, START + timedelta(days=1))
    assert list(fires) == [at(number) for number in range(1, 86_401)]


def test_a_triggered_run_obeys_the_rule_on_overlap(world: World) -> None:
    world.takes = 40.0
    world.job(schedule=MINUTELY)

    async def test(world: World) -> None:
        plan = world.scheduler.upcoming[0].plan
        await world.wait(35)
        refused = await world.scheduler.trigger(plan)
        assert refused is not None
        assert (refused.kind, refused.state, refused.reason) == ("manual", "skipped", "overlap")
        await world.wait(40)
        begun = await world.scheduler.trigger(plan)
        assert begun is not None
        assert begun.state == "fired"
        await world.wait(30)
        assert world.told() == ["30 fired", "35 overlap", "75 fired", "90 overlap"]
        assert world.store.ledger.schedules()[0].fired == 1  # neither counts

    world.play(test)


def test_a_backfill_runs_what_has_no_execution_in_order(world: World) -> None:
    world.takes = 2.0
    world.job(schedule=Schedule(cron="* * * * *", catch_up="none"))

    async def test(world: World) -> None:
        await world.wait(40)
        await world.pause(180)
        plan = world.scheduler.upcoming[0].plan
        wanted = [at(seconds) for seconds in (-30, 30, 90, 150)]
        kept = await world.scheduler.backfill(plan, wanted)
        assert kept == [at(-30), at(90), at(150)]
        await world.wait(10)
        assert [tick for _, tick, _ in world.runs] == [at(s) for s in (30, -30, 90, 150)]
        assert world.told() == ["-30 fired", *(f"{s} fired" for s in (30, 90, 150)), "210 missed"]

    world.play(test)


@pytest.mark.parametrize("seed", [1, 2])
def test_restarts_and_jumps_leave_no_tick_unaccounted_for(seed: int) -> None:
    """Ten schedules with jobs that take long; the processes end, the clock is set forth and back."""
    world = World(MemoryStore, Recording.EVERY_STEP)
    names = [f"job-{number}" for number in range(10)]
    for number, name in enumerate(names):
        policy = ("none", "last", "all")[number % 3]
        cron = f"{number} */{number % 5 + 2} * * *"
        world.job(name, Schedule(cron=cron, catch_up=policy))  # type: ignore[arg-type]
    world.takes = 600.0

    async def test(world: World) -> None:
        chance = random.Random(seed)
        plans = [each.plan for each in world.scheduler.upcoming]
        for _ in range(14):
            await asyncio.sleep(chance.uniform(600, 4 * 3600))
            match chance.randrange(4):
                case 0:
                    await world.pause(chance.uniform(1, 6 * 3600))
                case 1:
                    world.clock.set(timedelta(seconds=chance.uniform(1, 8 * 3600)))
                case 2:
                    world.clock.set(-timedelta(seconds=chance.uniform(1, 3600)))
        await world.wait(3600)
        end = world.clock.now() - timedelta(minutes=2)
        for plan in plans:
            known = [tick.scheduled_for for tick in world.ticks(plan.name)]
            due = list(plan.timetable.between(START, end))
            assert [moment for moment in known if moment <= end] == due, plan.name
        began = [(name, tick) for name, tick, _ in world.runs]
        taken_up = {
            (tick.schedule, tick.scheduled_for)
            for name in names
            for tick in world.ticks(name)
            if tick.state == "fired"
        }
        assert set(began) == taken_up

    world.play(test)


def test_what_is_to_be_made_up_for_may_be_said_before_it_serves(world: World) -> None:
    world.job()

    async def test(world: World) -> None:
        scheduler = Scheduler(world.engine)
        plan = Plan("past", "job", Schedule(interval=60), anchor=at(-600))
        await scheduler.add(plan)
        assert await scheduler.backfill(plan, [at(-60)]) == [at(-60)]
        await scheduler.start()
        await world.wait(1)
        assert world.told("past") == ["-60 fired"]
        await scheduler.stop()

    world.play(test)


def test_one_that_was_stopped_is_not_started_again(world: World) -> None:
    async def test(world: World) -> None:
        await world.scheduler.stop()
        with pytest.raises(UsageError, match="does not serve again"):
            await world.scheduler.start()

    world.play(test)


def test_a_tick_that_somebody_asks_for_is_begun_by_nobody_else(world: World) -> None:
    world.job()

    async def test(world: World) -> None:
        plan = Plan("nightly", "job", Schedule(cron="0 0 * * *"), anchor=at(0))
        await world.scheduler.add(plan)

        async def disturb() -> None:
            for _ in range(200):
                world.scheduler.wake()
                await asyncio.sleep(0)

        tick, _ = await asyncio.gather(world.scheduler.trigger(plan), disturb())
        await world.wait(1)
        assert world.decided == [tick]

    world.play(test)


def test_nobody_listens_to_an_execution_that_was_not_begun(world: World) -> None:
    world.takes = 100.0
    world.job(schedule=Schedule(cron="* * * * *", catch_up="all"))

    async def test(world: World) -> None:
        await world.pause(150)
        await world.wait(90)
        skipped = [tick for tick in world.ticks() if tick.reason == "overlap"]
        assert skipped
        forget = partial(world.engine.unsubscribe, "job", "wfe schedule job")
        assert not any(forget(transaction_id=tick.transaction_id) for tick in skipped)

    world.play(test)
