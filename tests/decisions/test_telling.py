"""What callers and subscribers are told, and what is raised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.decisions.support import After, World, key, state_of
from wfe import (
    Event,
    MalformedKey,
    StepFailed,
    StepResponse,
    TransactionNotFound,
    WorkflowNotFound,
    when,
)


@pytest.mark.parametrize(
    "option", [{"continue_on_permanent_failure": True}, {"skip_on_permanent_failure": True}]
)
async def test_decision_29_an_ignored_failure_is_in_errors_and_not_raised(
    world: World, option: dict[str, Any]
) -> None:
    a, b = world.step("a"), world.step("b", ValueError("ignored"), **option)

    def body() -> Any:
        made = a()
        b()
        return made

    world.flow(body)
    result = await world.run(throw_on_error=True)

    assert (state_of(result), result.result) == ("done", "a")
    assert [(error.action, error.message) for error in result.errors] == [("b", "ignored")]
    assert not result.acknowledgement.has_failed
    assert [error.message for error in world.event("finish").errors] == ["ignored"]


async def test_decision_30_without_throwing_a_refused_command_is_acknowledged(
    world: World,
) -> None:
    a = world.step("a")
    world.flow(lambda: a())
    commands = [
        world.cancel(),
        world.succeed("a", 1),
        world.fail("a"),
        world.retry("a"),
        world.engine.resume("w", "t", throw_on_error=False),
        world.engine.wait_for("w", "t", throw_on_error=False),
    ]
    for result in await asyncio.gather(*commands):
        acknowledgement = result.acknowledgement
        assert (acknowledgement.workflow_id, acknowledgement.transaction_id) == ("w", "t")
        assert not acknowledgement.exists
        assert not acknowledgement.accepted
        assert isinstance(acknowledgement.reason, TransactionNotFound)
        assert result.execution is None


async def test_decision_30_nor_does_what_happens_to_the_execution(world: World) -> None:
    a = world.step("a", ValueError("boom"), undo=(ValueError("stuck"),))
    world.flow(lambda: a())
    result = await world.run()

    assert result.acknowledgement.accepted
    assert result.acknowledgement.has_failed
    assert [error.message for error in result.errors] == ["boom"]


async def test_decision_30_errors_of_use_are_always_raised(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a(), "place-order")
    with pytest.raises(WorkflowNotFound, match="place-order"):
        await world.run("place-ordr")
    with pytest.raises(WorkflowNotFound):
        await world.cancel("nobody")
    with pytest.raises(MalformedKey):
        await world.engine.set_step_success("no key", throw_on_error=False)
    with pytest.raises(WorkflowNotFound):
        await world.engine.retry_step(key("a", workflow="nobody"), throw_on_error=False)


async def test_decision_31_errors_are_structured_everywhere(world: World) -> None:
    class TooExpensive(Exception):
        pass

    a = world.step("a", undo=(TooExpensive("to undo"),))
    boom = world.step("boom", TooExpensive("by far"), undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body, retention_time=60.0)
    result = await world.run()
    kept = await world.stored()

    assert kept is not None
    assert result.execution is not None
    assert kept.errors(None) == result.execution.errors(None)
    told = [(e.action, str(e.handler_type), e.name, e.message) for e in kept.errors(None)]
    assert told == [
        ("boom", "invoke", "TooExpensive", "by far"),
        ("a", "compensate", "TooExpensive", "to undo"),
    ]
    assert all("TooExpensive" in (error.stack or "") for error in kept.errors(None))
    with pytest.raises(StepFailed) as caught:
        await world.run(throw_on_error=True)
    assert isinstance(caught.value.__cause__, TooExpensive)


async def test_decision_34_a_call_returns_the_state_at_its_return(world: World) -> None:
    a = world.step("a", After(5, "its own"))
    world.flow(lambda: a())
    running = world.start()
    await asyncio.sleep(1)
    answer = await world.succeed("a", "the answer")
    result = await running

    assert (state_of(answer), answer.result) == ("done", "the answer")
    assert (state_of(result), result.result) == ("done", "the answer")
    assert result.acknowledgement.has_finished
    assert world.now == pytest.approx(1)


async def test_decision_34_a_reverted_execution_has_no_result(world: World) -> None:
    a = world.step("a", After(5, "late"))
    world.flow(lambda: a(), timeout=1.0)
    result = await world.run()

    assert state_of(result) == "reverted"
    assert result.result is None
    assert world.event("finish").result is None


async def test_decision_42_subscribers_without_an_id_are_independent(world: World) -> None:
    first: list[Event] = []
    second: list[Event] = []
    a = world.step("a")
    world.flow(lambda: a())
    one = world.engine.subscribe("w", first.append)
    world.engine.subscribe("w", second.append)
    await world.run()
    world.engine.unsubscribe("w", one)
    await world.run()

    assert (len(first), len(second)) == (4, 8)


@pytest.mark.parametrize("transaction", [None, "t"])
async def test_decision_42_a_subscriber_is_removed_by_id_or_by_function(
    world: World, transaction: str | None
) -> None:
    told: list[str] = []

    def one(event: Event) -> None:
        told.append("one")

    def two(event: Event) -> None:
        told.append("two")

    def three(event: Event) -> None:
        told.append("three")

    a = world.step("a")
    world.flow(lambda: a())
    place: dict[str, Any] = {"transaction_id": transaction}
    world.engine.subscribe("w", one, subscriber_id="1", **place)
    world.engine.subscribe("w", two, subscriber_id="2", **place)
    own = world.engine.subscribe("w", three, **place)
    assert world.engine.unsubscribe("w", one, **place)
    assert world.engine.unsubscribe("w", "2", **place)
    assert not world.engine.unsubscribe("w", "nobody", **place)
    await world.run()

    assert set(told) == {"three"}
    told.clear()
    world.engine.unsubscribe("w", own, **place)
    await world.run(transaction_id="t")
    assert told == []


async def test_decision_42_one_of_the_same_id_replaces_the_former(world: World) -> None:
    former: list[Event] = []
    newer: list[Event] = []
    a = world.step("a")
    world.flow(lambda: a())
    world.engine.subscribe("w", former.append, subscriber_id="1")
    world.engine.subscribe("w", newer.append, subscriber_id="1")
    await world.run()

    assert former == []
    assert len(newer) == 4


@pytest.mark.parametrize("why", ["it says so", "its condition does not hold"])
async def test_decision_43_a_skipped_step_emits_that_it_was_skipped(world: World, why: str) -> None:
    a = world.step("a", StepResponse.skip("not today"))

    def body(order: Any) -> None:
        if why == "it says so":
            a()
        else:
            with when(order, name="never"):
                a()

    world.flow(body)
    handled: list[str] = []
    await world.run(input=0, events=lambda event: handled.append(str(event.kind)))

    assert world.events("a") == ["step_begin", "step_skipped"]
    assert handled == ["begin", "step_begin", "step_skipped", "finish"]


async def test_decision_43_a_failing_undo_calls_the_handler_of_its_own(world: World) -> None:
    a = world.step("a", undo=(ValueError("stuck"), None), max_retries=1)
    boom = world.step("boom", ValueError("boom"), max_retries=0, undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body)
    failures: list[Event] = []
    undo_failures: list[Event] = []
    await world.run(
        events={"step_failure": failures.append, "compensate_step_failure": undo_failures.append}
    )

    assert [event.step for event in failures] == ["boom"]
    assert [(event.step, event.error and event.error.message) for event in undo_failures] == [
        ("a", "stuck")
    ]


async def test_decision_43_handlers_of_a_run_see_everything_until_the_end(world: World) -> None:
    a = world.step("a", After(5, "a"), async_=True)
    asks = world.step("asks", None, async_=True)

    def body() -> None:
        a()
        asks()

    world.flow(body)
    handled: list[Event] = []
    await world.run(events=handled.append)
    await world.quiet()
    await world.succeed("asks", 1)

    assert handled == world.told
    assert handled[-1].kind == "finish"


async def test_decision_43_and_of_a_deadline_that_passes_later(world: World) -> None:
    asks = world.step("asks", None, async_=True)
    world.flow(lambda: asks(), timeout=10.0)
    kinds: list[str] = []
    await world.run(events=lambda event: kinds.append(str(event.kind)))
    await world.quiet()

    assert kinds[:3] == ["begin", "step_begin", "step_awaiting"]
    assert "timeout" in kinds
    assert kinds[-1] == "finish"
