"""`wfe serve` as processes: several of them share the work, and one that is killed loses nothing."""

from __future__ import annotations

import io
import os
import shutil
import signal
from datetime import datetime
from itertools import pairwise
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import Project, until
from tests.terminal import Terminal

from .screen import screen_after
from .serving import PATIENCE, serving

JOBS = """
import pathlib
import time

from wfe import Schedule, StepContext, WorkflowResponse, step, workflow

HERE = pathlib.Path(__file__).parent.parent

@step
def note(ctx: StepContext) -> None:
    with (HERE / "noted").open("a") as file:
        file.write(f"{ctx.workflow_id} {ctx.scheduled_for.isoformat()} {ctx.attempt}\\n")

@workflow("pulse", schedule="* * * * * *")
def pulse():
    note()

@workflow("often", schedule=Schedule(interval=0.5, concurrency="allow"))
def often():
    note()

@step
def echo(value):
    return value

@step
def linger(value):
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return value

@workflow("two-steps")
def two_steps(value):
    return WorkflowResponse(echo(linger(value)))
"""


@pytest.fixture
def jobs(project: Project) -> Project:
    project.write("workflows/jobs.py", JOBS)
    return project


def ticks(project: Project, name: str) -> list[dict[str, Any]]:
    """What the ledger has of a schedule, in order."""
    found = project.wfe("schedules", "ticks", name, "--limit", "5000", "-o", "json").document
    return list(reversed(found))


def holder(project: Project, name: str) -> str | None:
    """Who serves a schedule, as `wfe schedules show` says."""
    document = project.wfe("schedules", "show", name, "-o", "json").document
    assert document["status"] == ("idle" if document["holder"] is None else "serving")
    found: str | None = document["holder"]
    return found


#: Ticks of each schedule before one is killed, and as many after it. The long form (make schedules) takes
#: two minutes.
EACH = 60 if os.environ.get("SCHEDULES") == "full" else 1


def test_of_two_of_which_one_is_killed_every_tick_is_run_once(jobs: Project) -> None:
    noted = jobs.root / "noted"

    def are_done(numbers: dict[str, int]) -> bool:
        """So many ticks of each are run, and nothing before them is left open."""
        return all(
            len(found := [tick for tick in ticks(jobs, name) if tick["state"] != "due"]) > number
            and all(tick["outcome"] == "done" or tick["reason"] for tick in found[:number])
            for name, number in numbers.items()
        )

    with serving(jobs) as first, serving(jobs) as second:
        until(lambda: are_done(dict.fromkeys(("pulse", "often"), EACH)), PATIENCE + 2 * EACH)
        assert holder(jobs, "pulse") == f"process {first.process.pid}"
        first.process.kill()
        counts = {name: len(ticks(jobs, name)) + EACH for name in ("pulse", "often")}
        until(lambda: holder(jobs, "pulse") == f"process {second.process.pid}", PATIENCE)
        until(lambda: are_done(counts), PATIENCE + 2 * EACH)
        assert second.stop()[-1]["event"] == "note"
        assert second.process.returncode == 143
    runs = [line.split() for line in noted.read_text().splitlines()]
    for name, apart in (("pulse", 1.0), ("often", 0.5)):
        known = {datetime.fromisoformat(tick["scheduled_for"]): tick for tick in ticks(jobs, name)}
        assert {(later - tick).total_seconds() for tick, later in pairwise(known)} == {apart}
        fired = {moment for moment, tick in known.items() if tick["state"] == "fired"}
        # One that was cut off, and was taken up, may have been in the way of the next.
        others = {tick["reason"] for moment, tick in known.items() if moment not in fired}
        assert others <= {"overlap"}
        begun = [moment for workflow, moment, attempt in runs if (workflow, attempt) == (name, "1")]
        assert len(begun) == len(set(begun))
        assert {moment for workflow, moment, _ in runs if workflow == name} == {
            moment.isoformat(timespec="auto") for moment in fired
        }


def test_what_was_accepted_or_killed_elsewhere_is_driven(jobs: Project) -> None:
    accepted = jobs.execute("run", "two-steps", "-i", "1", "--tx", "accepted", "--until", "stored")
    assert (accepted.code, (jobs.root / "begun").exists()) == (0, False)
    (jobs.root / "go").touch()
    with serving(jobs) as served:

        def state() -> str:
            shown = jobs.wfe("executions", "show", "accepted", "-o", "json").document
            return str(shown["execution"]["state"])

        until(lambda: state() == "done")
        served.stop(signal.SIGINT)
    assert served.process.returncode == 130


