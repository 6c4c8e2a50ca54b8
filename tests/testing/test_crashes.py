"""Crash points: an engine stops dead at one of them, and another one takes the execution up again."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.testing.shapes import DAY, SHAPES, World, make_world
from wfe import Engine, Recording, StepContext, Workflow, step, workflow
from wfe.errors import InvalidInput, UsageError
from wfe.model import ExecutionKey
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore
from wfe.testing import (
    Call,
    Crash,
    CrashedRun,
    CrashingStore,
    NotEnded,
    VirtualClock,
    VirtualLoop,
    crash_at,
    crash_everywhere,
    run_to_end,
)


@step
async def charge(ctx: StepContext) -> str:
    world: World = ctx.resolve("world")
    return world.act(ctx)


@charge.compensate
async def refund(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)


@step
def ship(ctx: StepContext) -> None:
    ctx.resolve("world").act(ctx)
    raise ValueError("no truck")


@pytest.fixture
def order() -> Workflow[None, None]:
    @workflow
    def order() -> None:
        charge()
        ship()

    return order


def crash(point: str, workflow: Workflow[Any, Any], **options: Any) -> CrashedRun:
    return crash_at(point, workflow, **{"resources": make_world, **options})


def test_points_are_around_every_commit_and_every_function(order: Workflow[None, None]) -> None:
    points = [run.point for run in crash_everywhere(order, resources=make_world)]
    assert points == [
        "before commit 1",
        "after commit 1",
        "before charge",
        "after charge",
        "before commit 2",
        "after commit 2",
        "before ship",
        "after ship",
        "before commit 3",
        "after commit 3",
        "before ~charge",
        "after ~charge",
        "before commit 4",
        "after commit 4",
    ]


@pytest.mark.parametrize(
    ("point", "recorded", "called"),
    [
        ("before commit 1", [], []),
        ("after commit 1", ["begin", "step_begin"], []),
        ("before charge", ["begin", "step_begin"], []),
        ("after charge", ["begin", "step_begin"], ["charge"]),
        ("before commit 2", ["begin", "step_begin"], ["charge"]),
        ("after commit 2", ["begin", "step_begin", "step_success", "step_begin"], ["charge"]),
    ],
)
def test_nothing_is_recorded_or_called_past_the_point(
    order: Workflow[None, None], point: str, recorded: list[str], called: list[str]
) -> None:
    first = crash(point, order).lives[0]
    assert [event.kind for event in first.events] == recorded
    assert [call.name for call in first.calls] == called
    assert first.points[-1] == first.crashed_at == point


def test_an_answer_that_does_not_fit_is_refused_as_without_a_crash() -> None:
    @step(async_=True)
    def count() -> int | None:
        return None

    @workflow
    def counted() -> None:
        count()

    for run in (run_to_end, partial(crash_at, "after count")):
        with pytest.raises(InvalidInput, match="expected `int`"):
            run(counted, answers={"count": "many"})


def test_a_step_in_flight_is_called_again_with_its_key_and_the_next_attempt(
    order: Workflow[None, None],
) -> None:
    run = crash("after charge", order)
    assert run.state == "reverted"
    key = "order:test:charge:invoke"
    assert run.calls[:2] == [
        Call(name="charge", attempt=1, idempotency_key=key),
        Call(name="charge", attempt=2, idempotency_key=key),
    ]
    assert [call.name for call in run.calls[2:]] == ["ship", "~charge"]


def test_the_world_outside_outlives_the_crash_and_is_new_for_each(
    order: Workflow[None, None],
) -> None:
    runs = list(crash_everywhere(order, resources=make_world))
    worlds = [run.resources["world"] for run in runs]
    assert len({id(world) for world in worlds}) == len(runs)
    assert worlds[3].times["order:test:charge:invoke"] == 2


def test_siblings_that_are_at_work_come_no_further() -> None:
    shape = SHAPES["parallel"]
    run = crash("after left", shape.workflow)
    assert run.state == "done"
    assert [call.name for call in run.lives[0].calls] == ["first", "left"]
    assert sorted(call.name for call in run.lives[1].calls) == ["last", "left", "middle", "right"]


def test_threads_at_work_are_waited_for_before_the_next_life() -> None:
    shape = SHAPES["threads"]
    run = crash("after second", shape.workflow)
    assert run.state == "done"
    assert [call.attempt for call in run.calls] == [1, 1, 2]


def test_time_goes_on_where_it_was_at_the_crash() -> None:
    shape = SHAPES["sleeping"]
    run = crash("before last", shape.workflow)
    assert run.seconds == 7 * DAY


def test_what_a_crash_interrupts_is_not_logged(
    order: Workflow[None, None], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "wfe"), caplog.at_level(logging.WARNING, "asyncio"):
        for name in ("parallel", "threads"):
            list(crash_everywhere(SHAPES[name].workflow, resources=make_world))
    assert [record.getMessage() for record in caplog.records] == []


def test_a_point_that_is_not_reached_is_refused_with_those_that_are(
    order: Workflow[None, None],
) -> None:
    with pytest.raises(
        UsageError, match=r"does not reach .*after chrage.* before charge, after cha"
    ):
        crash("after chrage", order)


def test_a_second_life_crashes_too_where_asked() -> None:
    @workflow
    def short() -> Any:
        return charge()

    once = list(crash_everywhere(short, resources=make_world))
    twice = list(crash_everywhere(short, resources=make_world, crashes=2))
    assert [run.point for run in twice if len(run.lives) == 2] == [run.point for run in once]
    assert "after charge, then before charge (attempt 2)" in [run.point for run in twice]
    assert {(run.state, run.result) for run in twice} == {("done", "charge done")}
    assert all(run.timeline == ["charge"] for run in twice)


def test_answers_are_given_in_whichever_life_asks() -> None:
    shape = SHAPES["awaiting"]
    runs = list(crash_everywhere(shape.workflow, answers=shape.answers, resources=make_world))
    assert {run.outputs["approve"] for run in runs} == {"yes"}
    assert "before commit 4" in [run.point for run in runs]


def test_a_workflow_that_does_not_come_to_its_end_tells_after_which_crash() -> None:
    with pytest.raises(NotEnded, match="waits for an answer") as caught:
        crash("after commit 2", SHAPES["awaiting"].workflow)
    assert caught.value.__notes__ == ["It was taken up after crashes: after commit 2."]


def test_a_file_is_all_that_is_left_of_a_life_on_sqlite(
    order: Workflow[None, None], tmp_path: Path
) -> None:
    run = crash("before commit 3", order, make_store=lambda: SQLiteStore(tmp_path / "wfe.db"))
    assert run.state == "reverted"
    assert run.timeline == ["charge", "ship!", "~charge"]


def test_an_engine_of_ones_own_crashes_with_its_store() -> None:
    store = MemoryStore()
    world = make_world()
    linear = SHAPES["linear"].workflow

    async def live(at: str | None) -> str:
        # Not a context manager: leaving it would be an orderly end.
        engine = Engine(
            store=CrashingStore(store, at),
            clock=VirtualClock(),
            resources=world,
            recording=Recording.EVERY_STEP,
        )
        await engine.start()
        outcome = await engine.run(linear, transaction_id="t1", until="finished")
        await engine.shutdown()
        return str(outcome.result["last"])

    def play(at: str | None) -> str:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(live(at))

    with pytest.raises(Crash, match="crashed after commit 2") as caught:
        play("after commit 2")
    assert caught.value.point == "after commit 2"
    assert list(world["world"].effects) == ["linear:t1:first:invoke"]
    kept = store.reader.load(ExecutionKey("linear", "t1"))
    assert kept is not None
    assert list(kept.steps) == ["first", "second"]


def test_a_running_loop_is_not_blocked(order: Workflow[None, None]) -> None:
    async def main() -> None:
        next(crash_everywhere(order))

    with pytest.raises(UsageError, match="a test that is not async"):
        asyncio.run(main())


def test_a_run_left_alone_and_a_crashed_one_compare() -> None:
    shape = SHAPES["when"]
    expected = run_to_end(shape.workflow, shape.input, resources=make_world())
    run = crash("after commit 3", shape.workflow, input=shape.input)
    assert (run.state, run.result, run.outputs) == (
        expected.state,
        expected.result,
        expected.outputs,
    )
    assert run.timeline == expected.timeline
    assert "crashed after commit 3" in repr(run)


# --- what a person's own workflows do ------------------------------------------------------------


def test_a_step_in_a_thread_may_tell_its_progress_in_every_life() -> None:
    @step
    def copy(ctx: StepContext) -> None:
        ctx.progress(0.5, "half")
        ctx.resolve("world").act(ctx)

    @workflow
    def copying() -> None:
        copy()

    for run in crash_everywhere(copying, resources=make_world):
        assert run.state == "done", run.lives


def test_a_child_whose_retry_is_overdue_when_it_is_taken_up_goes_on_once() -> None:
    @step(max_retries=2, retry_interval=0.5)
    async def flaky(ctx: StepContext) -> None:
        world: World = ctx.resolve("world")
        world.act(ctx)
        if world.times_of(ctx) == 1:
            raise OSError("busy")

    @workflow
    def copying() -> None:
        flaky()

    @workflow
    def parent() -> None:
        copying.as_step()

    for run in crash_everywhere(parent, resources=make_world):
        assert run.state == "done", run.lives
