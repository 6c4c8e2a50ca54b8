"""What a step comes to: by what its function returns, or by an answer from outside."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.decisions.support import After, World, refusal, state_of, step_of
from wfe import (
    PermanentStepFailure,
    StepContext,
    StepNotWaiting,
    StepResponse,
    TransactionFinished,
    TransactionNotFound,
    WorkflowResponse,
    hook,
    parallel,
    step,
    when,
)


async def test_decision_11_an_async_step_may_answer_with_skip(world: World) -> None:
    a = world.step("a", StepResponse.skip("not needed"), async_=True)
    b = world.step("b")

    def body() -> Any:
        made = a()
        b(made)
        return made

    world.flow(body)
    result = await world.run(until="finished")

    assert state_of(result) == "done"
    assert step_of(result, "a") == "skipped/ok"
    assert world.received["b"] == [None]
    assert "step_awaiting" not in world.events("a")


async def test_decision_25_the_first_answer_wins_and_the_second_is_told_the_state(
    world: World,
) -> None:
    a, b = world.step("a", None, async_=True), world.step("b", None, async_=True)

    def body() -> Any:
        made = a()
        b()
        return made

    world.flow(body)
    await world.run()
    await world.quiet()
    first, second = await asyncio.gather(world.succeed("a", "first"), world.succeed("a", "second"))

    assert first.acknowledgement.accepted
    reason = refusal(second)
    assert isinstance(reason, StepNotWaiting)
    assert (reason.step, reason.state, reason.status) == ("a", "done", "ok")
    await world.quiet()
    assert isinstance(refusal(await world.succeed("a", "third")), StepNotWaiting)
    assert world.calls_of("b") == 1
    result = await world.succeed("b", 1)
    assert result.result == "first"


async def test_decision_25_so_it_is_for_the_last_step(world: World) -> None:
    a = world.step("a", None, async_=True)
    world.flow(lambda: a())
    await world.run()
    await world.quiet()
    first, second = await asyncio.gather(world.succeed("a", "first"), world.succeed("a", "second"))

    assert first.result == "first"
    reason = refusal(second)
    assert isinstance(reason, StepNotWaiting)
    assert (reason.state, reason.status) == ("done", "ok")
    assert world.event("finish").result == "first"


async def test_decision_25_success_and_failure_together_have_one_outcome(world: World) -> None:
    a = world.step("a", None, async_=True)
    world.flow(lambda: a(), retention_time=60.0)
    await world.run()
    await world.quiet()
    good, bad = await asyncio.gather(world.succeed("a", 1), world.fail("a", "no"))

    assert good.acknowledgement.accepted
    reason = refusal(bad)
    assert isinstance(reason, StepNotWaiting)
    assert (reason.state, reason.status) == ("done", "ok")
    assert world.state == "done"


async def test_decision_25_failure_and_success_together_too(world: World) -> None:
    a = world.step("a", None, async_=True)
    world.flow(lambda: a(), retention_time=60.0)
    await world.run()
    await world.quiet()
    bad, good = await asyncio.gather(world.fail("a", "no"), world.succeed("a", 1))

    assert bad.acknowledgement.accepted
    reason = refusal(good)
    assert isinstance(reason, StepNotWaiting)
    assert (reason.state, reason.status) == ("failed", "permanent_failure")
    assert world.state == "reverted"
    assert world.handed_back["a"] == [None]


async def test_decision_26_an_async_step_under_a_condition_that_holds_waits(world: World) -> None:
    a, b = world.step("a", None, async_=True), world.step("b")

    def body(order: Any) -> Any:
        with when(order["gift"], name="gift"):
            made = a()
        b(made)
        return made

    world.flow(body)
    result = await world.run(input={"gift": True})
    await world.quiet()

    assert not result.acknowledgement.has_finished
    assert world.begun == ["a"]
    answered = await world.succeed("a", "wrapped")
    assert (state_of(answered), answered.result) == ("done", "wrapped")
    assert world.received["b"] == ["wrapped"]


@pytest.mark.parametrize(
    ("answer", "output", "handed_back"),
    [
        ("plain", "plain", "plain"),
        (StepResponse("out", compensate_with="for the undo"), "out", "for the undo"),
        (StepResponse("out"), "out", "out"),
    ],
)
async def test_decision_40_52_the_undo_receives_the_answer_or_what_goes_with_it(
    world: World, answer: Any, output: Any, handed_back: Any
) -> None:
    a, b = world.step("a", None, async_=True), world.step("b")
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        made = a()
        b(made)
        boom()

    world.flow(body)
    await world.run()
    await world.quiet()
    await world.succeed("a", answer)

    assert world.state == "reverted"
    assert world.received["b"] == [output]
    assert world.handed_back["a"] == [handed_back]


async def test_decision_52_a_step_answered_while_its_function_runs_is_undone_with_the_answer(
    world: World,
) -> None:
    a = world.step("a", After(5, "its own"), async_=True)
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body)
    await world.run()
    await world.succeed("a", "the answer")
    await world.quiet()

    assert world.handed_back["a"] == ["the answer"]


async def test_decision_54_any_value_that_is_not_none_completes_an_async_step(
    world: World,
) -> None:
    values = [0, "", False, [], {}, "plain"]
    steps = [world.step(f"s{n}", value, async_=True) for n, value in enumerate(values)]
    world.flow(lambda: [each() for each in steps])
    result = await world.run(until="finished")

    assert state_of(result) == "done"
    assert result.result == values
    assert "step_awaiting" not in world.events()


async def test_decision_54_none_waits_and_a_response_of_none_completes(world: World) -> None:
    a, b = world.step("a", StepResponse(None), async_=True), world.step("b", None, async_=True)

    def body() -> None:
        a()
        b()

    world.flow(body)
    result = await world.run()
    await world.quiet()

    assert not result.acknowledgement.has_finished
    assert world.events("a") == ["step_begin", "step_success"]
    assert world.events("b") == ["step_begin", "step_awaiting"]


async def test_decision_54_what_a_hooks_handler_returns_is_its_result(world: World) -> None:
    def body(order: Any) -> WorkflowResponse[Any]:
        validated = hook("validated", order)
        return WorkflowResponse({"by": validated.result()}, hooks=[validated])

    async def validate(order: Any) -> str:
        return f"kim, for {order}"

    made = world.flow(body)
    made.hooks.validated(validate)

    result = await world.run(input="A1")

    assert result.result == {"by": "kim, for A1"}


async def _commands(world: World) -> list[Exception]:
    """Why each command is refused that needs a live execution."""
    results = [
        await world.succeed("a", 1),
        await world.fail("a"),
        await world.retry("a"),
    ]
    return [refusal(result) for result in results]


@pytest.mark.parametrize("ends", ["done", "reverted"])
async def test_decision_56_a_finished_execution_says_so_with_its_state_where_it_is_kept(
    world: World, ends: str
) -> None:
    a = world.step("a", 1 if ends == "done" else ValueError("boom"))
    world.flow(lambda: a(), retention_time=60.0)
    await world.run()

    for reason in await _commands(world):
        assert type(reason) is TransactionFinished
        assert isinstance(reason, TransactionNotFound)
        assert reason.state == ends
        assert ends in str(reason)
        assert reason.exit_code == 4
    with pytest.raises(TransactionFinished):
        await world.engine.get_running_transaction("w", "t")


async def test_decision_56_one_that_was_not_kept_is_not_found(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a())
    await world.run()

    for reason in await _commands(world):
        assert isinstance(reason, TransactionNotFound)


async def test_decision_56_an_idempotent_one_answers_by_the_steps_status(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a(), idempotent=True)
    await world.run()

    for reason in await _commands(world):
        assert isinstance(reason, StepNotWaiting)
        assert (reason.state, reason.status) == ("done", "ok")
    found = await world.engine.get_running_transaction("w", "t")
    assert str(found.head.state) == "done"


@pytest.mark.parametrize("returned", [None, "its own", PermanentStepFailure("its own")])
async def test_decision_65_after_an_answer_the_steps_own_return_tells_nothing(
    world: World, returned: Any
) -> None:
    a = world.step("a", After(5, returned), async_=True)
    b = world.step("b", None, async_=True)

    def body() -> Any:
        made = a()
        b()
        return made

    world.flow(body)
    await world.run()
    await world.succeed("a", "the answer")
    await world.quiet()
    result = await world.succeed("b", 1)

    assert world.log[:3] == ["a", "b", "b."]
    assert world.events("a") == ["step_begin", "step_success"]
    assert result.result == "the answer"
    assert result.errors == ()


async def test_decision_65_a_step_that_answers_itself_emits_one_success(world: World) -> None:
    @step("a", async_=True)
    async def a(ctx: StepContext) -> None:
        await world.engine.set_step_success(ctx.idempotency_key, "by itself")

    world.flow(lambda: a())
    await world.run()
    await world.quiet()

    assert world.events() == ["begin", "step_begin", "step_success", "finish"]
    assert world.event("finish").result == "by itself"


async def test_decision_65_steps_that_succeed_together_all_say_so(world: World) -> None:
    steps = [world.step(name, After(1, name), async_=True) for name in "abc"]
    world.flow(lambda: parallel([each() for each in steps]))
    await world.run()
    await world.quiet()

    assert sorted(e.step or "" for e in world.told if e.kind == "step_success") == ["a", "b", "c"]
    assert world.state == "done"
