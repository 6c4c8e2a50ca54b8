"""The `wfe` that forks does what the installed one does, for the tests that take it instead."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.docs.console import INSTALLED
from tests.forking import Forked, forking
from tests.project import WFE, until
from tests.terminal import Terminal

FLOWS = """
import os, pathlib, sys, time
from wfe import WorkflowResponse, step, workflow

@step
def look(word: str) -> list:
    print("to stderr", file=sys.stderr)
    return [word, os.getcwd(), os.environ["WORD"], sys.argv[0], sys.path[0], sys.stdin.readline()]

@workflow("look")
def looking(word: str):
    return WorkflowResponse(look(word))

@step
def stay():
    pathlib.Path("pid").write_text(str(os.getpid()))
    pathlib.Path("pid").rename("begun")
    while True:
        time.sleep(0.01)

@workflow("stay")
def staying():
    stay()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "flows.py").write_text(FLOWS)
    return tmp_path


def run(command: str, path: str, folder: Path) -> tuple[int, str, str]:
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "WORD": "é"},
        input="a line\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "command",
    [
        "wfe --version",
        "wfe nothing",
        "wfe run look -p word='ü \U0001f680' 2>/dev/null",
        "cd workflows && wfe --app .. run nothing",
        "wfe run look -p word=x --db /proc/wfe.db -o json",
        "_WFE_COMPLETE=bash_complete COMP_WORDS='wfe ru' COMP_CWORD=1 wfe",
        "wfe run look -p word=x -q >&-",
    ],
)
def test_it_prints_and_ends_like_the_installed_one(command: str, folder: Path) -> None:
    assert run(command, forking().path, folder) == run(command, INSTALLED, folder)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_reaches_the_command(number: signal.Signals, code: int, folder: Path) -> None:
    with subprocess.Popen(
        ["wfe", "run", "stay"],
        cwd=folder,
        env={**os.environ, "PATH": forking().path},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        until((folder / "begun").exists)
        running.send_signal(number)
        assert running.stderr is not None
        while "Stopping" not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(number)
        running.communicate(timeout=20)
    assert running.returncode == code


def test_a_command_that_is_killed_looks_killed(folder: Path) -> None:
    script = "wfe run stay & until [ -e begun ]; do sleep 0.01; done; kill -9 $(cat begun); wait $!"
    assert run(script, forking().path, folder)[0] == 128 + signal.SIGKILL


def test_a_command_ends_with_the_one_who_asked_for_it(folder: Path) -> None:
    script = "wfe run stay & until [ -e begun ]; do sleep 0.01; done; kill -9 $!; cat begun"
    pid = int(run(script, forking().path, folder)[1])
    until(lambda: not _lives(pid))


def test_a_forked_process_is_the_command(folder: Path) -> None:
    with Forked(["run", "stay"], cwd=folder, stderr=subprocess.DEVNULL) as running:
        until((folder / "begun").exists)
        assert int((folder / "begun").read_text()) == running.pid
        assert running.poll() is None
        running.send_signal(signal.SIGSTOP)
        until(lambda: _is_stopped(running.pid))
        running.send_signal(signal.SIGCONT)
        until(lambda: not _is_stopped(running.pid))
        running.kill()
    assert running.returncode == -signal.SIGKILL
    assert not _lives(running.pid)


def test_what_a_forked_process_prints_and_how_it_ends_is_told(folder: Path) -> None:
    ended = subprocess.run([WFE, "nothing"], cwd=folder, capture_output=True, check=False)
    forked = Forked(["nothing"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert forked.communicate(timeout=20) == (ended.stdout, ended.stderr)
    assert forked.returncode == ended.returncode == 2


def test_a_terminal_is_in_control_of_the_command_in_it(folder: Path) -> None:
    terminal = Terminal("run", "stay", folder=folder)
    until((folder / "begun").exists)
    assert os.getsid(terminal.process.pid) == terminal.process.pid
    assert os.tcgetpgrp(terminal.child_fd) == terminal.process.pid
    terminal.sendintr()
    terminal.expect_exact("Stopping")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130


def test_a_terminal_that_is_closed_ends_the_command_in_it(folder: Path) -> None:
    terminal = Terminal("executions", "list", "--watch", folder=folder)
    terminal.expect_exact("there is no database")
    terminal.close()
    assert not _lives(terminal.process.pid)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
