"""Schedules, by the numbers of the collection: S1 to S9."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from subprocess import Popen
from typing import Literal
from zoneinfo import ZoneInfo

import pytest

from tests.project import Project, until
from tests.scheduling.serving import START, World
from wfe import Recording, Registry, Schedule
from wfe.scheduling.cron import Cron
from wfe.store.memory import MemoryStore

MINUTELY = Schedule(cron="* * * * *")

JOBS = """
import pathlib
import time

from wfe import Schedule, StepContext, step, workflow

HERE = pathlib.Path(__file__).parent.parent


@step
def note(ctx: StepContext) -> None:
    with (HERE / "noted").open("a") as file:
        file.write(f"{ctx.workflow_id} {ctx.transaction_id}\\n")
    while (HERE / "wait").exists():
        time.sleep(0.01)


@workflow("tick")
def tick():
    note()


@workflow("nightly", schedule=Schedule(interval=0.2))
def nightly():
    note()
"""


@pytest.fixture
def world() -> World:
    return World(MemoryStore, Recording.EVERY_STEP)


@pytest.fixture
def jobs(project: Project) -> Iterator[Project]:
    """`note` ends when there is no file `wait`."""
    project.write("workflows/jobs.py", JOBS)
    yield project
    (project.root / "wait").unlink(missing_ok=True)


@contextmanager
def started(project: Project, *arguments: str) -> Iterator[Popen[str]]:
    """A command that goes on until it gets an INT."""
    process = project.start(*arguments, "--log-format", "json")
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def noted(project: Project) -> list[str]:
    file = project.root / "noted"
    return file.read_text().splitlines() if file.exists() else []


def ticks(project: Project, name: str) -> list[dict[str, str]]:
    """In order."""
    found = project.wfe("schedules", "ticks", name, "-o", "json").document
    return list(reversed(found))


def test_case_s1_who_wakes_3_ms_early_has_one_execution_for_the_tick(world: World) -> None:
    world.job("job", MINUTELY)

    async def test(world: World) -> None:
        for seconds in (29.997, 0.001, 0.001, 0.001, 0.003, 10):
            await world.wait(seconds)
            world.scheduler.wake()
        assert world.began == [30]
        (tick,) = world.ticks()
        assert tick.transaction_id == "sched-job-20260302T120100.000Z"
        assert [one.transaction_id for one in await world.engine.list_executions()] == [
            tick.transaction_id
        ]

    world.play(test)


def test_case_s2_two_on_one_database_run_each_tick_once_and_the_second_says_who_holds_it(
    jobs: Project,
) -> None:
    by_path = ("workflows/jobs.py:tick", "--every", "0.2s", "--name", "often")
    by_name = ("workflows.jobs:tick", *by_path[1:])
    with started(jobs, "schedule", *by_path) as first:
        until(lambda: noted(jobs))
        with started(jobs, "schedule", *by_name) as second:
            assert second.stderr is not None
            said = next(line for line in second.stderr if "holds the schedule" in line)
            count = len(noted(jobs))
            until(lambda: len(noted(jobs)) > count + 2)
    assert f"pid {first.pid}" in said or str(first.pid) in said
    assert "holds the schedule often: each tick runs once, here or there." in said
    assert len(noted(jobs)) == len(set(noted(jobs)))


def test_case_s3_a_renamed_workflow_makes_errors_stops_nothing_and_is_found_by_doctor(
    jobs: Project,
) -> None:
    with started(jobs, "serve"):
        until(lambda: noted(jobs))
    # A name of another length: Python knows a file that has changed by its second and its length.
    jobs.write("workflows/jobs.py", JOBS.replace('"nightly"', '"called-otherwise"'))
    with started(jobs, "serve"):
        until(lambda: any(tick["state"] == "error" for tick in ticks(jobs, "nightly")))
        until(lambda: any(line.startswith("called-otherwise ") for line in noted(jobs)))
    error = next(tick for tick in ticks(jobs, "nightly") if tick["state"] == "error")
    assert error["error"] == "There is no workflow 'nightly' any more."
    checks = jobs.wfe("doctor", "-o", "json").document["checks"]
    found = [finding for one in checks for finding in one["findings"]]
    assert "wfe schedules delete nightly -y" in [finding["mend"] for finding in found]


def test_case_s4_after_a_change_of_the_expression_only_the_new_one_fires(world: World) -> None:
    world.job("job", MINUTELY)

    async def test(world: World) -> None:
        await world.wait(40)
        await world.end()
        world.registry = Registry()
        world.job("job", Schedule(cron="*/5 * * * *"))
        await world.begin()
        await world.wait(600)
        minutes = [tick.scheduled_for.minute for tick in world.ticks()]
        assert minutes == [1, 5, 10]

    world.play(test)


@pytest.mark.parametrize(
    ("zone", "day", "fire"),
    [
        ("Europe/London", date(2022, 10, 30), "2022-10-30T00:30"),
        ("America/New_York", date(2026, 11, 1), "2026-11-01T05:30"),
        ("Europe/London", date(2026, 3, 29), "2026-03-29T01:00"),
    ],
)
def test_case_s5_a_daily_job_runs_once_where_clocks_are_moved(
    zone: str, day: date, fire: str
) -> None:
    start = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))
    end = (start + timedelta(days=1)).astimezone(UTC)
    fires = list(Cron.parse("30 1 * * *", zone).between(start.astimezone(UTC), end))
    assert [one.isoformat(timespec="minutes")[:16] for one in fires] == [fire]


@pytest.mark.parametrize(("catch_up", "count"), [("none", 0), ("last", 1), ("all", 10)])
def test_case_s6_after_ten_minutes_as_many_are_run_as_asked_for_each_marked_late(
    world: World, catch_up: Literal["none", "last", "all"], count: int
) -> None:
    world.job("job", Schedule(cron="* * * * *", catch_up=catch_up))

    async def test(world: World) -> None:
        await world.pause(600)
        await world.wait(15)
        fired = [tick for tick in world.ticks() if tick.state == "fired"]
        assert len(world.runs) == len(fired) == count
        assert [moment for _, moment, _ in world.runs] == [tick.scheduled_for for tick in fired]
        assert all(tick.late_by >= 30 for tick in fired)
        assert len(world.ticks()) == 10

    world.play(test)


def test_case_s6_a_suspension_of_8_hours_costs_one_poll(world: World) -> None:
    world.job("job", Schedule(cron="0 15 * * *"))

    async def test(world: World) -> None:
        world.clock.set(timedelta(hours=8))
        await world.wait(30)
        assert [moment for _, moment, _ in world.runs] == [
            START.replace(hour=15, minute=0, second=0)
        ]

    world.play(test)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("*/90 * * * *", "hourly at most, not every 90 minutes"),
        ("59/15 * * * *", "'59/15' in the minutes is only 59"),
        ("6/1 * * * *", "'6/1' in the minutes means each minute from 6 to 59"),
    ],
)
def test_case_s7_a_preview_says_what_an_odd_expression_means(
    project: Project, expression: str, said: str
) -> None:
    assert said in project.wfe("schedules", "preview", expression).out


def test_case_s7_what_never_fires_is_refused_and_six_fields_begin_with_seconds(
    project: Project,
) -> None:
    ended = project.wfe("schedules", "preview", "0 0 31 2 *")
    assert ended.code == 2
    assert "there is no day 31 in February, so that it would never fire" in ended.err
    six = project.wfe("schedules", "preview", "15 30 3 * * *", "-n1", "-o", "json").document
    assert six["description"] == "at 03:30:15 every day"


def test_case_s8_ticks_during_a_long_run_are_passed_over_and_a_dead_one_blocks_nothing(
    world: World,
) -> None:
    world.takes = 130.0
    world.job("job", MINUTELY)

    async def test(world: World) -> None:
        await world.wait(100)
        await world.end()  # in the middle of the first run
        await world.begin()
        await world.wait(400)
        states = [tick.reason or tick.state for tick in world.ticks()]
        assert states[:4] == ["fired", "overlap", "overlap", "overlap"]
        assert "fired" in states[4:]

    world.play(test)


def test_case_s9_a_manual_run_beside_the_scheduled_one_gives_way_and_says_so(
    jobs: Project,
) -> None:
    (jobs.root / "wait").touch()
    with started(jobs, "serve"):
        until(lambda: noted(jobs))
        ended = jobs.wfe("schedules", "trigger", "nightly", "-o", "json")
        (jobs.root / "wait").unlink()
    assert ended.code == 4
    assert "is not finished" in json.loads(ended.out)["error"]["message"]
    assert "manual" in {tick["kind"] for tick in ticks(jobs, "nightly") if tick["reason"]}
