"""Every example that `--help` shows is one that works."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator

from tests.project import Project, until
from wfe.cli.app import whole

ORDER = """
import pathlib
import time

from wfe import WorkflowResponse, step, workflow

HERE = pathlib.Path(__file__).parent.parent

@step
def take(order: dict) -> dict:
    (HERE / "begun").touch()
    while (HERE / "slow").exists():
        time.sleep(0.01)
    if (HERE / "broken").exists():
        raise RuntimeError("the till is locked")
    return order

@workflow("order")
def order(order: dict):
    return WorkflowResponse(take(order))
"""

RELEASE = """
from wfe import WorkflowResponse, step, workflow

@step(async_=True)
def approve(version: str) -> None:
    return None

@workflow("release")
def release(version: str):
    return WorkflowResponse(approve(version))
"""


JOBS = """
from wfe import step, workflow

@step
def work() -> None: ...

@workflow("nightly", schedule="0 3 * * *")
def nightly():
    work()

@workflow("weekly", schedule="@weekly")
def weekly():
    work()
"""


def commands(command: object, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command there is."""
    for name, inner in getattr(command, "commands", {}).items():
        yield (*path, name)
        yield from commands(inner, *path, name)


def test_every_example_runs(project: Project) -> None:
    project.write("workflows/order.py", ORDER)
    project.write("workflows/release.py", RELEASE)
    project.write("order.json", '{"gift": true}')
    for tx in ("2026.11", "2026.12", "2026.13", "2026.14"):
        project.wfe("run", "release", "--tx", tx, "-i", '"1"', "--until", "waiting")
    for tx in ("order-0042", "order-0043", "order-0046", "order-0047"):
        project.wfe("run", "order", "--tx", tx, "-i", "@order.json")
    project.write("workflows/jobs.py", JOBS)
    _interrupted_soon(project, "wfe serve")  # it takes up their schedules
    _reverted(project, "order-0044")
    _interrupted(project, "order-0045")
    examples = [
        line.strip()
        for words in commands(whole())
        for line in project.wfe(*words, "--help").lines
        if line.startswith("  wfe ")
    ]
    assert len(examples) >= 9
    for example in examples:
        if _serves(example):
            assert _interrupted_soon(project, example) == 130, example
            continue
        ended = project.wfe(*shlex.split(example)[1:])
        expected = 20 if "--until waiting" in example else 0
        assert ended.code == expected, f"{example}\n{ended.err}"


def _serves(example: str) -> bool:
    """It goes on until somebody stops it."""
    return example.startswith(("wfe serve", "wfe schedule ")) and "--max" not in example


def _interrupted_soon(project: Project, example: str) -> int:
    """What a command ends with that gets an INT as soon as it serves."""
    with project.start(*shlex.split(example)[1:]) as process:
        assert process.stderr is not None
        while "schedule" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    return process.returncode


def _reverted(project: Project, tx: str) -> None:
    """An order that failed, and would not fail again."""
    (project.root / "broken").touch()
    assert project.wfe("run", "order", "--tx", tx, "-i", "@order.json").code == 10
    (project.root / "broken").unlink()


def _interrupted(project: Project, tx: str) -> None:
    """An order whose process was killed in the middle of its step."""
    begun, slow = project.root / "begun", project.root / "slow"
    begun.unlink()
    slow.touch()
    with project.start("run", "order", "--tx", tx, "-i", "@order.json") as process:
        until(begun.exists)
        process.kill()
    slow.unlink()
