"""`wfe schedules preview` and `wfe help cron`."""

from __future__ import annotations

import csv
import io
import re
from datetime import datetime, timedelta

import pytest

from tests.project import Project

FLOWS = """
from datetime import UTC, datetime
from wfe import Schedule, step, workflow

@step
def work() -> None: ...

@workflow("nightly", schedule=Schedule(cron="30 1 * * *", timezone="Europe/London"))
def nightly():
    work()

@workflow("pulse", schedule=Schedule(
    interval=90, start=datetime(2030, 1, 1, tzinfo=UTC), end=datetime(2030, 1, 1, 0, 3, tzinfo=UTC),
))
def pulse():
    work()

@workflow("by-hand")
def by_hand():
    work()
"""


@pytest.fixture
def scheduled(project: Project) -> Project:
    project.write("workflows/flows.py", FLOWS)
    return project


def preview(project: Project, *arguments: str) -> list[list[str]]:
    """The lines in a pipe, as cells."""
    ended = project.wfe("schedules", "preview", *arguments)
    assert (ended.code, ended.err) == (0, "")
    return [line.split("\t") for line in ended.lines]


LONDON = ("30 1 * * *", "--tz", "Europe/London", "-n", "2")


def test_a_pipe_gets_the_expression_in_words_and_a_line_for_each_fire(project: Project) -> None:
    assert preview(project, *LONDON, "--from", "2026-03-28T12:00Z") == [
        ["expression", "30 1 * * *"],
        ["description", "at 01:30 every day"],
        ["timezone", "Europe/London"],
        [
            "fire",
            "2026-03-29T02:00:00.000+01:00",
            "2026-03-29T01:00:00.000Z",
            "clocks go forward: 01:30 does not exist, fires at 02:00",
        ],
        ["fire", "2026-03-30T01:30:00.000+01:00", "2026-03-30T00:30:00.000Z"],
    ]
    assert not project.db.exists()


def test_a_pipe_gets_a_line_for_each_warning(project: Project) -> None:
    lines = preview(project, "*/90 */7 13 * FRI")
    warnings = [line[1] for line in lines if line[0] == "warning"]
    assert len(warnings) == 3
    assert "that is hourly at most, not every 90 minutes" in warnings[0]


def test_the_fires_are_ten_from_now_on_unless_it_is_said(project: Project) -> None:
    assert len([line for line in preview(project, "* * * * *") if line[0] == "fire"]) == 10
    (fire,) = [
        line
        for line in preview(project, "0 3 * * *", "-n1", "--from", "2026-01-01T03:00Z")
        if line[0] == "fire"
    ]
    assert fire[2] == "2026-01-01T03:00:00.000Z", "the first moment counts"


def test_every_format_holds_the_same_fires(project: Project) -> None:
    arguments = ("schedules", "preview", *LONDON, "--from", "2026-10-25T00:00Z")
    document = project.wfe(*arguments, "-o", "json").document
    assert document == {
        "expression": "30 1 * * *",
        "description": "at 01:30 every day",
        "timezone": "Europe/London",
        "warnings": [],
        "fires": [
            {
                "local": "2026-10-25T01:30:00.000+01:00",
                "utc": "2026-10-25T00:30:00.000Z",
                "remarks": ["clocks go back: 01:30 comes twice, fires the first time only"],
            },
            {
                "local": "2026-10-26T01:30:00.000+00:00",
                "utc": "2026-10-26T01:30:00.000Z",
                "remarks": [],
            },
        ],
    }
    lines = project.wfe(*arguments, "-o", "jsonl").lines
    assert len(lines) == 2
    rows = list(csv.DictReader(io.StringIO(project.wfe(*arguments, "-o", "csv").out)))
    assert [row["utc"] for row in rows] == [fire["utc"] for fire in document["fires"]]
    assert rows[0]["remarks"] == document["fires"][0]["remarks"][0]


