"""What a person types becomes the value that is meant, or one sentence."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wfe import Workflow, step, workflow
from wfe.authoring.registry import Registry
from wfe.authoring.responses import NOT_GIVEN
from wfe.cli.inputs import fitted, json_value, moment, seconds, workflow_input
from wfe.errors import InvalidInput, UsageError

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def test_without_input_and_parameters_nothing_is_given() -> None:
    assert workflow_input(None, []) is NOT_GIVEN
    assert workflow_input("null", []) is None


def test_input_is_json_from_the_line_a_file_or_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'["a", 18446744073709551616]')))
    assert workflow_input('{"A":1,"B":2}', []) == {"A": 1, "B": 2}
    assert workflow_input(f"@{tmp_path}/order.json", []) == {"a": 1}
    assert workflow_input("-", []) == ["a", 2**64]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n=3", {"n": 3}),
        ("n=03", {"n": "03"}),
        ("gift=true", {"gift": True}),
        ("name=kim", {"name": "kim"}),
        ("name=", {"name": ""}),
        ('name="3"', {"name": "3"}),
        ("a.b.c=1", {"a": {"b": {"c": 1}}}),
        ("url=http://x?a=b", {"url": "http://x?a=b"}),
        ("rate=NaN", {"rate": "NaN"}),
    ],
)
def test_a_parameter_is_json_if_it_parses_else_text(parameter: str, value: Any) -> None:
    assert workflow_input(None, [parameter]) == value


def test_parameters_go_into_the_given_object_and_the_last_one_wins() -> None:
    given = workflow_input('{"a": {"b": 1}, "c": 2}', ["a.d=3", "c=4", "c=5"])
    assert given == {"a": {"b": 1, "d": 3}, "c": 5}


def test_a_parameter_may_be_a_files_text_which_is_json_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b'1,"a\r\nb"\r\n')
    (tmp_path / "rows.json").write_text("[1, 2]")
    given = workflow_input(None, [f"csv=@{tmp_path}/rows.csv", f"json=@{tmp_path}/rows.json"])
    assert given == {"csv": '1,"a\r\nb"\r\n', "json": [1, 2]}


@pytest.mark.parametrize(
    ("json", "parameters", "problem"),
    [
        ("{", [], "--input is not JSON: .*: {"),
        ("kim", [], "--input is not JSON"),
        ("NaN", [], "--input is not JSON"),
        ("[" * 100_000, [], "nested too deep"),
        ("\ud800", [], "no UTF-8 text"),
        ("@/no/such/file.json", [], "cannot read '/no/such/file.json': No such file"),
        ("@/", [], "cannot read '/': Is a directory"),
        ("[1]", ["a=1"], "--input is none"),
        (None, ["a"], "does not read key=value"),
        (None, ["=1"], "does not read key=value"),
        (None, ["a..b=1"], "does not read key=value"),
        (None, ["a=1", "a.b=2"], "goes into 'a', which is no object"),
        (None, ["a=@/no/such/file"], "-p a: cannot read"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    json: str | None, parameters: list[str], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        workflow_input(json, parameters)


def test_json_that_is_refused_is_shown_shortened() -> None:
    with pytest.raises(UsageError) as refused:
        json_value("[" + "x" * 1000, "--response")
    assert len(refused.value.message) < 150


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h ago", NOW - timedelta(hours=2)),
        ("90s", NOW - timedelta(seconds=90)),
        ("2026-11-29T08:00:00Z", NOW - timedelta(days=1)),
        ("2026-11-29T09:00:00+01:00", NOW - timedelta(days=1)),
    ],
)
def test_moments_are_relative_or_iso(text: str, expected: datetime) -> None:
    assert moment(text, "--since", NOW) == expected


def test_a_moment_without_a_zone_is_local() -> None:
    local = datetime(2026, 11, 29).astimezone()
    assert moment("2026-11-29", "--since", NOW) == local


@pytest.mark.parametrize("text", ["", "soon", "2026", "2026-13-01", "99999999999999d"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no moment"):
        moment(text, "--since", NOW)


def test_what_is_no_duration_is_refused_with_its_flag() -> None:
    assert seconds(None, "--timeout") is None
    assert seconds("2m", "--timeout") == 120
    with pytest.raises(UsageError, match="--timeout: 'soon' is no duration"):
        seconds("soon", "--timeout")


def test_an_empty_answer_is_called_empty_and_no_answer_is_pointed_at_parameters() -> None:
    with pytest.raises(UsageError, match=r"--response is empty"):
        json_value(" ", "--response")
    with pytest.raises(UsageError) as refused:
        json_value("kim", "--response")
    assert "-p" not in refused.value.hint


@dataclass
class Origin:
    branch: str


@dataclass
class Release:
    version: str
    build: int | None = None
    of: Origin | None = None


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        (["version=1.0"], {"version": "1.0"}),
        (["version=0042", "build=7"], {"version": "0042", "build": 7}),
        (["version=true", "of.branch=1"], {"version": "true", "of": {"branch": "1"}}),
        (['version="1.0"'], {"version": "1.0"}),
    ],
)
def test_a_parameter_that_reads_as_json_is_text_where_only_text_fits(
    parameters: list[str], fields: dict[str, Any]
) -> None:
    value = workflow_input(None, parameters)
    assert fitted(_releasing(), value, parameters) == fields


@pytest.mark.parametrize("parameters", [["version=x", "build=seven"], ["build=7"], ["of.tag=1"]])
def test_a_parameter_that_does_not_fit_as_text_either_is_refused(parameters: list[str]) -> None:
    value = workflow_input(None, parameters)
    with pytest.raises(InvalidInput) as refusal:
        fitted(_releasing(), value, parameters)
    assert "release" in refusal.value.message


def _releasing() -> Workflow[Any, Any]:
    with Registry().scope():

        @step(pure=True)
        def build(version: str) -> str:
            return version

        @workflow("release")
        def release(given: Release) -> Any:
            return build(given.version)

    return release
