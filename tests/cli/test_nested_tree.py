"""The steps of a nested workflow stand below the step that runs it, as far as there is more to tell."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.test_render import NOW, WIDTHS, Terminal, execution, long, record
from tests.project import Project
from wfe.cli import tree
from wfe.cli.family import Child, Children, looked_into
from wfe.cli.render import Screen
from wfe.model import ExecutionKey, StepState
from wfe.store.database import open_reader

FLOWS = """
from wfe import parallel, step, workflow


@step
def take(fails: bool) -> None:
    if fails:
        raise RuntimeError("empty")


@workflow("leaf")
def leaf(fails: bool):
    take(fails)


@workflow("trunk")
def trunk(fails: list[bool]):
    good = leaf.as_step.config(name="good")(fails[0])
    leaf.as_step.config(name="bad")(fails[1])


@workflow("many")
def many(fails: bool):
    parallel([leaf.as_step.config(name=f"leaf-{n}")(fails) for n in range(20)])
"""


def drawn(rows: list[tree.Row], width: int = 100, encoding: str = "utf-8") -> list[str]:
    screen = Screen(Terminal(encoding), colors=False, width=width)
    return [line.plain for line in screen.steps(rows, cut=True)]


def working(**fields: Any) -> Any:
    return execution(record("reserve", StepState.INVOKING, running=True), **fields)


def nested() -> Children:
    """Below `reserve`, which is the first of its stage, and below `wrap`, which has a condition."""
    inner = {"ship": Child(working(), {})}
    return {"reserve": Child(working(), inner), "wrap": Child(working(), {})}


def test_the_steps_of_a_child_stand_below_the_step_that_runs_it() -> None:
    rows = tree.rows(working(), NOW, children=nested())
    assert [line.split(" · ")[0].split(" ▸ ")[0].rstrip() for line in drawn(rows)] == [
        " ┌ reserve",
        " │ ┌ reserve",
        " │ └ charge",
        " │     wrap",
        " │   approve",
        " │   ship",
        " │   ┌ reserve",
        " │   └ charge",
        " │       wrap",
        " │     approve",
        " │     ship",
        " └ charge",
        "     wrap",
        "     ┌ reserve",
        "     └ charge",
        "         wrap",
        "       approve",
        "       ship",
        "   approve",
        "   ship",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_nested_tree_is_longer_than_the_terminal(width: int) -> None:
    rows = tree.rows(working(), NOW, children=nested())
    assert all(cell_len(line) <= width for line in drawn(rows, width))


def test_where_ascii_alone_is_known_nothing_else_stands_in_a_nested_tree() -> None:
    rows = tree.rows(working(), NOW, children={"reserve": Child(long(), {})})
    lines = drawn(rows, encoding="ascii")
    assert all(line.isascii() for line in lines)
    assert lines[1].startswith(" |   s0 ")


def test_of_a_long_child_the_part_under_way_is_shown_and_the_rest_counted() -> None:
    records = [record(f"s{number}") for number in range(300)]
    child = long(*records, record("s300", StepState.INVOKING, running=True))
    rows = tree.rows(working(), NOW, children={"reserve": Child(child, {})})
    inner = [row for row in rows if row.stem]
    assert (inner[0].step, inner[-1].step) == ("297 done before", "193 not_started after")
    assert "s300" in [row.step for row in inner]
    assert drawn(rows)[1] == " │ … 297 done before"


def test_what_has_no_room_is_first_of_all_the_steps_of_children() -> None:
    for room, shown in ((20, 20), (18, 15), (10, 5)):
        part = tree.part(working(), NOW, {}, room, nested())
        assert (len(part.rows), part.before, part.after) == (shown, {}, {})


@pytest.fixture
def trees(project: Project) -> Project:
    project.write("workflows/trees.py", FLOWS)
    return project


def children_of(project: Project, workflow: str) -> Children:
    with open_reader(project.db, busy_timeout=5) as reader:
        parent = reader.load(ExecutionKey(workflow, "1"))
        assert parent is not None
        return looked_into(reader, parent)


def test_a_child_that_is_done_is_told_by_its_step_alone(trees: Project) -> None:
    assert trees.wfe("run", "trunk", "--tx", "1", "-i", "[false, false]").code == 0
    assert children_of(trees, "trunk") == {}


def test_a_child_that_failed_or_was_undone_is_looked_into(trees: Project) -> None:
    assert trees.wfe("run", "trunk", "--tx", "1", "-i", "[false, true]").code == 10
    children = children_of(trees, "trunk")
    assert {step: str(child.execution.head.key) for step, child in children.items()} == {
        "good": "leaf:good-1",
        "bad": "leaf:bad-1",
    }


def test_no_more_children_are_looked_into_than_anybody_would_read(trees: Project) -> None:
    assert trees.wfe("run", "many", "--tx", "1", "-i", "true").code == 10
    assert len(children_of(trees, "many")) == 16


def test_lines_for_scripts_are_about_the_execution_alone(trees: Project) -> None:
    trees.wfe("run", "trunk", "--tx", "1", "-i", "[false, true]")
    steps = [line.split("\t")[1] for line in trees.wfe("executions", "show", "1", "--steps").lines]
    assert steps == ["good", "bad"]
