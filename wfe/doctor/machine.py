"""The examination of what surrounds it all: the clock, the time zone, the software."""

from __future__ import annotations

import os
import platform
import shutil
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from wfe.doctor.results import result
from wfe.store import standing
from wfe.store.checkup import Result
from wfe.store.facts import SQLITE
from wfe.store.invariants import Finding

#: No clock that is set shows an earlier time.
_EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)

#: Clocks of machines that share a database may differ by as much.
_TOLERANCE = timedelta(minutes=1)

#: A zone that every copy of the zone data has.
_SOME_ZONE = "Europe/London"


def clock(now: datetime, newest: datetime | None) -> Result:
    """Whether it can be right. `newest` is when something was last written to the database."""
    claim = f"it is {now.isoformat(timespec='seconds')}, and nothing was written later than that"
    return result("clock", claim, _of_clock(now, newest))


def _of_clock(now: datetime, newest: datetime | None) -> Iterator[Finding]:
    setter = "timedatectl set-ntp true" if shutil.which("timedatectl") else None
    if now < _EARLIEST:
        yield Finding(
            f"The clock shows {now.isoformat(timespec='seconds')}: it is not set.", None, setter
        )
    elif newest is not None and newest > now + _TOLERANCE:
        yield Finding(
            f"The database was written to at {newest.isoformat(timespec='seconds')}, which is yet to "
            f"come: a clock was set back, or is wrong. Whatever is timed waits until then.",
            mend=setter,
        )


def time_zone(now: datetime) -> Result:
    """Whether zones are known, and the one that is set."""
    local = now.astimezone().tzname()
    return result("time zone", f"clocks here show {local}, and zones are known", _of_zones())


def _of_zones() -> Iterator[Finding]:
    try:
        zoneinfo.ZoneInfo(_SOME_ZONE)
    except zoneinfo.ZoneInfoNotFoundError:
        message = "There is no data about time zones: schedules can be in UTC only."
        yield Finding(message, mend="pip install tzdata")
        return
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and "/" in named and not named.startswith("/"):
        try:
            zoneinfo.ZoneInfo(named)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            yield Finding(
                f"TZ names {named!r}, which is no zone: UTC is shown instead.", mend="unset TZ"
            )


def software() -> Result:
    """What it runs on."""
    search = "with" if standing.has_fts5() else "without"
    versions = f"Python {platform.python_version()}, SQLite {SQLITE} {search} FTS5"
    return result("software", versions)
