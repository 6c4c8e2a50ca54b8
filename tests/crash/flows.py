"""The flows: workflows of every shape whose steps write their effects into the ledger."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.crash import ledger, points
from wfe import (
    PermanentStepFailure,
    Registry,
    StepContext,
    StepResponse,
    Workflow,
    WorkflowResponse,
    parallel,
    sleep,
    step,
    when,
    workflow,
)
from wfe.authoring.responses import NOT_GIVEN
from wfe.model import EventKind
from wfe.testing.outcomes import step_word

#: Instead of an answer: the execution is cancelled.
CANCEL = "cancel"

#: Seconds that things take which need to take a while.
MOMENT = 0.02


@contextlib.contextmanager
def effect(ctx: StepContext) -> Iterator[None]:
    """What a step does outside: begun before the block, done after it."""
    word = step_word(ctx.workflow_id, ctx.step_name, ctx.action, home=_home(ctx))
    name = word if ctx.attempt == 1 else f"{word} (attempt {ctx.attempt})"
    points.reach(f"before {name}")
    ledger.write("begin", ctx.idempotency_key, ctx.attempt)
    points.reach(f"in {name}")
    yield
    ledger.write("end", ctx.idempotency_key, ctx.attempt)
    points.reach(f"after {name}")


def _home(ctx: StepContext) -> str:
    """A child's steps are named with their workflow."""
    return "" if ctx.parent_step_idempotency_key else ctx.workflow_id


@step
async def act(ctx: StepContext, value: Any = None) -> str:
    with effect(ctx):
        pass
    return f"{ctx.step_name} done"


@act.compensate
async def undo_act(ctx: StepContext, value: Any) -> None:
    with effect(ctx):
        pass


@step
def act_in_thread(ctx: StepContext, value: Any = None) -> str:
    with effect(ctx):
        pass
    return f"{ctx.step_name} done"


@act_in_thread.compensate
def undo_act_in_thread(ctx: StepContext, value: Any) -> None:
    with effect(ctx):
        pass


@step
async def act_slowly(ctx: StepContext, value: Any = None) -> str:
    with effect(ctx):
        await asyncio.sleep(MOMENT)
    return f"{ctx.step_name} done"


@act_slowly.compensate
async def undo_act_slowly(ctx: StepContext, value: Any) -> None:
    with effect(ctx):
        await asyncio.sleep(MOMENT)


@step
async def act_until_told(ctx: StepContext, value: Any = None) -> str:
    """Works until `go-on`, a resource, is set."""
    with effect(ctx):
        await ctx.resolve("go-on").wait()
    return f"{ctx.step_name} done"


@act_until_told.compensate
async def undo_act_until_told(ctx: StepContext, value: Any) -> None:
    with effect(ctx):
        pass


@step
async def act_or_hold(ctx: StepContext, value: Any = None) -> str:
    """Works for ever at its first attempt, having told `held`, a resource."""
    with effect(ctx):
        if ctx.attempt == 1:
            ctx.resolve("held")()
            await asyncio.Event().wait()
    return f"{ctx.step_name} done"


@step
async def fail(ctx: StepContext, value: Any = None) -> None:
    with effect(ctx):
        pass
    raise PermanentStepFailure("never")


@fail.compensate
async def undo_fail(ctx: StepContext, value: Any) -> None:
    with effect(ctx):
        pass


@step(max_retries=2)
async def work_the_third_time(ctx: StepContext) -> str:
    with effect(ctx):
        pass
    if ledger.times(ctx.idempotency_key) < 3:
        raise ConnectionError("not yet")
    return "it worked"


@step(async_=True)
async def ask(ctx: StepContext, value: Any = None) -> StepResponse[Any]:
    with effect(ctx):
        pass
    return StepResponse.awaiting(compensate_with="asked")


