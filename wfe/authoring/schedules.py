"""`Schedule`: when a workflow is to run by itself, as it is written down.

A schedule that cannot fire is refused where it is written. Reading an expression takes a package whose
import takes longer than all of a short command; so the usual ones, in which nothing can be wrong, are
recognised by their looks, and only the others are read when a workflow is composed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from wfe.authoring.places import refuse
from wfe.errors import InvalidOption, InvalidSchedule, NonSerializableValue
from wfe.plain import plain

#: The `input` that stands for the moment of the tick.
SCHEDULED_FOR = "scheduled_for"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a workflow runs by itself: by a cron expression or at an interval, one of the two.

    Raises:
        InvalidOption: a value of the wrong type or out of range, with file and line.
    """

    #: Five fields, six that begin with the seconds, `@daily` and the like, or `@every 90s`.
    cron: str | None = None
    #: Seconds between two runs, counted from `start`, or else from when it is first scheduled.
    interval: float | None = None
    #: The zone whose clocks the expression is about.
    timezone: str = "UTC"
    #: What becomes of a tick while an execution of the tick before is unfinished: `forbid` passes
    #: it over, `allow` starts another execution.
    concurrency: Literal["forbid", "allow"] = "forbid"
    #: How often it runs in all; None: no limit.
    number_of_executions: int | None = None
    #: What each execution is given; `"scheduled_for"`: the moment of its tick. None: nothing.
    input: Any = None
    #: Each start is put off by a random number of seconds, up to this. Less than the interval.
    jitter: float = 0.0
    #: What becomes of ticks that passed while nobody was there to run them: none of them runs, the
    #: last one does, or all do.
    catch_up: Literal["none", "last", "all"] = "last"
    #: The first and the last moment at which it may run, both included; None: no such limit.
    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            value = getattr(self, name)
            if not rule.fits(value):
                raise refuse(InvalidOption, f"{name}={value!r}: it must be {rule.wanted}.")
        if (self.cron is None) == (self.interval is None):
            raise refuse(
                InvalidOption,
                "A schedule has either a cron expression or an interval.",
                hint='Write Schedule(cron="0 3 * * *") or Schedule(interval=90).',
            )
        if self.interval is not None and self.jitter >= self.interval:
            raise refuse(
                InvalidOption,
                f"jitter={self.jitter!r}: it must be less than the interval, {self.interval!r}.",
            )
        if self.start is not None and self.end is not None and self.end < self.start:
            raise refuse(InvalidOption, "The schedule ends before it starts.")
        self._make_plain()

    def _make_plain(self) -> None:
        """Numbers of seconds become floats, the input its JSON form."""
        for name in ("interval", "jitter"):
            if isinstance(value := getattr(self, name), int):
                msgspec.structs.force_setattr(self, name, float(value))
        try:
            given = plain(self.input, what="input")
        except NonSerializableValue as error:
            raise refuse(InvalidOption, error.message) from None
        msgspec.structs.force_setattr(self, "input", given)


#: Five fields, each of which is `*`, a step or numbers in range, with a date that every month has; or a
#: name.
_USUAL = re.compile(
    r"""
    (\*|\*/([2356]|10|12|15|20|30)|[0-5]?\d(,[0-5]?\d)*) \ +
    (\*|\*/([23468]|12)|(1?\d|2[0-3])(,(1?\d|2[0-3]))*) \ +
    (\*|[1-9]|1\d|2[0-8]) \ +
    (\*|[1-9]|1[0-2]) \ +
    (\*|[0-7]|1-5)
    | @(hourly|daily|midnight|weekly|monthly|yearly|annually)
    """,
    re.VERBOSE | re.ASCII,
)


def refuse_what_never_fires(schedule: Schedule) -> None:
    """
    Raises:
        InvalidOption: its expression or its time zone means nothing, or it would never fire.
    """
    is_usual = schedule.cron is None or _USUAL.fullmatch(schedule.cron) is not None
    is_bounded = schedule.start is not None and schedule.end is not None
    if is_usual and schedule.timezone == "UTC" and not schedule.jitter and not is_bounded:
        return
    # It knows this module: it is asked for when it is needed.
    from wfe.scheduling.schedule import Timetable

    try:
        Timetable(schedule, anchor=datetime(2000, 1, 1, tzinfo=UTC))
    except InvalidSchedule as error:
        raise refuse(InvalidOption, error.message, hint=error.hint) from None


class _Rule(NamedTuple):
    """What a field may be, in words and as a test."""

    wanted: str
    fits: Callable[[Any], bool]


def _is_number(value: Any, least: float) -> bool:
    return type(value) in (int, float) and least <= value < math.inf


def _is_moment(value: Any) -> bool:
    return value is None or (isinstance(value, datetime) and value.tzinfo is not None)


def _one_of(*words: str) -> _Rule:
    return _Rule(" or ".join(map(repr, words)), lambda value: value in words)


_RULES: Mapping[str, _Rule] = {
    "cron": _Rule(
        "a cron expression, as text",
        lambda value: value is None or (isinstance(value, str) and bool(value.strip())),
    ),
    "interval": _Rule(
        "a number of seconds from 0.001 on",
        lambda value: value is None or _is_number(value, 0.001),
    ),
    "timezone": _Rule(
        "the name of a time zone, as text",
        lambda value: isinstance(value, str) and bool(value),
    ),
    "concurrency": _one_of("forbid", "allow"),
    "number_of_executions": _Rule(
        "a whole number from 1 on, or None",
        lambda value: value is None or (type(value) is int and value >= 1),
    ),
    "jitter": _Rule("a number of seconds from 0 on", lambda value: _is_number(value, 0.0)),
    "catch_up": _one_of("none", "last", "all"),
    "start": _Rule("a datetime with a time zone, or None", _is_moment),
    "end": _Rule("a datetime with a time zone, or None", _is_moment),
}
