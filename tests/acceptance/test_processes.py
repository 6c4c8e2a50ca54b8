"""The installed command as a process: what it loads, pipes it writes to, signals it gets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from tests.project import WFE, Project, until

SLOW = """
import pathlib
import time

from wfe import WorkflowResponse, step, workflow

@step
def first() -> int:
    here = pathlib.Path(__file__).parent.parent
    (here / "started").touch()
    while not (here / "go").exists():
        time.sleep(0.01)
    return 1

@step
def second(n: int) -> int:
    return n + 1

@workflow("slow")
def slow():
    return WorkflowResponse(second(first()))
"""


ECHO = """
from wfe import step, workflow

@step
def echo(value):
    return value

@workflow("echo")
def echoing(value):
    return echo(value)
"""


@pytest.fixture
def slow(project: Project) -> Project:
    """A workflow whose first step creates `started` and waits for a file `go`."""
    project.write("workflows/slow.py", SLOW)
    return project


LOADED = """
import json, sys
from wfe.cli import main
for words in json.loads(sys.argv[1]):
    code = main(words)
    print()
    print(json.dumps([code, sorted({n.partition(".")[0] for n in sys.modules} | set(sys.modules))]))
"""


def loaded_by(project: Project, *commands: Sequence[str]) -> Iterator[set[str]]:
    """The modules that are imported after each of some commands, one after the other, which all end
    well."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(commands)],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in ended.stdout.splitlines() if line.startswith("[0, [")]
    assert len(told) == len(commands), ended
    return (set(json.loads(line)[1]) for line in told)


HEAVY = {
    "rich",
    "pydantic",
    "asyncio",
    "croniter",
    "ulid",
    "wfe.engine",
    "wfe.runtime",
    "wfe.authoring",
}


def test_help_loads_nothing_that_it_does_not_need(project: Project) -> None:
    (loaded,) = loaded_by(project, ["--help"])
    assert "typer" in loaded
    assert loaded.isdisjoint({*HEAVY, "peewee", "msgspec"})


def test_commands_that_read_load_neither_the_engine_nor_user_code(project: Project) -> None:
    project.write("workflows/one.py", SLOW)
    (project.root / "go").touch()
    assert project.execute("run", "slow", "--tx", "t1").code == 0
    commands = (
        ["list"],
        ["list", "-q", "slow", "-o", "json"],
        ["show", "t1"],
        ["show", "t1", "--timeline", "--at", "3"],
        ["why", "t1"],
        ["graph", "t1"],
        ["graph", "t1", "--format", "svg"],
        ["graph", "t1", "--format", "mermaid"],
        ["diff", "t1", "t1"],
        ["events", "t1", "-f"],
        ["result", "t1", "--wait"],
        ["watch", "t1"],
    )
    for loaded in loaded_by(project, *(["executions", *words] for words in commands)):
        assert "peewee" in loaded
        assert loaded.isdisjoint({*HEAVY, "workflows", "workflows.one"})


def test_the_version_is_the_installed_one(project: Project) -> None:
    assert project.installed("--version").out.startswith("wfe ")


def test_a_pipe_that_is_closed_early_is_quiet(project: Project) -> None:
    ended = subprocess.run(
        f"{WFE} help keys | true; {WFE} --help | head -1",
        shell=True,
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout.startswith("Usage: wfe")


def test_what_the_terminal_cannot_show_ends_no_command(project: Project) -> None:
    project.write(
        "workflows/one.py",
        """
        from wfe import WorkflowResponse, step, workflow

        @step
        def echo(value):
            return value

        @workflow("echo")
        def echoing(value):
            return WorkflowResponse(echo(value))
        """,
    )
    narrow = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ended = project.installed("run", "echo", "-i", '"\u00e9\U0001f680"', "--tx", "\u00e9", **narrow)
    assert (ended.code, ended.document) == (0, "\u00e9\U0001f680")
    assert ended.out.isascii()
    assert project.installed("executions", "list", **narrow).out.startswith("echo:\\xe9\t")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_lets_the_running_step_end_and_says_how_to_go_on(
    slow: Project, number: signal.Signals, code: int
) -> None:
    running = slow.start_installed("run", "slow", "--tx", "t1")
    until((slow.root / "started").exists)
    running.send_signal(number)
    assert running.stderr is not None
    told = ""
    while "Stopping" not in told:
        told = running.stderr.readline()
    (slow.root / "go").touch()
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (code, "")
    assert "step_success\tslow:t1:first:invoke" in err
    assert err.rstrip().endswith("wfe run slow --tx t1")
    shown = slow.wfe("executions", "show", "t1", "-o", "json").document
    steps = shown["execution"]["steps"]
    assert steps["first"]["invoke"]["state"] == "done"
    assert steps["second"]["invoke"]["state"] == "not_started"


def test_a_signal_that_ends_a_resume_of_all_is_told_as_any_error(slow: Project) -> None:
    killed = slow.start("run", "slow", "--tx", "t1")
    until((slow.root / "started").exists)
    killed.kill()
    killed.communicate()
    (slow.root / "started").unlink()
    resuming = slow.start("executions", "resume", "-o", "json")
    until((slow.root / "started").exists)
    resuming.send_signal(signal.SIGINT)
    (slow.root / "go").touch()
    out, err = resuming.communicate(timeout=20)
    assert (resuming.returncode, json.loads(out)["error"]["code"]) == (130, "interrupted")
    assert err.endswith("What is left goes on with: wfe executions resume\n")


def test_the_second_signal_ends_it_at_once(slow: Project) -> None:
    running = slow.start_installed("run", "slow", "--tx", "t1")
    until((slow.root / "started").exists)
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    told = ""
    while "Stopping" not in told:
        told = running.stderr.readline()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=5)
    assert running.returncode == 130
    assert err.endswith("It goes on where it was with: wfe run slow --tx t1\n")
    assert slow.wfe("executions", "list", "-o", "key").lines == ["slow:t1"]


def test_a_step_that_outlasts_the_grace_does_not_hold_the_command(slow: Project) -> None:
    slow.write("wfe.toml", "grace = '0.2s'")
    running = slow.start("run", "slow", "--tx", "t1", "--timeout", "1s")
    _, err = running.communicate(timeout=20)
    assert running.returncode == 20
    assert "No longer watched: slow:t1 is not finished." in err


def test_an_answer_from_a_second_process_reaches_the_one_that_waits(project: Project) -> None:
    project.write(
        "workflows/ask.py",
        """
        from wfe import WorkflowResponse, step, workflow

        @step(async_=True)
        def ask() -> None:
            return None

        @workflow("ask")
        def asking():
            return WorkflowResponse(ask())
        """,
    )
    waiting = project.start("run", "ask", "--tx", "t1")
    assert waiting.stderr is not None
    line = ""
    while "\tanswer\t" not in line:
        line = waiting.stderr.readline()
    answered = project.execute("step", "succeed", "ask:t1:ask:invoke", "--response", '"yes"')
    assert (answered.code, answered.out) == (0, '"yes"\n')
    out, _ = waiting.communicate(timeout=20)
    assert (waiting.returncode, out) == (0, '"yes"\n')


def test_the_database_and_its_folder_are_for_their_owner_alone(slow: Project) -> None:
    (slow.root / "go").touch()
    assert slow.execute("run", "slow").code == 0
    assert slow.db.stat().st_mode & 0o777 == 0o600
    assert slow.db.parent.stat().st_mode & 0o777 == 0o700


def test_a_database_that_cannot_be_written_is_one_sentence(slow: Project) -> None:
    if os.geteuid() == 0:
        target = "/proc/wfe.db"  # root may write wherever there is a place to
    else:
        (slow.root / "locked").mkdir(mode=0o500)
        target = "locked/wfe.db"
    ended = slow.execute("run", "slow", "--db", target, "-o", "json")
    assert ended.code == 1
    assert ended.document["error"]["code"] == "store_unusable"
    assert not (slow.root / "started").exists()


def test_an_interrupt_while_it_starts_is_no_traceback(project: Project) -> None:
    main = "import sys, wfe.cli; from importlib.abc import MetaPathFinder as Finder\n"
    stop = "class Stop(Finder):\n def find_spec(self, *_): raise KeyboardInterrupt\n"
    code = f"{main}{stop}sys.meta_path.insert(0, Stop()); sys.exit(wfe.cli.main())"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("streams", "code"),
    [("<&-", 0), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 1)],
)
def test_streams_that_are_closed_or_full_harm_nothing(
    project: Project, streams: str, code: int
) -> None:
    project.write("workflows/echo.py", ECHO)
    command = f"'{WFE}' run echo -i 1 --tx t1 {streams}"
    ended = subprocess.run(
        command, shell=True, cwd=project.root, capture_output=True, text=True, check=False
    )
    assert ended.returncode == code
    assert "internal" not in ended.stderr
    assert project.wfe("executions", "list", "--state", "done", "-o", "key").lines == ["echo:t1"]


SIGNALLED_TWICE = """
import asyncio, os, signal
from wfe.cli.foreground import Interrupts

async def command():
    with Interrupts(lambda: None) as interrupts:
        signal.raise_signal(signal.SIGINT)
        await interrupts.arrived.wait()

asyncio.run(command())
signal.raise_signal(signal.{second})
"""


@pytest.mark.parametrize(("second", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_second_signal_while_the_process_is_ending_is_no_traceback(
    second: str, code: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SIGNALLED_TWICE.format(second=second)],
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (code, b"")