@ask.compensate
async def undo_ask(ctx: StepContext, value: Any) -> None:
    with effect(ctx):
        pass


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow with what a run of it needs, and what it comes to."""

    workflow: Workflow[Any, Any]
    state: str = "done"
    input: Any = NOT_GIVEN
    #: What another process answers to steps that wait, by their names: a value, an exception, or
    #: CANCEL.
    answers: Mapping[str, Any] = {}
    #: The process that began it waits for the answer, instead of leaving.
    stays: bool = False
    #: While this step waits for its answer, others are at work, until that is there.
    works_until: str | None = None
    #: It is cancelled while this step is at work.
    cancelled_in: str | None = None
    #: Steps fail a number of times: how often that is recorded depends on the crash.
    fails_for_a_while: bool = False


FLOWS: dict[str, Flow] = {}
REGISTRY = Registry()

with REGISTRY.scope():

    @workflow("linear")
    def linear() -> Any:
        first = act.config(name="first")()
        second = act.config(name="second")(first)
        return WorkflowResponse({"last": act.config(name="third")(second)})

    FLOWS["linear"] = Flow(workflow=linear)

    @workflow("threads")
    def threads() -> Any:
        first = act_in_thread.config(name="first")()
        both = parallel(
            act_in_thread.config(name="left")(first), act_in_thread.config(name="right")(first)
        )
        return act_in_thread.config(name="last")(list(both))

    FLOWS["threads"] = Flow(workflow=threads)

    @workflow("wide")
    def wide() -> Any:
        first = act.config(name="first")()
        results = parallel(
            act.config(name="left")(first),
            act_slowly.config(name="middle")(first),
            act.config(name="right")(first),
        )
        return act.config(name="last")(list(results))

    FLOWS["parallel"] = Flow(workflow=wide)

    @workflow("guarded")
    def guarded(order: Any) -> Any:
        first = act.config(name="first")()
        with when(order["gift"], name="gift"):
            act.config(name="wrap")(first)
        with when(order["express"], name="express"):
            act.config(name="fly")(first)
        return act.config(name="last")(first)

    FLOWS["when"] = Flow(workflow=guarded, input={"gift": True, "express": False})

    @workflow("again")
    def again() -> Any:
        act.config(name="first")()
        return work_the_third_time.config(name="second")()

    FLOWS["retry"] = Flow(workflow=again, fails_for_a_while=True)

    @workflow("again-later")
    def again_later() -> Any:
        act.config(name="first")()
        return work_the_third_time.config(name="second", retry_interval=MOMENT)()

    FLOWS["retry-later"] = Flow(workflow=again_later, fails_for_a_while=True)

    @workflow("undone")
    def undone() -> Any:
        first = act.config(name="first")()
        parallel(
            act.config(name="left")(first),
            act_slowly.config(name="middle")(first),
            act_in_thread.config(name="right")(first),
        )
        return fail.config(name="last")()

    FLOWS["compensation"] = Flow(workflow=undone, state="reverted")

    @workflow("asking")
    def asking() -> Any:
        act.config(name="first")()
        answer = ask.config(name="approve")()
        return act.config(name="last")(answer)

    FLOWS["awaiting"] = Flow(workflow=asking, answers={"approve": "yes"})
    FLOWS["awaiting-here"] = Flow(workflow=asking, answers={"approve": "yes"}, stays=True)
    FLOWS["awaiting-refused"] = Flow(
        workflow=asking, state="reverted", answers={"approve": PermanentStepFailure("no")}
    )

    FLOWS["awaiting-cancelled"] = Flow(
        workflow=asking, state="reverted", answers={"approve": CANCEL}, stays=True
    )

    @workflow("asking-beside-work")
    def asking_beside_work() -> Any:
        first = act.config(name="first")()
        answer, _ = parallel(
            ask.config(name="approve")(first), act_until_told.config(name="beside")(first)
        )
        return act.config(name="last")(answer)

    FLOWS["awaiting-beside-work"] = Flow(
        workflow=asking_beside_work,
        answers={"approve": "yes"},
        stays=True,
        works_until="approve",
    )

    @workflow("in-the-background")
    def in_the_background() -> Any:
        first = act.config(name="first")()
        slow = act_slowly.config(name="slow", async_=True)(first)
        return act.config(name="last")([first, slow])

    FLOWS["background"] = Flow(workflow=in_the_background)

    @workflow("loose")
    def loose() -> Any:
        first = act.config(name="first")()
        act_slowly.config(name="loose", no_wait=True)(first)
        second = act.config(name="second")(first)
        return act.config(name="last")(second)

    FLOWS["no-wait"] = Flow(workflow=loose)

    @workflow("called-off")
    def called_off() -> Any:
        first = act.config(name="first")()
        slow = act_until_told.config(name="slow")(first)
        return act.config(name="last")(slow)

    FLOWS["cancel"] = Flow(workflow=called_off, state="reverted", cancelled_in="slow")

    @workflow("sleeping")
    def sleeping() -> Any:
        act.config(name="first")()
        sleep(MOMENT, name="nap")
        return act.config(name="last")()

    FLOWS["sleep"] = Flow(workflow=sleeping)

    @workflow("passing-over")
    def passing_over() -> Any:
        act.config(name="first")()
        fail.config(name="second", skip_on_permanent_failure="last")()
        act.config(name="third")()
        return act.config(name="last")()

    FLOWS["passing-over"] = Flow(workflow=passing_over)

    @workflow("child")
    def child(value: Any) -> Any:
        one = act.config(name="one")(value)
        return act.config(name="two")(one)

    @workflow("parent")
    def parent() -> Any:
        first = act.config(name="first")()
        inner = child.as_step(first)
        return act.config(name="last")(inner)

    FLOWS["nested"] = Flow(workflow=parent)

    @workflow("asking-child")
    def asking_child() -> Any:
        act.config(name="one")()
        answer = ask.config(name="approve")()
        return act.config(name="two")(answer)

    @workflow("asking-parent")
    def asking_parent() -> Any:
        first = act.config(name="first")()
        inner = asking_child.as_step()
        return act.config(name="last")([first, inner])

    FLOWS["nested-async"] = Flow(workflow=asking_parent, answers={"approve": "yes"})
    FLOWS["nested-async-here"] = Flow(
        workflow=asking_parent, answers={"approve": "yes"}, stays=True
    )

    @workflow("parent-undone")
    def parent_undone() -> Any:
        child.as_step("x")
        return fail.config(name="last")()

    FLOWS["nested-compensation"] = Flow(workflow=parent_undone, state="reverted")

    @workflow("held")
    def held() -> Any:
        """For processes that die in the middle of it."""
        first = act.config(name="first")()
        middle = act_or_hold.config(name="middle")(first)
        return act.config(name="last")(middle)


#: What a step comes to in the end, of all that is recorded of it.
ENDS = frozenset(
    {EventKind.STEP_SUCCESS, EventKind.STEP_SKIPPED, EventKind.COMPENSATE_STEP_SUCCESS}
)
