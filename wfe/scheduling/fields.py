"""What a cron expression says, as sets of numbers, and the wall times that fit it.

Nothing here knows a time zone: a wall time is a naive datetime, and each date has 24 hours. Where both
a day of the month and a weekday are given, a date fits where either does, as in every cron.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, date, datetime, time
from itertools import product
from typing import NamedTuple

import msgspec

#: For how many years a date is looked for. A fifth Monday of February comes every 28 years, and every
#: 40 around a century that is no leap year.
_YEARS = 41


class Column(NamedTuple):
    """One field of an expression: its name, its numbers, and what one of them is part of."""

    name: str
    least: int
    most: int
    unit: str
    cycle: str

    @property
    def size(self) -> int:
        return self.most - self.least + 1


#: The fields of an expression that begins with seconds.
COLUMNS = (
    Column("seconds", 0, 59, "second", "minute"),
    Column("minutes", 0, 59, "minute", "hour"),
    Column("hours", 0, 23, "hour", "day"),
    Column("days of the month", 1, 31, "day", "month"),
    Column("months", 1, 12, "month", "year"),
    Column("weekdays", 0, 6, "day", "week"),
)


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers in ascending order."""

    seconds: tuple[int, ...] = (0,)
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    #: Days of the month; None: they are left open.
    days: tuple[int, ...] | None = None
    #: The last day of the month, too, and the weekdays (Monday to Friday) nearest to these days.
    last_day: bool = False
    nearest: tuple[int, ...] = ()
    months: tuple[int, ...]
    #: 0 is Sunday; None: they are left open.
    weekdays: tuple[int, ...] | None = None
    #: Those of the weekdays that are not meant each week: weekday and which one of the month, 0: the
    #: last.
    nth: tuple[tuple[int, int], ...] = ()

    @property
    def is_hourly(self) -> bool:
        """Whether it names every hour of the day."""
        return len(self.hours) == 24

    @property
    def has_days_of_month(self) -> bool:
        return self.days is not None or self.last_day or bool(self.nearest)

    def at_or_after(self, wall: datetime) -> datetime | None:
        """The first wall time that fits and is not before `wall`, which is whole seconds; None where
        there is none in the calendar."""
        today = wall.date()
        if self.fits(today):
            found = self._time_from(wall.time())
            if found is not None:
                return datetime.combine(today, found)
        following = self.date_after(today)
        if following is None:
            return None
        return datetime.combine(following, time(self.hours[0], self.minutes[0], self.seconds[0]))

    def fits(self, day: date) -> bool:
        return day.month in self.months and day.day in self.days_of(day.year, day.month)

    def date_after(self, day: date) -> date | None:
        """The first date after `day` that fits; None where there is none within 41 years, which
        means never, or in the calendar."""
        year, month = day.year, day.month
        for number in range(12 * _YEARS):
            if month in self.months:
                least = day.day + 1 if number == 0 else 1
                found = [d for d in self.days_of(year, month) if d >= least]
                if found:
                    return date(year, month, found[0])
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if year > MAXYEAR:
                break
        return None

    @functools.lru_cache(maxsize=4096)  # noqa: B019  # all of them together; each month is asked for often
    def days_of(self, year: int, month: int) -> Sequence[int]:
        """The days that fit in a month, whichever it is."""
        first, length = monthrange(year, month)
        first = (first + 1) % 7  # as cron counts
        whole = range(1, length + 1)
        if not self.has_days_of_month and self.weekdays is None:
            return whole
        found: set[int] = set()
        if self.has_days_of_month:
            found.update(d for d in self.days or () if d <= length)
            found.update(nearest_weekday(d, first, length) for d in self.nearest)
            if self.last_day:
                found.add(length)
        for weekday in self.weekdays or ():
            all_of_it = range(1 + (weekday - first) % 7, length + 1, 7)
            ordinals = [ordinal for other, ordinal in self.nth if other == weekday]
            found.update(pick(all_of_it, ordinals) if ordinals else all_of_it)
        return tuple(sorted(found))

    def times(self) -> Iterator[time]:
        """The times of a day."""
        for hour, minute, second in product(self.hours, self.minutes, self.seconds):
            yield time(hour, minute, second)

    def _time_from(self, moment: time) -> time | None:
        """The first time of a day that fits and is not before `moment`."""
        first = (self.hours[0], self.minutes[0], self.seconds[0])
        for hour in self.hours[bisect_left(self.hours, moment.hour) :]:
            if hour > moment.hour:
                return time(hour, *first[1:])
            for minute in self.minutes[bisect_left(self.minutes, moment.minute) :]:
                if minute > moment.minute:
                    return time(hour, minute, first[2])
                for second in self.seconds[bisect_left(self.seconds, moment.second) :]:
                    return time(hour, minute, second)
        return None


def nearest_weekday(day: int, first: int, length: int) -> int:
    """The day from Monday to Friday that is nearest to `day` and in the same month, which has
    `length` days and begins with the weekday `first`."""
    day = min(day, length)
    match (first + day - 1) % 7:
        case 6:
            return day - 1 if day > 1 else day + 2
        case 0:
            return day + 1 if day < length else day - 2
    return day


def pick(days: Sequence[int], ordinals: Sequence[int]) -> Iterator[int]:
    """The first, second, … (0: the last) of `days`, where there are so many."""
    for ordinal in ordinals:
        if ordinal <= len(days):
            yield days[ordinal - 1]
