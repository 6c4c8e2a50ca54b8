"""The file of the weather report: every row is checked, and every complaint names line and column."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from wfe import PermanentStepFailure

COLUMNS = ["date", "precipitation", "temp_max", "temp_min", "wind", "weather"]
#: What each number may be: millimetres, degrees Celsius, metres per second.
RANGES = {
    "precipitation": (0.0, 2000.0),
    "temp_max": (-95.0, 60.0),
    "temp_min": (-95.0, 60.0),
    "wind": (0.0, 120.0),
}
#: So many bad rows are named; the rest are counted.
NAMED_ROWS = 5


class Day(NamedTuple):
    date: str
    precipitation: float
    temp_max: float
    temp_min: float
    wind: float
    weather: str


def parse_number(column: str, text: str) -> float:
    low, high = RANGES[column]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise ValueError(f"column {column}: {text!r} is not a number from {low:g} to {high:g}")
    return value


def parse_day(row: list[str]) -> Day:
    """One day; ValueError says which column is wrong."""
    if len(row) != len(COLUMNS):
        raise ValueError(f"{len(row)} columns instead of {len(COLUMNS)}")
    try:
        year, month, day = map(int, row[0].split("/"))
        moment = date(year, month, day)
    except ValueError:
        raise ValueError(f"column date: {row[0]!r} is not a date such as 2012/01/31") from None
    rain, high, low, wind = map(parse_number, COLUMNS[1:5], row[1:5])
    if low > high:
        raise ValueError(f"column temp_min: {row[3]} is above temp_max {row[2]}")
    if not row[5].strip() or not row[5].isprintable():
        raise ValueError(f"column weather: {row[5]!r} is no word")
    return Day(moment.isoformat(), rain, high, low, wind, row[5])


def numbered(path: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows below the heading that are not blank, each with the number of its first line."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in rows:
            if line == 1 and row != COLUMNS:
                raise PermanentStepFailure(f"{path}: line 1 must read {','.join(COLUMNS)}")
            if line > 1 and row:
                yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise PermanentStepFailure(f"{path}: line {line}: {error}") from error


def read(path: str) -> tuple[list[Day], str]:
    """The days of a file, and the SHA-256 of its content."""
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise PermanentStepFailure(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PermanentStepFailure(f"{path} cannot be read: it is no UTF-8 text") from error
    days: dict[str, Day] = {}
    bad: list[str] = []
    for line, row in numbered(path, text):
        try:
            day = parse_day(row)
            if day.date in days:
                raise ValueError(f"column date: {row[0]} appears twice")
            days[day.date] = day
        except ValueError as error:
            bad.append(f"line {line}, {error}")
    if bad:
        more = f"; and {len(bad) - NAMED_ROWS} more" if len(bad) > NAMED_ROWS else ""
        raise PermanentStepFailure(f"{path}: {'; '.join(bad[:NAMED_ROWS])}{more}")
    if not days:
        raise PermanentStepFailure(f"{path} holds no day")
    return list(days.values()), hashlib.sha256(content).hexdigest()