def test_the_first_signal_lets_the_running_step_end(jobs: Project) -> None:
    jobs.execute("run", "two-steps", "-i", "1", "--tx", "t1", "--until", "stored")
    with serving(jobs) as served:
        until((jobs.root / "begun").exists)
        served.process.send_signal(signal.SIGTERM)
        served.until(event="note", message="Stopping")
        (jobs.root / "go").touch()
        served.rest()
        assert served.process.returncode == 143
    steps = jobs.wfe("executions", "show", "t1", "-o", "json").document["execution"]["steps"]
    assert steps["linger"]["invoke"]["state"] == "done"
    assert steps["echo"]["invoke"]["state"] == "not_started"


def test_the_second_signal_ends_it_at_once_with_a_line_like_the_others(jobs: Project) -> None:
    jobs.wfe("run", "two-steps", "-i", "1", "--tx", "cut", "--until", "stored")
    with serving(jobs) as served:
        until((jobs.root / "begun").exists)
        served.process.send_signal(signal.SIGTERM)
        served.until(event="note", message="Stopping")
        last = served.stop(signal.SIGINT)[-1]
    assert served.process.returncode == 130
    assert (last["event"], last["message"]) == (
        "note",
        "What is unfinished goes on with: wfe serve",
    )


def test_expressions_that_may_not_be_meant_are_told_when_it_begins(jobs: Project) -> None:
    uneven = '@workflow("odd", schedule="*/7 * * * *")\ndef odd():\n    note()\n'
    jobs.write("workflows/jobs.py", JOBS + uneven)
    with serving(jobs) as served:
        served.until(event="note", message="Schedule odd: '*/7' in the minutes is uneven")
        served.stop()


def test_without_its_database_it_ends(jobs: Project) -> None:
    with serving(jobs) as served:
        shutil.rmtree(jobs.db.parent)
        told = served.rest()
        assert served.process.returncode == 1
    assert "wfe.db" in told[-2]["printed"]


@pytest.mark.parametrize("width", [60, 100])
def test_a_person_sees_what_is_next_what_goes_on_and_what_has_ended(
    jobs: Project, width: int
) -> None:
    written = io.StringIO()
    terminal = Terminal("serve", folder=jobs.root, lines=40, columns=width, TERM="xterm")
    terminal.logfile_read = written
    terminal.expect("ENDED")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    lines = [line for line in screen_after(written.getvalue()) if line]
    assert "What is unfinished goes on with: wfe serve" in lines
    board = lines[next(n for n, line in enumerate(lines) if line.startswith("SCHEDULE")) :]
    assert board[0].split() == ["SCHEDULE", "NEXT", "LAST"]
    assert {board[1].split()[0], board[2].split()[0]} == {"often", "pulse"}
    ended = next(n for n, line in enumerate(board) if line.startswith("ENDED"))
    assert board[ended + 1].startswith("✓ done")
    assert board[-1].startswith("serving ")
    assert all(len(line) <= width for line in board)


def test_a_person_sees_the_ticks_that_another_process_has_decided_on(jobs: Project) -> None:
    jobs.write("workflows/jobs.py", JOBS.replace('"* * * * * *"', '"0 0 1 1 *"'))
    terminal = Terminal("serve", folder=jobs.root, lines=40, TERM="xterm")
    terminal.expect("pulse +in [^ ]+ *\r")
    assert jobs.execute("schedules", "trigger", "pulse").code == 0
    terminal.expect("pulse +in [^ ]+ +fired")
    terminal.close(force=True)


def test_sentences_above_the_board_are_broken_between_words(jobs: Project) -> None:
    said = (
        "Schedule two-steps: '*/90' in the minutes is only 0, as",
        "counting begins anew with each hour: that is hourly at",
    )
    arguments = ["schedule", "two-steps", "-i", "1", "--cron", "*/90 * * * *"]
    terminal = Terminal(*arguments, folder=jobs.root, lines=40, columns=60, TERM="xterm")
    terminal.expect_exact(f"{said[0]}\r\n")
    terminal.expect_exact(said[1])
    terminal.close(force=True)
