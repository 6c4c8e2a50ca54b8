"""Values: inputs, outputs, results, names, and which shapes a body may have."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.decisions.support import World, key, state_of, step_of
from wfe import (
    InvalidName,
    PermanentStepFailure,
    StepFailed,
    StepResponse,
    hook,
    parallel,
    step,
    transform,
    when,
)


async def test_decision_15_names_that_could_not_be_in_a_key_are_refused_when_composing(
    world: World,
) -> None:
    a = world.step("a")
    for name in ("a:b", "a\nb", "a\x00b", "\x1b[31m"):
        with pytest.raises(InvalidName):
            world.flow(lambda: a(), name)
        with pytest.raises(InvalidName):
            world.step(name)
        with pytest.raises(InvalidName):
            a.config(name=name)

    def body() -> None:
        with pytest.raises(InvalidName):
            hook("a:b")
        with pytest.raises(InvalidName):
            when(1, bool, name="a:b")
        a()

    world.flow(body)


async def test_decision_15_dots_are_fine_and_a_transaction_id_may_hold_colons(
    world: World,
) -> None:
    a = world.step("ask.kim", None, async_=True)
    world.flow(lambda: a(), "release.v2")
    transaction = "2026:11:a.b"
    await world.run("release.v2", transaction_id=transaction)
    await world.quiet()
    result = await world.engine.set_step_success(
        key("ask.kim", workflow="release.v2", transaction=transaction), "yes"
    )

    assert (state_of(result), result.result) == ("done", "yes")


def _circular() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("value", [_circular(), object(), math.nan])
async def test_decision_18_an_output_that_cannot_be_stored_fails_its_step_for_good(
    world: World, value: Any, is_stored: bool
) -> None:
    a, b = world.step("a"), world.step("b", value, max_retries=5)

    def body() -> None:
        a()
        b()

    world.flow(body, store=is_stored)
    result = await world.run()

    assert state_of(result) == "reverted"
    (error,) = result.errors
    assert (error.action, error.name) == ("b", "NonSerializableValue")
    assert "output of step 'b'" in error.message
    assert world.calls_of("b") == 1
    assert world.begun[-1] == "~a"


async def test_decision_18_so_does_what_its_undo_would_receive(world: World) -> None:
    a = world.step("a", StepResponse(1, compensate_with={"n": [math.inf]}))
    world.flow(lambda: a())
    result = await world.run()

    (error,) = result.errors
    assert error.name == "NonSerializableValue"
    assert "$.n[0]" in error.message


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_27_a_step_that_returns_nothing_has_the_output_none(
    world: World, is_async: bool
) -> None:
    a = world.step("a", None, async_=is_async)
    b, c = world.step("b"), world.step("c")

    def body() -> Any:
        made = a()
        b(made)
        with when(made, name="something"):
            c()
        return {"made": made}

    world.flow(body)
    result = await world.run()
    if is_async:
        await world.quiet()
        result = await world.succeed("a")

    assert result.result == {"made": None}
    assert world.received["b"] == [None]
    assert world.calls_of("c") == 0


@pytest.mark.parametrize("value", [0, "", False])
async def test_decision_28_falsy_inputs_reach_the_step_as_they_are(
    world: World, value: Any
) -> None:
    a, b = world.step("a"), world.step("b")

    def body(given: Any) -> None:
        a(value)
        b(given)

    world.flow(body)
    await world.run(input=value)

    for received in (world.received["a"], world.received["b"]):
        assert received == [value]
        assert type(received[0]) is type(value)


async def test_decision_28_a_step_without_input_receives_nothing(world: World) -> None:
    received: list[tuple[Any, ...]] = []

    @step("a")
    async def a(*given: Any) -> None:
        received.append(given)

    world.flow(lambda: a())
    await world.run()

    assert received == [()]


async def test_decision_36_a_failed_step_that_is_passed_over_has_no_output(
    world: World,
) -> None:
    failure = PermanentStepFailure("no", compensate_with={"p": 1})
    a = world.step("a", failure, continue_on_permanent_failure=True)
    b = world.step("b")
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        b(a())
        boom()

    world.flow(body)
    await world.run()

    assert world.received["b"] == [None]
    assert world.handed_back["a"] == [{"p": 1}]


async def test_decision_53_there_is_no_result_until_the_execution_is_done(world: World) -> None:
    looked_at: list[Any] = []

    def summary(value: Any) -> Any:
        looked_at.append(value)
        return {"of": value}

    a = world.step("a", None, async_=True)
    world.flow(lambda: transform(a(), fn=summary))
    parked = await world.run()
    await world.quiet()

    assert parked.result is None
    assert looked_at == []
    result = await world.succeed("a", 7)
    assert result.result == {"of": 7}
    assert world.event("finish").result == {"of": 7}
    assert looked_at == [7]


@pytest.mark.parametrize("ends", ["reverted", "failed"])
async def test_decision_53_nor_where_it_ends_badly(world: World, ends: str) -> None:
    a = world.step("a", 1, undo=(None if ends == "reverted" else ValueError("stuck"),))
    boom = world.step("boom", ValueError("boom"))

    def never(value: Any) -> Any:
        raise AssertionError("nobody asked for this")

    def body() -> Any:
        made = a()
        boom()
        return transform(made, fn=never)

    world.flow(body, retention_time=60.0)
    result = await world.run()

    assert state_of(result) == ends
    assert result.result is None
    assert world.event("finish").result is None


async def test_decision_53_the_result_is_computed_before_the_final_checkpoint(
    world: World,
) -> None:
    states: list[str] = []

    async def look(value: Any) -> Any:
        kept = await world.stored()
        assert kept is not None
        states.append(str(kept.head.state))
        return value

    a = world.step("a")
    world.flow(lambda: transform(a(), fn=look), retention_time=60.0)
    result = await world.run()

    assert states == ["invoking"]
    kept = await world.stored()
    assert kept is not None
    assert kept.result == b'"a"'
    assert result.result == "a"


async def test_decision_59_a_group_of_one_and_an_empty_body_are_fine(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: parallel(a()), "one")
    world.flow(lambda: parallel([]), "none")
    world.flow(lambda: None, "empty", retention_time=60.0)

    assert (await world.run("one")).result == ["a"]
    assert (await world.run("none")).result == []
    result = await world.run("empty")
    assert (state_of(result), result.result) == ("done", None)
    assert world.events(workflow="empty") == ["begin", "finish"]


async def test_decision_61_a_result_that_cannot_be_computed_leaves_the_execution_done(
    world: World,
) -> None:
    def broken(value: Any) -> Any:
        raise LookupError("no such total")

    a = world.step("a")
    world.flow(lambda: transform(a(), fn=broken), retention_time=60.0)
    with pytest.raises(StepFailed) as caught:
        await world.run(throw_on_error=True)

    assert (caught.value.step, caught.value.name, caught.value.text) == (
        None,
        "LookupError",
        "no such total",
    )
    kept = await world.stored()
    assert kept is not None
    assert str(kept.head.state) == "done"
    (error,) = kept.errors(None)
    assert (error.action, error.name, error.message) == (None, "LookupError", "no such total")
    assert step_of(kept, "a") == "done/ok"
    assert world.calls_of("~a") == 0


async def test_decision_61_without_throwing_it_is_in_the_errors(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: transform(a(), fn=lambda value: math.nan))
    result = await world.run()

    assert state_of(result) == "done"
    assert result.result is None
    assert [(error.action, error.name) for error in result.errors] == [
        (None, "NonSerializableValue")
    ]
