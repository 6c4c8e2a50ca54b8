"""Definitions that change while executions wait, as the person at the shell meets them."""

from __future__ import annotations

import pytest

from tests.project import Project

FLOW = """
from wfe import step, workflow

@step
def reserve(order):
    print("reserve runs")
    return "stock"

@reserve.compensate
def release(stock):
    print("undoes", stock)

@step(async_=True)
def approve(order): ...

@step
def ship(order, approved):
    return f"shipped {approved}"

@workflow("order")
def order(order):
    reserve(order)
    return ship(order, approve(order))
"""


@pytest.fixture
def waiting(project: Project) -> Project:
    """An execution that waits for an answer to `approve`."""
    project.write("workflows/flows.py", FLOW)
    ended = project.wfe("run", "order", "-i", "1", "--tx", "t1", "--until", "waiting")
    assert (ended.code, ended.out) == (20, "order:t1:approve:invoke\n")
    return project


def edit(project: Project, *changes: tuple[str, str]) -> None:
    """Change the module. It gets another name, for a process loads a file but once."""
    (file,) = (project.root / "workflows").glob("*.py")
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.rename(file.with_name("edited.py")).write_text(text)


def answer(project: Project, step: str = "approve") -> str:
    ended = project.wfe("step", "succeed", f"order:t1:{step}:invoke", "--response", '"yes"')
    return ended.out if ended.code == 0 else f"{ended.code}: {ended.err}"


#: A step behind the point reached, and one before.
AGAIN = ("@workflow", "again = reserve.config(name='again')\n\n\n@workflow")
INSERTED = ("    reserve(order)", "    reserve.config(name='check')(order)\n    reserve(order)")


def test_a_comment_is_no_change(waiting: Project) -> None:
    edit(waiting, ("@step\ndef ship", "# last of all\n@step\ndef ship"))
    assert answer(waiting) == '"shipped yes"\n'


def test_a_later_step_may_be_added(waiting: Project) -> None:
    edit(waiting, ("ship(order, approve(order))", "ship(order, again(approve(order)))"), AGAIN)
    assert answer(waiting) == '"shipped stock"\n'


def test_a_step_inserted_before_is_refused_with_a_listing(waiting: Project) -> None:
    edit(waiting, INSERTED)
    ended = waiting.wfe("step", "succeed", "order:t1:approve")
    assert ended.code == 4
    assert ended.err.splitlines()[:4] == [
        "error: Workflow 'order' has other steps than when execution order:t1 began: + check.",
        "+ check",
        "  reserve",
        "  approve",
    ]
    assert "or go on all the same: wfe run order --tx t1 --allow-changed" in ended.err
    ended = waiting.wfe("run", "order", "--tx", "t1", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (4, "definition_changed")


def test_it_goes_on_all_the_same_on_request(waiting: Project) -> None:
    edit(waiting, INSERTED)
    ended = waiting.wfe("run", "order", "--tx", "t1", "--allow-changed", "--until", "waiting")
    assert (ended.code, ended.out) == (20, "order:t1:approve:invoke\n")
    assert "reserve runs" not in ended.err
    told = waiting.wfe("executions", "events", "order:t1").out
    assert "check was added after the execution had passed: it is skipped" in told
    assert answer(waiting) == '"shipped yes"\n'


def test_a_renamed_step_is_answered_by_its_new_name(waiting: Project) -> None:
    edit(waiting, ("def approve", "def accept"), ("approve(order)", "accept(order)"))
    again = ["run", "order", "--tx", "t1", "--until", "waiting"]
    ended = waiting.wfe(*again)
    assert ended.code == 4
    assert "say which of them have a new name (--rename OLD=NEW)" in ended.err
    ended = waiting.wfe(*again, "--rename", "approve=accept")
    assert (ended.code, ended.out) == (20, "order:t1:accept:invoke\n")
    assert answer(waiting, "approve").startswith("3: ")
    assert answer(waiting, "accept") == '"shipped yes"\n'


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--allow-changed"], "--allow-changed is about an execution that exists."),
        (["--rename", "a=b"], "--rename is about an execution that exists."),
        (["--tx", "t1", "--rename", "approve"], "--rename 'approve' does not read OLD=NEW."),
        (["--tx", "t1", "--rename", "=b"], "--rename '=b' does not read OLD=NEW."),
        (
            ["--tx", "t1", "--rename", "approve=b", "--rename", "approve=c"],
            "--rename gives 'approve' two names, 'b' and 'c'.",
        ),
        (["--tx", "t1", "--rename", "aprove=b"], "The execution has no step 'aprove' to rename."),
    ],
)
def test_flags_that_mean_nothing_are_an_error_of_use(
    waiting: Project, flags: list[str], message: str
) -> None:
    ended = waiting.wfe("run", "order", *flags)
    assert ended.code == 2
    assert message in ended.err
