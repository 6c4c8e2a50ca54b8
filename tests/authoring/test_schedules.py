"""`Schedule` and the option `schedule`: what is accepted, and what is refused where it is written."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfe import InvalidOption, Schedule, step, workflow
from wfe.authoring import schedules
from wfe.scheduling.cron import Cron

from .support import composed, line_of, place, refused

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@step
def work() -> None: ...


def body() -> None:
    work()


def test_a_workflow_has_a_schedule_or_none() -> None:
    schedule = Schedule(cron="0 3 * * *", timezone="Europe/London", number_of_executions=3)
    assert composed(body, schedule=schedule).schedule is schedule
    assert composed(body, schedule="0 3 * * *").schedule == Schedule(cron="0 3 * * *")
    assert composed(body).schedule is composed(body, schedule=None).schedule is None


def test_the_schedule_is_no_part_of_the_definition() -> None:
    scheduled, other = composed(body, schedule="@daily"), composed(body)
    assert scheduled.flow == other.flow
    assert scheduled.options == other.options


def test_what_is_left_out_has_these_defaults() -> None:
    assert Schedule(interval=90) == Schedule(
        cron=None,
        interval=90.0,
        timezone="UTC",
        concurrency="forbid",
        number_of_executions=None,
        input=None,
        jitter=0.0,
        catch_up="last",
        start=None,
        end=None,
    )


@dataclass
class Order:
    id: str
    due: datetime


def test_it_is_plain_data_that_comes_back_from_json() -> None:
    schedule = Schedule(interval=90, jitter=5, input=Order("a", NEW_YEAR), start=NEW_YEAR)
    assert (type(schedule.interval), type(schedule.jitter)) == (float, float)
    assert schedule.input == {"id": "a", "due": "2026-01-01T00:00:00Z"}
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule


def test_what_it_is_given_cannot_be_changed_later() -> None:
    given = {"full": True}
    schedule = Schedule(interval=90, input=given)
    given["full"] = False
    assert schedule.input == {"full": True}
    with pytest.raises(AttributeError):
        schedule.interval = 1  # type: ignore[misc]  # as tested


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("cron", "", "a cron expression, as text"),
        ("cron", 5, "a cron expression, as text"),
        ("interval", 0, "a number of seconds from 0.001 on"),
        ("interval", float("inf"), "a number of seconds from 0.001 on"),
        ("interval", "90s", "a number of seconds from 0.001 on"),
        ("interval", True, "a number of seconds from 0.001 on"),
        ("timezone", None, "the name of a time zone, as text"),
        ("concurrency", "skip", "'forbid' or 'allow'"),
        ("number_of_executions", 0, "a whole number from 1 on, or None"),
        ("number_of_executions", 2.0, "a whole number from 1 on, or None"),
        ("jitter", -1, "a number of seconds from 0 on"),
        ("jitter", None, "a number of seconds from 0 on"),
        ("catch_up", True, "'none' or 'last' or 'all'"),
        ("start", NEW_YEAR.replace(tzinfo=None), "a datetime with a time zone, or None"),
        ("end", "2026-01-01", "a datetime with a time zone, or None"),
    ],
)
def test_a_value_out_of_range_is_refused_where_it_is_written(
    name: str, value: Any, wanted: str
) -> None:
    timing = {} if name in ("cron", "interval") else {"interval": 90}

    def define() -> None:
        Schedule(**{name: value, **timing})

    error = refused(define, InvalidOption)
    assert error.message == f"{name}={value!r}: it must be {wanted}."
    assert place(error) == line_of(define, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "A schedule has either a cron expression or an interval."),
        (
            {"cron": "@daily", "interval": 90},
            "A schedule has either a cron expression or an interval.",
        ),
        (
            {"interval": 90, "jitter": 90},
            "jitter=90: it must be less than the interval, 90.",
        ),
        (
            {"cron": "@daily", "start": NEW_YEAR, "end": NEW_YEAR - timedelta(days=1)},
            "The schedule ends before it starts.",
        ),
        (
            {"cron": "@daily", "input": {"rate": float("nan")}},
            "The input cannot be stored: NaN (JSON has none; return None or a text instead) at $.rate.",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Any], message: str) -> None:
    error = refused(lambda: Schedule(**fields), InvalidOption)
    assert message in error.message
    assert place(error)[0] == __file__


@pytest.mark.parametrize("given", [90, {"cron": "0 3 * * *", "numberOfExecutions": 3}, ["@daily"]])
def test_the_option_is_an_expression_or_a_schedule(given: Any) -> None:
    error = refused(lambda: workflow("w", schedule=given), InvalidOption)
    assert error.message == (
        f'schedule={given!r}: it must be a cron expression such as "0 3 * * *", or a Schedule.'
    )
    assert place(error)[0] == __file__


def test_an_empty_expression_is_refused_at_the_line_of_the_workflow() -> None:
    def define() -> None:
        workflow("w", schedule=" ")

    assert place(refused(define, InvalidOption)) == line_of(define, 1)


def test_a_misspelled_option_is_refused_with_near_names() -> None:
    error = refused(lambda: workflow("w", shedule="@daily"), InvalidOption)  # type: ignore[call-overload]  # as tested
    assert error.hint == "Did you mean schedule?"


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (Schedule(cron="0 0 31 2 *"), "The schedule '0 0 31 2 *' is refused"),
        (Schedule(cron="every day"), "is refused"),
        (Schedule(cron="0 3 * * *", timezone="Mars/Base"), "there is no time zone 'Mars/Base'"),
        (Schedule(cron="* * * * *", jitter=60), "its jitter, 60 seconds"),
        (
            Schedule(cron="0 3 2 2 *", start=NEW_YEAR, end=NEW_YEAR + timedelta(days=31)),
            "it never fires between ",
        ),
    ],
)
def test_a_schedule_that_cannot_fire_is_refused_at_the_line_of_the_workflow(
    schedule: Schedule, said: str
) -> None:
    def define() -> None:
        workflow("w", schedule=schedule)

    error = refused(define, InvalidOption)
    assert place(error) == line_of(define, 1)
    assert said in error.message


@settings(max_examples=50, deadline=None)
@given(text=st.from_regex(schedules._USUAL, fullmatch=True))
def test_usual_expressions_need_not_be_read_to_know_that_they_fire(text: str) -> None:
    assert Cron.parse(text).next(NEW_YEAR) is not None


def test_a_workflow_with_a_usual_schedule_loads_nothing_that_reads_expressions() -> None:
    script = (
        "import sys\n"
        "from wfe import Schedule, step, workflow\n"
        "@step\n"
        "def work(): ...\n"
        "@workflow('w', schedule=Schedule(cron='30 3 * * 1-5'))\n"
        "def w(): work()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert schedules.__name__ in loaded
    assert not {"croniter", "zoneinfo", "dateutil"} & loaded
    assert not any(name.startswith("wfe.scheduling") for name in loaded)
