"""A notice that is owed survives the process that owes it: killed before it is told, or meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.project import WFE, Project, project_in

FALLS = """
from wfe import PermanentStepFailure, step, workflow

@step
def fall(value):
    raise PermanentStepFailure("down")

@workflow("falls")
def falls(value):
    fall(value)
"""

#: Writes down what it is told, after it has killed whoever tells it, once.
TELL = """
import json, os, pathlib, signal, sys

armed = pathlib.Path("armed")
if armed.exists():
    armed.unlink()
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit()
with open("told", "a") as file:
    file.write(json.load(sys.stdin)["key"] + "\\n")
"""

#: Ends an execution, and dies before anybody is told.
DIES = """
import asyncio, os, signal, sys
from wfe import Engine, Recording
from wfe.store.sqlite import SQLiteStore
from workflows.falls import falls

async def main():
    async with Engine(
        store=SQLiteStore(sys.argv[1]), recording=Recording.EVERY_STEP, on_finish="tell"
    ) as engine:
        engine.hold_notices()
        await engine.run(falls, 1, transaction_id="t1", throw_on_error=False)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        made.write("workflows/falls.py", FALLS)
        made.write("tell.py", TELL)
        made.write("wfe.toml", f'on_finish = "{sys.executable} tell.py"')
        yield made


def told(project: Project) -> list[str]:
    file = project.root / "told"
    return file.read_text().split() if file.exists() else []


def kinds(project: Project) -> list[str]:
    entries = project.wfe("executions", "events", "falls:t1", "-o", "json").document
    return [entry["kind"] for entry in entries]


@contextmanager
def served(project: Project) -> Iterator[None]:
    """`wfe serve`, until the block is over."""
    command = [WFE, "serve", "--log-format", "text"]
    with subprocess.Popen(command, cwd=project.root, stderr=subprocess.DEVNULL) as serving:
        try:
            yield
        finally:
            serving.terminate()
            assert serving.wait(20) == 143


def wait_until_told(project: Project) -> None:
    deadline = time.monotonic() + 20
    while not told(project):
        assert time.monotonic() < deadline, "nobody was told"
        time.sleep(0.02)


def die_before_it_is_told(project: Project) -> None:
    project.db.parent.mkdir()
    script = [sys.executable, "-c", DIES, str(project.db)]
    ended = subprocess.run(script, cwd=project.root, check=False, timeout=30)
    assert ended.returncode == -signal.SIGKILL
    assert kinds(project)[-1] == "finish"


def die_while_it_is_told(project: Project) -> None:
    project.write("armed", "")
    ended = project.execute("run", "falls", "-i", "1", "--tx", "t1")
    assert ended.code == -signal.SIGKILL
    assert "falls:t1 failed" in ended.err  # the result was out before
    assert kinds(project)[-1] == "finish"


@pytest.mark.parametrize("die", [die_before_it_is_told, die_while_it_is_told])
def test_who_resumes_tells_what_a_killed_process_owes(project: Project, die: object) -> None:
    assert callable(die)
    die(project)
    assert told(project) == []
    assert project.execute("executions", "resume").code == 0
    assert told(project) == ["falls:t1"]
    assert kinds(project)[-2:] == ["finish", "notice"]
    assert project.execute("executions", "resume").code == 0
    assert told(project) == ["falls:t1"]


def test_serve_tells_what_a_killed_process_owes(project: Project) -> None:
    die_before_it_is_told(project)
    with served(project):
        wait_until_told(project)
    assert told(project) == ["falls:t1"]
    assert kinds(project)[-2:] == ["finish", "notice"]


def test_serve_tells_of_what_ends_while_it_serves(project: Project) -> None:
    with served(project):
        project.execute("run", "falls", "-i", "1", "--tx", "t1", "--until", "stored")
        wait_until_told(project)
    assert told(project) == ["falls:t1"]
