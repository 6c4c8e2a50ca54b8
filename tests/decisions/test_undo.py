"""Going backwards: what is undone, in which order, and what is dropped when an execution turns."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.decisions.support import After, World, key, state_of, step_of
from wfe import PermanentStepFailure, StepContext, StepResponse, parallel, step, when
from wfe.testing import VirtualLoop

#: An undo that takes its time, so that whatever does not wait for it is seen to begin.
SLOW = (After(1, None),)


async def test_decision_01_a_stage_behind_a_group_is_undone_before_all_members_of_the_group(
    world: World,
) -> None:
    z, a, b, c = (world.step(name, undo=SLOW) for name in "zabc")
    d = world.step("d", ValueError("boom"), undo=SLOW)

    def body() -> None:
        z()
        parallel(a(), b())
        c()
        d()

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "reverted"
    undone = [entry for entry in world.log if entry.startswith("~")]
    assert undone[:4] == ["~d", "~d.", "~c", "~c."]
    assert set(undone[4:6]) == {"~a", "~b"}
    assert set(undone[6:8]) == {"~a.", "~b."}
    assert undone[8:] == ["~z", "~z."]


async def test_decision_01_the_slower_branch_of_a_group_holds_what_came_before(
    world: World,
) -> None:
    z, b = world.step("z"), world.step("b")
    a = world.step("a", undo=(After(5, None),))
    d = world.step("d", ValueError("boom"), undo=None)

    def body() -> None:
        z()
        parallel(a(), b())
        d()

    world.flow(body)
    await world.run()

    assert world.log.index("~a.") < world.log.index("~z")


def _skips(world: World, how: str) -> tuple[Any, Any]:
    """A step that will be skipped, and whatever has to stand before it."""
    if how == "it says so":
        return world.step("b", StepResponse.skip(), undo=SLOW), lambda: None
    b = world.step("b", undo=SLOW)
    if how == "its condition does not hold":
        return (lambda: _under_a_false_condition(b)), (lambda: None)
    x = world.step("x", ValueError("passed over"), undo=None, skip_on_permanent_failure="d")
    return b, x


def _under_a_false_condition(b: Any) -> None:
    with when(1, lambda one: one > 1):
        b()


@pytest.mark.parametrize("how", ["it says so", "its condition does not hold", "a failure skips it"])
async def test_decision_02_a_skipped_step_changes_nothing_for_the_others(
    world: World, how: str
) -> None:
    a, d = world.step("a", undo=SLOW), world.step("d", undo=SLOW)
    e = world.step("e", ValueError("boom"), undo=SLOW)
    b, before = _skips(world, how)

    def body() -> None:
        a()
        before()
        b()
        d()
        e()

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "reverted"
    undone = [entry for entry in world.log if entry.startswith("~")]
    assert undone == ["~e", "~e.", "~d", "~d.", "~a", "~a."]
    assert step_of(result, "b").split("/")[0] in ("skipped", "skipped_failure")


async def test_decision_03_a_retry_that_is_pending_when_a_sibling_fails_is_dropped(
    world: World,
) -> None:
    a = world.step("a", ValueError("first"), "second", retry_interval=10, max_retries=3)
    b = world.step("b", After(1, PermanentStepFailure("boom")))
    world.flow(lambda: parallel(a(), b()))
    result = await world.run(until="finished")
    await world.quiet()

    assert world.state == "reverted"
    assert world.calls_of("a") == 1
    assert world.now < 10
    assert result.execution is not None
    assert result.execution.step("a").invoke_status == "permanent_failure"
    # It is undone like any step that failed for good, and its last error is told.
    assert world.handed_back["a"] == [None]
    assert {error.message for error in world.event("finish").errors} == {"first", "boom"}


async def test_decision_03_a_retry_without_an_interval_goes_on_after_a_siblings_failure(
    world: World,
) -> None:
    a = world.step("a", After(2, ValueError("first")), "second", max_retries=1)
    b = world.step("b", After(1, PermanentStepFailure("boom")))
    world.flow(lambda: parallel(a(), b()))
    result = await world.run()

    assert state_of(result) == "reverted"
    assert world.calls_of("a") == 2
    assert world.handed_back["a"] == ["second"]


@pytest.mark.parametrize("why", ["cancel", "timeout"])
async def test_decision_03_nothing_is_retried_after_a_cancel_or_timeout(
    world: World, why: str
) -> None:
    a = world.step("a", After(2, ValueError("first")), "second", max_retries=5)
    world.flow(lambda: a(), timeout=1 if why == "timeout" else None)
    running = world.start()
    await asyncio.sleep(1)
    if why == "cancel":
        await world.cancel()
    result = await running

    assert state_of(result) == "reverted"
    assert world.calls_of("a") == 1


async def test_decision_04_a_siblings_failing_undo_does_not_leave_the_execution_hanging(
    world: World,
) -> None:
    a = world.step("a", ValueError("first"), "second", retry_interval=10, max_retries=3)
    b = world.step(
        "b",
        After(1, PermanentStepFailure("boom")),
        undo=(ValueError("not yet"), None),
        retry_interval=3,
        max_retries=1,
    )
    world.flow(lambda: parallel(a(), b()))
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert (world.calls_of("a"), world.calls_of("~a"), world.calls_of("~b")) == (1, 1, 2)


async def test_decision_06_cancel_drops_the_retry_that_a_step_waits_for(world: World) -> None:
    z = world.step("z", undo=SLOW)
    a = world.step("a", ValueError("again"), retry_interval=10, max_retries=5, undo=SLOW)

    def body() -> None:
        z()
        a()

    world.flow(body)
    await world.run()
    result = await world.cancel(wait=True)
    await world.quiet()

    assert state_of(result) == "reverted"
    assert world.now < 10
    assert world.begun == ["z", "a", "~a", "~z"]
    assert world.log.index("~a.") < world.log.index("~z")


async def test_decision_41_a_retry_fires_on_time_whatever_its_siblings_do(world: World) -> None:
    times: list[float] = []

    @step("a", max_retries=2, retry_interval=1.0)
    async def a() -> None:
        times.append(world.now)
        if len(times) < 3:
            raise ValueError("again")

    slow = world.step("slow", After(30, "slow"))
    world.flow(lambda: parallel(a(), slow()))
    result = await world.run(until="finished")

    assert state_of(result) == "done"
    assert times == pytest.approx([0, 1, 2])
    assert world.now == pytest.approx(30)


async def test_decision_13_an_undo_that_gets_no_answer_is_called_again(world: World) -> None:
    a = world.step(
        "a",
        undo=(None,),
        compensate_async=True,
        retry_interval_awaiting=2,
        max_awaiting_retries=2,
    )
    b = world.step("b", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        b()

    world.flow(body)
    await world.run()
    await world.quiet()

    assert world.calls_of("~a") == 3
    assert world.now == pytest.approx(4, abs=0.1)
    await world.engine.set_step_success(key("a", "compensate"), throw_on_error=False)
    assert world.state == "reverted"


async def test_decision_58_an_overtaken_handler_has_ended_before_its_undo_begins(
    world: World,
) -> None:
    @step("a", async_=True, timeout=1.0)
    async def a(ctx: StepContext) -> str:
        world.log.append("a")
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(3)  # it takes a while to let go
            world.log.append("a.")
        return "late"

    @a.compensate
    async def undo(value: Any) -> None:
        world.handed_back["a"] = [value]
        world.log.append("~a")

    world.flow(lambda: a())
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert world.log == ["a", "a.", "~a"]
    assert world.handed_back["a"] == [None]
    assert world.now < 10


async def test_decision_58_a_late_value_is_ignored(world: World) -> None:
    @step("a", async_=True, timeout=1.0)
    async def a(ctx: StepContext) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return "late"
        return "in time"

    @a.compensate
    async def undo(value: Any) -> None:
        world.handed_back["a"] = [value]

    world.flow(lambda: a())
    await world.run()
    await world.quiet()

    assert world.handed_back["a"] == [None]
    assert "step_success" not in world.events("a")


async def test_decision_58_a_thread_sees_that_it_is_cancelled_and_is_waited_for(
    world: World,
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)

    @step("a", async_=True, timeout=1.0)
    def a(ctx: StepContext) -> str:
        loop.call_soon_threadsafe(loop.jump, 2.0)
        for _ in range(5_000):
            if ctx.cancelled:
                break
            threading.Event().wait(0.001)
        world.log.append("a saw it." if ctx.cancelled else "a saw nothing.")
        return "late"

    @a.compensate
    def undo(value: Any) -> None:
        world.log.append("~a")
        world.handed_back["a"] = [value]

    world.flow(lambda: a())
    await world.run()
    await world.quiet()

    assert world.state == "reverted"
    assert world.log == ["a saw it.", "~a"]
    assert world.handed_back["a"] == [None]


@pytest.mark.parametrize(
    "option", [{"continue_on_permanent_failure": True}, {"skip_on_permanent_failure": True}]
)
async def test_decision_67_a_failed_undo_is_never_passed_over(
    world: World, option: dict[str, Any]
) -> None:
    a = world.step("a", undo=(ValueError("cannot be undone"),), **option)
    b = world.step("b", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        b()

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "failed"
    assert result.acknowledgement.has_failed
    assert step_of(result, "a") == "failed/permanent_failure"
