"""Whatever was stored, a line stays a line and a terminal obeys nobody's data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfe.cli import text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("order:rocket:x:invoke", "order:rocket:x:invoke"),
        ("[/b] [bold]", "[/b] [bold]"),
        ("é é 👨‍👩‍👧 שלום % _ *", "é é 👨‍👩‍👧 שלום % _ *"),
        ("a\tb\nc\r", r"a\tb\nc\r"),
        ("\x1b[31mred\x07\x9b", r"\x1b[31mred\x07\x9b"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud800", r"\ud800"),
    ],
)
def test_control_characters_are_escaped_and_all_else_stays(raw: str, shown: str) -> None:
    assert text.safe(raw) == shown


def test_lines_stay_lines_where_they_may() -> None:
    assert text.safe_lines("a\n\tb\x1b") == "a\n    b\\x1b"


@given(st.text())
def test_json_made_safe_is_the_same_value_on_one_line(value: str) -> None:
    encoded = json.dumps(value, ensure_ascii=False)
    for ascii_only in (False, True):
        shown = text.safe_json(encoded, ascii_only=ascii_only)
        assert json.loads(shown) == value
        assert len(shown.splitlines()) == 1
        assert shown.isascii() or not ascii_only


def test_moments_are_printed_in_utc() -> None:
    moment = datetime(2026, 11, 30, 9, 0, 0, 1234, timezone(timedelta(hours=1)))
    assert text.iso(moment) == "2026-11-30T08:00:00.001Z"
    assert text.iso(None) == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, ""),
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.6, "1m00s"),
        (185, "3m05s"),
        (7800, "2h10m"),
        (367_200, "4d06h"),
        (300, "5m"),
        (7200, "2h"),
        (2_592_000, "30d"),
        (-1, "0.0s"),
    ],
)
def test_durations_are_short(seconds: float | None, shown: str) -> None:
    assert text.elapsed(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5s"), (720, "12m"), (11_000, "3h"), (800_000, "9d")]
)
def test_ages_are_coarse(seconds: float, shown: str) -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    assert text.age(now - timedelta(seconds=seconds), now) == shown


@pytest.mark.parametrize(
    ("name", "message", "shown"),
    [
        ("KeyError", "'b'", "KeyError: 'b'"),
        ("KeyboardInterrupt", "", "KeyboardInterrupt"),
        (None, "no truck", "no truck"),
        ("PermanentStepFailure", "no truck", "no truck"),
        ("PermanentStepFailure", "", "PermanentStepFailure"),
    ],
)
def test_a_failure_is_its_type_and_what_it_says_where_both_say_something(
    name: str | None, message: str, shown: str
) -> None:
    assert text.failure(name, message) == shown


PAGE = """\
A paragraph of words, which is filled anew where the line is too long for the terminal,
and goes on in a second line.

  first          what stands in columns goes on below the last one of them
  second         short
                 and goes on here

Short.
"""


def test_a_page_is_made_to_fit_a_narrow_terminal() -> None:
    assert text.fitted(PAGE, 50).split("\n") == [
        "A paragraph of words, which is filled anew where",
        "the line is too long for the terminal, and goes on",
        "in a second line.",
        "",
        "  first          what stands in columns goes on",
        "                 below the last one of them",
        "  second         short and goes on here",
        "",
        "Short.",
        "",
    ]


def test_a_page_that_fits_stays_as_it_is() -> None:
    assert text.fitted(PAGE, 100) == PAGE


@pytest.mark.parametrize(
    ("sentence", "lines"),
    [
        ("", [""]),
        ("It is short.", ["It is short."]),
        ("It is longer than a line.", ["It is longer than a", "line."]),
        ("a-word-that-is-longer-than-a-line it is", ["a-word-that-is-longer-than-a-line", "it is"]),
        ("See: wfe executions show order:1", ["See:", "wfe executions show order:1"]),
        ("See: wfe help cron", ["See: wfe help cron"]),
        ("字字字字 字字字字字 字", ["字字字字 字字字字字", "字"]),
    ],
)
def test_a_sentence_is_broken_between_words_and_a_command_never(
    sentence: str, lines: list[str]
) -> None:
    assert text.in_lines(sentence, 20) == lines
