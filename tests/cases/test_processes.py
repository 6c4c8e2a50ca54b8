"""Several processes on one database, by the numbers of the collection: E9 and P3."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import Project, until

HOLDING = """
import pathlib
import time

from wfe import StepContext, step, workflow

HERE = pathlib.Path(__file__).parent.parent


@step
def hold(ctx: StepContext) -> str:
    with (HERE / "begun").open("a") as file:
        file.write(ctx.idempotency_key + "\\n")
    while (HERE / "wait").exists():
        time.sleep(0.01)
    return "held"


@step
def quick() -> str:
    return "quick"


@workflow
def holding() -> str:
    return hold()


@workflow
def other() -> str:
    return quick()
"""


@pytest.fixture
def holding(project: Project) -> Iterator[Project]:
    """`holding` ends when the file `wait` has gone."""
    project.write("workflows/holding.py", HOLDING)
    (project.root / "wait").touch()
    yield project
    (project.root / "wait").unlink(missing_ok=True)


def begun(project: Project) -> list[str]:
    file = project.root / "begun"
    return file.read_text().splitlines() if file.exists() else []


def statuses(project: Project) -> list[str]:
    lines = project.wfe("executions", "list", "-w", "holding").lines
    return [line.split("\t")[1] for line in lines]


def test_case_e9_another_run_touches_nothing_of_what_is_interrupted(holding: Project) -> None:
    dying = [holding.start("run", "holding", "--tx", f"t{number}") for number in range(3)]
    until(lambda: len(begun(holding)) == 3)
    for process in dying:
        process.kill()
        process.communicate()
    assert statuses(holding) == ["interrupted"] * 3
    before = _rows(holding.root / ".wfe" / "wfe.db")
    ended = holding.execute("run", "other")
    assert (ended.code, ended.out) == (0, '"quick"\n')
    assert statuses(holding) == ["interrupted"] * 3
    assert _rows(holding.root / ".wfe" / "wfe.db") == before
    assert len(begun(holding)) == 3


def _rows(db: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(db) as connection:
        query = "SELECT * FROM workflow_execution WHERE workflow_id = 'holding' ORDER BY serial"
        return connection.execute(query).fetchall()


def test_case_p3_eight_processes_write_at_once_and_signals_end_what_they_should(
    holding: Project,
) -> None:
    writing = [holding.start("run", "other", "--tx", f"w{number}") for number in range(8)]
    for process in writing:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, '"quick"\n'), err

    first = holding.start("run", "holding", "--tx", "graceful")
    second = holding.start("run", "holding", "--tx", "at-once")
    third = holding.start("run", "holding", "--tx", "terminated")
    until(lambda: len(begun(holding)) == 3)
    second.send_signal(signal.SIGINT)
    _until_it_stops(second)  # and waits for the step
    second.send_signal(signal.SIGINT)
    assert second.wait(20) == 130
    first.send_signal(signal.SIGINT)
    third.send_signal(signal.SIGTERM)
    for process in (first, third):
        _until_it_stops(process)
    (holding.root / "wait").unlink()
    assert (first.wait(20), third.wait(20)) == (130, 143)
    for process in (first, second, third):
        process.communicate()

    with sqlite3.connect(holding.root / ".wfe" / "wfe.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counts = dict(
            connection.execute("SELECT state, count(*) FROM workflow_execution GROUP BY state")
        )
    assert sum(counts.values()) == 8 + 3, "nothing was lost, and nothing begun twice"
    assert counts["done"] >= 8
    assert "failed" not in counts


def _until_it_stops(process: subprocess.Popen[str]) -> None:
    """Return when it has said that it has understood."""
    assert process.stderr is not None
    while "Stopping" not in process.stderr.readline():
        assert process.poll() is None
