"""Workflows that run as steps of others: their failures, their undo, their events and rows."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.decisions.support import After, World, key, refusal, state_of, step_of
from wfe import StepFailed, TransactionFinished, WrongAction, parallel

#: The child of `w:t` as the step `kid-as-step`.
KID = {"workflow": "kid", "transaction": "kid-as-step-t"}


def _child(world: World, *steps: Any, **options: Any) -> Any:
    def body() -> Any:
        made = [each() for each in steps]
        return made[-1]

    return world.flow(body, "kid", **options)


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_05_a_child_that_has_reverted_itself_leaves_its_parent_reverted(
    world: World, is_async: bool
) -> None:
    x = world.step("x", async_=is_async)
    kid = _child(world, x, world.step("y", ValueError("boom")))
    a = world.step("a")

    def body() -> None:
        a()
        kid.as_step()

    world.flow(body)
    await world.run(until="finished")

    assert world.state == "reverted"
    assert str(world.event("finish", workflow="kid").state) == "reverted"
    assert world.begun == ["a", "x", "y", "~y", "~x", "~a"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_05_a_child_that_could_not_be_undone_fails_its_parent_with_its_error(
    world: World, is_async: bool
) -> None:
    x = world.step("x", undo=(ValueError("stuck"),), async_=is_async)
    kid = _child(world, x, world.step("y", ValueError("boom"), undo=None))
    world.flow(lambda: kid.as_step())
    result = await world.run(until="finished")

    assert state_of(result) == "failed"
    assert result.execution is not None
    undo_errors = [e for e in result.execution.errors(None) if e.handler_type == "compensate"]
    assert [(e.name, e.message) for e in undo_errors] == [("ValueError", "stuck")]


async def test_decision_05_a_done_child_is_undone_with_its_parent(world: World) -> None:
    kid = _child(world, world.step("x", undo=(After(3, None),)))
    a, boom = world.step("a"), world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        kid.as_step()
        boom()

    world.flow(body)
    await world.run(until="finished")

    assert world.state == "reverted"
    assert world.log[-4:] == ["~x", "~x.", "~a", "~a."]


async def test_decision_05_a_child_that_still_runs_is_cancelled_and_awaited(world: World) -> None:
    kid = _child(
        world,
        world.step("x", undo=(After(3, None),)),
        world.step("asks", None, undo=None, async_=True),
    )
    a = world.step("a")

    def body() -> None:
        a()
        kid.as_step()

    world.flow(body)
    await world.run()
    await world.quiet()
    result = await world.cancel(wait=True)

    assert state_of(result) == "reverted"
    assert str(world.event("finish", workflow="kid").state) == "reverted"
    assert world.log[-4:] == ["~x", "~x.", "~a", "~a."]


async def test_decision_31_cancelling_names_the_undo_that_failed(world: World) -> None:
    a = world.step("a", undo=(ValueError("stuck"),))
    world.flow(lambda: a(), retention_time=60.0)
    await world.run()

    with pytest.raises(StepFailed) as caught:
        await world.cancel(throw_on_error=True)

    error = caught.value
    assert (error.step, error.handler_type, error.name, error.text) == (
        "a",
        "compensate",
        "ValueError",
        "stuck",
    )
    assert error.stack is not None


async def test_decision_31_answering_a_child_whose_parent_was_cancelled_says_what_it_is(
    world: World,
) -> None:
    asks = world.step("asks", None, async_=True, undo=(After(5, None),))
    kid = _child(world, asks)
    world.flow(lambda: kid.as_step(), retention_time=60.0)
    await world.run()
    await world.quiet()
    cancelling = asyncio.create_task(world.cancel(wait=True))
    await asyncio.sleep(1)
    answer = await world.engine.set_step_success(key("asks", **KID), 1, throw_on_error=False)
    assert isinstance(refusal(answer), WrongAction)
    await cancelling
    answer = await world.engine.set_step_success(key("asks", **KID), 1, throw_on_error=False)
    assert isinstance(refusal(answer), TransactionFinished)


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_32_a_parent_gets_its_childs_error_as_it_is(
    world: World, is_async: bool
) -> None:
    x = world.step("x", async_=is_async)
    kid = _child(world, x, world.step("pay", LookupError("no such account"), undo=None))
    world.flow(lambda: kid.as_step())
    result = await world.run(until="finished")

    (error,) = result.errors
    assert (error.name, error.message) == ("LookupError", "no such account")
    assert error.stack is not None
    assert "LookupError" in error.stack


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_32_a_childs_error_names_the_childs_workflow_and_step(
    world: World, is_async: bool
) -> None:
    x = world.step("x", async_=is_async)
    kid = _child(world, x, world.step("pay", LookupError("no such account"), undo=None))
    world.flow(lambda: kid.as_step())
    result = await world.run(until="finished")

    (error,) = result.errors
    told = {name: value for name, value in msgspec.to_builtins(error).items() if name != "stack"}
    assert "pay" in str(told)
    assert "kid" in str({name: value for name, value in told.items() if name != "action"})


@pytest.mark.parametrize("idempotent", [False, True])
async def test_decision_47_a_childs_row_goes_with_its_roots_unless_it_is_idempotent(
    world: World, idempotent: bool
) -> None:
    kid = _child(world, world.step("x"), store=True, idempotent=idempotent)
    asks = world.step("asks", None, async_=True)

    def body() -> None:
        kid.as_step()
        asks()

    world.flow(body)
    await world.run()
    await world.quiet()
    assert await world.stored("kid", "kid-as-step-t") is not None

    await world.succeed("asks", 1)
    await world.quiet()

    assert world.state == "done"
    assert [row.workflow_id for row in await world.rows()] == (["kid"] if idempotent else [])


async def test_decision_47_the_childs_row_of_a_root_that_is_not_stored_goes_too(
    world: World,
) -> None:
    kid = _child(world, world.step("x"), store=True)
    world.flow(lambda: kid.as_step())
    await world.run()
    await world.quiet()

    assert world.state == "done"
    assert await world.rows() == []


async def test_decision_55_a_sync_child_emits_like_any_execution(world: World) -> None:
    kid = _child(world, world.step("x"))
    world.flow(lambda: kid.as_step())
    await world.run()

    assert world.events(workflow="kid") == ["begin", "step_begin", "step_success", "finish"]


async def test_decision_55_a_child_that_its_parent_cancels_emits_too(world: World) -> None:
    kid = _child(world, world.step("x"))
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        kid.as_step()
        boom()

    world.flow(body)
    await world.run()
    await world.quiet()

    assert world.events(workflow="kid") == [
        "begin",
        "step_begin",
        "step_success",
        "finish",
        "compensate_begin",
        "step_begin",
        "compensate_step_success",
        "finish",
    ]
    states = [str(e.state) for e in world.told if e.workflow_id == "kid" and e.kind == "finish"]
    assert states == ["done", "reverted"]


async def test_decision_05_parallel_children_of_which_one_fails_are_both_undone(
    world: World,
) -> None:
    x, y = world.step("x"), world.step("y", After(1, ValueError("boom")))
    good = world.flow(lambda: x(), "good")
    bad = world.flow(lambda: y(), "bad")
    world.flow(lambda: parallel(good.as_step(), bad.as_step()))
    result = await world.run(until="finished")

    assert state_of(result) == "reverted"
    assert step_of(result, "good-as-step") == "reverted/ok"
    assert step_of(result, "bad-as-step") == "reverted/ok"
    assert world.calls_of("~x") == 1
    assert world.calls_of("~y") == 1
