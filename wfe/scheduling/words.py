"""An expression in words: `at 03:00 on the 1st of each month`.

Sets that people have a word for get it; any other is listed, field by field, as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import time
from itertools import pairwise

from wfe.scheduling.fields import COLUMNS, Column, Fields

_SECONDS, _MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS = COLUMNS

#: How many times of a day are listed one by one where there is a shorter way to say it.
_FEW = 6

_WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ORDINALS = ("last", "first", "second", "third", "fourth", "fifth")
_LENGTHS = (("day", 86_400), ("hour", 3600), ("minute", 60))


def describe(fields: Fields) -> str:
    """The whole expression, without its time zone."""
    return " ".join(filter(None, (_time(fields), _date(fields))))


# --- the time of day -----------------------------------------------------------------------------


def _time(fields: Fields) -> str:
    if len(fields.seconds) > 1:
        return _with_seconds(fields)
    if fields.is_hourly:
        return _of_every_hour(fields)
    times = [_clock(moment) for moment in fields.times()]
    if len(fields.minutes) == 1:
        return _of_hours(fields.hours, times)
    if len(times) <= _FEW:
        return f"at {joined(times)}"
    every = _every(_MINUTES, fields.minutes)
    if _is_run(fields.hours) and _is_even(_MINUTES, fields.minutes):
        return f"{every} from {times[0]} to {times[-1]}"
    return f"{every} in {_listed(_HOURS, fields.hours)}{_second(fields)}"


def _of_every_hour(fields: Fields) -> str:
    if fields.minutes == fields.seconds == (0,):
        return "every hour, on the hour"
    whole = "" if _is_even(_MINUTES, fields.minutes) else " of every hour"
    return f"{_every(_MINUTES, fields.minutes)}{whole}{_second(fields)}"


def _of_hours(hours: Sequence[int], times: Sequence[str]) -> str:
    step = _step(hours)
    if step and len(hours) > 3:
        return f"every {_each(step, 'hour')} from {times[0]} to {times[-1]}"
    return f"at {joined(times)}"


def _with_seconds(fields: Fields) -> str:
    every = _every(_SECONDS, fields.seconds)
    is_whole = len(fields.minutes) == _MINUTES.size
    if is_whole and not _is_even(_SECONDS, fields.seconds):
        every += " of every minute"
    if is_whole and fields.is_hourly:
        return every
    if is_whole and _is_run(fields.hours):
        return f"{every} from {fields.hours[0]:02}:00 to {fields.hours[-1]:02}:59"
    hours = "every hour" if fields.is_hourly else _listed(_HOURS, fields.hours)
    within = hours if is_whole else f"{_listed(_MINUTES, fields.minutes)} of {hours}"
    return f"{every} in {within}"


def _every(column: Column, numbers: Sequence[int]) -> str:
    """`every 5 minutes`, `every 7 minutes from minute 0 to 56`, or `at minutes 3 and 40`."""
    step = _step(numbers)
    if _is_even(column, numbers):
        return f"every {_each(step, column.unit)}"
    if step and len(numbers) > 3:
        return f"every {_each(step, column.unit)} from {column.unit} {numbers[0]} to {numbers[-1]}"
    return f"at {_listed(column, numbers)}"


def _second(fields: Fields) -> str:
    return f", at second {fields.seconds[0]}" if fields.seconds[0] else ""


def _clock(moment: time) -> str:
    return moment.strftime("%H:%M:%S" if moment.second else "%H:%M")


# --- the date ------------------------------------------------------------------------------------


def _date(fields: Fields) -> str:
    found = [*_days_of_month(fields), *_weekdays(fields)]
    if found:
        return " and also ".join(found)
    return " ".join(filter(None, ("" if fields.is_hourly else "every day", _in_months(fields))))


def _days_of_month(fields: Fields) -> Iterator[str]:
    days = fields.days or ()
    others = ["the last day"] if fields.last_day else []
    others += [f"the weekday nearest the {ordinal(day)}" for day in fields.nearest]
    step = _step(days)
    if step > 1 and len(days) > 3 and not others:
        first, last = ordinal(days[0]), ordinal(days[-1])
        pace = f"every {number_words(step, 'day')} from the {first} to the {last}"
        yield f"{pace} of {_of_months(fields)}"
    elif days or others:
        named = [*_spans(days, lambda day: f"the {ordinal(day)}"), *others]
        yield f"on {joined(named)} of {_of_months(fields)}"


def _weekdays(fields: Fields) -> Iterator[str]:
    ordinals = {day for day, _ in fields.nth}
    weekly = [day for day in fields.weekdays or () if day not in ordinals]
    if len(weekly) == _WEEKDAYS.size:
        yield f"every day {_in_months(fields)}".rstrip()
    elif weekly:
        mondays_first = sorted((day - 1) % 7 for day in weekly)
        named = _spans(mondays_first, lambda day: f"{_WEEKDAY_NAMES[(day + 1) % 7]}s")
        yield f"on {joined(named)} {_in_months(fields)}".rstrip()
    if fields.nth:
        named = [f"the {_ORDINALS[nth]} {_WEEKDAY_NAMES[day]}" for day, nth in fields.nth]
        yield f"on {joined(named)} of {_of_months(fields)}"


def _of_months(fields: Fields) -> str:
    """What follows `on the 1st of`."""
    if len(fields.months) < 3 or not _is_run(fields.months):
        return joined([value_word(_MONTHS, month) for month in fields.months])
    return f"each month {_in_months(fields)}".rstrip()


def _in_months(fields: Fields) -> str:
    """What follows `on Mondays`; empty for all months."""
    months = [value_word(_MONTHS, month) for month in fields.months]
    if len(months) == _MONTHS.size:
        return ""
    if len(months) > 2 and _is_run(fields.months):
        return f"from {months[0]} to {months[-1]}"
    return f"in {joined(months)}"


# --- numbers -------------------------------------------------------------------------------------


def joined(words: Sequence[str], *, last: str = "and") -> str:
    """`a, b and c`."""
    *others, final = words
    return f"{', '.join(others)} {last} {final}" if others else final


def number_words(number: int | float, unit: str) -> str:
    """`1 day`, `7 minutes`."""
    return f"{number:g} {unit}" if number == 1 else f"{number:g} {unit}s"


def value_word(column: Column, number: int) -> str:
    """A number of a field as people call it: a month or weekday by its name."""
    if column is _MONTHS:
        return _MONTH_NAMES[number - 1]
    return _WEEKDAY_NAMES[number] if column is _WEEKDAYS else str(number)


def ordinal(number: int) -> str:
    """`1st`, `22nd`, `13th`."""
    last = 0 if number // 10 == 1 else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def span_words(seconds: float) -> str:
    """A duration: `1 hour 30 minutes`."""
    parts = []
    for unit, size in _LENGTHS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(number_words(count, unit))
    if seconds or not parts:
        parts.append(number_words(round(seconds, 3), "second"))
    return " ".join(parts)


def _each(step: int, unit: str) -> str:
    """What follows `every`: `minute`, `5 minutes`."""
    return unit if step == 1 else number_words(step, unit)


def _listed(column: Column, numbers: Sequence[int]) -> str:
    """`minute 5`, `minutes 3, 17 and 40 to 45`."""
    plural = "" if len(numbers) == 1 else "s"
    return f"{column.unit}{plural} {joined(_spans(numbers, str))}"


def _spans(numbers: Sequence[int], word: Callable[[int], str]) -> list[str]:
    """A word for each number; three and more in a row are `first to last`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [
        spelled
        for run in runs
        for spelled in ([f"{word(run[0])} to {word(run[-1])}"] if len(run) > 2 else map(word, run))
    ]


def _step(numbers: Sequence[int]) -> int:
    """The distance between all neighbours; 0 where it varies, or there are none."""
    steps = {b - a for a, b in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else 0


def _is_even(column: Column, numbers: Sequence[int]) -> bool:
    """Whether they keep the pace from one cycle to the next, from its beginning."""
    step = _step(numbers)
    return bool(step) and numbers[0] == column.least and numbers[-1] + step == column.most + 1


def _is_run(numbers: Sequence[int]) -> bool:
    return len(numbers) == 1 or _step(numbers) == 1
