"""Expressions: what may be written, what is refused and why, and what is warned of."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfe import InvalidSchedule, UsageError
from wfe.scheduling.cron import ALIASES, Cron

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def fires(expression: str, count: int = 3) -> list[str]:
    """The first fires of 2026."""
    found = islice(Cron.parse(expression).between(NEW_YEAR, NEW_YEAR.replace(year=2046)), count)
    return [fire.strftime("%m-%d %H:%M:%S") for fire in found]


def refused(expression: str, timezone: str = "UTC") -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as caught:
        Cron.parse(expression, timezone)
    return caught.value


def numbers(field: str, name: str = "minutes") -> tuple[int, ...]:
    column = ["minutes", "hours", "days", "months", "weekdays"].index(name)
    fields = ["*"] * 5
    fields[column] = field
    found: tuple[int, ...] = getattr(Cron.parse(" ".join(fields)).fields, name)
    return found


# --- what may be written -------------------------------------------------------------------------


def test_six_fields_begin_with_the_seconds() -> None:
    assert fires("15 30 3 * * *") == ["01-01 03:30:15", "01-02 03:30:15", "01-03 03:30:15"]
    assert fires("*/20 * * * * *") == ["01-01 00:00:20", "01-01 00:00:40", "01-01 00:01:00"]
    assert fires("30 3 * * *")[0] == "01-01 03:30:00"


def test_names_and_case_do_not_matter() -> None:
    assert fires("0 0 1 FEB,Mar *") == ["02-01 00:00:00", "03-01 00:00:00", "02-01 00:00:00"]
    assert numbers("mon-FRI", "weekdays") == numbers("1-5", "weekdays") == (1, 2, 3, 4, 5)
    assert numbers("7", "weekdays") == numbers("SUN", "weekdays") == (0,)


def test_spaces_between_fields_may_be_any() -> None:
    cron = Cron.parse(" 0\t3  * * *\n")
    assert cron.text == "0 3 * * *"
    assert cron.fields == Cron.parse("0 3 * * *").fields


@pytest.mark.parametrize("name", ALIASES)
def test_names_stand_for_expressions(name: str) -> None:
    assert Cron.parse(name).fields == Cron.parse(ALIASES[name]).fields
    assert Cron.parse(name.upper()).text == name.upper()


@pytest.mark.parametrize(
    ("field", "name", "found"),
    [
        ("59/15", "minutes", (59,)),
        ("45/15", "minutes", (45,)),
        ("5/20", "minutes", (5, 25, 45)),
        ("*/25", "minutes", (0, 25, 50)),
        ("10-40/15", "minutes", (10, 25, 40)),
        ("1,5,1", "minutes", (1, 5)),
        ("*,5", "minutes", tuple(range(60))),
        ("50-10/10", "minutes", (0, 10, 50)),
        ("22-2", "hours", (0, 1, 2, 22, 23)),
        ("DEC/3", "months", (12,)),
        ("NOV-FEB", "months", (1, 2, 11, 12)),
        ("0-7", "weekdays", (0, 1, 2, 3, 4, 5, 6)),
        ("FRI-SUN", "weekdays", (0, 5, 6)),
    ],
)
def test_fields_mean_what_they_say(field: str, name: str, found: tuple[int, ...]) -> None:
    assert numbers(field, name) == found


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("0 0 31 2 *", "there is no day 31 in February, so that it would never fire"),
        ("0 0 30,31 2 *", "there is no day 30 or 31 in February, so that it would never fire"),
        ("0 0 31 4,JUN *", "there is no day 31 in April or June, so that it would never fire"),
        ("R * * * *", "'R' in the minutes leaves the number to chance"),
        ("0 R(1-5) * * *", "'R(1-5)' in the hours leaves the number to chance"),
        ("H/15 * * * *", "'H/15' in the minutes leaves the number to a hash"),
        ("0 5-5 * * *", "'5-5' in the hours ends where it begins"),
        ("0 0 * * 1-MON", "'1-MON' in the weekdays ends where it begins"),
        ("0 0 * * 7-7", "'7-7' in the weekdays ends where it begins"),
        ("60 * * * *", "the minutes cannot be '60': they are 0 to 59"),
        ("60 * * * * *", "the seconds cannot be '60': they are 0 to 59"),
        ("0 24 * * *", "the hours cannot be '24': they are 0 to 23"),
        ("0 0 * FEBRUARY *", "the months cannot be 'FEBRUARY': they are 1 to 12 or JAN to DEC"),
        ("1,,2 * * * *", "the minutes cannot be '': they are 0 to 59"),
        ("*/0 * * * *", "the minutes cannot be '*/0': they are 0 to 59"),
        ("-5 * * * *", "the minutes cannot be '-5': they are 0 to 59"),
        ("5/ * * * *", "the minutes cannot be '5/': they are 0 to 59"),
        ("0 3 * *", "it has 4 fields; five are due, or six that begin with the seconds"),
        ("0 3 * * * * 2026", "it has 7 fields; five are due, or six that begin with the seconds"),
        ("", "it has 0 fields; five are due, or six that begin with the seconds"),
        ("@reboot", "there is no such name"),
    ],
)
def test_what_means_nothing_is_refused_with_the_reason(expression: str, reason: str) -> None:
    error = refused(expression)
    assert (error.expression, error.reason) == (expression, reason)
    assert isinstance(error, UsageError)
    assert (error.code, error.exit_code) == ("invalid_schedule", 2)
    assert error.hint


def test_the_reason_names_what_there_is() -> None:
    assert "0 to 7 (0 and 7 are Sunday) or SUN to SAT" in refused("0 0 * * MONDAY").reason
    assert "1 to 31, L for the last one" in refused("0 0 0 * *").reason


def test_an_impossible_day_of_the_month_beside_a_weekday_still_fires() -> None:
    assert fires("0 0 31 2 MON", 2) == ["02-02 00:00:00", "02-09 00:00:00"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Lodnon", "Did you mean Europe/London or "),
        ("london", "Did you mean Europe/London?"),
        ("new york", "Did you mean America/New_York?"),
        ("EUROPE/LONDON", "Did you mean Europe/London?"),
        ("", "Write one like Europe/London."),
        ("Europe", "Did you mean"),
        ("../../etc/passwd", "Write one like Europe/London."),
        ("a\0b", "Write one like Europe/London."),
        ("x" * 400, "Write one like Europe/London."),
    ],
)
def test_an_unknown_zone_is_refused_with_near_names(name: str, hint: str) -> None:
    error = refused("0 3 * * *", name)
    assert error.reason == f"there is no time zone {name!r}"
    assert error.hint.startswith(hint)


def test_a_misspelled_name_is_refused_with_near_names() -> None:
    assert refused("@dayly").hint == "Did you mean @daily or @yearly?"
    assert refused("@every").hint.startswith("Did you mean @every 90s")


@given(
    st.lists(st.text("0123456789*/-,LWRH#?@jan monfri.\u0663'", max_size=8), max_size=7)
    | st.lists(st.text(max_size=4), max_size=6)
)
def test_whatever_is_written_is_read_or_refused(parts: list[str]) -> None:
    try:
        cron = Cron.parse(" ".join(parts))
    except InvalidSchedule:
        return
    assert cron.describe()
    assert cron.next(NEW_YEAR) is not None


# --- what is warned of ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        (
            "*/90 * * * *",
            (
                "'*/90' in the minutes is only 0, as counting begins anew with each hour: that is "
                "hourly at most, not every 90 minutes. For an even pace write '@every 90m'."
            ),
        ),
        (
            "59/15 * * * *",
            (
                "'59/15' in the minutes is only 59, as counting begins anew with each hour: that is "
                "hourly at most, not every 15 minutes. For an even pace write '@every 15m'."
            ),
        ),
        ("6/1 * * * *", "'6/1' in the minutes means each minute from 6 to 59, not only 6."),
        (
            "*/7 * * * *",
            (
                "'*/7' in the minutes is uneven: after 56 comes 0 of the next hour, 4 minutes later. "
                "For an even pace write '@every 7m'."
            ),
        ),
        (
            "20/15 * * * *",
            (
                "'20/15' in the minutes is uneven: after 50 comes 20 of the next hour, 30 minutes "
                "later. For an even pace write '@every 15m'."
            ),
        ),
        (
            "0 */23 * * *",
            (
                "'*/23' in the hours is uneven: after 23 comes 0 of the next day, 1 hour later. For "
                "an even pace write '@every 23h'."
            ),
        ),
        (
            "0 0 */2 * *",
            (
                "'*/2' in the days of the month counts anew from 1 with each month, so that the last "
                "one of a month and the first one of the next are not 2 days apart."
            ),
        ),
        (
            "0 0 1 */5 *",
            (
                "'*/5' in the months is uneven: after November comes January of the next year, "
                "2 months later."
            ),
        ),
        (
            "0 0 * * */2",
            (
                "'*/2' in the weekdays is uneven: after Saturday comes Sunday of the next week, "
                "1 day later."
            ),
        ),
        (
            "0 0 * 12/3 *",
            (
                "'12/3' in the months is only December, as counting begins anew with each year: that "
                "is yearly at most, not every 3 months."
            ),
        ),
        (
            "0 9-10/5 * * *",
            "'9-10/5' in the hours is only 9, as the next one would be beyond its end.",
        ),
        (
            "0 0 13 * FRI",
            (
                "It names days of the month and weekdays: it fires on a date where either fits, not "
                "only where both do."
            ),
        ),
        (
            "0 0 31 * *",
            (
                "Not every month it names has a day 31: those without are passed over. The last day "
                "of a month is written L."
            ),
        ),
        ("0 0 29 2 *", "The 29th of February comes in leap years only."),
    ],
)
def test_what_may_not_be_meant_is_said(expression: str, warning: str) -> None:
    assert Cron.parse(expression).warnings == (warning,)


def test_each_doubt_is_said() -> None:
    assert len(Cron.parse("*/90 */7 13 * FRI").warnings) == 3


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *",
        "*/1 */1 */1 */1 */1",
        "*/5 * * * *",
        "5/20 * * * *",
        "10-50/15 * * * *",
        "0 */6 * * *",
        "0 9-17 * * MON-FRI",
        "0 9-17/3 * * *",
        "0 0 1,15 * *",
        "0 0 31 1,3 *",
        "0 0 30,L * *",
        "0 0 1 */3 *",
        "@weekly",
    ],
)
def test_what_is_plain_is_not_commented(expression: str) -> None:
    assert Cron.parse(expression).warnings == ()
