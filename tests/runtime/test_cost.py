"""What an execution costs, counted instead of timed.

`make bench` measures time, which a busy machine distorts; the number of calls of functions of wfe, of
tasks, of objects, and of commits and statements of SQLite, is the same at every run. Each limit of calls is some 15 %
above what is reached.

A limit that a change exceeds is raised on purpose or not at all: run the benchmark before and after
the change, raise the limit in the commit that makes the change, and say there what it buys. One
that a change leaves far behind is lowered.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import wfe
from wfe import Engine, Workflow, parallel, step, workflow
from wfe.authoring.registry import Registry
from wfe.model import Recording
from wfe.store.commits import Commits
from wfe.store.connection import Connection
from wfe.store.sqlite import SQLiteStore
from wfe.store.writer import Parcel

#: Calls of a run without steps, of each step in sequence, and of each of many that run together.
MOST_CALLS_PER_RUN = 118
MOST_CALLS_PER_STEP = 51
MOST_CALLS_PER_PARALLEL_STEP = 48

#: Objects that are looked through for garbage, of each of many executions whose steps are being written
#: down: what takes the time where many run at once is this looking, as much as anything else.
MOST_OBJECTS_UNDER_WAY = 50

#: Statements of SQLite in a commit that keeps the end of one step and the begin of the next, its BEGIN and
#: COMMIT counted.
MOST_STATEMENTS_PER_STEP = 5

_PACKAGE = str(Path(wfe.__file__).parent)


@step
async def same(value: Any) -> Any:
    return value


def sequence(length: int) -> Workflow[Any, Any]:
    with Registry().scope():

        @workflow(f"sequence-{length}")
        def body(value: Any) -> Any:
            for number in range(length):
                value = same.config(name=f"step-{number}")(value)
            return value

    return body


def side_by_side(width: int) -> Workflow[Any, Any]:
    with Registry().scope():

        @workflow(f"parallel-{width}")
        def body(value: Any) -> Any:
            return list(parallel([same.config(name=f"step-{n}")(value) for n in range(width)]))

    return body


class Cost:
    """Counts calls of functions of wfe (a coroutine that goes on counts again), and new tasks."""

    def __init__(self) -> None:
        self.calls = 0
        self.tasks = 0

    def called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            self.calls += 1

    def new_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, /, **options: Any
    ) -> asyncio.Task[Any]:
        self.tasks += 1
        return asyncio.Task(work, loop=loop, **options)


def cost_of(flow: Workflow[Any, Any]) -> Cost:
    """The cost of one run, after one that has warmed everything up."""

    async def measured() -> Cost:
        cost = Cost()
        async with Engine() as engine:
            await engine.run(flow, 1)
            loop = asyncio.get_running_loop()
            loop.set_task_factory(cost.new_task)
            former = sys.getprofile()
            sys.setprofile(cost.called)
            try:
                outcome = await engine.run(flow, 1)
            finally:
                sys.setprofile(former)
                loop.set_task_factory(None)
        assert outcome.acknowledgement.has_finished
        return cost

    return asyncio.run(measured())


def per_step(make: Callable[[int], Workflow[Any, Any]]) -> float:
    return (cost_of(make(60)).calls - cost_of(make(10)).calls) / 50


def test_a_run_costs_few_calls_beside_those_of_its_steps() -> None:
    assert cost_of(sequence(0)).calls <= MOST_CALLS_PER_RUN


def test_five_steps_in_sequence_cost_few_calls() -> None:
    most = MOST_CALLS_PER_RUN + 5 * MOST_CALLS_PER_STEP
    assert cost_of(sequence(5)).calls <= most


def test_a_step_more_costs_few_calls() -> None:
    assert per_step(sequence) <= MOST_CALLS_PER_STEP


def test_a_step_more_beside_others_costs_few_calls() -> None:
    assert per_step(side_by_side) <= MOST_CALLS_PER_PARALLEL_STEP


def test_a_step_costs_as_many_calls_in_a_long_flow_as_in_a_short_one() -> None:
    short, long, longer = (cost_of(sequence(n)).calls for n in (50, 500, 950))
    assert (longer - long) / 450 <= 1.02 * (long - short) / 450


def test_steps_in_sequence_share_one_task() -> None:
    assert cost_of(sequence(0)).tasks == cost_of(sequence(40)).tasks == 1


def test_steps_that_run_together_have_a_task_each_and_share_the_rest() -> None:
    # One that begins, one for each step, one that takes in what they came to.
    assert cost_of(side_by_side(40)).tasks == 40 + 2


def objects_of(count: int, file: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many objects there are while so many executions wait for one commit."""
    found, waiting = list[int](), list[asyncio.Future[bool]]()

    def put(commits: Commits, parcel: Parcel, *, lone: bool) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        if len(waiting) == count:
            found.append(len(gc.get_objects()))
            for each in waiting:
                each.set_result(True)
            waiting.clear()
        return future

    async def measured() -> None:
        async with Engine(store=SQLiteStore(file), recording=Recording.EVERY_STEP) as engine:
            await engine.run(flow, 0)
            with monkeypatch.context() as patched:
                patched.setattr(Commits, "put", put)
                await asyncio.gather(*(engine.run(flow, number) for number in range(count)))

    flow = sequence(5)
    asyncio.run(measured())
    assert len(found) == 6
    return found[3]


def test_of_many_that_are_under_way_each_is_few_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (objects_of(n, tmp_path / f"{n}.db", monkeypatch) for n in (100, 300))
    assert (many - few) / 200 <= MOST_OBJECTS_UNDER_WAY


class Statements(list[str]):
    """The first words of all statements by which any connection writes, in their order."""

    def note(self, statement: str) -> None:
        if not statement.startswith("--"):  # what a trigger runs
            word = statement.split(maxsplit=1)[0]
            if word not in ("PRAGMA", "SELECT"):
                self.append(word)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Statements:
    found = Statements()
    connect = Connection.__init__

    def traced(self: Connection, *arguments: Any, **options: Any) -> None:
        connect(self, *arguments, **options)
        self.raw.set_trace_callback(found.note)

    monkeypatch.setattr(Connection, "__init__", traced)
    return found


def written_by(flow: Workflow[Any, Any], file: Path, statements: Statements) -> Counter[str]:
    """What one run writes, after one that has warmed everything up."""

    async def measured() -> Counter[str]:
        engine = Engine(store=SQLiteStore(file), recording=Recording.EVERY_STEP)
        async with engine:
            await engine.run(flow, 1)
            statements.clear()
            await engine.run(flow, 1)
            return Counter(statements)

    return asyncio.run(measured())


def test_a_step_in_sequence_is_one_commit_of_few_statements(
    tmp_path: Path, statements: Statements
) -> None:
    ten = written_by(sequence(10), tmp_path / "wfe.db", statements)
    thirty = written_by(sequence(30), tmp_path / "wfe.db", statements)
    assert (ten["COMMIT"], thirty["COMMIT"]) == (11, 31)
    assert (thirty.total() - ten.total()) / 20 <= MOST_STATEMENTS_PER_STEP


def test_steps_that_run_together_share_few_commits(tmp_path: Path, statements: Statements) -> None:
    assert written_by(side_by_side(40), tmp_path / "wfe.db", statements)["COMMIT"] <= 3
