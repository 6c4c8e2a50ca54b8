"""Wall times → moments: when a zone's clocks show what an expression says.

What happens where clocks are moved depends on whether the expression names every hour of the day:

- It names hours, so that each date has its own fires, and each of them comes once. A time that comes
  twice counts the first time; a missing one fires at the end of the gap, together with others that
  are missing. A date that does not exist at all has no fires.
- It names every hour, so that it is about the pace. It goes on through an hour that comes twice, and
  has no fires for an hour that is missing: the next one is never far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta, tzinfo

from wfe.scheduling.fields import Fields
from wfe.scheduling.zones import (
    DAY,
    SECOND,
    Change,
    change_between,
    comes_twice,
    first_moment,
    wall_of,
    whole_second,
)

#: An expression that names every hour fires so soon after clocks were moved, if on that date at all.
_SOON = timedelta(hours=2)


def next_moment(fields: Fields, zone: tzinfo, after: datetime) -> datetime | None:
    """The first fire after `after`, in UTC; None where the calendar ends before."""
    try:
        if fields.is_hourly:
            return _next_of_pace(fields, zone, after)
        return _next_of_date(fields, zone, after)
    except OverflowError:  # beyond the year 9999
        return None


def series(
    next: Callable[[datetime], datetime | None], start: datetime, end: datetime
) -> Iterator[datetime]:
    """What `next` gives after `start`, up to and including `end`, in order."""
    fire = next(start)
    while fire is not None and fire <= end:
        yield fire
        fire = next(fire)


def _next_of_date(fields: Fields, zone: tzinfo, after: datetime) -> datetime | None:
    wall = wall_of(whole_second(after), zone) + SECOND
    while (found := fields.at_or_after(wall)) is not None:
        moment = first_moment(found, zone)
        if moment is None:
            wall = datetime.combine(found, time()) + DAY
        elif moment > after:
            return moment
        else:  # `after` is in the second of two hours
            wall = found + SECOND
    return None


def _next_of_pace(fields: Fields, zone: tzinfo, after: datetime) -> datetime | None:
    moment = whole_second(after) + SECOND
    while True:
        wall = wall_of(moment, zone)
        found = fields.at_or_after(wall)
        if found is None:
            return None
        fire = moment + (found - wall)
        change = change_between(moment, fire, zone)
        if change is None:
            return fire
        moment = change.at


def remarks(fields: Fields, zone: tzinfo, fire: datetime) -> tuple[str, ...]:
    """What a reader of the fire at `fire` should know about clocks being moved."""
    said = []
    gone = _passed_over(fields, zone, fire) if fields.is_hourly else _moved_to(fields, zone, fire)
    if gone:
        do = "does" if len(gone) == 1 else "do"
        once = " once" if len(gone) > 1 else ""
        then = (
            "passed over" if fields.is_hourly else f"fires{once} at {_clock(wall_of(fire, zone))}"
        )
        said.append(f"clocks go forward: {_listed(gone)} {do} not exist, {then}")
    if comes_twice(fire, zone):
        wall = wall_of(fire, zone)
        is_first = fire == first_moment(wall, zone)
        which = f"this is the {'first' if is_first else 'second'}"
        then = which if fields.is_hourly else "fires the first time only"
        said.append(f"clocks go back: {_clock(wall)} comes twice, {then}")
    return tuple(said)


def _moved_to(fields: Fields, zone: tzinfo, fire: datetime) -> list[datetime]:
    """The missing times that fire at `fire` instead, as far as anybody wants to read."""
    change = change_between(fire - SECOND, fire, zone)
    return [] if change is None else _missing(fields, zone, change)


def _passed_over(fields: Fields, zone: tzinfo, fire: datetime) -> list[datetime]:
    """The missing times whose turn it would have been before `fire`."""
    change = change_between(fire - _SOON, fire, zone)
    if change is None or next_moment(fields, zone, change.at - SECOND) != fire:
        return []
    return _missing(fields, zone, change)


def _missing(fields: Fields, zone: tzinfo, change: Change) -> list[datetime]:
    missing: list[datetime] = []
    wall = fields.at_or_after(change.old)
    while wall is not None and change.skips(wall) and len(missing) < 3:
        if first_moment(wall, zone) is not None:
            missing.append(wall)
        wall = fields.at_or_after(wall + SECOND)
    return missing


def _listed(walls: list[datetime]) -> str:
    first, *others = map(_clock, walls)
    if len(others) > 1:
        return f"{first}, {others[0]} and so on"
    return " and ".join([first, *others])


def _clock(wall: datetime) -> str:
    return wall.strftime("%H:%M:%S" if wall.second else "%H:%M")
