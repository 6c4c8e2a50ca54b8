"""Schedules at an even pace: so many seconds apart, counted from one moment on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from wfe.clock import utc
from wfe.durations import duration
from wfe.errors import InvalidSchedule
from wfe.scheduling import words
from wfe.scheduling.moments import series

#: How an interval is written where a cron expression may stand.
EVERY = "@every"

_MILLISECOND = timedelta(milliseconds=1)


class Interval:
    """Fires every so often after its anchor, whatever clocks on the wall show."""

    #: Nothing about an interval is doubtful.
    warnings: tuple[str, ...] = ()

    def __init__(self, seconds: float, anchor: datetime, *, text: str = "") -> None:
        """`seconds` is kept to the millisecond.

        Raises:
            InvalidSchedule: it is less than a millisecond, or longer than the calendar.
        """
        #: As it was written.
        self.text = text or f"{EVERY} {seconds:g}s"
        self.anchor = utc(anchor)
        try:
            self.every = round(seconds * 1000) * _MILLISECOND
        except OverflowError:
            raise InvalidSchedule(self.text, "it is longer than the calendar") from None
        if self.every < _MILLISECOND:
            raise InvalidSchedule(self.text, "an interval is a millisecond at least")

    @classmethod
    def parse(cls, text: str, anchor: datetime) -> Interval:
        """`@every 90s`, `@every 1h30m`.

        Raises:
            InvalidSchedule: it is none.
        """
        text = " ".join(text.split())
        try:
            seconds = duration(text.lower().removeprefix(EVERY))
        except ValueError:
            raise InvalidSchedule(
                text, "an interval reads @every 90s, 15m, 2h, 7d or 1h30m"
            ) from None
        return cls(seconds, anchor, text=text)

    def beginning_at(self, first: datetime) -> Interval:
        """The same interval, with its first fire at `first`."""
        return Interval(self.every / timedelta(seconds=1), first - self.every, text=self.text)

    def next(self, after: datetime) -> datetime | None:
        """The first fire after `after`, in UTC; None where the calendar ends before. The anchor is
        no fire: the first one is the interval later."""
        passed = utc(after) - self.anchor
        try:
            return self.anchor + max(passed // self.every + 1, 1) * self.every
        except OverflowError:
            return None

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The fires after `start`, up to and including `end`, in order."""
        return series(self.next, start, end)

    def describe(self) -> str:
        """The interval in words."""
        return f"every {words.span_words(self.every / timedelta(seconds=1))}"

    def remarks(self, fire: datetime) -> tuple[str, ...]:
        """None: an interval does not notice that clocks are moved."""
        return ()
