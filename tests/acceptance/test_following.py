"""An execution that one process drives, and others wait for, follow and watch."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import Project, until
from tests.terminal import Terminal, installed

from .screen import screen_after

SLOW = """
import pathlib
import time

from wfe import PermanentStepFailure, WorkflowResponse, step, workflow

HERE = pathlib.Path(__file__).parent.parent

@step
def first(fail: bool) -> int:
    (HERE / "started").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    if fail:
        raise PermanentStepFailure("not today")
    return 1

@step
def second(n: int) -> int:
    return n + 1

@workflow("slow")
def slow(fail: bool):
    return WorkflowResponse(second(first(fail)))

@step(async_=True)
def ask() -> None:
    return None

@workflow("asks")
def asks():
    ask()
"""


@pytest.fixture
def slow(project: Project) -> Project:
    """A workflow whose first step creates `started` and waits for a file `go`."""
    project.write("workflows/slow.py", SLOW)
    return project


@pytest.fixture
def start(slow: Project) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        started.append(slow.start(*arguments))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def begin(start: Any, slow: Project, *, fail: bool = False) -> Any:
    """An execution slow:t1 whose first step is at work."""
    driver = start("run", "slow", "--tx", "t1", "-i", json.dumps(fail))
    until((slow.root / "started").exists)
    return driver


def go(slow: Project) -> None:
    (slow.root / "go").touch()


def watching(slow: Project) -> Any:
    """A terminal in which slow:t1 is watched."""
    return Terminal("executions", "watch", "slow:t1", folder=slow.root)


def test_result_waits_and_ends_with_what_the_execution_came_to(start: Any, slow: Project) -> None:
    driver = begin(start, slow)
    assert slow.wfe("executions", "result", "slow:t1").code == 20
    waiter = start("executions", "result", "slow:t1", "--wait")
    go(slow)
    out, err = waiter.communicate(timeout=20)
    assert (waiter.returncode, out, err) == (0, "2\n", "")
    driver.communicate(timeout=20)


def test_a_failure_is_what_result_ends_with(start: Any, slow: Project) -> None:
    begin(start, slow, fail=True)
    waiter = start("executions", "result", "slow:t1", "--wait", "-o", "json")
    go(slow)
    out, err = waiter.communicate(timeout=20)
    document = json.loads(out)
    assert (waiter.returncode, document["ok"], document["state"]) == (10, False, "reverted")
    assert "not today" in err


def test_result_waits_no_longer_than_it_is_told(start: Any, slow: Project) -> None:
    begin(start, slow)
    ended = slow.execute("executions", "result", "slow:t1", "--wait", "--timeout", "0.2s")
    assert (ended.code, ended.out) == (20, "")
    assert "slow:t1 has no result yet: it is running." in ended.err
    assert "wfe executions why slow:t1" in ended.err


def test_events_are_followed_until_the_execution_is_finished(start: Any, slow: Project) -> None:
    begin(start, slow)
    follower = start("executions", "events", "slow:t1", "-f")
    assert follower.stdout is not None
    kinds = [follower.stdout.readline().split("\t")[2] for _ in range(2)]
    assert kinds == ["begin", "step_begin"]
    go(slow)
    rest, _ = follower.communicate(timeout=20)
    told = [line.split("\t") for line in rest.splitlines()]
    assert [line[2] for line in told] == ["step_success", "step_begin", "step_success", "finish"]
    assert [line[0] for line in told] == ["3", "4", "5", "6"]
    assert follower.returncode == 0


def test_events_can_be_followed_as_lines_of_json_but_not_as_one_document(
    start: Any, slow: Project
) -> None:
    go(slow)
    begin(start, slow).communicate(timeout=20)
    lines = slow.wfe("executions", "events", "slow:t1", "-f", "-o", "jsonl").lines
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4, 5, 6]
    refused = slow.wfe("executions", "events", "slow:t1", "-f", "-o", "json")
    assert (refused.code, refused.document["error"]["hint"]) == (2, "Print lines: -o jsonl")


def test_followed_events_as_csv_have_one_line_of_titles(start: Any, slow: Project) -> None:
    begin(start, slow)
    follower = start("executions", "events", "slow:t1", "-f", "-o", "csv")
    first = [follower.stdout.readline() for _ in range(3)]
    go(slow)
    rest, _ = follower.communicate(timeout=20)
    numbers = [line.partition(",")[0] for line in [*first, *rest.splitlines()]]
    assert numbers == ["number", "1", "2", "3", "4", "5", "6"]


def test_wide_events_are_those_of_the_table(start: Any, slow: Project) -> None:
    go(slow)
    begin(start, slow).communicate(timeout=20)
    events = ["executions", "events", "slow:t1"]
    assert slow.wfe(*events, "-o", "wide").lines == slow.wfe(*events).lines != []


def test_a_follower_is_told_when_the_execution_is_deleted(start: Any, slow: Project) -> None:
    assert slow.execute("run", "asks", "--tx", "t1", "--until", "waiting").code == 20
    follower = start("executions", "events", "asks:t1", "-f")
    follower.stdout.readline()
    (slow.db).unlink()
    _, err = follower.communicate(timeout=20)
    assert follower.returncode == 1
    assert "was deleted or replaced" in err


def test_watching_shows_the_tree_until_it_is_finished(start: Any, slow: Project) -> None:
    begin(start, slow)
    child = watching(slow)
    child.expect("first .*running")
    written = child.before + child.after
    go(slow)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    final = screen_after(written + child.before)
    assert any(line.startswith("   second ✓ done") for line in final)


def test_watching_ends_with_what_the_execution_came_to(start: Any, slow: Project) -> None:
    begin(start, slow, fail=True)
    child = watching(slow)
    child.expect("first .*running")
    go(slow)
    child.expect("slow:t1 failed; all it had done was undone")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 10


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_watcher_that_is_interrupted_leaves_the_terminal_as_it_was(
    start: Any, slow: Project, number: signal.Signals, code: int
) -> None:
    begin(start, slow)
    child = watching(slow)
    child.expect("first .*running")
    child.kill(number)
    child.expect_exact("\x1b[?25h")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code


def test_a_watcher_is_told_when_the_driver_dies(start: Any, slow: Project) -> None:
    driver = begin(start, slow)
    child = watching(slow)
    child.expect("first .*running")
    driver.kill()
    driver.communicate()
    child.expect_exact("Nobody drives it. To carry it on: wfe executions resume slow:t1")
    child.expect("interrupted")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    document = slow.wfe("executions", "why", "slow:t1", "-o", "json").document
    assert document["status"] == "interrupted"
    assert [cause["kind"] for cause in document["waits"]] == ["lost"]
    assert document["held_by"] == f"nobody: process {driver.pid} is gone"
    assert document["commands"][0]["command"] == "wfe executions resume slow:t1"


def test_why_names_the_process_that_has_it_in_hand(start: Any, slow: Project) -> None:
    driver = begin(start, slow)
    document = slow.wfe("executions", "why", "slow:t1", "-o", "json").document
    assert (document["status"], document["is_held"]) == ("running", True)
    assert document["held_by"] == f"process {driver.pid}, which is alive"
    assert [cause["kind"] for cause in document["waits"]] == ["handler"]
    assert "first is being executed for" in document["why"][0]


def test_watching_in_a_pipe_is_lines(start: Any, slow: Project) -> None:
    begin(start, slow)
    watcher = start("executions", "watch", "slow:t1")
    go(slow)
    out, err = watcher.communicate(timeout=20)
    kinds = [line.split("\t")[1] for line in err.splitlines()]
    assert (watcher.returncode, out) == (0, "")
    assert (kinds[0], kinds[-1]) == ("begin", "finish")
    assert "Traceback" not in err


def test_a_terminal_without_utf8_is_shown_ascii(start: Any, slow: Project) -> None:
    begin(start, slow)
    words = ("executions", "watch", "slow:t1")
    child = installed(*words, folder=slow.root, PYTHONIOENCODING="ascii")
    child.expect("first .*running")
    assert (child.before + child.after).isascii()
    go(slow)
    child.expect(pexpect.EOF)
    assert child.before.isascii()
