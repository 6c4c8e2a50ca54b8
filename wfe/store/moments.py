"""Moments as integers: microseconds since 1970-01-01T00:00:00Z.

An integer sorts and compares in an index, and holds a datetime exactly. SQLite's own dates are
text, a float or whole seconds; none of them does both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wfe.model import Head

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The last moment a datetime can hold; a retention that reaches further ends here.
_LAST = 253_402_300_799_999_999


def to_micros(moment: datetime) -> int:
    """Raises TypeError where `moment` is naive."""
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def from_micros(micros: int) -> datetime:
    """Aware, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def to_micros_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def from_micros_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def expires_at(head: Head) -> int | None:
    """When a finished run may be forgotten, in microseconds; None: not finished, or never."""
    if not head.is_final or head.retention_time is None:
        return None
    ended = to_micros(head.ended_at or head.updated_at)
    return int(min(ended + head.retention_time * 1e6, _LAST))
