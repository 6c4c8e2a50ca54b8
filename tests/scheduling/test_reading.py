"""The last fires of a schedule are kept with the version of croniter that computed them, so that one
which reads an expression otherwise is noticed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from tests.scheduling.serving import START, World
from wfe import Schedule
from wfe.scheduling.cron import VERSION
from wfe.scheduling.plan import Plan
from wfe.scheduling.reading import changed_reading
from wfe.store.ledger import Fire, ScheduleRow

MINUTELY = Schedule(cron="* * * * *")
DAILY = Schedule(cron="0 3 * * *")
#: A version that nobody has.
OTHER = "0.3.0"


def day(number: int, hour: int = 3) -> datetime:
    return datetime(2026, 2, number, hour, tzinfo=UTC)


def fires(*moments: datetime, by: str = OTHER) -> tuple[Fire, ...]:
    return tuple(Fire(moment, by) for moment in moments)


def plan_of(schedule: Schedule, **options: str) -> Plan:
    return Plan("nightly", "backup", schedule, anchor=START, **options)  # type: ignore[arg-type]  # origin


def row_of(plan: Plan, fires: Sequence[Fire]) -> ScheduleRow:
    return ScheduleRow(
        name=plan.name,
        workflow_id=plan.workflow_id,
        origin="workflow",
        source=None,
        timing=plan.timing,
        definition=plan.registration.definition,
        anchor=START,
        accounted_until=START,
        fired=0,
        fires=tuple(fires),
    )


def told(schedule: Schedule, known: Sequence[Fire]) -> str | None:
    plan = plan_of(schedule)
    change = changed_reading(plan, row_of(plan, known))
    return None if change is None else change.sentence


def test_a_version_that_fires_the_same_is_no_change() -> None:
    assert told(DAILY, fires(day(1), day(2), day(3))) is None
    assert told(DAILY, ()) is None


def test_a_fire_that_there_would_not_be_is_a_change() -> None:
    sentence = told(DAILY, fires(day(1), day(1, hour=15), day(2)))
    assert sentence == (
        "The schedule nightly fired at 2026-02-01T15:00:00+00:00 by croniter 0.3.0, and would not"
        f" by croniter {VERSION}."
    )


def test_a_fire_that_there_was_not_is_a_change() -> None:
    sentence = told(DAILY, fires(day(1), day(3)))
    assert sentence == (
        "The schedule nightly would have fired at 2026-02-02T03:00:00+00:00 by croniter"
        f" {VERSION}, and did not by croniter 0.3.0."
    )


def test_what_the_present_version_has_computed_is_taken_for_granted() -> None:
    now = fires(day(2), day(3, hour=4), by=VERSION)
    assert told(DAILY, (*fires(day(1)), *now)) is None
    assert told(DAILY, fires(day(1, hour=5), by=VERSION)) is None


def test_an_interval_does_not_depend_on_croniter() -> None:
    plan = plan_of(Schedule(interval=90))
    assert plan.last_fires(START) == ()
    assert changed_reading(plan, row_of(plan, fires(day(1)))) is None


@pytest.mark.parametrize(
    ("schedule", "preview"),
    [
        (DAILY, "wfe schedules preview '0 3 * * *'"),
        (
            replace(DAILY, timezone="Europe/London"),
            "wfe schedules preview '0 3 * * *' --tz Europe/London",
        ),
    ],
)
def test_of_what_a_command_has_begun_the_expression_is_shown(
    schedule: Schedule, preview: str
) -> None:
    plan = plan_of(schedule, origin="command")
    change = changed_reading(plan, row_of(plan, fires(day(1, hour=15))))
    assert change is not None
    assert change.preview == preview
    own = changed_reading(plan_of(schedule), row_of(plan, fires(day(1, hour=15))))
    assert own is not None
    assert own.preview == "wfe schedules preview nightly"


@pytest.mark.parametrize(
    ("cron", "first", "last"),
    [
        ("* * * * * *", "2026-03-02T12:00:26", "2026-03-02T12:00:30"),
        ("* * * * *", "2026-03-02T11:56:00", "2026-03-02T12:00:00"),
        ("0 3 * * *", "2026-02-26T03:00:00", "2026-03-02T03:00:00"),
        ("0 0 29 2 *", "2008-02-29T00:00:00", "2024-02-29T00:00:00"),
    ],
)
def test_the_last_fires_are_found_however_far_back_they_are(
    cron: str, first: str, last: str
) -> None:
    found = plan_of(Schedule(cron=cron)).last_fires(START)
    assert len(found) == 5
    assert [found[0].at.isoformat(), found[-1].at.isoformat()] == [
        f"{first}+00:00",
        f"{last}+00:00",
    ]
    assert {fire.by for fire in found} == {VERSION}


def test_a_schedule_that_is_new_has_its_last_fires_and_those_that_come_take_their_place(
    world: World,
) -> None:
    world.job(schedule=MINUTELY)

    def kept() -> list[float]:
        (row,) = world.store.ledger.schedules()
        return [(fire.at - START).total_seconds() for fire in row.fires]

    async def test(world: World) -> None:
        assert kept() == [-270, -210, -150, -90, -30]
        await world.wait(100)
        assert kept() == [-150, -90, -30, 30, 90]
        await world.pause(100)
        await world.wait(1)
        assert kept() == [-90, -30, 30, 90, 150]

    world.play(test)


def test_serve_warns_once_of_a_schedule_that_fires_otherwise_until_it_has_done_so_five_times(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.job(schedule=MINUTELY)
    odd = START - timedelta(seconds=15)

    def warnings() -> list[str]:
        found = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        caplog.clear()
        return found

    async def test(world: World) -> None:
        assert warnings() == []
        ledger = world.store.ledger
        plan = Plan("job", "job", MINUTELY, anchor=START)
        given = replace(plan.registration, definition=b"{}", fires=fires(odd))
        await ledger.register([given], owner=world.scheduler.owner, now=START)
        given = replace(plan.registration, fires=fires(odd))
        await ledger.register([given], owner=world.scheduler.owner, now=START)
        await world.pause(0)
        (warning,) = warnings()
        assert "The schedule job fired at 2026-03-02T12:00:15+00:00 by croniter 0.3.0" in warning
        assert warning.endswith("See: wfe schedules preview job")
        await world.wait(250)
        assert warnings() == []
        await world.pause(0)
        assert len(warnings()) == 1
        await world.wait(60)
        await world.pause(0)
        assert warnings() == []

    world.play(test)
