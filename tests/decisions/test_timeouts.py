"""Deadlines of workflows and steps."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.decisions.support import After, World, refusal, state_of, step_of
from wfe import StepNotWaiting, TransactionStepTimeoutError, TransactionTimeoutError, parallel
from wfe.testing import EPOCH


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_09_a_deadline_that_passes_during_the_undo_does_nothing(
    world: World, is_async: bool
) -> None:
    a = world.step("a", undo=(After(5, None),), async_=is_async)
    boom = world.step("boom", After(1, ValueError("boom")), undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body, timeout=2.0, retention_time=60.0)
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert "timeout" not in world.events()
    kept = await world.stored()
    assert kept is not None
    assert str(kept.head.state) == "reverted"
    assert not kept.head.timed_out
    assert [error.message for error in kept.errors(None)] == ["boom"]


async def test_decision_09_the_id_is_free_for_a_new_run_afterwards(world: World) -> None:
    a = world.step("a", undo=(After(5, None),))
    boom = world.step("boom", After(1, ValueError("boom")), "fine", undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body, timeout=2.0)
    await world.run()
    await world.quiet()

    assert await world.stored() is None
    assert state_of(await world.run()) == "done"


@pytest.mark.parametrize(
    "option", [{"continue_on_permanent_failure": True}, {"skip_on_permanent_failure": True}]
)
@pytest.mark.parametrize("is_last", [False, True])
async def test_decision_10_a_timed_out_step_that_may_fail_counts_as_settled(
    world: World, option: dict[str, Any], is_last: bool
) -> None:
    asks = world.step("asks", None, async_=True, timeout=3.0, **option)
    after = world.step("after")

    def body() -> None:
        asks()
        if not is_last:
            after()

    world.flow(body)
    await world.run()
    await world.quiet()

    assert world.state == "done"
    assert world.event("timeout").scope == "step"
    goes_on = not is_last and "continue_on_permanent_failure" in option
    assert world.calls_of("after") == (1 if goes_on else 0)
    assert world.calls_of("~asks") == 0


LIMIT = 0.1


@pytest.mark.parametrize("whose", ["workflow", "step"])
async def test_decision_14_a_deadline_is_reached_in_its_very_moment(
    world: World, whose: str
) -> None:
    asks = world.step("asks", None, async_=True, timeout=LIMIT if whose == "step" else None)
    world.flow(lambda: asks(), timeout=LIMIT if whose == "workflow" else None)
    await world.run()
    await world.quiet()

    assert world.event("timeout").time - EPOCH == timedelta(seconds=LIMIT)
    assert world.state == "reverted"


async def test_decision_14_so_is_the_moment_to_call_a_waiting_step_again(world: World) -> None:
    asks = world.step("asks", None, "done", async_=True, retry_interval_awaiting=LIMIT)
    world.flow(lambda: asks())
    await world.run()
    await world.quiet()

    begins = [event.time for event in world.told if event.kind == "step_begin"]
    assert begins == [EPOCH, EPOCH + timedelta(seconds=LIMIT)]
    assert world.state == "done"


async def test_decision_33_a_steps_timeout_says_which_limit_and_how_long_once(
    world: World,
) -> None:
    a = world.step("a", None, async_=True, timeout=2.5)
    b = world.step("b", None, async_=True, timeout=100.0)
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await asyncio.sleep(3)
    await world.succeed("b", 1)
    await world.quiet()

    (error,) = world.event("finish").errors
    assert (error.action, error.name) == ("a", "TransactionStepTimeoutError")
    assert "'a'" in error.message
    assert "2.5 s" in error.message


async def test_decision_33_a_workflows_timeout_says_so_too(world: World) -> None:
    asks = world.step("asks", None, async_=True)
    world.flow(lambda: asks(), timeout=7.0)
    with pytest.raises(TransactionTimeoutError, match=r"'w'.*7 s"):
        await world.run(until="finished", throw_on_error=True)

    (error,) = world.event("finish").errors
    assert error.name == "TransactionTimeoutError"


async def test_decision_33_what_a_timed_out_step_fails_with_later_is_only_in_the_timeline(
    world: World,
) -> None:
    a = world.step("a", After(5, ValueError("too late to tell")), timeout=1.0)
    world.flow(lambda: a(), retention_time=60.0)
    with pytest.raises(TransactionStepTimeoutError):
        await world.run(throw_on_error=True)
    await world.quiet()

    kept = await world.stored()
    assert kept is not None
    assert [error.name for error in kept.errors(None)] == ["TransactionStepTimeoutError"]
    timeline = world.store.reader.timeline(kept.head.execution_id)
    assert "too late to tell" in str(timeline)


async def test_decision_33_a_late_answer_to_a_timed_out_step_is_refused(world: World) -> None:
    a = world.step("a", None, async_=True, timeout=1.0, continue_on_permanent_failure=True)
    b = world.step("b", None, async_=True)
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await world.quiet()
    reason = refusal(await world.succeed("a", "late"))

    assert isinstance(reason, StepNotWaiting)
    assert (reason.state, reason.status) == ("timeout", "permanent_failure")


async def test_decision_60_a_timed_out_sync_step_emits_one_failure_and_no_success(
    world: World,
) -> None:
    a = world.step("a", After(5, "late but whole"), timeout=1.0)
    world.flow(lambda: a())
    result = await world.run()

    assert state_of(result) == "reverted"
    assert world.events("a") == [
        "step_begin",
        "step_failure",
        "timeout",
        "step_begin",
        "compensate_step_success",
    ]
    # Its output is what its undo needs.
    assert world.handed_back["a"] == ["late but whole"]


@pytest.mark.parametrize("whose", ["workflow", "step"])
async def test_decision_60_a_timeout_says_whose_it_is(world: World, whose: str) -> None:
    asks = world.step("asks", None, async_=True, timeout=1.0 if whose == "step" else None)
    world.flow(lambda: asks(), timeout=1.0 if whose == "workflow" else None)
    await world.run()
    await world.quiet()

    event = world.event("timeout")
    assert event.scope == whose
    assert event.step == ("asks" if whose == "step" else None)
    assert world.events("asks").count("step_failure") == 1


async def test_decision_60_a_step_timed_out_under_continue_goes_on_with_its_output(
    world: World,
) -> None:
    a = world.step("a", After(5, "late"), timeout=1.0, continue_on_permanent_failure=True)
    b = world.step("b")

    def body() -> Any:
        made = a()
        b(made)
        return made

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "done"
    assert step_of(result, "a") == "timeout/permanent_failure"
    assert world.received["b"] == ["late"]
