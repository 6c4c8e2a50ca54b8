"""What stands on a real terminal while an execution runs, and at its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import Project
from tests.terminal import Terminal, installed

from .screen import screen_after

FLOWS = """
import subprocess
import sys

from wfe import PermanentStepFailure, WorkflowResponse, parallel, step, when, workflow


@step
def left(order) -> str:
    print("printed by a step")
    subprocess.run([sys.executable, "-c", "print('printed by a program')"])
    return "l"


@left.compensate
def undo_left(value):
    pass


@step
def right(order) -> str:
    return "r"


@step
def wrap() -> None:
    pass


@step(async_=True)
def ask() -> None:
    return None


@step(async_=True)
def choose() -> int | None:
    return None


@workflow("choice")
def choice():
    choose()


@step
def ship(order) -> None:
    if order["fail"]:
        raise PermanentStepFailure("no truck today")


@workflow("delivery")
def delivery(order: dict):
    left(order)
    ship(order)


@workflow("two-deliveries")
def two_deliveries(order: dict):
    first = delivery.as_step.config(name="first")
    parallel(first({"fail": False}), delivery.as_step.config(name="second")(order))


@workflow("order")
def order(order: dict):
    pair = parallel(left(order), right(order))
    with when(order["gift"], name="gift"):
        wrap()
    with when(order["ask"], name="ask"):
        ask()
    ship(order)
    return WorkflowResponse(pair)
"""


@pytest.fixture
def spawn(project: Project) -> Iterator[Callable[..., Any]]:
    project.write("workflows/order.py", FLOWS)
    spawned: list[Any] = []

    def run(*arguments: str, by: Any = Terminal, **how: Any) -> Any:
        spawned.append(by(*arguments, folder=project.root, **how))
        return spawned[-1]

    yield run
    for child in spawned:
        child.close(force=True)


def ended(child: Any) -> tuple[int, list[str]]:
    """The exit code, and what stands on the screen at the end."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, screen_after(child.before)


def run(fail: bool = False, gift: bool = False, ask: bool = False) -> list[str]:
    flags = {"fail": fail, "gift": gift, "ask": ask}
    return [
        "run",
        "order",
        "--tx",
        "rocket:x",
        *(f"-p{k}={str(v).lower()}" for k, v in flags.items()),
    ]


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_the_tree_stands_at_the_end_with_the_result_below(spawn: Any, columns: int) -> None:
    by = installed if columns == 100 else Terminal
    code, lines = ended(spawn(*run(gift=True), columns=columns, by=by))
    assert code == 0
    assert [re.sub(r"\d+\.\ds", "_  ", line).rstrip() for line in lines] == [
        "order:rocket:x",
        "printed by a step",
        "printed by a program",
        " ┌ left   ✓ done    _",
        " └ right  ✓ done    _",
        "     wrap ✓ done    _    when gift: yes",
        "     ask  ○ skipped       when ask: no",
        "   ship   ✓ done    _",
        " ✓ done  5 of 5 steps  _",
        "[",
        '  "l",',
        '  "r"',
        "]",
        "",
    ]


def test_a_terminal_that_does_not_tell_its_size_gets_the_tree_too(spawn: Any) -> None:
    code, lines = ended(spawn(*run(gift=True), columns=0))
    assert code == 0
    assert any(line.startswith("   ship ") and "done" in line for line in lines)


def test_topics_stay_as_they_are_where_a_terminal_does_not_tell_its_size(
    spawn: Any,
) -> None:
    asked = ["help", "exit-codes"]
    code, lines = ended(spawn(*asked, columns=0))
    assert (code, lines) == ended(spawn(*asked, columns=160))


def test_an_error_is_broken_between_words_and_goes_on_below_its_beginning(spawn: Any) -> None:
    code, lines = ended(spawn("executions", "list", "--state", "nope", columns=60))
    assert code == 2
    assert lines == [
        "error: There is no state 'nope'.",
        "  There are: not_started, invoking, waiting_to_compensate,",
        "  compensating, done, reverted, failed, running, waiting,",
        "  sleeping, interrupted.",
        "",
    ]
    code, lines = ended(spawn("schedules", "preview", "* * *", columns=60))
    assert lines[:2] == [
        "error: The schedule '* * *' is refused: it has 3 fields;",
        "       five are due, or six that begin with the seconds.",
    ]


def test_a_failure_shows_what_was_undone_and_why(spawn: Any) -> None:
    code, lines = ended(spawn(*run(fail=True)))
    assert code == 10
    final = "\n".join(lines)
    assert re.search(r" ┌ left +✓ done +\S+ ↺ reverted", final)
    assert re.search(r"   ship +✗ failed +\S+ ↺ reverted +no truck", final)
    assert "error: order:rocket:x failed; all it had done was undone." in final


@pytest.mark.parametrize("columns", [60, 100])
def test_the_steps_of_nested_workflows_stand_below_theirs(spawn: Any, columns: int) -> None:
    run = ["run", "two-deliveries", "--tx", "x", "-p", "fail=true"]
    code, lines = ended(spawn(*run, columns=columns))
    assert code == 10
    wanted = [
        " ┌ first ✓ done _ ↺ reverted",
        " │ left ✓ done _ ↺ reverted",
        " │ ship ✓ done _ ↺ reverted",
        " └ second ✗ failed _ ↺ reverted",
        " left ✓ done _ ↺ reverted",
        " ship ✗ failed _ ↺ reverted",
    ]
    _, shown = ended(spawn("executions", "show", "x", "--steps", columns=columns))
    for found in (lines, shown):
        steps = [re.sub(r" +", " ", re.sub(r"\d+\.\ds", "_", line)) for line in found]
        assert [step for step in steps if any(step.startswith(one) for one in wanted)] == [
            next(step for step in steps if step.startswith(one)) for one in wanted
        ]


def test_waiting_keys_can_be_pasted_while_it_waits(spawn: Any) -> None:
    child = spawn(*run(ask=True), columns=40, by=installed)
    child.expect_exact("wfe step succeed order:rocket:x:ask:invoke --response JSON\r\n")
    child.expect("●.*waiting")
    child.sendintr()
    child.expect_exact("It goes on where it was with:\r\n  wfe run order --tx rocket:x\r\n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_an_answer_that_is_refused_draws_nothing(spawn: Any) -> None:
    ended(spawn("run", "choice", "--tx", "x", "--until", "waiting"))
    code, lines = ended(spawn("step", "succeed", "choice:x:choose", "-r", '"b"'))
    assert code == 2
    assert lines[0].startswith("error: The answer does not fit step 'choose'")


def test_lists_on_a_terminal_are_tables_with_whole_keys(spawn: Any) -> None:
    ended(spawn(*run()))
    code, lines = ended(spawn("executions", "list", columns=40))
    assert code == 0
    assert re.match(r"STATUS +AGE +KEY", lines[0])
    assert re.match(r"✓ done +\d+s +order:rocket:x$", lines[1])


def test_no_color_leaves_symbols_and_words(spawn: Any) -> None:
    ended(spawn(*run()))
    child = spawn("executions", "list", "--color", "never")
    child.expect(pexpect.EOF)
    assert "\x1b[3" not in child.before
    assert "✓ done" in child.before


def test_a_dumb_terminal_gets_lines_instead_of_a_moving_tree(spawn: Any) -> None:
    code, lines = ended(spawn(*run(), TERM="dumb"))
    assert code == 0
    assert any("\tstep_success\torder:rocket:x:ship:invoke" in line for line in lines)
