"""After the process is gone: an execution goes on where it was, under either recording."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.decisions.support import After, World, key, refusal, state_of, step_of
from wfe import (
    Recording,
    Refused,
    StepNotWaiting,
    TransactionFinished,
    parallel,
)


@pytest.fixture(params=list(Recording))
def recording(request: pytest.FixtureRequest) -> Recording:
    return Recording(request.param)


every_step = pytest.mark.parametrize("recording", [Recording.EVERY_STEP])


@every_step
async def test_decision_16_finished_undos_are_not_run_again(world: World) -> None:
    a, b = world.step("a", undo=(After(5, None),)), world.step("b")
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        b()
        boom()

    world.flow(body)
    running = world.start()
    await asyncio.sleep(1)
    await world.restart()
    await asyncio.gather(running, return_exceptions=True)
    assert world.log[-3:] == ["~b.", "~a", "~a."]

    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert world.begun == ["a", "b", "boom", "~b", "~a", "~a"]
    attempts = [e.attempt for e in world.told if (e.step, e.action) == ("a", "compensate")]
    assert attempts[-1] == 2


async def test_decision_16_an_undo_that_awaits_can_be_answered(world: World) -> None:
    z = world.step("z")
    a = world.step("a", undo=(None,), compensate_async=True)
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        z()
        a()
        boom()

    world.flow(body)
    await world.run()
    await world.quiet()
    await world.restart()
    result = await world.engine.set_step_success(key("a", "compensate"), throw_on_error=False)
    await world.quiet()

    assert result.acknowledgement.accepted
    assert world.state == "reverted"
    assert world.begun == ["z", "a", "boom", "~a", "~z"]


async def test_decision_17_a_retry_comes_after_a_restart_too(world: World) -> None:
    a = world.step("a", ValueError("boom"), "second", retry_interval=10.0, max_retries=1)
    world.flow(lambda: a())
    await world.run()
    await asyncio.sleep(4)
    await world.restart()
    await world.run()
    await world.quiet()

    assert world.state == "done"
    assert world.calls_of("a") == 2
    assert world.now == pytest.approx(10, abs=0.5)


@pytest.mark.parametrize("whose", ["workflow", "step"])
async def test_decision_17_a_deadline_holds_after_a_restart(world: World, whose: str) -> None:
    a = world.step("a", None, async_=True, timeout=10.0 if whose == "step" else None)
    world.flow(lambda: a(), timeout=10.0 if whose == "workflow" else None)
    await world.run()
    await asyncio.sleep(4)
    await world.restart()
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert world.event("timeout").scope == whose
    assert world.now == pytest.approx(10, abs=0.5)


async def test_decision_17_what_is_overdue_fires_first(world: World) -> None:
    a = world.step("a", ValueError("boom"), "second", retry_interval=10.0, max_retries=1)
    world.flow(lambda: a())
    await world.run()
    await asyncio.sleep(1)
    await world.restart()
    await asyncio.sleep(100)
    result = await world.run()

    assert (state_of(result), result.result) == ("done", "second")
    assert world.calls_of("a") == 2


@pytest.mark.parametrize("goes_on", [False, True])
async def test_decision_17_an_answer_past_the_timeout_is_refused(
    world: World, goes_on: bool
) -> None:
    a = world.step("a", None, async_=True, timeout=10.0, continue_on_permanent_failure=goes_on)
    b = world.step("b", None, async_=True)

    def body() -> Any:
        made = a()
        b()
        return made

    world.flow(body)
    await world.run()
    await asyncio.sleep(1)
    await world.restart()
    await asyncio.sleep(20)
    reason = refusal(await world.succeed("a", "late"))
    await world.quiet()

    assert isinstance(reason, StepNotWaiting if goes_on else (Refused, TransactionFinished))
    assert world.calls_of("b") == (1 if goes_on else 0)
    assert world.handed_back.get("a", [None]) == [None]


@every_step
async def test_decision_24_no_finished_step_runs_again(world: World) -> None:
    a, b, c = (world.step(name, After(2, name)) for name in "abc")

    def body() -> Any:
        return [a(), b(), c()]

    world.flow(body)
    running = world.start()
    await asyncio.sleep(3)
    await world.restart()
    await asyncio.gather(running, return_exceptions=True)
    assert world.begun == ["a", "b"]

    result = await world.run()

    assert (state_of(result), result.result) == ("done", ["a", "b", "c"])
    assert world.begun == ["a", "b", "b", "c"]
    assert [e.attempt for e in world.told if e.kind == "step_success"] == [1, 2, 1]


@every_step
async def test_decision_24_a_group_goes_on_with_the_members_that_had_not_finished(
    world: World,
) -> None:
    a, b = world.step("a", After(1, "a")), world.step("b", After(5, "b"))
    asks = world.step("asks", None, async_=True)
    world.flow(lambda: parallel(a(), b(), asks()))
    running = world.start()
    await asyncio.sleep(3)
    await world.restart()
    await asyncio.gather(running, return_exceptions=True)
    await world.run()
    await world.quiet()
    answered = await world.succeed("asks", "yes")

    assert answered.result == ["a", "b", "yes"]
    assert sorted(world.begun) == ["a", "asks", "b", "b"]
    assert step_of(answered, "b") == "done/ok"
