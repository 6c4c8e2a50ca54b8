"""Time zones: what their clocks show, and where they are moved.

A *wall* time is what a clock on the wall shows: a naive datetime. Moments are aware and in UTC. Where
clocks are moved forward, wall times are missing (a gap); where they are moved back, they come twice.
"""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from wfe.errors import InvalidSchedule
from wfe.near import near_names

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


class Change(NamedTuple):
    """Clocks being moved."""

    #: The moment at which it happens.
    at: datetime
    #: What they would show then, had nobody moved them, and what they do show.
    old: datetime
    new: datetime

    def skips(self, wall: datetime) -> bool:
        """Whether `wall` is missing because of it."""
        return self.old <= wall < self.new


def zone_of(name: str, *, expression: str) -> tzinfo:
    """The zone of this name.

    Raises:
        InvalidSchedule: there is none; the hint lists near names. `expression` is what needed it.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = _near(name)
        raise InvalidSchedule(
            expression,
            f"there is no time zone {name!r}",
            hint=f"Did you mean {' or '.join(near)}?" if near else "Write one like Europe/London.",
        ) from None


def _near(name: str) -> list[str]:
    known = sorted(zoneinfo.available_timezones())
    wanted = name.strip().replace(" ", "_").lower()
    same = [zone for zone in known if wanted in (zone.lower(), zone.lower().rpartition("/")[2])]
    return same[:3] or near_names(name, known)


def whole_second(moment: datetime) -> datetime:
    """The moment, without the part of a second that has passed."""
    return moment.replace(microsecond=0) if moment.microsecond else moment


def wall_of(moment: datetime, zone: tzinfo) -> datetime:
    """What clocks in `zone` show at `moment`."""
    return moment.astimezone(zone).replace(tzinfo=None)


def change_between(start: datetime, end: datetime, zone: tzinfo) -> Change | None:
    """The first change after `start`, up to and including `end`."""
    low, end = whole_second(start), whole_second(end)
    offset = low.astimezone(zone).utcoffset()
    while low < end:
        # Looked at once a day: no zone has moved its clocks and moved them back within a day.
        high = min(low + DAY, end)
        if high.astimezone(zone).utcoffset() != offset:
            return _change(low, high, zone)
        low = high
    return None


def _change(low: datetime, high: datetime, zone: tzinfo) -> Change:
    """The one after `low` and up to `high`, which are whole seconds, as every change is."""
    before = low.astimezone(zone).utcoffset()
    assert before is not None
    while high - low > SECOND:
        middle = whole_second(low + (high - low) // 2)
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return Change(high, high.replace(tzinfo=None) + before, wall_of(high, zone))


def first_moment(wall: datetime, zone: tzinfo) -> datetime | None:
    """The moment at which clocks show `wall`: the first of two; where it is missing, the end of the
    gap. None where its whole date is missing, as the 30th of December 2011 is in Samoa."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall_of(moment, zone) == wall:
        return moment
    change = change_between(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), moment, zone)
    assert change is not None
    midnight = datetime.combine(wall, time())
    if change.skips(midnight) and change.new - midnight >= DAY:
        return None
    return change.at


def comes_twice(moment: datetime, zone: tzinfo) -> bool:
    """Whether clocks show the same at `moment` and at another one."""
    local = moment.astimezone(zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
