"""Intervals, and the ticks of schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfe import InvalidSchedule, Schedule
from wfe.model import check_transaction_id
from wfe.scheduling.cron import Cron
from wfe.scheduling.interval import Interval
from wfe.scheduling.schedule import Timetable, tick_transaction_id

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MOMENTS = st.floats(-1e9, 1e9).map(lambda seconds: NEW_YEAR + timedelta(seconds=seconds))


# --- intervals -----------------------------------------------------------------------------------


def test_an_interval_is_counted_from_its_anchor_which_is_no_fire() -> None:
    interval = Interval(90, NEW_YEAR)
    assert interval.next(NEW_YEAR - timedelta(days=1)) == NEW_YEAR + 90 * SECOND
    assert interval.next(NEW_YEAR) == NEW_YEAR + 90 * SECOND
    assert interval.next(NEW_YEAR + 90 * SECOND) == NEW_YEAR + 180 * SECOND
    assert interval.next(NEW_YEAR + 179 * SECOND) == NEW_YEAR + 180 * SECOND


@given(st.floats(0.001, 1e7), MOMENTS, MOMENTS)
def test_an_interval_keeps_its_pace_for_ever(
    seconds: float, anchor: datetime, after: datetime
) -> None:
    interval = Interval(seconds, anchor)
    fire = interval.next(after)
    assert fire is not None
    assert fire > max(after, anchor)
    assert (fire - anchor) % interval.every == timedelta(0)
    assert fire - interval.every <= max(after, anchor)
    assert interval.next(fire) == fire + interval.every


def test_an_interval_does_not_notice_that_clocks_are_moved() -> None:
    timetable = Timetable(Schedule(interval=3600, timezone="Europe/London"), anchor=NEW_YEAR)
    over_the_gap = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    first, second = islice(timetable.between(over_the_gap, over_the_gap.replace(hour=9)), 2)
    assert second - first == timedelta(hours=1)
    assert timetable.timing.remarks(second) == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("@every 90s", 90),
        ("@every 15m", 900),
        ("@EVERY 2h", 7200),
        ("@every 7d", 604_800),
        (" @every   1h30m ", 5400),
        ("@every 0.5s", 0.5),
    ],
)
def test_intervals_are_written_as_durations(text: str, seconds: float) -> None:
    interval = Interval.parse(text, NEW_YEAR)
    assert interval.every == timedelta(seconds=seconds)
    assert interval.describe().startswith("every ")
    assert interval.text == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@every", "an interval reads @every 90s, 15m, 2h, 7d or 1h30m"),
        ("@every 5 fortnights", "an interval reads @every 90s, 15m, 2h, 7d or 1h30m"),
        ("@every -5s", "an interval reads @every 90s, 15m, 2h, 7d or 1h30m"),
        ("@every 0s", "an interval is a millisecond at least"),
        ("@every 99999999999999d", "it is longer than the calendar"),
    ],
)
def test_what_is_no_interval_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Timetable(Schedule(cron=text), anchor=NEW_YEAR)
    assert (caught.value.expression, caught.value.reason) == (text, reason)


def test_the_calendar_ends_for_intervals_too() -> None:
    assert Interval(86_400 * 365 * 9000, NEW_YEAR).next(NEW_YEAR) is None
    assert Interval(1, NEW_YEAR).next(datetime.max.replace(tzinfo=UTC)) is None


# --- ticks ---------------------------------------------------------------------------------------


def ticks(schedule: Schedule, count: int = 3, after: datetime = NEW_YEAR) -> list[datetime]:
    timetable = Timetable(schedule, anchor=NEW_YEAR)
    return list(islice(timetable.between(after, datetime.max.replace(tzinfo=UTC)), count))


def test_a_schedule_is_an_expression_in_a_zone_or_an_interval() -> None:
    tokyo = Timetable(Schedule(cron="0 3 * * *", timezone="Asia/Tokyo"), anchor=NEW_YEAR)
    assert isinstance(tokyo.timing, Cron)
    assert tokyo.next(NEW_YEAR) == datetime(2026, 1, 1, 18, tzinfo=UTC)
    for schedule in (Schedule(interval=90), Schedule(cron="@every 90s")):
        assert ticks(schedule, 2) == [NEW_YEAR + 90 * SECOND, NEW_YEAR + 180 * SECOND]


def test_ticks_are_within_the_bounds_which_are_included() -> None:
    third, fifth = (datetime(2026, 1, day, 3, tzinfo=UTC) for day in (3, 5))
    schedule = Schedule(cron="0 3 * * *", start=third, end=fifth)
    assert ticks(schedule, 9) == [third, third + timedelta(days=1), fifth]
    assert ticks(schedule, 9, after=fifth) == []


def test_an_interval_with_a_start_begins_there() -> None:
    start = NEW_YEAR + timedelta(days=1)
    for schedule in (Schedule(interval=90, start=start), Schedule(cron="@every 90s", start=start)):
        assert ticks(schedule, 2) == [start, start + 90 * SECOND]


def test_a_zone_that_there_is_not_is_refused_for_an_interval_too() -> None:
    with pytest.raises(InvalidSchedule, match="there is no time zone 'Mars/Base'"):
        Timetable(Schedule(interval=90, timezone="Mars/Base"), anchor=NEW_YEAR)


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        (Schedule(cron="* * * * *", jitter=60), 60),
        (Schedule(cron="*/7 * * * *", jitter=240), 240),
        (Schedule(cron="@every 30s", jitter=30), 30),
        (Schedule(cron="0 3 * * *", jitter=86_400), 86_400),
    ],
)
def test_jitter_is_less_than_the_time_between_two_ticks(schedule: Schedule, seconds: int) -> None:
    with pytest.raises(InvalidSchedule, match=f"is not less than the {seconds} seconds"):
        Timetable(schedule, anchor=NEW_YEAR)


@pytest.mark.parametrize("expression", ["* * * * *", "@every 60s", "0 3 * * *", "0 0 29 2 *"])
def test_less_jitter_is_accepted(expression: str) -> None:
    Timetable(Schedule(cron=expression, jitter=59.5), anchor=NEW_YEAR)


def test_a_tick_hands_over_the_input_or_its_own_moment() -> None:
    given = Timetable(Schedule(interval=90, input={"full": True}), anchor=NEW_YEAR)
    nothing = Timetable(Schedule(interval=90), anchor=NEW_YEAR)
    moment = Timetable(Schedule(interval=90, input="scheduled_for"), anchor=NEW_YEAR)
    assert given.input_for(NEW_YEAR) == {"full": True}
    assert nothing.input_for(NEW_YEAR) is None
    assert moment.input_for(NEW_YEAR) == NEW_YEAR


def test_the_transaction_id_of_a_tick_follows_from_schedule_and_moment() -> None:
    tick = datetime(2026, 11, 1, 3, tzinfo=UTC)
    assert tick_transaction_id("nightly", tick) == "sched-nightly-20261101T030000.000Z"
    there = tick.astimezone(timezone(timedelta(hours=9)))
    assert tick_transaction_id("nightly", there) == tick_transaction_id("nightly", tick)
    later = tick + timedelta(milliseconds=250)
    assert tick_transaction_id("nightly", later) == "sched-nightly-20261101T030000.250Z"
    assert check_transaction_id(tick_transaction_id("nightly", tick))
