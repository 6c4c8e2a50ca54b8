"""Expressions and durations in words."""

from __future__ import annotations

import pytest

from wfe.scheduling.cron import Cron
from wfe.scheduling.words import ordinal, span_words


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        # Of every hour.
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0 * * * *", "every hour, on the hour"),
        ("5 * * * *", "at minute 5 of every hour"),
        ("15 5 * * * *", "at minute 5 of every hour, at second 15"),
        ("*/7 * * * *", "every 7 minutes from minute 0 to 56 of every hour"),
        ("59/15 * * * *", "at minute 59 of every hour"),
        ("6/1 * * * *", "every minute from minute 6 to 59 of every hour"),
        ("5/20 * * * *", "at minutes 5, 25 and 45 of every hour"),
        ("3,17,40 * * * *", "at minutes 3, 17 and 40 of every hour"),
        ("1,5-9,30 * * * *", "at minutes 1, 5 to 9 and 30 of every hour"),
        ("*/5 * 24 12 *", "every 5 minutes on the 24th of December"),
        ("* * * 6 *", "every minute in June"),
        # Of some hours.
        ("0 3 * * *", "at 03:00 every day"),
        ("30 9,17 * * *", "at 09:30 and 17:30 every day"),
        ("*/20 3 * * *", "at 03:00, 03:20 and 03:40 every day"),
        ("0 */2 * * *", "every 2 hours from 00:00 to 22:00 every day"),
        ("30 9-17 * * *", "every hour from 09:30 to 17:30 every day"),
        ("* 5 * * *", "every minute from 05:00 to 05:59 every day"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:45 on Mondays to Fridays"),
        ("*/10 1,5,9 * * *", "every 10 minutes in hours 1, 5 and 9 every day"),
        ("7,8,9 1,5,9 * * *", "at minutes 7 to 9 in hours 1, 5 and 9 every day"),
        ("1 2,3,5,7,11 * * *", "at 02:01, 03:01, 05:01, 07:01 and 11:01 every day"),
        ("15 0 3 * * *", "at 03:00:15 every day"),
        # Seconds.
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("5,20 * * * * *", "at seconds 5 and 20 of every minute"),
        ("*/10 * 9-17 * * *", "every 10 seconds from 09:00 to 17:59 every day"),
        ("*/10 0 3 * * *", "every 10 seconds in minute 0 of hour 3 every day"),
        ("*/10 0,5 * * * *", "every 10 seconds in minutes 0 and 5 of every hour"),
        ("*/10 * 3,5 * * *", "every 10 seconds in hours 3 and 5 every day"),
        # Dates.
        ("0 3 1 * *", "at 03:00 on the 1st of each month"),
        ("0 3 1,15 * *", "at 03:00 on the 1st and the 15th of each month"),
        ("0 3 1-7 * *", "at 03:00 on the 1st to the 7th of each month"),
        ("0 3 */2 * *", "at 03:00 every 2 days from the 1st to the 31st of each month"),
        ("0 3 15,L * *", "at 03:00 on the 15th and the last day of each month"),
        ("0 3 15W * *", "at 03:00 on the weekday nearest the 15th of each month"),
        ("0 3 1 1 *", "at 03:00 on the 1st of January"),
        ("0 3 1 JAN,JUL *", "at 03:00 on the 1st of January and July"),
        ("0 3 1 3-10 *", "at 03:00 on the 1st of each month from March to October"),
        ("0 3 * 1,7 *", "at 03:00 every day in January and July"),
        ("0 3 * JAN-MAR *", "at 03:00 every day from January to March"),
        ("0 3 * * SUN", "at 03:00 on Sundays"),
        ("0 3 * * 0,6", "at 03:00 on Saturdays and Sundays"),
        ("0 3 * JAN-MAR MON", "at 03:00 on Mondays from January to March"),
        ("0 3 * * FRI#2", "at 03:00 on the second Friday of each month"),
        ("0 3 * 6 L5", "at 03:00 on the last Friday of June"),
        ("0 3 * * FRI#2,MON", "at 03:00 on Mondays and also on the second Friday of each month"),
        ("0 3 13 * FRI", "at 03:00 on the 13th of each month and also on Fridays"),
        ("0 3 1 * 0-6", "at 03:00 on the 1st of each month and also every day"),
        ("@weekly", "at 00:00 on Sundays"),
    ],
)
def test_an_expression_in_words(expression: str, words: str) -> None:
    assert Cron.parse(expression).describe() == words


def test_ordinals() -> None:
    found = [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31)]
    expected = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 31st"
    assert " ".join(found) == expected


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (0.25, "0.25 seconds"),
        (90, "1 minute 30 seconds"),
        (7200, "2 hours"),
        (5400, "1 hour 30 minutes"),
        (7 * 86_400 + 1, "7 days 1 second"),
    ],
)
def test_a_duration_in_words(seconds: float, words: str) -> None:
    assert span_words(seconds) == words