def test_what_lists_only_fires_tells_warnings_on_stderr(project: Project) -> None:
    for output in ("jsonl", "csv"):
        ended = project.wfe("schedules", "preview", "*/90 * * * *", "-o", output)
        assert ended.err.startswith("warning: '*/90' in the minutes is only 0")
    ended = project.wfe("schedules", "preview", "*/90 * * * *", "-o", "json")
    assert (ended.err, len(ended.document["warnings"])) == ("", 1)


def test_a_workflow_is_previewed_by_its_name(scheduled: Project) -> None:
    start = ("--from", "2026-03-29T00:00Z", "-n", "1")
    lines = preview(scheduled, "nightly", *start)
    assert lines[2:4] == [
        ["timezone", "Europe/London"],
        [
            "fire",
            "2026-03-29T02:00:00.000+01:00",
            "2026-03-29T01:00:00.000Z",
            "clocks go forward: 01:30 does not exist, fires at 02:00",
        ],
    ]
    lines = preview(scheduled, "workflows/flows.py:nightly", *start, "--tz", "Asia/Tokyo")
    assert lines[2:] == [
        ["timezone", "Asia/Tokyo"],
        ["fire", "2026-03-30T01:30:00.000+09:00", "2026-03-29T16:30:00.000Z"],
    ]


def test_one_that_was_served_is_previewed_by_its_name(scheduled: Project) -> None:
    served = ("--every", "1s", "--max", "1", "--name", "often")
    assert scheduled.execute("schedule", "by-hand", *served).code == 0
    lines = preview(scheduled, "often", "-n", "1", "--tz", "Asia/Tokyo")
    assert lines[0] == ["expression", "@every 1s"]
    assert lines[2] == ["timezone", "Asia/Tokyo"]
    assert scheduled.wfe("schedules", "preview", "oftn").code == 3


def test_the_interval_of_one_that_was_served_is_counted_from_then(scheduled: Project) -> None:
    served = ("--every", "0.7s", "--max", "1", "--name", "often")
    assert scheduled.execute("schedule", "by-hand", *served).code == 0
    (tick,) = scheduled.wfe("schedules", "ticks", "often", "-o", "json").document
    came = datetime.fromisoformat(tick["scheduled_for"])
    (*_, fire) = preview(scheduled, "often", "-n", "1")
    passed = datetime.fromisoformat(fire[2]) - came
    assert passed % timedelta(seconds=0.7) == timedelta()


@pytest.mark.parametrize("expression", ["0 3 * * *", "* * * * *", "@every 1h"])
def test_the_end_of_the_calendar_is_the_end_of_every_schedule(
    project: Project, expression: str
) -> None:
    ended = project.wfe(
        "schedules", "preview", expression, "--tz", "Asia/Tokyo", "--from", "9999-12-31T00:00Z"
    )
    assert (ended.code, ended.err) == (0, "It fires no more.\n")


