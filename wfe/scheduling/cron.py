"""Cron expressions: what they say, and when they fire. The one place that knows croniter.

croniter reads single fields, nothing more. Its own way from an expression to moments has a daily job
fire twice when clocks go back, finds no date for `0 0 1 * FRI#2`, and learns that a date is impossible
by searching for decades; so `fields` and `moments` do that.

An expression has five fields, or six that begin with the seconds. Its fires are computed from a moment
that is given, never from the clock, and are strictly increasing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

from croniter import croniter

from wfe.clock import utc
from wfe.errors import InvalidSchedule
from wfe.near import near
from wfe.scheduling import doubts, moments, words
from wfe.scheduling.fields import COLUMNS, Column, Fields
from wfe.scheduling.zones import zone_of

#: Of croniter: what an expression says may change with it.
VERSION = version("croniter")

#: What the names mean.
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_LEFT_TO = {"r": "chance", "h": "a hash"}

#: Where croniter expects each of COLUMNS.
_POSITIONS = (5, 0, 1, 2, 3, 4)

_WRITTEN = {
    "days of the month": "1 to 31, L for the last one, 15W for the weekday nearest the 15th",
    "months": "1 to 12 or JAN to DEC",
    "weekdays": "0 to 7 (0 and 7 are Sunday) or SUN to SAT, FRI#2 for the second Friday of a month, "
    "L5 for the last one",
}


class Cron:
    """One expression, in one time zone."""

    def __init__(self, text: str, timezone: str, fields: Fields, warnings: tuple[str, ...]) -> None:
        """See `parse`."""
        #: As it was written, with single spaces.
        self.text = text
        self.timezone = timezone
        self.fields = fields
        #: What it says that its writer may not mean: a sentence for each.
        self.warnings = warnings
        self._zone = zone_of(timezone, expression=text)

    @classmethod
    def parse(cls, text: str, timezone: str = "UTC") -> Cron:
        """
        Raises:
            InvalidSchedule: it is no expression, would never fire, or leaves its moments to chance;
                or there is no such time zone.
        """
        text = " ".join(text.split())
        read = [_read(text, column, written) for column, written in _split(text)]
        fields = Fields(**{name: value for values, _ in read for name, value in values.items()})
        if fields.date_after(date(2000, 1, 1)) is None:
            raise InvalidSchedule(text, doubts.why_never(fields))
        odd = [sentence for _, sentences in read for sentence in sentences]
        return cls(text, timezone, fields, (*odd, *doubts.of_dates(fields)))

    def next(self, after: datetime) -> datetime | None:
        """The first fire after `after`, in UTC; None where the calendar ends before."""
        return moments.next_moment(self.fields, self._zone, utc(after))

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The fires after `start`, up to and including `end`, in order."""
        return moments.series(self.next, start, end)

    def describe(self) -> str:
        """The expression in words, without its time zone."""
        return words.describe(self.fields)

    def remarks(self, fire: datetime) -> tuple[str, ...]:
        """What clocks that are moved have to do with a fire."""
        return moments.remarks(self.fields, self._zone, utc(fire))


# --- reading -------------------------------------------------------------------------------------


def _split(text: str) -> list[tuple[Column, str]]:
    """What is written in each field."""
    written = text
    if text.startswith("@"):
        if text.lower() not in ALIASES:
            known = ["@every 90s", *ALIASES]
            hint = near(text.lower(), known) or f"There are: {', '.join(known)}."
            raise InvalidSchedule(text, "there is no such name", hint=hint)
        written = ALIASES[text.lower()]
    parts = written.lower().split()
    if len(parts) == 5:
        return list(zip(COLUMNS[1:], parts, strict=True))
    if len(parts) == 6:
        return list(zip(COLUMNS, parts, strict=True))
    count = words.number_words(len(parts), "field")
    raise InvalidSchedule(text, f"it has {count}; five are due, or six that begin with the seconds")


def _read(text: str, column: Column, written: str) -> tuple[dict[str, Any], list[str]]:
    """What one field adds to Fields, and what is odd about it."""
    parts = [_part(text, column, token) for token in written.split(",")]
    odd = [sentence for part in parts if part.step for sentence in doubts.of_step(part.step)]
    numbers = tuple(sorted({number for part in parts for number in part.numbers}))
    # Days that are all named are left open only where they are written so: `1-31` fires whatever the
    # weekdays say.
    is_open = written[0] in "*?" and len(numbers) == column.size
    match column.name:
        case "days of the month":
            nearest = tuple(sorted({day for part in parts for day in part.nearest}))
            last_day = any(part.is_last for part in parts)
            days = None if is_open else numbers
            return {"days": days, "nearest": nearest, "last_day": last_day}, odd
        case "weekdays":
            nth = tuple(sorted({pair for part in parts for pair in part.nth}))
            return {"weekdays": None if is_open else numbers, "nth": nth}, odd
        case name:
            return {name: numbers}, odd


class _Part(NamedTuple):
    """What stands between two commas."""

    numbers: tuple[int, ...]
    #: See Fields.
    is_last: bool = False
    nearest: tuple[int, ...] = ()
    nth: tuple[tuple[int, int], ...] = ()
    #: Where it is written with a step.
    step: doubts.Step | None = None


def _part(text: str, column: Column, token: str) -> _Part:
    if re.match(r"[hr](?![a-z])", token):
        raise InvalidSchedule(
            text,
            f"{token.upper()!r} in the {column.name} leaves the number to {_LEFT_TO[token[0]]}",
            hint=f"Write the number: {column.least} to {column.most}.",
        )
    start, slash, step = token.partition("/")
    first, dash, last = start.partition("-")
    _refuse_empty_range(text, column, first, last)
    read = _asked(text, column, token)
    if not slash:
        return read
    written = doubts.Step(token, column, first, int(step), bool(dash), read.numbers)
    return read._replace(step=written)


def _refuse_empty_range(text: str, column: Column, first: str, last: str) -> None:
    """Refuse `5-5`, which croniter takes for every number there is. `0-7` are all weekdays."""
    if not (first and last) or (last == "7" and first != "7"):
        return
    numbers = _asked(text, column, first).numbers
    if numbers and numbers == _asked(text, column, last).numbers:
        raise InvalidSchedule(
            text,
            f"'{first.upper()}-{last.upper()}' in the {column.name} ends where it begins",
            hint=f"Write {first.upper()} for this one alone, or * for all.",
        )


def _asked(text: str, column: Column, token: str) -> _Part:
    """What croniter makes of it, without its step.

    Raises:
        InvalidSchedule: nothing.
    """
    position = _POSITIONS[COLUMNS.index(column)]
    fields = ["*"] * 6
    fields[position] = token or "nothing"
    try:
        found: Any = croniter(" ".join(fields), 0.0)
    except ValueError:
        allowed = _WRITTEN.get(column.name, f"{column.least} to {column.most}")
        raise InvalidSchedule(
            text, f"the {column.name} cannot be {token.upper()!r}: they are {allowed}"
        ) from None
    numbers, nearest = found.expanded[position], tuple(found.nearest_weekday)
    if "*" in numbers:
        numbers = range(column.least, column.most + 1)
    nth = found.nth_weekday_of_month.items()
    return _Part(
        numbers=tuple(n for n in numbers if n != "l" and n not in nearest),
        is_last="l" in numbers,
        nearest=nearest,
        nth=tuple((day, 0 if n == "l" else n) for day, ordinals in nth for n in ordinals),
    )
