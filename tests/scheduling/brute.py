"""When an expression fires, found by looking at every minute: no searching, no arithmetic with offsets.

The rules are written down a second time, in the plainest way there is.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


class Sets(NamedTuple):
    """The numbers of an expression; None: a star."""

    minutes: frozenset[int] | None = None
    hours: frozenset[int] | None = None
    days: frozenset[int] | None = None
    months: frozenset[int] | None = None
    weekdays: frozenset[int] | None = None

    @property
    def expression(self) -> str:
        return " ".join("*" if one is None else ",".join(map(str, sorted(one))) for one in self)

    def fits_date(self, day: date) -> bool:
        return _in(day.month, self.months) and self._fits_day(day)

    def _fits_day(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        if self.days is not None and self.weekdays is not None:
            return day.day in self.days or weekday in self.weekdays
        return _in(day.day, self.days) and _in(weekday, self.weekdays)


def _in(number: int, numbers: frozenset[int] | None) -> bool:
    return numbers is None or number in numbers


@functools.cache
def times_of(sets: Sets) -> set[int]:
    """The minutes of a day that fit, counted from midnight."""
    whole = range(24 * 60)
    return {n for n in whole if _in(n % 60, sets.minutes) and _in(n // 60, sets.hours)}


class Minutes:
    """What clocks in a zone show at each minute from `first` to `last`."""

    def __init__(self, zone: str, first: datetime, last: datetime) -> None:
        count = int((last - first) / MINUTE) + 1
        self.moments = [first + number * MINUTE for number in range(count)]
        tz = ZoneInfo(zone)
        self.walls = [moment.astimezone(tz).replace(tzinfo=None) for moment in self.moments]
        self.latest = list(accumulate(self.walls, max))
        #: Of each date the moments at which clocks show it, and how many minutes after midnight.
        self.dates: dict[date, list[tuple[datetime, int]]] = defaultdict(list)
        for moment, wall in zip(self.moments, self.walls, strict=True):
            self.dates[wall.date()].append((moment, wall.hour * 60 + wall.minute))

    def first_at_or_past(self, wall: datetime) -> datetime:
        """The first minute at which clocks show `wall`, or have gone past it without showing it."""
        return self.moments[bisect_left(self.latest, wall)]


@functools.cache
def minutes_around(zone: str, day: date) -> Minutes:
    """Those of the day, of two days before it and of two days after it."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return Minutes(zone, noon - 3 * DAY, noon + 3 * DAY)


def fires(sets: Sets, zone: str, start: datetime, end: datetime, around: date) -> list[datetime]:
    """The fires after `start`, up to and including `end`, which are within a day of `around`."""
    return fires_within(sets, minutes_around(zone, around), start, end)


def fires_within(sets: Sets, minutes: Minutes, start: datetime, end: datetime) -> list[datetime]:
    """The fires after `start`, up to and including `end`; there are minutes of a day before and after."""
    times = times_of(sets)
    # The first and the last one may not be whole.
    dates = [day for day in sorted(minutes.dates)[1:-1] if sets.fits_date(day)]
    if sets.hours is None or len(sets.hours) == 24:
        found = {moment for day in dates for moment, n in minutes.dates[day] if n in times}
    else:
        midnights = [datetime.combine(day, time()) for day in dates]
        walls = (midnight + n * MINUTE for midnight in midnights for n in times)
        found = {minutes.first_at_or_past(wall) for wall in walls}
    return sorted(moment for moment in found if start < moment <= end)
