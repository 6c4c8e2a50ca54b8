"""`wfe executions diff`: where two runs part, the first difference first."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.project import Project
from wfe.cli.differences import MISSING, values


@pytest.fixture(scope="module")
def stored(shared: Project) -> Project:
    """order:a was done; order:b (another input) was reverted, and done when it was run again."""
    shared.wfe("run", "order", "--tx", "a", "-p", "gift=true", "-p", "lines=[1,2]")
    shared.wfe("run", "order", "--tx", "b", "-p", "gift=false", "-p", "fail=ship")
    shared.wfe("run", "order", "--tx", "b", "-p", "gift=true", "-p", "lines=[1,3]")
    shared.wfe("run", "echo", "--tx", "e", "-i", "1")
    return shared


def runs_of(project: Project, tx: str) -> list[str]:
    """The oldest first."""
    found = project.wfe("executions", "list", "-q", f"order {tx}", "-o", "json").document
    return [one["run"] for one in reversed(found) if one["transaction"] == tx]


def diff(project: Project, a: str, b: str) -> dict[str, Any]:
    ended = project.wfe("executions", "diff", a, b, "-o", "json")
    assert ended.code == 0, ended.err
    document: dict[str, Any] = ended.document
    return document


def places(document: dict[str, Any]) -> list[tuple[str, str | None, str]]:
    return [(one["kind"], one["step"], one["path"]) for one in document["differences"]]


def test_what_came_first_stands_first(stored: Project) -> None:
    reverted, _ = runs_of(stored, "b")
    document = diff(stored, "order:a", reverted)
    assert document["same"] is False
    assert document["first"] == {
        "kind": "input",
        "step": None,
        "path": "gift",
        "a": True,
        "b": False,
    }
    assert places(document) == [
        ("input", None, "gift"),
        ("input", None, "lines"),
        ("input", None, "fail"),
        ("condition gift", "wrap", ""),
        ("state", "wrap", ""),
        ("output", "wrap", ""),
        ("state", "ship", ""),
        ("error", "ship", ""),
        ("output", "ship", ""),
        ("undo", "ship", ""),
        ("undo", "charge", ""),
        ("undo", "reserve", ""),
        ("end", None, ""),
        ("result", None, ""),
    ]


def test_two_runs_of_one_transaction_are_told_apart_by_their_run_ids(stored: Project) -> None:
    first, second = runs_of(stored, "b")
    document = diff(stored, first, second)
    assert [document[side]["key"] for side in "ab"] == ["order:b", "order:b"]
    assert [document[side]["run"] for side in "ab"] == [first, second]
    assert document["first"]["path"] == "gift"


def test_the_place_inside_of_a_value_is_named(stored: Project) -> None:
    document = diff(stored, "order:a", "order:b")
    assert places(document) == [("input", None, "lines[1]")]
    assert (document["first"]["a"], document["first"]["b"]) == (2, 3)


def test_what_is_on_one_side_only_is_left_out_on_the_other(stored: Project) -> None:
    reverted, _ = runs_of(stored, "b")
    found = {one["path"]: one for one in diff(stored, "order:a", reverted)["differences"]}
    assert "a" not in found["fail"]
    assert "b" not in found["lines"]


def test_an_execution_does_not_differ_from_itself(stored: Project) -> None:
    document = diff(stored, "order:a", "order:a")
    assert (document["same"], document["first"], document["differences"]) == (True, None, [])
    assert [one["step"] for one in document["durations"]] == ["reserve", "charge", "wrap", "ship"]


def test_two_workflows_have_nothing_to_compare(stored: Project) -> None:
    ended = stored.wfe("executions", "diff", "order:a", "echo:e", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")
    assert "order:a and echo:e are of two workflows" in ended.document["error"]["message"]


def test_in_a_pipe_it_is_a_line_for_each_difference(stored: Project) -> None:
    lines = [line.split("\t") for line in stored.wfe("executions", "diff", "a", "order:b").lines]
    assert [line[:2] for line in lines[:2]] == [["a", "order:a"], ["b", "order:b"]]
    assert ["differs", "input.lines[1]", "2", "3"] in lines
    assert {line[0] for line in lines} == {"a", "b", "differs", "took"}


def test_a_person_is_told_where_they_part(stored: Project) -> None:
    shown = stored.wfe("executions", "diff", "order:a", "order:b", "--color", "always").out
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "They part at input.lines[1]\n" in plain
    same = stored.wfe("executions", "diff", "order:a", "order:a", "--color", "always").out
    assert "They do not differ" in same


def test_a_step_that_only_one_of_them_has_is_the_first_difference(flows: Project) -> None:
    flows.wfe("run", "echo", "--tx", "before", "-i", "1")
    source = flows.root / "workflows/flows.py"
    changed = source.read_text().replace(
        "    return WorkflowResponse(echo(value))",
        "    return WorkflowResponse(echo.config(name='again')(echo(value)))",
    )
    source.write_text(changed)
    assert flows.execute("run", "echo", "--tx", "after", "-i", "1").code == 0
    document = diff(flows, "echo:before", "echo:after")
    assert document["first"] == {
        "kind": "definition",
        "step": "again",
        "path": "",
        "b": "there",
    }


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1, 1, []),
        (1, 1.0, []),
        (1, True, [("", 1, True)]),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": {"b c": [1]}}, {"a": {"b c": [2]}}, [('a["b c"][0]', 1, 2)]),
        ([1], [1, 2], [("[1]", MISSING, 2)]),
        ({"a": None}, {}, [("a", None, MISSING)]),
        ({}, {"b": 1, "a": 2}, [("b", MISSING, 1), ("a", MISSING, 2)]),
        ([1], {"a": 1}, [("", [1], {"a": 1})]),
        (None, MISSING, [("", None, MISSING)]),
    ],
)
def test_values_differ_in(a: Any, b: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert list(values(a, b)) == expected


def test_values_that_are_deep_are_compared_too() -> None:
    a: Any = 1
    b: Any = 2
    for _ in range(500):
        a, b = [a], [b]
    ((path, one, other),) = values(a, b)
    assert (path, one, other) == ("[0]" * 500, 1, 2)
