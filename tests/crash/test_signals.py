"""Ctrl-C at any moment: what was left goes on with the same command, and nothing is done twice."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash import ledger
from tests.crash.checks import check_file
from tests.crash.conftest import Room
from tests.project import WFE, Project, project_in
from wfe.errors import StoreUnusable
from wfe.model import ExecutionKey
from wfe.store.contract import Query
from wfe.store.database import open_reader

INT, TERM = signal.SIGINT, signal.SIGTERM

WORKFLOWS = """
import asyncio
import contextlib
import json
import os
import time

from wfe import PermanentStepFailure, StepContext, parallel, step, workflow

@contextlib.contextmanager
def effect(ctx):
    write("begin", ctx)
    yield
    write("end", ctx)

def write(what, ctx):
    line = {"what": what, "key": ctx.idempotency_key, "attempt": ctx.attempt, "pid": os.getpid()}
    ledger = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, json.dumps(line).encode() + b"\\n")
    os.close(ledger)

@step
def block(ctx: StepContext, value=None):
    with effect(ctx):
        time.sleep(0.03)
    return ctx.step_name

@block.compensate
def undo_block(ctx: StepContext, value):
    with effect(ctx):
        time.sleep(0.03)

@step
async def wait(ctx: StepContext, value=None):
    with effect(ctx):
        await asyncio.sleep(0.03)
    return ctx.step_name

@wait.compensate
async def undo_wait(ctx: StepContext, value):
    with effect(ctx):
        await asyncio.sleep(0.03)

@step
def refuse(ctx: StepContext, value):
    raise PermanentStepFailure("never")

def some():
    first = block.config(name="first")()
    both = parallel(block.config(name="left")(first), wait.config(name="right")(first))
    return wait.config(name="last")(list(both))

@workflow("forward")
def forward():
    return some()

@workflow("backward")
def backward():
    return refuse(some())
"""

STEPS = ("first", "left", "right", "last")


class Trial(NamedTuple):
    """Signals, and the moments at which a command gets them."""

    workflow: str
    transaction_id: str
    signals: Sequence[signal.Signals]
    #: The first comes after so many lines of its progress, and so many seconds more.
    lines: int
    pauses: Sequence[float]


def trials(room: Room, count: int) -> Iterator[Trial]:
    chance = room.random
    for number in range(count):
        signals = chance.choice([(INT,), (TERM,), (INT, INT), (INT, TERM), (TERM, TERM)])
        yield Trial(
            workflow=chance.choice(["forward", "backward"]),
            transaction_id=str(number),
            signals=signals,
            lines=chance.randrange(20),
            pauses=[chance.random() * 0.04 for _ in signals],
        )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        made.write("workflows/both.py", WORKFLOWS)
        yield made


def test_a_run_that_got_signals_completes_later_and_does_nothing_twice(
    project: Project, room: Room
) -> None:
    tried = list(trials(room, 100 if room.is_full else 4))
    with ThreadPoolExecutor(2) as threads:
        codes = list(threads.map(lambda trial: attempt(project, trial), tried))
    check_file(project.db)
    room.count(runs_with_signals=len(codes), interrupted=sum(code > 128 for code in codes))


def attempt(project: Project, trial: Trial) -> int:
    """Run, interrupt, complete. The exit code of the run that was interrupted."""
    code, err = interrupted(project, trial)
    end = 10 if trial.workflow == "backward" else 0
    has_begun = any("\t" in line for line in err)
    if has_begun:  # before, it may have been Python's own start that the signal met
        assert not any("Traceback" in line for line in err), (trial, err)
        assert code in (end, 128 + INT, 128 + TERM), (trial, code, err)
    key = ExecutionKey(trial.workflow, trial.transaction_id)
    if not is_final(project, key):
        again = project.execute("run", trial.workflow, "--tx", trial.transaction_id)
        assert again.code == end, (trial, err, again)
    assert is_final(project, key)

    lines = [each for each in ledger.read(project.root / "ledger") if f"{key}:" in each.key]
    actions = ("invoke",) if trial.workflow == "forward" else ("invoke", "compensate")
    steps = {f"{key}:{step}:{action}" for step in STEPS for action in actions}
    assert {line.key for line in lines if line.what == "end"} == steps, (trial, lines)
    # The first signal lets running steps end; the second cuts off what is in flight.
    is_graceful = len(trial.signals) == 1 and has_begun
    told = {line.split("\t")[2] for line in err if "step_success\t" in line}
    may_be_twice = set() if is_graceful else steps - told
    for step, count in Counter(line.key for line in lines if line.what == "begin").items():
        assert count <= 1 + (step in may_be_twice), (trial, step, lines, err)
    return code


def is_final(project: Project, key: ExecutionKey) -> bool:
    """Has its one run come to an end?"""
    try:
        with open_reader(project.db) as reader:
            runs = [run for run in reader.list(Query()) if run.key == key]
    except StoreUnusable:
        return False  # it was interrupted before there was a database
    assert len(runs) <= 1
    return bool(runs) and runs[0].state.is_final


def interrupted(project: Project, trial: Trial) -> tuple[int, list[str]]:
    """The exit code, and the lines of progress."""
    command = [WFE, "run", trial.workflow, "--tx", trial.transaction_id]
    with subprocess.Popen(
        command,
        cwd=project.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        guard = threading.Timer(60, running.kill)
        guard.start()
        err = [running.stderr.readline() for _ in range(trial.lines)]
        for number, pause in zip(trial.signals, trial.pauses, strict=True):
            time.sleep(pause)  # any moment will do: nothing is waited for
            running.send_signal(number)
        err += running.stderr
        code = running.wait()
        guard.cancel()
        # A shell does not tell either who died of a signal from who ends with 128 and its number.
        return (128 - code if code < 0 else code), [line for line in err if line]
