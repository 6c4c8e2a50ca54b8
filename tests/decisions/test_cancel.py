"""Cancelling, in every state that an execution can be in."""

from __future__ import annotations

import asyncio

import pytest

from tests.decisions.support import After, World, refusal, state_of
from wfe import (
    ExecutionCancelled,
    NotAllowed,
    StepResponse,
    TransactionFinished,
    TransactionNotFound,
    parallel,
)
from wfe.errors import Refused


async def test_decision_07_cancel_calls_no_invoke_of_a_step_that_waits_for_a_manual_retry(
    world: World,
) -> None:
    z = world.step("z")
    a = world.step("a", ValueError("boom"), async_=True, auto_retry=False, max_retries=3)

    def body() -> None:
        z()
        a()

    world.flow(body)
    await world.run()
    await world.quiet()
    await world.cancel(wait=True)

    assert world.state == "reverted"
    assert world.begun == ["z", "a", "~a", "~z"]


async def test_decision_07_a_siblings_failure_calls_no_invoke_of_it_either(world: World) -> None:
    a = world.step("a", ValueError("boom"), async_=True, auto_retry=False, max_retries=3)
    b = world.step("b", After(1, ValueError("bang")))
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert world.calls_of("a") == 1
    assert world.calls_of("~a") == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_08_a_step_that_fails_after_a_cancel_leaves_nothing_hanging(
    world: World, is_async: bool
) -> None:
    z = world.step("z")
    a = world.step("a", After(5, ValueError("boom")), async_=is_async, max_retries=3)

    def body() -> None:
        z()
        a()

    world.flow(body)
    running = world.start()
    await asyncio.sleep(1)
    cancelled = await world.cancel()
    result = await running
    await world.quiet()

    assert cancelled.acknowledgement.accepted
    assert result.acknowledgement.reason is None
    assert world.state == "reverted"
    assert world.begun == ["z", "a", "~a", "~z"]
    assert [error.message for error in world.event("finish").errors] == ["boom"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_08_a_step_in_flight_finishes_and_is_undone_with_its_output(
    world: World, is_async: bool
) -> None:
    a, b = world.step("a", After(5, "a's output"), async_=is_async), world.step("b")

    def body() -> None:
        a()
        b()

    world.flow(body)
    running = world.start()
    await asyncio.sleep(1)
    await world.cancel()
    await running
    await world.quiet()

    assert world.log == ["a", "a.", "~a", "~a."]
    assert world.handed_back["a"] == ["a's output"]
    assert world.event("finish").errors == ()


async def test_decision_08_the_callers_of_run_get_the_final_state(world: World) -> None:
    a = world.step("a", After(5, 1), undo=(After(5, None),))
    world.flow(lambda: a())
    running = world.start()
    await asyncio.sleep(1)
    await world.cancel()

    assert state_of(await running) == "reverted"


async def test_decision_39_an_awaiting_step_is_failed_and_undone_at_once(world: World) -> None:
    z = world.step("z")
    asks = world.step("asks", None, async_=True)

    def body() -> None:
        z()
        asks()

    world.flow(body, retention_time=60.0)
    await world.run()
    await world.quiet()
    at = world.now
    result = await world.cancel()

    assert state_of(result) == "reverted"
    assert world.now == pytest.approx(at, abs=0.5)
    assert world.begun == ["z", "asks", "~asks", "~z"]
    # The step says why; nothing of the execution went wrong.
    assert result.execution is not None
    record = result.execution.step("asks")
    assert (str(record.invoke), str(record.invoke_status)) == ("failed", "permanent_failure")
    assert record.error is not None
    assert "Cancelled" in str(record.error.name)
    assert result.errors == ()
    assert result.execution.errors(None) == ()


async def test_decision_39_a_later_answer_is_refused(world: World) -> None:
    asks = world.step("asks", None, async_=True, undo=(After(5, None),))
    world.flow(lambda: asks(), retention_time=60.0)
    await world.run()
    await world.quiet()
    cancelling = asyncio.create_task(world.cancel(wait=True))
    await asyncio.sleep(1)

    assert isinstance(refusal(await world.succeed("asks", 1)), Refused)
    await cancelling
    assert isinstance(refusal(await world.succeed("asks", 1)), TransactionFinished)
    assert world.handed_back["asks"] == [None]


async def test_decision_39_a_siblings_failure_waits_for_the_answer(world: World) -> None:
    asks = world.step("asks", None, async_=True)
    boom = world.step("boom", ValueError("boom"), undo=None)
    world.flow(lambda: parallel(asks(), boom()))
    await world.run()
    await world.quiet()

    assert world.begun == ["asks", "boom"]
    running = await world.engine.get_running_transaction("w", "t")
    assert str(running.head.state) == "waiting_to_compensate"

    await world.succeed("asks", "what the undo needs")
    await world.quiet()

    assert world.state == "reverted"
    assert world.handed_back["asks"] == ["what the undo needs"]


async def test_decision_39_a_step_timeout_bounds_that_wait(world: World) -> None:
    asks = world.step("asks", None, async_=True, timeout=10.0)
    boom = world.step("boom", ValueError("boom"), undo=None)
    world.flow(lambda: parallel(asks(), boom()))
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert world.now == pytest.approx(10, abs=0.5)
    assert world.calls_of("~asks") == 1


async def test_decision_39_cancel_stops_that_wait(world: World) -> None:
    asks = world.step("asks", None, async_=True)
    boom = world.step("boom", ValueError("boom"), undo=None)
    world.flow(lambda: parallel(asks(), boom()))
    await world.run()
    await world.quiet()
    result = await world.cancel()

    assert state_of(result) == "reverted"
    assert world.begun == ["asks", "boom", "~asks"]


@pytest.mark.parametrize("is_answered", [False, True])
async def test_decision_39_an_awaiting_step_can_hand_over_what_its_undo_needs(
    world: World, is_answered: bool
) -> None:
    asks = world.step("asks", StepResponse.awaiting(compensate_with="ticket 7"), async_=True)
    world.flow(lambda: asks(), retention_time=60.0)
    await world.run()
    await world.quiet()
    if is_answered:
        await world.succeed("asks", None)
    await world.cancel()

    assert world.handed_back["asks"] == ["ticket 7"]


async def test_decision_63_run_raises_that_its_execution_was_cancelled(world: World) -> None:
    a = world.step("a", After(5, 1))
    world.flow(lambda: a())
    running = world.start(throw_on_error=True)
    await asyncio.sleep(1)
    await world.cancel()

    with pytest.raises(ExecutionCancelled) as caught:
        await running
    assert (caught.value.workflow_id, caught.value.transaction_id) == ("w", "t")


async def test_decision_66_cancelling_a_reverted_idempotent_execution_is_refused(
    world: World,
) -> None:
    a = world.step("a")
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body, idempotent=True)
    assert state_of(await world.run()) == "reverted"
    before = list(world.told)
    reason = refusal(await world.cancel())

    assert isinstance(reason, TransactionFinished)
    assert reason.state == "reverted"
    assert world.calls_of("~a") == 1
    assert world.told == before


async def test_decision_66_a_done_and_kept_execution_can_be_cancelled_once(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a(), idempotent=True)
    await world.run()
    result = await world.cancel()

    assert state_of(result) == "reverted"
    assert not result.acknowledgement.has_failed
    assert isinstance(refusal(await world.cancel()), TransactionFinished)
    assert world.calls_of("~a") == 1


async def test_decision_39_an_execution_that_is_being_undone_cannot_be_cancelled(
    world: World,
) -> None:
    a = world.step("a", undo=(After(5, None),))
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body)
    running = world.start()
    await asyncio.sleep(1)
    reason = refusal(await world.cancel())
    await running

    assert isinstance(reason, NotAllowed)
    assert (reason.command, reason.state) == ("cancelled", "compensating")
    assert world.calls_of("~a") == 1


async def test_decision_66_an_execution_that_was_not_kept_is_not_found(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a())
    await world.run()
    result = await world.cancel()

    assert type(refusal(result)) is TransactionNotFound
    assert not result.acknowledgement.exists
