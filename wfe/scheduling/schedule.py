"""From a `Schedule` to its ticks: when they are, what they are called, and what they hand over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from wfe.authoring.schedules import SCHEDULED_FOR, Schedule
from wfe.clock import utc
from wfe.errors import InvalidSchedule
from wfe.scheduling.cron import Cron
from wfe.scheduling.interval import EVERY, Interval
from wfe.scheduling.moments import series
from wfe.scheduling.zones import zone_of

#: How many fires are looked at to find out how close they are.
_SAMPLE = 100


class Timetable:
    """The ticks of one schedule: those fires of its expression or interval that are within its
    bounds. How many of them have run already is not known here."""

    def __init__(self, schedule: Schedule, *, anchor: datetime) -> None:
        """`anchor` is what an interval is counted from that has no `start`: the moment at which it
        was first scheduled, which has to be the same each time.

        Raises:
            InvalidSchedule: the expression, the interval or the zone means nothing; it never fires,
                or not between its start and its end; or its jitter is not less than the time between
                two ticks.
        """
        self.schedule = schedule
        self.timing = _timing(schedule, utc(anchor))
        self.zone = zone_of(schedule.timezone, expression=self.timing.text)
        self._refuse_empty_bounds()
        self._refuse_long_jitter(utc(anchor))

    def anchored(self, anchor: datetime) -> Timetable:
        """The same one, counted from another moment, where that makes a difference."""
        if isinstance(self.timing, Cron):
            return self
        return Timetable(self.schedule, anchor=anchor)

    def next(self, after: datetime) -> datetime | None:
        """The first tick after `after`, in UTC; None where there is none any more."""
        start, end = self.schedule.start, self.schedule.end
        if start is not None and after < start:
            after = start - timedelta.resolution
        fire = self.timing.next(after)
        return None if fire is None or (end is not None and fire > end) else fire

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The ticks after `start`, up to and including `end`, in order."""
        return series(self.next, start, end)

    def after(self, start: datetime) -> Iterator[datetime]:
        """The ticks after `start`, in order, for as long as clocks can show them in any zone: up to the
        day before the last one of the calendar."""
        return self.between(start, datetime.max.replace(tzinfo=UTC) - timedelta(days=1))

    def input_for(self, tick: datetime) -> Any:
        """What the execution of a tick is given; None: nothing."""
        given = self.schedule.input
        return utc(tick) if given == SCHEDULED_FOR else given

    def _refuse_empty_bounds(self) -> None:
        start, end = self.schedule.start, self.schedule.end
        if (
            start is not None
            and end is not None
            and self.next(start - timedelta.resolution) is None
        ):
            between = f"{start.isoformat()} and {end.isoformat()}"
            raise InvalidSchedule(self.timing.text, f"it never fires between {between}")

    def _refuse_long_jitter(self, anchor: datetime) -> None:
        jitter = self.schedule.jitter
        if not jitter:
            return
        fires = islice(self.timing.between(anchor, datetime.max.replace(tzinfo=UTC)), _SAMPLE)
        shortest = min((later - fire for fire, later in pairwise(fires)), default=timedelta.max)
        if timedelta(seconds=jitter) >= shortest:
            raise InvalidSchedule(
                self.timing.text,
                f"its jitter, {jitter:g} seconds, is not less than the {shortest.total_seconds():g} "
                "seconds between two of its ticks",
            )


def _timing(schedule: Schedule, anchor: datetime) -> Cron | Interval:
    cron = schedule.cron or ""
    if schedule.interval is not None:
        interval = Interval(schedule.interval, anchor)
    elif cron.strip().lower().startswith(EVERY):
        interval = Interval.parse(cron, anchor)
    else:
        return Cron.parse(cron, schedule.timezone)
    return interval if schedule.start is None else interval.beginning_at(utc(schedule.start))


def tick_transaction_id(schedule_name: str, moment: datetime) -> str:
    """The transaction id of the execution of a tick: whoever starts it, it is the same one."""
    stamp = utc(moment).strftime("%Y%m%dT%H%M%S")
    return f"sched-{schedule_name}-{stamp}.{utc(moment).microsecond // 1000:03}Z"
