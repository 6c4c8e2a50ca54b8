"""Two terminals on one database: one runs, the other answers, cancels, kills, takes over."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.project import Project, until

RELEASE = """
import pathlib
import time

from wfe import StepContext, step, workflow

HERE = pathlib.Path(__file__).parent.parent


def note(ctx: StepContext, what: str) -> None:
    with (HERE / "effects").open("a") as file:
        file.write(f"{what} {ctx.idempotency_key} {ctx.attempt}\\n")


@step
def build(ctx: StepContext) -> str:
    note(ctx, "build")
    return "1.2"


@build.compensate
def remove(ctx: StepContext, version) -> None:
    note(ctx, "remove")


@step(async_=True, max_retries=1)
def approve(ctx: StepContext) -> None:
    note(ctx, "approve")


@step
def publish(ctx: StepContext, version: str, answer: str | None) -> str:
    note(ctx, "publish")
    while (HERE / "wait").exists():
        time.sleep(0.01)
    return f"{version} by {answer}"


@workflow
def release() -> str:
    return publish(build(), approve())


@workflow
def other() -> str:
    return build()
"""


@pytest.fixture
def release(project: Project) -> Project:
    project.write("workflows/release.py", RELEASE)
    return project


def effects(project: Project) -> list[str]:
    file = project.root / "effects"
    return file.read_text().splitlines() if file.exists() else []


def status(project: Project) -> str:
    """The status of the newest execution."""
    lines = project.wfe("executions", "list").lines
    return lines[0].split("\t")[1] if lines else ""


def waiting(project: Project, *, is_installed: bool = False) -> subprocess.Popen[str]:
    """A process that runs it, and waits for the answer."""
    start = project.start_installed if is_installed else project.start
    process = start("run", "release", "--tx", "t1")
    until(lambda: status(project) == "waiting")
    return process


def test_a_run_that_waits_goes_on_with_an_answer_from_another_terminal(release: Project) -> None:
    (release.root / "wait").touch()
    running = waiting(release)
    answered = release.execute("step", "succeed", "release:t1:approve", "--response", '"kim"')
    assert answered.code == 0
    assert f"Accepted: process {running.pid} has release:t1 in hand" in answered.err
    (release.root / "wait").unlink()
    out, _ = running.communicate(timeout=20)
    assert (running.returncode, out) == (0, '"1.2 by kim"\n')
    timeline = release.wfe("executions", "show", "t1", "--timeline")
    assert "by " in timeline.out


def test_a_second_answer_is_refused_and_says_so(release: Project) -> None:
    (release.root / "wait").touch()
    running = waiting(release)
    assert release.wfe("step", "succeed", "t1", "--response", '"kim"').code == 0
    until(lambda: any("publish" in line for line in effects(release)))
    late = release.wfe("step", "fail", "release:t1:approve:invoke", "--error", "no", "-o", "json")
    assert late.code == 4
    assert late.document["error"]["code"] == "step_not_waiting"
    (release.root / "wait").unlink()
    running.communicate(timeout=20)
    assert running.returncode == 0


def test_a_cancel_from_another_terminal_undoes_what_the_run_has_done(release: Project) -> None:
    running = waiting(release)
    cancelled = release.execute("executions", "cancel", "t1")
    assert cancelled.code == 0
    running.communicate(timeout=20)
    assert running.returncode == 13
    assert [line.split()[0] for line in effects(release)] == ["build", "approve", "remove"]


@pytest.mark.parametrize("command", ["skip", "retry"])
def test_a_step_can_be_skipped_or_asked_again_from_another_terminal(
    release: Project, command: str
) -> None:
    running = waiting(release)
    assert release.execute("step", command, "release:t1:approve").code == 0
    if command == "retry":
        until(lambda: "approve release:t1:approve:invoke 2" in effects(release))
        until(lambda: status(release) == "waiting")
        assert release.execute("step", "skip", "release:t1:approve").code == 0
    out, _ = running.communicate(timeout=20)
    assert out == '"1.2 by None"\n'


def test_what_a_killed_process_left_is_interrupted_and_goes_on_where_it_was(
    release: Project,
) -> None:
    (release.root / "wait").touch()
    running = waiting(release, is_installed=True)
    release.wfe("step", "succeed", "t1", "--response", '"kim"')
    until(lambda: any("publish" in line for line in effects(release)))
    running.kill()
    running.communicate()
    assert status(release) == "interrupted"
    (release.root / "wait").unlink()
    assert release.execute("run", "other").code == 0
    assert "interrupted" in release.wfe("executions", "list").out, "other commands touch none of it"
    resumed = release.execute("executions", "resume", "t1")
    assert (resumed.code, resumed.out) == (0, '"1.2 by kim"\n')
    done = [line for line in effects(release) if ":t1:" in line]
    assert done == [
        "build release:t1:build:invoke 1",
        "approve release:t1:approve:invoke 1",
        "publish release:t1:publish:invoke 1",
        "publish release:t1:publish:invoke 2",
    ]


def test_everything_that_is_interrupted_is_resumed_at_once(release: Project) -> None:
    (release.root / "wait").touch()
    for transaction in ("t1", "t2"):
        process = release.start("run", "release", "--tx", transaction)
        until(lambda: status(release) == "waiting")
        release.wfe("step", "succeed", transaction, "--response", '"kim"')
        until(lambda: any(f":{transaction}:publish" in line for line in effects(release)))  # noqa: B023
        process.kill()
        process.communicate()
    (release.root / "wait").unlink()
    resumed = release.execute("executions", "resume")
    assert resumed.code == 0
    assert resumed.lines == ["release:t1\tdone\t", "release:t2\tdone\t"]
    assert release.execute("executions", "resume").err == "Nothing is interrupted.\n"


def test_an_execution_that_waits_in_a_killed_process_waits_on_and_can_be_answered(
    release: Project,
) -> None:
    running = waiting(release)
    running.kill()
    running.communicate()
    assert status(release) == "waiting"
    answered = release.execute("step", "succeed", "t1", "--response", '"lee"')
    assert (answered.code, answered.out) == (0, '"1.2 by lee"\n')
    assert [line.split()[0] for line in effects(release)] == ["build", "approve", "publish"]


def test_a_stopped_process_keeps_the_answer_until_it_goes_on(release: Project) -> None:
    running = waiting(release)
    running.send_signal(signal.SIGSTOP)
    release.write("wfe.toml", "accept_timeout = 0.2\n")
    answered = release.execute("step", "succeed", "t1", "--response", '"kim"')
    assert answered.code == 75
    assert "is kept" in answered.err
    running.send_signal(signal.SIGCONT)
    out, _ = running.communicate(timeout=20)
    assert out == '"1.2 by kim"\n'


def test_an_execution_in_another_hand_is_not_resumed(release: Project) -> None:
    running = waiting(release)
    refused = release.execute("executions", "resume", "t1")
    assert refused.code == 4
    assert f"process {running.pid}" in refused.err
    running.kill()
    running.communicate()


def test_a_database_that_is_deleted_while_an_execution_waits_is_noticed(release: Project) -> None:
    running = waiting(release)
    release.db.unlink()
    _, err = running.communicate(timeout=20)
    assert running.returncode == 1
    assert "was deleted or replaced" in err
