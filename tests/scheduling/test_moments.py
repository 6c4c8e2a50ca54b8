"""When expressions fire: compared with a look at every minute, and where clocks are moved."""

from __future__ import annotations

import functools
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from wfe.scheduling.cron import Cron
from wfe.scheduling.fields import Fields

from . import brute

DAY = timedelta(days=1)
FAR = datetime.max.replace(tzinfo=UTC)

#: Zones, and days on which their clocks are moved; of each zone the last day is any other one.
MOVES = [
    ("Europe/London", date(2026, 3, 29)),
    ("Europe/London", date(2022, 10, 30)),
    ("Europe/London", date(2026, 7, 1)),
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    # Half an hour.
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    # The 30th never was.
    ("Pacific/Apia", date(2011, 12, 30)),
    ("Pacific/Apia", date(2012, 4, 1)),
    # At midnight: forward, and back into the day before.
    ("America/Sao_Paulo", date(2018, 11, 4)),
    ("America/Sao_Paulo", date(2018, 2, 18)),
    # From 00:30, so that the rest of the day before and the beginning of the day are missing.
    ("America/Toronto", date(1919, 3, 31)),
    ("UTC", date(2024, 2, 29)),
]


def numbers(least: int, most: int) -> st.SearchStrategy[frozenset[int] | None]:
    some = st.frozensets(st.integers(least, most), min_size=1, max_size=4)
    steps = st.integers(1, most).map(lambda step: frozenset(range(least, most + 1, step)))
    return st.none() | some | steps


@st.composite
def sets(draw: st.DrawFn) -> brute.Sets:
    """Of the hours and days around a move more often than of others."""
    hours = numbers(0, 23) | st.frozensets(st.sampled_from([0, 1, 2, 3, 23]), min_size=1)
    days = st.none() | st.none() | numbers(1, 31)
    weekdays = st.none() | st.none() | numbers(0, 6)
    return brute.Sets(
        minutes=draw(numbers(0, 59)), hours=draw(hours), days=draw(days), weekdays=draw(weekdays)
    )


@given(sets(), st.sampled_from(MOVES), st.integers(0, 2879), st.integers(0, 59))
def test_fires_are_those_that_a_look_at_every_minute_finds(
    sets: brute.Sets, move: tuple[str, date], minute: int, second: int
) -> None:
    zone, day = move
    cron = Cron.parse(sets.expression, zone)
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    start = midnight - DAY + timedelta(minutes=minute, seconds=second)
    end = midnight + DAY
    assert list(cron.between(start, end)) == brute.fires(sets, zone, start, end, day)


@given(
    sets(),
    st.sampled_from(MOVES),
    st.integers(0, 1_000_000),
)
def test_fires_are_after_the_given_moment_and_strictly_increasing(
    sets: brute.Sets, move: tuple[str, date], minutes: int
) -> None:
    zone, day = move
    cron = Cron.parse(sets.expression, zone)
    after = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(minutes=minutes)
    found = list(islice(cron.between(after, after + 20_000 * DAY), 50))
    assert len(found) == 50
    assert all(fire.tzinfo is UTC and not fire.microsecond for fire in found)
    assert after < found[0]
    assert all(fire < later for fire, later in pairwise(found))


@given(sets(), st.sampled_from(MOVES), st.floats(0, 1))
def test_between_two_fires_the_next_one_is_always_the_same(
    sets: brute.Sets, move: tuple[str, date], part: float
) -> None:
    zone, day = move
    cron = Cron.parse(sets.expression, zone)
    start = datetime(day.year, day.month, day.day, tzinfo=UTC) - DAY
    fires = list(islice(cron.between(start, start + 20_000 * DAY), 30))
    for fire, later in pairwise(fires):
        assert cron.next(fire + part * (later - fire - timedelta.resolution)) == later


