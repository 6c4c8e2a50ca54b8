"""Attempts: each runs once, retries come when they are due, and parked ones when they are asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.decisions.support import After, World, refusal, state_of, step_of
from wfe import StepContext, StepNotWaiting, parallel, step


async def test_decision_12_a_sync_step_without_auto_retry_parks_its_execution(
    world: World,
) -> None:
    a = world.step("a", ValueError("boom"), "second", auto_retry=False, max_retries=1)
    world.flow(lambda: a(), store=True)
    result = await world.run()

    assert not result.acknowledgement.has_finished
    assert step_of(result, "a") == "invoking/temp_failure"
    await world.quiet()
    assert world.calls_of("a") == 1


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("how", ["retry_step", "run again"])
async def test_decision_12_a_parked_step_is_taken_up_by_retry_or_by_a_new_run(
    world: World, how: str, is_async: bool
) -> None:
    a = world.step("a", ValueError("boom"), 2, auto_retry=False, max_retries=1, async_=is_async)
    world.flow(lambda: a(), store=True)
    await world.run()
    await world.quiet()
    result = await (world.retry("a") if how == "retry_step" else world.run())
    await world.quiet()

    assert result.acknowledgement.accepted
    assert world.state == "done"
    assert world.event("finish").result == 2
    assert world.calls_of("a") == 2


async def test_decision_12_its_retries_are_counted(world: World) -> None:
    a = world.step("a", ValueError("boom"), auto_retry=False, max_retries=1)
    world.flow(lambda: a(), store=True)
    await world.run()
    result = await world.retry("a")

    assert state_of(result) == "reverted"
    assert world.calls_of("a") == 2


async def test_decision_12_siblings_of_a_parked_step_go_on(world: World) -> None:
    a = world.step("a", ValueError("boom"), "second", auto_retry=False, max_retries=1)
    b = world.step("b", After(3, "b"))
    world.flow(lambda: parallel(a(), b()), store=True)
    result = await world.run()

    assert (step_of(result, "a"), step_of(result, "b")) == ("invoking/temp_failure", "done/ok")


async def test_decision_19_steps_that_end_together_do_not_run_the_workflow_again(
    world: World,
) -> None:
    steps = [world.step(f"s{n}", After(1, n), async_=True) for n in range(5)]
    last = world.step("last")

    def body() -> Any:
        made = parallel([each() for each in steps])
        return last(made)

    world.flow(body)
    await asyncio.gather(*[world.run(transaction_id=f"t{n}") for n in range(20)])
    await world.quiet()

    assert len(world.begun) == 20 * 6
    assert world.calls_of("last") == 20
    assert len([event for event in world.told if event.kind == "begin"]) == 20
    assert len([event for event in world.told if event.kind == "finish"]) == 20


async def test_decision_19_steps_that_fail_or_are_undone_together_do_not_either(
    world: World,
) -> None:
    a = world.step(
        "a", After(1, "a"), undo=(After(1, "undone"),), async_=True, compensate_async=True
    )
    b = world.step(
        "b", After(1, "b"), undo=(After(1, "undone"),), async_=True, compensate_async=True
    )
    boom = world.step("boom", After(1, ValueError("boom")), async_=True)
    bang = world.step("bang", After(1, ValueError("bang")), async_=True)

    def body() -> None:
        parallel(a(), b())
        parallel(boom(), bang())

    world.flow(body)
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert sorted(world.begun) == ["a", "b", "bang", "boom", "~a", "~b", "~bang", "~boom"]


async def test_decision_21_waiting_siblings_that_are_called_again_are_called_once(
    world: World,
) -> None:
    options: dict[str, Any] = {
        "async_": True,
        "retry_interval_awaiting": 2.0,
        "max_awaiting_retries": 3,
    }
    a, b = world.step("a", None, **options), world.step("b", None, **options)
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await world.quiet()

    assert world.begun == ["a", "b"] * 4
    attempts = [event.attempt for event in world.told if event.kind == "step_begin"]
    assert attempts == [1, 1, 2, 2, 3, 3, 4, 4]


async def test_decision_21_an_interval_retry_beside_slow_siblings_runs_once(world: World) -> None:
    a = world.step("a", ValueError("boom"), "second", retry_interval=2.0, max_retries=2)
    b, c = world.step("b", After(1, "b")), world.step("c", After(10, "c"))
    world.flow(lambda: parallel(a(), b(), c()))
    result = await world.run(until="finished")
    await world.quiet()

    assert state_of(result) == "done"
    assert world.calls_of("a") == 2


async def test_decision_21_a_second_run_meanwhile_repeats_no_attempt(world: World) -> None:
    a = world.step("a", ValueError("boom"), After(3, "second"), retry_interval=2.0, max_retries=2)
    b = world.step("b", After(10, "b"))
    world.flow(lambda: parallel(a(), b()))
    first = world.start(until="finished")
    await asyncio.sleep(1)
    second = world.start(until="finished")
    await asyncio.sleep(2)
    third = world.start(until="finished")

    assert [state_of(result) for result in await asyncio.gather(first, second, third)] == [
        "done"
    ] * 3
    assert sorted(world.begun) == ["a", "a", "b"]


async def test_decision_21_retries_of_a_background_and_a_sync_step_run_once_each(
    world: World,
) -> None:
    at_work = {"a": 0, "b": 0}

    def retried(name: str, **options: Any) -> Any:
        @step(name, max_retries=1, **options)
        async def once_more(ctx: StepContext) -> str:
            world.log.append(f"{name}{ctx.attempt}")
            at_work[name] += 1
            assert at_work[name] == 1, "two attempts at once"
            await asyncio.sleep(1)
            at_work[name] -= 1
            if ctx.attempt == 1:
                raise ValueError("boom")
            return name

        return once_more

    a, b = retried("a", async_=True), retried("b")
    world.flow(lambda: parallel(a(), b()))
    await world.run(until="finished")

    assert world.state == "done"
    assert sorted(world.log) == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_22_a_step_that_is_being_executed_cannot_be_retried(
    world: World, is_async: bool
) -> None:
    a = world.step("a", After(5, 1), async_=is_async)
    world.flow(lambda: a(), store=True)
    running = world.start(until="finished")
    await asyncio.sleep(1)
    reason = refusal(await world.retry("a"))
    await running

    assert isinstance(reason, StepNotWaiting)
    assert reason.state == "invoking"
    assert "being executed" in str(reason)
    assert world.calls_of("a") == 1


async def test_decision_35_a_failure_from_outside_parks_a_step_without_auto_retry_too(
    world: World,
) -> None:
    a = world.step("a", None, async_=True, auto_retry=False, max_retries=2)
    world.flow(lambda: a())
    await world.run()
    await world.quiet()
    result = await world.fail("a", "not yet")
    await world.quiet()

    assert step_of(result, "a") == "invoking/temp_failure"
    assert world.calls_of("a") == 1
    await world.retry("a")
    await world.quiet()
    assert world.calls_of("a") == 2


async def test_decision_37_the_limit_of_awaiting_retries_does_not_count_the_first_call(
    world: World,
) -> None:
    a = world.step("a", None, async_=True, retry_interval_awaiting=1.0, max_awaiting_retries=1)
    world.flow(lambda: a())
    await world.run()
    await world.quiet()

    assert world.calls_of("a") == 2


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_44_each_failed_attempt_has_its_event(world: World, is_async: bool) -> None:
    a = world.step("a", ValueError("one"), auto_retry=False, max_retries=1, async_=is_async)
    world.flow(lambda: a(), store=True)
    await world.run()
    await world.quiet()
    assert world.events("a") == ["step_begin", "step_failure"]
    await world.retry("a")
    await world.quiet()

    failures = [e for e in world.told if e.kind == "step_failure"]
    assert [(e.attempt, e.error and e.error.message) for e in failures] == [(1, "one"), (2, "one")]


@pytest.mark.parametrize("first", ["at once", "late", "from outside"])
async def test_decision_50_a_step_that_awaits_at_its_second_attempt_can_be_answered(
    world: World, first: str
) -> None:
    script = {
        "at once": (ValueError("boom"), None),
        "late": (After(1, ValueError("boom")), None),
        "from outside": (None,),
    }[first]
    a = world.step("a", *script, async_=True, max_retries=2)
    b = world.step("b", *script, async_=True, max_retries=2)
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await world.quiet()
    if first == "from outside":
        await world.fail("a")
        await world.fail("b")
        await world.quiet()

    assert world.calls_of("a") == world.calls_of("b") == 2
    assert (await world.succeed("a", 1)).acknowledgement.accepted
    assert (await world.succeed("b", 2)).acknowledgement.accepted
    assert world.state == "done"
    assert world.calls_of("a") == world.calls_of("b") == 2


async def test_decision_51_async_members_of_a_stage_start_with_the_sync_ones(
    world: World,
) -> None:
    a, b = world.step("a", After(5, "a")), world.step("b", After(1, "b"), async_=True)
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await world.quiet()

    assert world.log == ["a", "b", "b.", "a."]
    assert world.state == "done"
