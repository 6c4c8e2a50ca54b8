"""What an expression says and its writer may not mean: a sentence for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wfe.scheduling.fields import COLUMNS, Column, Fields
from wfe.scheduling.words import joined, number_words, value_word

#: Column → how often something happens that happens once in its cycle.
_ONCE_IN = {
    "minute": "once a minute",
    "hour": "hourly",
    "day": "daily",
    "week": "weekly",
    "month": "monthly",
    "year": "yearly",
}
#: Units of which `@every` keeps an even pace.
_PACES = {"second": "s", "minute": "m", "hour": "h"}


class Step(NamedTuple):
    """A part of a field that is written with a step: `*/7`, `5/20` or `10-50/15`."""

    text: str
    column: Column
    start: str
    step: int
    #: It names its end, too.
    is_range: bool
    numbers: tuple[int, ...]


def of_step(part: Step) -> Iterator[str]:
    """What is odd about a step."""
    what = f"'{part.text}' in the {part.column.name}"
    unit, cycle = part.column.unit, part.column.cycle
    pace = f"every {number_words(part.step, unit)}"
    first, last = (value_word(part.column, part.numbers[i]) for i in (0, -1))
    if len(part.numbers) == 1 and part.is_range:
        yield f"{what} is only {first}, as the next one would be beyond its end."
    elif len(part.numbers) == 1:
        yield (
            f"{what} is only {first}, as counting begins anew with each {cycle}: that is "
            f"{_ONCE_IN[cycle]} at most, not {pace}.{_even(part)}"
        )
    elif part.start != "*" and not part.is_range and part.step == 1:
        yield f"{what} means each {unit} from {first} to {last}, not only {first}."
    elif unit == "day" and cycle == "month" and not part.is_range and part.step > 1:
        yield (
            f"{what} counts anew from {first} with each month, so that the last one of a month and "
            f"the first one of the next are not {number_words(part.step, unit)} apart."
        )
    elif not part.is_range and (gap := _gap(part)) != part.step:
        yield (
            f"{what} is uneven: after {last} comes {first} of the next {cycle}, "
            f"{number_words(gap, unit)} later.{_even(part)}"
        )


def _gap(part: Step) -> int:
    """From the last number to the first one of the next cycle."""
    return part.numbers[0] + part.column.size - part.numbers[-1]


def _even(part: Step) -> str:
    letter = _PACES.get(part.column.unit)
    return f" For an even pace write '@every {part.step}{letter}'." if letter else ""


def of_dates(fields: Fields) -> Iterator[str]:
    """What is odd about its days."""
    if fields.has_days_of_month and fields.weekdays is not None:
        yield (
            "It names days of the month and weekdays: it fires on a date where either fits, "
            "not only where both do."
        )
    if fields.days and fields.weekdays is None and not fields.last_day and not fields.nearest:
        yield from _of_rare_days(fields.days, fields.months)


def why_never(fields: Fields) -> str:
    """Why it would never fire, which only days of the month can bring about."""
    days = joined([str(day) for day in fields.days or ()], last="or")
    months = joined([value_word(COLUMNS[4], month) for month in fields.months], last="or")
    return f"there is no day {days} in {months}, so that it would never fire"


def _of_rare_days(days: Sequence[int], months: Sequence[int]) -> Iterator[str]:
    least = days[0]
    if least == 29 and tuple(months) == (2,):
        yield "The 29th of February comes in leap years only."
    elif least > 28 and any(least > _LENGTHS[month] for month in months):
        named = joined([str(day) for day in days], last="or")
        yield (
            f"Not every month it names has a day {named}: those without are passed over. "
            "The last day of a month is written L."
        )


_LENGTHS = {month: 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)} | {2: 28}
