"""Workflows of every shape, whose steps act on a world outside that outlives a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from wfe import (
    PermanentStepFailure,
    Registry,
    StepContext,
    StepResponse,
    Workflow,
    WorkflowResponse,
    hook,
    parallel,
    sleep,
    step,
    transform,
    when,
    workflow,
)

DAY = 24 * 3600.0


class World:
    """What steps change outside. It knows each effect by its idempotency key, so that doing it twice
    is doing it once."""

    def __init__(self) -> None:
        self.effects: dict[str, str] = {}
        self.times: Counter[str] = Counter()

    def act(self, ctx: StepContext) -> str:
        self.times[ctx.idempotency_key] += 1
        self.effects[ctx.idempotency_key] = ctx.action
        return f"{ctx.step_name} done"

    def times_of(self, ctx: StepContext) -> int:
        return self.times[ctx.idempotency_key]


def make_world() -> Mapping[str, World]:
    return {"world": World()}


@step
async def act(ctx: StepContext, value: Any = None) -> str:
    world: World = ctx.resolve("world")
    return world.act(ctx)


@act.compensate
async def undo_act(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)


@step
def act_in_thread(ctx: StepContext, value: Any = None) -> str:
    world: World = ctx.resolve("world")
    return world.act(ctx)


@act_in_thread.compensate
def undo_act_in_thread(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)


@step
async def act_slowly(ctx: StepContext, seconds: float) -> str:
    await asyncio.sleep(seconds)
    world: World = ctx.resolve("world")
    return world.act(ctx)


@act_slowly.compensate
async def undo_act_slowly(ctx: StepContext, value: Any) -> None:
    await asyncio.sleep(1)
    ctx.resolve("world").act(ctx)


@step
async def fail(ctx: StepContext, value: Any = None) -> None:
    ctx.resolve("world").act(ctx)
    raise ValueError("it never works")


@fail.compensate
async def undo_fail(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)


@step
async def fail_for_good(value: Any = None) -> None:
    raise PermanentStepFailure("never")


@step(max_retries=3, retry_interval=DAY)
async def work_the_third_time(ctx: StepContext) -> str:
    world: World = ctx.resolve("world")
    world.act(ctx)
    if world.times_of(ctx) < 3:
        raise ConnectionError("not yet")
    return "it worked"


@step
async def act_and_undo_badly(ctx: StepContext) -> str:
    world: World = ctx.resolve("world")
    return world.act(ctx)


@act_and_undo_badly.compensate
async def undo_badly(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)
    raise ValueError("it cannot be undone")


@step(async_=True)
async def ask(ctx: StepContext, value: Any = None) -> StepResponse[Any]:
    ctx.resolve("world").act(ctx)
    return StepResponse.awaiting(compensate_with="asked")


@ask.compensate
async def undo_ask(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)


@step(async_=True, compensate_async=True)
async def ask_both_ways(ctx: StepContext, value: Any = None) -> None:
    ctx.resolve("world").act(ctx)


@ask_both_ways.compensate
async def ask_to_undo(ctx: StepContext, value: Any) -> None:
    ctx.resolve("world").act(ctx)


class Shape(msgspec.Struct, frozen=True):
    """A workflow with what a run of it needs, and what it comes to."""

    workflow: Workflow[Any, Any]
    state: str
    input: Any = None
    answers: Mapping[str, Any] = {}
    #: One thing happens after the other, so that the order of events is always the same.
    is_ordered: bool = True
    #: Steps that fail a number of times only: how often that is recorded depends on the crash.
    fails_for_a_while: bool = False


SHAPES: dict[str, Shape] = {}

with Registry().scope():

    @workflow("linear")
    def linear() -> Any:
        first = act.config(name="first")()
        second = act.config(name="second")(first)
        return WorkflowResponse({"last": act.config(name="third")(second)})

    SHAPES["linear"] = Shape(linear, "done")

    @workflow("threads")
    def threads() -> Any:
        first = act_in_thread.config(name="first")()
        return act_in_thread.config(name="second")(first)

    SHAPES["threads"] = Shape(threads, "done")

    @workflow("wide")
    def wide() -> Any:
        first = act.config(name="first")()
        results = parallel(
            act.config(name="left")(first),
            act_slowly.config(name="middle")(5),
            act.config(name="right")(first),
        )
        return act.config(name="last")(list(results))

    SHAPES["parallel"] = Shape(wide, "done", is_ordered=False)

    @workflow("guarded")
    def guarded(order: Any) -> Any:
        first = act.config(name="first")()
        with when(order["gift"], name="gift"):
            act.config(name="wrap")(first)
        with when(order["express"], name="express"):
            act.config(name="fly")(first)
        label = transform(first, fn=lambda text: text.upper())
        return act.config(name="last")(label)

    SHAPES["when"] = Shape(guarded, "done", {"gift": True, "express": False})

    @workflow("again")
    def again() -> Any:
        act.config(name="first")()
        return work_the_third_time.config(name="second")()

    SHAPES["retry"] = Shape(again, "done", fails_for_a_while=True)

    @workflow("undone")
    def undone() -> Any:
        first = act.config(name="first")()
        parallel(act.config(name="left")(first), act.config(name="right")(first))
        act_in_thread.config(name="third")()
        return fail.config(name="last")()

    SHAPES["compensation"] = Shape(undone, "reverted", is_ordered=False)

    @workflow("undone-after-retries")
    def undone_after_retries() -> Any:
        act.config(name="first")()
        return fail.config(name="last", max_retries=2, retry_interval=DAY)()

    SHAPES["compensation-after-retries"] = Shape(undone_after_retries, "reverted")

    @workflow("not-undone")
    def not_undone() -> Any:
        act.config(name="first")()
        act_and_undo_badly.config(name="second", max_retries=1)()
        return fail_for_good.config(name="last")()

    SHAPES["compensation-fails"] = Shape(not_undone, "failed")

    @workflow("asking")
    def asking() -> Any:
        act.config(name="first")()
        answer = ask.config(name="approve")()
        return act.config(name="last")(answer)

    SHAPES["awaiting"] = Shape(asking, "done", answers={"approve": "yes"})
    SHAPES["awaiting-refused"] = Shape(
        asking, "reverted", answers={"approve": PermanentStepFailure("no")}
    )

    @workflow("asking-both-ways")
    def asking_both_ways() -> Any:
        ask_both_ways.config(name="approve")()
        return fail_for_good.config(name="last")()

    SHAPES["awaiting-undo"] = Shape(
        asking_both_ways, "reverted", answers={"approve": "yes", "~approve": None}
    )

    @workflow("in-the-background")
    def in_the_background() -> Any:
        first = act.config(name="first")()
        slow = act_slowly.config(name="slow", async_=True)(60)
        act_slowly.config(name="loose", no_wait=True)(90)
        return act.config(name="last")([first, slow])

    SHAPES["background"] = Shape(in_the_background, "done", is_ordered=False)

    @workflow("passing-over")
    def passing_over() -> Any:
        fail.config(name="first", continue_on_permanent_failure=True)()
        fail.config(name="second", skip_on_permanent_failure="last")()
        act.config(name="third")()
        return act.config(name="last")()

    SHAPES["passing-over"] = Shape(passing_over, "done")

    @workflow("sleeping")
    def sleeping() -> Any:
        act.config(name="first")()
        sleep(7 * DAY, name="a-week")
        return act.config(name="last")()

    SHAPES["sleeping"] = Shape(sleeping, "done")

    @workflow("late", timeout=60)
    def late() -> Any:
        act.config(name="first")()
        ask.config(name="approve")()
        return act.config(name="last")()

    SHAPES["workflow-timeout"] = Shape(late, "reverted")

    @workflow("late-step")
    def late_step() -> Any:
        act.config(name="first")()
        ask.config(name="approve", timeout=60)()
        return act.config(name="last")()

    SHAPES["step-timeout"] = Shape(late_step, "reverted")

    @workflow("hooked")
    def hooked() -> Any:
        first = act.config(name="first")()
        checked = hook("checked", first)
        found = checked.result()
        return WorkflowResponse(act.config(name="last")(found), hooks=[checked])

    @hooked.hooks.checked
    async def check(ctx: StepContext, value: Any) -> str:
        world: World = ctx.resolve("world")
        return world.act(ctx)

    SHAPES["hook"] = Shape(hooked, "done")

    @workflow("child")
    def child(value: Any) -> Any:
        one = act.config(name="one")(value)
        return act.config(name="two")(one)

    @workflow("parent")
    def parent() -> Any:
        first = act.config(name="first")()
        inner = child.as_step(first)
        return act.config(name="last")(inner)

    SHAPES["nested"] = Shape(parent, "done")

    @workflow("parent-undone")
    def parent_undone() -> Any:
        child.as_step("x")
        return fail_for_good.config(name="last")()

    SHAPES["nested-compensation"] = Shape(parent_undone, "reverted")

    @workflow("asking-child")
    def asking_child() -> Any:
        act.config(name="one")()
        return ask.config(name="approve")()

    @workflow("asking-parent")
    def asking_parent() -> Any:
        first = act.config(name="first")()
        inner = asking_child.as_step()
        return act.config(name="last")([first, inner])

    SHAPES["nested-awaiting"] = Shape(asking_parent, "done", answers={"approve": "yes"})
