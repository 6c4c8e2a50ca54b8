"""Expressions through whole years, compared with a look at every minute.

Here a sample: three days around each move of the clocks, and a few days in between. `SCHEDULES=full` has
more expressions and zones, and three years of each.
"""

from __future__ import annotations

import functools
import gc
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from wfe.scheduling.cron import Cron

from . import brute
from .brute import DAY
from .serving import IS_FULL

#: Clocks are moved by an hour, by half an hour, and at midnight.
ZONES = ["Europe/London", "Australia/Lord_Howe", "Asia/Beirut"]
if IS_FULL:
    ZONES += ["America/New_York", "America/Havana", "Africa/Casablanca", "Pacific/Chatham", "UTC"]

FIRST, LAST = date(2024, 1, 1), date(2026, 12, 31)
EXPRESSIONS = 400 if IS_FULL else 40
SAMPLED_DAYS = 30 if IS_FULL else 8


class Written(NamedTuple):
    """An expression, and the numbers that its fields mean."""

    text: str
    sets: brute.Sets


def field(chance: random.Random, least: int, most: int) -> tuple[str, frozenset[int] | None]:
    """A field as people write it."""
    low = chance.randint(least, most - 1)
    high = chance.randint(low + 1, most)
    step = chance.randint(2, max(2, (most - least) // 2))
    few = sorted(chance.sample(range(least, most + 1), chance.randint(1, 3)))
    ways: list[Callable[[], tuple[str, frozenset[int] | None]]] = [
        lambda: (str(low), frozenset({low})),
        lambda: (",".join(map(str, few)), frozenset(few)),
        lambda: (f"{low}-{high}", frozenset(range(low, high + 1))),
        lambda: (f"*/{step}", frozenset(range(least, most + 1, step))),
        lambda: (f"{low}-{high}/{step}", frozenset(range(low, high + 1, step))),
        lambda: (f"{low}/{step}", frozenset(range(low, most + 1, step))),
        lambda: (f"{few[0]},{low}-{high}", frozenset({few[0], *range(low, high + 1)})),
    ]
    return chance.choice(ways)()


STAR = "*", None


def written(number: int) -> Written:
    """The expression of this number: of the hours at which clocks are moved more often than of others,
    and not of so many minutes that it takes all night."""
    chance = random.Random(f"expression {number}")
    minutes = field(chance, 0, 59) if chance.random() < 0.3 else few(chance, range(60))
    hours = chance.choice(
        [STAR, few(chance, range(24)), few(chance, (0, 1, 2, 3, 23)), field(chance, 0, 23)]
    )
    days = field(chance, 1, 31) if chance.random() < 0.3 else STAR
    # Not of February alone, which has no 30th.
    months = field(chance, 1, 12) if chance.random() < 0.2 and days is STAR else STAR
    weekdays = field(chance, 0, 6) if chance.random() < 0.3 else STAR
    parts = (minutes, hours, days, months, weekdays)
    return Written(" ".join(part[0] for part in parts), brute.Sets(*(part[1] for part in parts)))


def few(
    chance: random.Random, choices: range | tuple[int, ...]
) -> tuple[str, frozenset[int] | None]:
    found = sorted(chance.sample(choices, chance.randint(1, 3)))
    return ",".join(map(str, found)), frozenset(found)


WRITTEN = [written(number) for number in range(EXPRESSIONS)]


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def moves(zone: str) -> Iterator[date]:
    """The days on which clocks are moved."""
    tz = ZoneInfo(zone)
    for number in range((LAST - FIRST).days):
        day = FIRST + number * DAY
        before, after = (midnight(day + n * DAY).astimezone(tz).utcoffset() for n in (0, 1))
        if before != after:
            yield day


#: Reading one takes longer than a day of its fires.
read = functools.cache(Cron.parse)


def agree(one: Written, zone: str, minutes: brute.Minutes, start: datetime, end: datetime) -> None:
    fires = list(read(one.text, zone).between(start, end))
    assert fires == brute.fires_within(one.sets, minutes, start, end), (one.text, zone)
    assert all(fire < later for fire, later in pairwise(fires))


def test_expressions_are_of_many_kinds() -> None:
    assert len({one.text for one in WRITTEN}) == EXPRESSIONS
    assert sum(one.sets.hours is None for one in WRITTEN) >= EXPRESSIONS / 10
    for sets in zip(*(one.sets for one in WRITTEN), strict=True):
        assert sum(numbers is not None for numbers in sets) >= EXPRESSIONS / 10


@pytest.mark.parametrize("zone", ZONES)
def test_around_each_move_and_on_days_in_between_fires_are_those_of_the_minutes(zone: str) -> None:
    chance = random.Random(zone)
    whole = (LAST - FIRST).days
    sampled = [FIRST + chance.randrange(whole) * DAY for _ in range(SAMPLED_DAYS)]
    days = [(day, midnight(day) - DAY, midnight(day) + 2 * DAY) for day in moves(zone)]
    days += [(day, midnight(day), midnight(day) + DAY) for day in sampled]
    for day, start, end in days:
        minutes = brute.minutes_around(zone, day)
        for one in WRITTEN:
            agree(one, zone, minutes, start, end)


@pytest.mark.skipif(not IS_FULL, reason="takes half an hour: make schedules")
@pytest.mark.parametrize("number", range(EXPRESSIONS), ids=lambda number: WRITTEN[number].text)
@pytest.mark.parametrize("zone", ZONES)
def test_through_three_years_fires_are_those_of_the_minutes(zone: str, number: int) -> None:
    agree(WRITTEN[number], zone, years(zone), midnight(FIRST), midnight(LAST))


_years: dict[str, brute.Minutes] = {}


def years(zone: str) -> brute.Minutes:
    """Every minute of them; of one zone at a time, which are 1.6 million."""
    if zone not in _years:
        gc.unfreeze()
        _years.clear()
        margin = timedelta(days=3)
        _years[zone] = brute.Minutes(zone, midnight(FIRST) - margin, midnight(LAST) + margin)
        # They stay: to look through them for garbage again and again takes most of the time.
        gc.collect()
        gc.freeze()
    return _years[zone]