def test_a_schedule_that_ends_says_so(scheduled: Project) -> None:
    ended = scheduled.wfe("schedules", "preview", "pulse", "--from", "2029-01-01")
    fires = [line.split("\t")[2] for line in ended.lines if line.startswith("fire")]
    assert fires == [f"2030-01-01T00:0{clock}.000Z" for clock in ("0:00", "1:30", "3:00")]
    assert (ended.code, ended.err) == (0, "It fires no more after that.\n")
    ended = scheduled.wfe("schedules", "preview", "pulse", "--from", "2031-01-01", "-o", "json")
    assert (ended.document["fires"], ended.err) == ([], "It fires no more.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["0 0 31 2 *"], "invalid_schedule", "there is no day 31 in February"),
        (["R * * * *"], "invalid_schedule", "leaves the number to chance"),
        (["@every 5x"], "invalid_schedule", "an interval reads @every 90s"),
        ([""], "invalid_schedule", "it is empty"),
        (["0 3 * * *", "--tz", "london"], "invalid_schedule", "there is no time zone 'london'"),
        (["@every 90s", "--tz", "london"], "invalid_schedule", "there is no time zone 'london'"),
        (["0 3 * * *", "--tz", ""], "usage", "--tz is empty."),
        (["by-hand"], "usage", "The workflow 'by-hand' has no schedule."),
        (["@daily", "-n", "0"], "usage", "-n is a whole number from 1 on."),
        (["@daily", "--from", "soon"], "usage", "--from 'soon' is no moment."),
        (["@daily", "-o", "key"], "usage", "There is no output 'key' here."),
    ],
)
def test_what_cannot_be_previewed_is_refused(
    scheduled: Project, arguments: list[str], code: str, problem: str
) -> None:
    ended = scheduled.wfe("schedules", "preview", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
    if "-o" not in arguments:
        document = scheduled.wfe("schedules", "preview", *arguments, "-o", "json").document
        assert document["error"]["code"] == code


def test_an_unknown_workflow_ends_with_3_and_near_names(scheduled: Project) -> None:
    ended = scheduled.wfe("schedules", "preview", "nigthly")
    assert ended.code == 3
    assert "Did you mean nightly?" in ended.err


def test_an_expression_needs_no_workflows(project: Project) -> None:
    project.write("workflows/broken.py", "raise SystemExit('user code was run')")
    assert preview(project, "@daily", "-n1")[1] == ["description", "at 00:00 every day"]


def drawn(project: Project, *arguments: str) -> list[str]:
    """What stands on a terminal."""
    ended = project.wfe("schedules", "preview", *arguments, "--color", "always")
    assert ended.code == 0
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", ended.out).splitlines()]


@pytest.mark.parametrize("width", [50, 120])
def test_a_person_sees_both_clocks_and_remarks_beside_or_below(
    project: Project, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    remark = "clocks go forward: 01:30 does not exist, fires at 02:00"
    first = "Sun 2026-03-29 02:00 BST  Sun 2026-03-29 01:00"
    lines = drawn(project, *LONDON, "--from", "2026-03-28T12:00Z")
    assert lines[:4] == [
        "30 1 * * *",
        "  at 01:30 every day (Europe/London)",
        "",
        "LOCAL                     UTC",
    ]
    if width == 120:
        assert lines[4] == f"{first}  {remark}"
    else:
        assert lines[4] == first
        assert " ".join(line.strip() for line in lines[5:7]) == remark
        assert all(len(line) <= width for line in lines)
    assert "Mon 2026-03-30 01:30 BST  Mon 2026-03-30 00:30" in lines


def test_a_person_sees_one_clock_where_it_is_that_of_utc(project: Project) -> None:
    lines = drawn(project, "15 30 3 * * *", "-n1", "--from", "2026-01-01T00:00Z")
    assert lines[1:5] == [
        "  at 03:30:15 every day (UTC)",
        "",
        "UTC",
        "Thu 2026-01-01 03:30:15",
    ]


def test_a_person_sees_seconds_of_every_fire_or_of_none(project: Project) -> None:
    lines = drawn(project, "@every 90s", "-n3", "--from", "2026-01-01T00:00Z")
    assert [line.rpartition(" ")[2] for line in lines[4:7]] == ["00:01:30", "00:03:00", "00:04:30"]


def test_a_person_is_told_what_may_not_be_meant(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = drawn(project, "59/15 * * * *", "-n1")
    assert lines[2].startswith("  Note: '59/15' in the minutes is only 59,")
    assert all(len(line) <= 60 for line in lines)


def test_help_tells_what_may_be_written(project: Project) -> None:
    text = project.wfe("help", "cron").out
    assert "six fields: the first one is the seconds" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "cron" in project.wfe("help").out
    for line in text.splitlines():
        if line.startswith("  ") and "  " in line[2:]:
            expression = line[2:].split("   ")[0]
            if expression.startswith(("@", "0 ", "*/10 ")):
                assert project.wfe("schedules", "preview", expression, "-n1").code == 0
