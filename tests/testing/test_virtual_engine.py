"""VirtualEngine: the engine of tests that are plain functions, and whose time they move."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.testing.shapes import DAY, SHAPES, make_world
from wfe import (
    Registry,
    StepContext,
    StepFailed,
    StepNotWaiting,
    TransactionFinished,
    TransactionNotFound,
    WorkflowNotFound,
    parallel,
    resource,
    step,
    workflow,
)
from wfe.errors import MalformedKey, UsageError
from wfe.model import EventKind
from wfe.store.sqlite import SQLiteStore
from wfe.testing import EPOCH, VirtualEngine

asking = SHAPES["awaiting"].workflow
sleeping = SHAPES["sleeping"].workflow


@pytest.fixture
def engine() -> Iterator[VirtualEngine]:
    with VirtualEngine(resources=make_world()) as engine:
        yield engine


def test_a_run_returns_where_it_waits_and_an_answer_takes_it_on(engine: VirtualEngine) -> None:
    run = engine.run(asking, transaction_id="t1")
    assert run.state == "invoking"
    assert run.timeline == ["first", "approve?"]
    with pytest.raises(ValueError, match="has not ended"):
        _ = run.result
    with pytest.raises(ValueError, match="has not ended"):
        _ = run.seconds
    assert engine.waiting == ["asking:t1:approve:invoke"]

    run = engine.answer("approve", "yes")
    assert run.state == "done"
    assert run.result == "last done"
    assert run.outputs["approve"] == "yes"
    assert engine.timeline == ["first", "approve?", "approve", "last"]
    assert engine.waiting == []


def test_time_stands_still_until_it_is_told_to_pass(engine: VirtualEngine) -> None:
    engine.run(sleeping, transaction_id="t1")
    assert engine.now == EPOCH
    engine.advance(6 * DAY)
    assert engine.timeline == ["first"]
    engine.advance(DAY)
    assert engine.timeline == ["first", "a-week", "last"]
    assert engine.now == EPOCH + timedelta(days=7)
    assert engine.look(sleeping, "t1").state == "done"


def test_what_comes_due_meanwhile_happens_at_its_own_moment(engine: VirtualEngine) -> None:
    engine.run(SHAPES["retry"].workflow)
    engine.advance(10 * DAY)
    days = [
        (event.time - EPOCH).days for event in engine.events if event.kind is EventKind.STEP_BEGIN
    ]
    assert days == [0, 0, 1, 2]


def test_a_failure_from_outside_is_retried_unless_it_is_permanent(engine: VirtualEngine) -> None:
    @step(async_=True, max_retries=5)
    async def ask() -> None: ...

    @workflow
    def persistent() -> Any:
        return ask()

    engine.run(persistent)
    assert engine.fail("ask", ValueError("not yet")).state == "invoking"
    assert engine.fail("ask", "the truck is gone", permanent=True).state == "reverted"
    assert engine.timeline == ["ask?", "ask!", "ask?", "ask!"]


def test_a_step_that_parks_after_a_failure_is_retried_by_its_key(engine: VirtualEngine) -> None:
    calls = []

    @step(async_=True, max_retries=1, auto_retry=False)
    async def flaky() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError
        return "well"

    @workflow
    def parked() -> Any:
        return flaky()

    engine.run(parked, transaction_id="t1")
    assert engine.timeline == ["flaky!"]
    engine.retry("parked:t1:flaky:invoke")
    assert engine.look(parked, "t1").result == "well"
    with pytest.raises(MalformedKey):
        engine.retry("flaky")


def test_a_cancel_undoes_what_was_done(engine: VirtualEngine) -> None:
    engine.run(asking, transaction_id="t1")
    assert engine.cancel(asking, "t1").state == "reverted"
    assert engine.timeline == ["first", "approve?", "approve!", "~approve", "~first"]


def test_an_undo_is_answered_under_its_own_name(engine: VirtualEngine) -> None:
    engine.run(SHAPES["awaiting-undo"].workflow)
    engine.answer("approve")
    assert engine.answer("~approve").state == "reverted"


def test_an_answer_by_name_needs_just_one_step_of_that_name(engine: VirtualEngine) -> None:
    with pytest.raises(UsageError, match=r"No step named 'approve' waits .* Waiting: none"):
        engine.answer("approve")
    engine.run(asking, transaction_id="t1")
    engine.run(asking, transaction_id="t2")
    with pytest.raises(
        UsageError, match=r"2 steps named 'approve' wait .*asking:t2:approve:invoke"
    ):
        engine.answer("approve")
    with pytest.raises(
        UsageError, match=r"No step named 'aprove' waits .*asking:t1:approve:invoke"
    ):
        engine.answer("aprove")
    assert engine.answer("asking:t2:approve:invoke").state == "done"
    assert engine.waiting == ["asking:t1:approve:invoke"]


def test_refusals_raise_and_bad_ends_do_not(engine: VirtualEngine) -> None:
    failing = SHAPES["compensation-fails"].workflow
    assert engine.run(failing).state == "failed"
    with pytest.raises(StepFailed):
        engine.run(failing, throw_on_error=True)
    with pytest.raises(TransactionNotFound):
        engine.look(asking, "nobody")
    with pytest.raises(TransactionNotFound):
        engine.cancel(asking, "nobody")
    engine.run(asking, transaction_id="t1")
    with pytest.raises(StepNotWaiting):
        engine.answer("asking:t1:first:invoke")
    engine.answer("approve")
    with pytest.raises(TransactionFinished):
        engine.fail("asking:t1:approve:invoke", "late")


def test_what_follows_at_the_same_moment_has_happened_when_a_command_returns(
    engine: VirtualEngine,
) -> None:
    @step(async_=True)
    async def in_the_background(ctx: StepContext) -> str:
        return "done at once"

    @workflow
    def background() -> Any:
        return in_the_background()

    run = engine.run(background, transaction_id="t1")
    assert run.timeline == ["in_the_background"]
    assert engine.look(background, "t1").state == "done"


def test_workflows_are_known_by_id_and_found_again(engine: VirtualEngine) -> None:
    @step(async_=True)
    async def ask() -> None: ...

    @workflow
    def known() -> Any:
        return ask()

    engine.run("known")
    assert engine.answer("ask", 1).result == 1
    with pytest.raises(WorkflowNotFound):
        engine.run("unknown")


def test_events_of_nested_workflows_are_heard(engine: VirtualEngine) -> None:
    engine.run(SHAPES["nested"].workflow)
    assert engine.timeline == ["first", "child/one", "child/two", "child-as-step", "last"]


def test_steps_find_resources_of_factories_and_what_they_emit_is_kept(
    registry: Registry, engine: VirtualEngine
) -> None:
    @resource
    def greeting() -> str:
        return "hello"

    @step
    def greet(ctx: StepContext) -> None:
        ctx.emit("greeted", ctx.resolve("greeting"))

    @workflow
    def greeting_somebody() -> Any:
        parallel(greet())

    engine.run(greeting_somebody)
    assert [(event.name, event.data) for event in engine.emitted] == [("greeted", "hello")]


def test_the_engine_itself_is_at_hand(engine: VirtualEngine) -> None:
    engine.run(asking, transaction_id="t1")
    found = engine.call(engine.inner.list_executions(where={"state": "invoking"}))
    assert [summary.transaction_id for summary in found] == ["t1"]
    engine.loop.jump(5)
    assert engine.now == EPOCH + timedelta(seconds=5)


def test_it_keeps_executions_where_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wfe.db"
    with VirtualEngine(store=SQLiteStore(path), resources=make_world()) as engine:
        engine.run(asking, transaction_id="t1")
    with VirtualEngine(store=SQLiteStore(path), resources=make_world()) as engine:
        assert engine.look(asking, "t1").state == "invoking"
        assert engine.answer("approve", 1).state == "done"


def test_closing_twice_is_closing_once() -> None:
    engine = VirtualEngine(resources=make_world())
    engine.run(asking)
    engine.close()
    engine.close()


def test_a_running_loop_is_not_blocked(engine: VirtualEngine) -> None:
    async def main() -> None:
        engine.run(asking)

    with pytest.raises(UsageError, match="would block the event loop"):
        asyncio.run(main())


def test_what_it_has_run_is_found_by_its_id(engine: VirtualEngine) -> None:
    with Registry().scope():

        @step(async_=True)
        async def ask() -> None: ...

        @workflow("elsewhere")
        def elsewhere() -> Any:
            return ask()

    engine.run(elsewhere, transaction_id="t1")
    assert engine.look("elsewhere", "t1").state == "invoking"
    assert engine.cancel("elsewhere", "t1").state == "reverted"