@functools.cache
def seconds_in_london(day: str) -> list[tuple[datetime, datetime]]:
    """The seconds from an hour before midnight to 3 o'clock, and what clocks show then."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    moments = [midnight + timedelta(seconds=number) for number in range(-3600, 3 * 3600)]
    london = ZoneInfo("Europe/London")
    return [(moment, moment.astimezone(london).replace(tzinfo=None)) for moment in moments]


@given(
    st.frozensets(st.integers(0, 59), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([("2026-03-29", 1), ("2022-10-30", 0), ("2022-10-30", 1)]),
)
def test_seconds_are_those_that_a_look_at_every_second_finds(
    seconds: frozenset[int], every_hour: bool, place: tuple[str, int]
) -> None:
    day, hour = place
    listed = ",".join(map(str, sorted(seconds)))
    cron = Cron.parse(f"{listed} * {'*' if every_hour else hour} * * *", "Europe/London")
    looked_at = seconds_in_london(day)
    fires = [
        moment
        for moment, wall in looked_at
        if wall.second in seconds and (every_hour or wall.hour == hour)
    ]
    if not every_hour and place == ("2026-03-29", 1):
        fires = [datetime(2026, 3, 29, 1, tzinfo=UTC)]  # the whole hour is missing
    if not every_hour and place == ("2022-10-30", 1):
        fires = fires[: len(fires) // 2]  # it comes twice
    first, last = looked_at[0][0], looked_at[-1][0]
    assert list(cron.between(first - timedelta(seconds=1), last)) == fires


FIELDS = [(0, 59), (0, 23), (1, 28), (1, 12), (0, 6)]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """With ranges and steps, and not both days and weekdays."""
    fields = []
    for least, most in FIELDS:
        low = draw(st.integers(least, most - 1))
        high = draw(st.integers(low + 1, most))
        step = draw(st.integers(1, most - least))
        spellings = ["*", "*", f"{low}", f"{low},{high}", f"{low}-{high}", f"*/{step}"]
        spellings += [f"{low}-{high}/{step}", f"{low}/{step}"]
        fields.append(draw(st.sampled_from(spellings)))
    fields[draw(st.sampled_from([2, 4]))] = "*"
    return " ".join(fields)


@given(expressions(), st.integers(0, 20_000_000))
def test_without_moves_fires_are_those_of_croniter(expression: str, minutes: int) -> None:
    start = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    theirs = croniter(expression, start, ret_type=datetime)
    for fire in islice(Cron.parse(expression).between(start, FAR), 10):
        assert fire == theirs.get_next()


# --- each date -----------------------------------------------------------------------------------


@given(st.sampled_from(MOVES), st.integers(0, 23), st.integers(0, 59))
def test_a_daily_job_fires_once_for_each_date_there_is(
    move: tuple[str, date], hour: int, minute: int
) -> None:
    zone, day = move
    cron = Cron.parse(f"{minute} {hour} * * *", zone)
    tz = ZoneInfo(zone)
    start = datetime(day.year, day.month, day.day, tzinfo=tz) - 3 * DAY
    dates = [fire.astimezone(tz).date() for fire in islice(cron.between(start, start + 9 * DAY), 6)]
    if zone == "America/Toronto" and (hour, minute) >= (23, 30):
        # 23:30 to 24:00 was missing, so that this one fired at 00:30 of the next date.
        dates[2] -= DAY
    assert (
        dates
        == [
            one
            for number in range(-3, 9)
            if (one := day + number * DAY) != date(2011, 12, 30) and one >= dates[0]
        ][:6]
    )


def local(zone: str, expression: str, after: str, count: int) -> list[str]:
    """The next fires, as clocks in the zone show them, with their offset from UTC."""
    cron = Cron.parse(expression, zone)
    tz = ZoneInfo(zone)
    start = datetime.fromisoformat(after).replace(tzinfo=tz)
    fires = islice(cron.between(start, start + 1000 * DAY), count)
    return [fire.astimezone(tz).isoformat(timespec="minutes") for fire in fires]


@pytest.mark.parametrize(
    ("zone", "expression", "after", "fires"),
    [
        (
            "Europe/London",
            "30 1 * * *",
            "2022-10-29T12:00",
            ["2022-10-30T01:30+01:00", "2022-10-31T01:30+00:00"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00",
            ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"],
        ),
        (
            "Europe/London",
            "30 1 * * *",
            "2026-03-28T12:00",
            ["2026-03-29T02:00+01:00", "2026-03-30T01:30+01:00"],
        ),
        # Missing times fire together, and with the one that is there.
        (
            "Europe/London",
            "*/20 1,2 * * *",
            "2026-03-28T12:00",
            ["2026-03-29T02:00+01:00", "2026-03-29T02:20+01:00"],
        ),
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T12:00",
            ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"],
        ),
        # Every hour: in both of two, in none that is missing.
        (
            "Europe/London",
            "30 * * * *",
            "2022-10-30T00:45",
            ["2022-10-30T01:30+01:00", "2022-10-30T01:30+00:00", "2022-10-30T02:30+00:00"],
        ),
        (
            "Europe/London",
            "30 * * * *",
            "2026-03-28T23:45",
            ["2026-03-29T00:30+00:00", "2026-03-29T02:30+01:00"],
        ),
        (
            "Europe/London",
            "30 * 30 * *",
            "2022-10-30T22:45",
            ["2022-10-30T23:30+00:00", "2022-11-30T00:30+00:00"],
        ),
        # Clocks are moved at midnight: the date begins at 01:00.
        (
            "America/Sao_Paulo",
            "0 0 * * *",
            "2018-11-03T12:00",
            ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"],
        ),
        # The last hour of a date comes twice.
        (
            "America/Sao_Paulo",
            "30 * 17 2 *",
            "2018-02-17T22:45",
            ["2018-02-17T23:30-02:00", "2018-02-17T23:30-03:00", "2019-02-17T00:30-03:00"],
        ),
        # A date that never was has no fires.
        (
            "Pacific/Apia",
            "0 3 * * *",
            "2011-12-29T00:00",
            ["2011-12-29T03:00-10:00", "2011-12-31T03:00+14:00"],
        ),
        ("Pacific/Apia", "0 3 30 12 *", "2011-12-01T00:00", ["2012-12-30T03:00+14:00"]),
    ],
)
def test_where_clocks_are_moved(zone: str, expression: str, after: str, fires: list[str]) -> None:
    assert local(zone, expression, after, len(fires)) == fires


def test_from_the_second_of_two_hours_a_daily_job_waits_for_the_next_date() -> None:
    cron = Cron.parse("* * 1 * * *", "Europe/London")
    second_half_past_one = datetime(2022, 10, 30, 1, 30, tzinfo=UTC)
    assert cron.next(second_half_past_one) == datetime(2022, 10, 31, 1, tzinfo=UTC)


def test_the_moment_may_be_in_any_zone_but_must_have_one() -> None:
    cron = Cron.parse("0 3 * * *")
    noon_in_tokyo = datetime(2026, 1, 1, 12, 1, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert cron.next(noon_in_tokyo) == datetime(2026, 1, 2, 3, tzinfo=UTC)
    with pytest.raises(ValueError, match="has no time zone"):
        cron.next(noon_in_tokyo.replace(tzinfo=None))


@pytest.mark.parametrize("expression", ["0 3 * * *", "* * * * *", "0 0 29 2 *", "59 23 31 12 *"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/New_York"])
def test_the_calendar_ends(expression: str, zone: str) -> None:
    cron = Cron.parse(expression, zone)
    assert cron.next(datetime.max.replace(tzinfo=UTC)) is None
    assert len(list(cron.between(datetime(9999, 12, 31, 23, 58, tzinfo=UTC), FAR))) <= 1


def test_what_comes_every_40_years_is_found() -> None:
    cron = Cron.parse("0 0 * 2 MON#5")
    found = cron.between(datetime(2072, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC))
    assert [fire.year for fire in found] == [2072, 2112]


# --- remarks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "expression", "fire", "remarks"),
    [
        (
            "Europe/London",
            "30 1 * * *",
            "2026-03-29T01:00Z",
            ["clocks go forward: 01:30 does not exist, fires at 02:00"],
        ),
        ("Europe/London", "30 1 * * *", "2026-03-30T00:30Z", []),
        ("Europe/London", "30 2 * * *", "2026-03-29T01:30Z", []),
        (
            "Europe/London",
            "0,30 1 * * *",
            "2026-03-29T01:00Z",
            ["clocks go forward: 01:00 and 01:30 do not exist, fires once at 02:00"],
        ),
        (
            "Europe/London",
            "*/5 1 * * *",
            "2026-03-29T01:00Z",
            ["clocks go forward: 01:00, 01:05 and so on do not exist, fires once at 02:00"],
        ),
        (
            "Europe/London",
            "30 1 * * *",
            "2022-10-30T00:30Z",
            ["clocks go back: 01:30 comes twice, fires the first time only"],
        ),
        (
            "Europe/London",
            "30 * * * *",
            "2022-10-30T00:30Z",
            ["clocks go back: 01:30 comes twice, this is the first"],
        ),
        (
            "Europe/London",
            "30 * * * *",
            "2022-10-30T01:30Z",
            ["clocks go back: 01:30 comes twice, this is the second"],
        ),
        (
            "Europe/London",
            "30 * * * *",
            "2026-03-29T01:30Z",
            ["clocks go forward: 01:30 does not exist, passed over"],
        ),
        ("Europe/London", "30 * * * *", "2026-03-29T02:30Z", []),
        (
            "Europe/London",
            "15 0 1 * * *",
            "2026-03-29T01:00Z",
            ["clocks go forward: 01:00:15 does not exist, fires at 02:00"],
        ),
        ("Pacific/Apia", "0 3 * * *", "2011-12-30T13:00Z", []),
        ("UTC", "30 1 * * *", "2026-03-29T01:30Z", []),
    ],
)
def test_a_fire_says_what_moved_clocks_have_to_do_with_it(
    zone: str, expression: str, fire: str, remarks: list[str]
) -> None:
    moment = datetime.fromisoformat(fire)
    cron = Cron.parse(expression, zone)
    assert cron.next(moment - timedelta(seconds=1)) == moment
    assert list(cron.remarks(moment)) == remarks


# --- dates ---------------------------------------------------------------------------------------


def days(expression: str, year: int, month: int) -> list[int]:
    return list(Cron.parse(expression).fields.days_of(year, month))


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("0 0 L * *", [31]),
        ("0 0 15,L * *", [15, 31]),
        ("0 0 28-L * *", [28, 29, 30, 31]),
        ("0 0 1W * *", [3]),  # a Saturday, and Friday is in July
        ("0 0 2W * *", [3]),  # a Sunday
        ("0 0 5W * *", [5]),
        ("0 0 15W * *", [14]),  # a Saturday
        ("0 0 W15,20 * *", [14, 20]),
        ("0 0 * * SAT#1", [1]),
        ("0 0 * * 1#5,FRI#2", [14, 31]),
        ("0 0 * * L5", [28]),
        ("0 0 * * FRI#2,SUN", [2, 9, 14, 16, 23, 30]),
        ("0 0 * * MON-TUE#1", [3, 4]),
        ("0 0 * * SAT-MON", [1, 2, 3, 8, 9, 10, 15, 16, 17, 22, 23, 24, 29, 30, 31]),
        ("0 0 30-2 * *", [1, 2, 30, 31]),
        ("0 0 13 * FRI", [7, 13, 14, 21, 28]),
        ("0 0 1 * FRI#2", [1, 14]),
        ("0 0 1 * *", [1]),
        ("0 0 ? * SAT", [1, 8, 15, 22, 29]),
        ("0 0 1 * */1", [1]),
        ("0 0 1 * 0-6", list(range(1, 32))),
    ],
)
def test_days_of_august_2026(expression: str, found: list[int]) -> None:
    assert days(expression, 2026, 8) == found


def test_the_nearest_weekday_stays_in_its_month() -> None:
    assert days("0 0 31W * *", 2026, 5) == [29]  # a Sunday, the last of the month
    assert days("0 0 31W * *", 2026, 2) == [27]  # there is no 31st; the 28th is a Saturday


def test_fields_can_be_made_without_an_expression() -> None:
    fields = Fields(minutes=(30,), hours=(1,), months=(1,))
    found = fields.at_or_after(datetime.fromisoformat("2026-02-01"))
    assert found == datetime.fromisoformat("2027-01-01T01:30")
