"""The clock: the only place that reads the time, and the only place that waits for it.

Everything that needs the time is handed a `Clock` or a moment, so that a test can own the time.
Moments are aware datetimes in UTC; `utc()` refuses naive ones at the border.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

#: The longest single sleep, in seconds. A monotonic sleep may not count time that the machine was
#: suspended, so the wall clock is compared at least this often.
LONGEST_SLEEP = 30.0


def utc(moment: datetime) -> datetime:
    """The same moment in UTC.

    Raises:
        ValueError: `moment` is naive; which moment it means cannot be known.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; give an aware datetime")
    return moment.astimezone(UTC)


def monotonic() -> float:
    """Seconds since some moment before: the same for all processes of one boot, never set, and not
    counting the time that the machine was suspended."""
    return time.monotonic()


class Clock(Protocol):
    """What the engine needs of time."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    async def sleep_until(self, moment: datetime) -> None:
        """Return when `now() >= moment`; at once where that is so already."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep_until(self, moment: datetime) -> None:
        import asyncio

        while (left := (moment - self.now()) / timedelta(seconds=1)) > 0:  # noqa: ASYNC110 time passes, no event tells
            await asyncio.sleep(min(left, LONGEST_SLEEP))
