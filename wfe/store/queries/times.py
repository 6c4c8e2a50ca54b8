"""Moments as people type them: `2h ago`, `1h30m`, or ISO 8601, which is local where it names no zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from wfe.durations import duration

#: What an ISO text may leave out from its end on, and what is then meant by it: a whole day, and so on.
_DIGITS = (
    r"\d{4}-?\d\d-?\d\d(?:[T ](?P<hours>\d\d)(?::?(?P<minutes>\d\d)"
    r"(?::?(?P<seconds>\d\d)(?:[.,](?P<fraction>\d{1,6}))?)?)?(?P<zone>Z|[+-][\d:]+)?)?"
)


def moment(text: str, now: datetime) -> datetime:
    """
    Raises:
        ValueError: it is no moment.
    """
    relative = re.fullmatch(r"(.*[smhd])(\s+ago)?", text.strip())
    try:
        if relative is not None:
            return now - timedelta(seconds=duration(relative[1]))
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no moment") from None


def span(text: str) -> tuple[datetime, datetime]:
    """When what an ISO text names begins, and when it is over: a day, a minute, a second, or less.

    Raises:
        ValueError: it names no such thing.
    """
    match = re.fullmatch(_DIGITS, text.strip(), re.ASCII)
    try:
        if match is not None:
            begin = datetime.fromisoformat(match[0])
            return begin.astimezone(), (begin + _length(match)).astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    raise ValueError(f"{text!r} is no day or time") from None


def _length(match: re.Match[str]) -> timedelta:
    if match["fraction"] is not None:
        return timedelta(microseconds=10 ** (6 - len(match["fraction"])))
    if match["seconds"] is not None:
        return timedelta(seconds=1)
    if match["minutes"] is not None:
        return timedelta(minutes=1)
    return timedelta(days=1) if match["hours"] is None else timedelta(hours=1)
