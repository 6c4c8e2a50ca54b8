"""`run_to_end`: a workflow in memory, in virtual time, its questions answered by the test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.testing.shapes import DAY, SHAPES, make_world
from wfe import (
    InvalidInput,
    PermanentStepFailure,
    StepContext,
    StepFailed,
    StepResponse,
    Workflow,
    parallel,
    resource,
    step,
    when,
    workflow,
)
from wfe.errors import UsageError
from wfe.model import EventKind
from wfe.testing import (
    NotEnded,
    Run,
    VirtualLoop,
    run_to_end,
    run_to_end_async,
    timeline,
)

asking = SHAPES["awaiting"].workflow


def end_of(workflow: Workflow[Any, Any], *input: Any, **options: Any) -> Run:
    return run_to_end(workflow, *input, **{"resources": make_world(), **options})


def test_gives_result_outputs_and_timeline() -> None:
    run = end_of(SHAPES["linear"].workflow)
    assert run.state == "done"
    assert run.result == {"last": "third done"}
    assert run.outputs == {"first": "first done", "second": "second done", "third": "third done"}
    assert run.timeline == ["first", "second", "third"]
    assert [event.kind for event in run.events][:1] == [EventKind.BEGIN]
    assert run.seconds == 0
    assert run.errors == ()


def test_asking_a_bad_end_for_its_result_raises_what_it_failed_by() -> None:
    run = end_of(SHAPES["compensation"].workflow)
    with pytest.raises(StepFailed, match="it never works") as caught:
        _ = run.result
    assert caught.value.step == "last"


def test_a_bad_end_does_not_raise_but_is_told() -> None:
    run = end_of(SHAPES["compensation-after-retries"].workflow)
    assert run.state == "reverted"
    assert run.timeline == ["first", "last!", "last!", "last!", "~last", "~first"]
    assert [(error.action, error.message) for error in run.errors] == [("last", "it never works")]
    assert run.seconds == 2 * DAY
    assert "reverted: first last! last! last! ~last ~first; last: it never works" in repr(run)


def test_a_week_of_sleep_takes_no_time() -> None:
    assert end_of(SHAPES["sleeping"].workflow).seconds == 7 * DAY


def test_an_answer_becomes_the_output_of_the_step() -> None:
    run = end_of(asking, answers={"approve": {"by": "kim"}})
    assert run.outputs["approve"] == {"by": "kim"}
    assert run.timeline == ["first", "approve?", "approve", "last"]


@pytest.mark.parametrize("answer", [ValueError("no"), ValueError, lambda attempt: ValueError()])
def test_an_exception_as_an_answer_fails_the_step(answer: Any) -> None:
    run = end_of(asking, answers={"approve": answer})
    assert run.state == "reverted"
    assert run.timeline == ["first", "approve?", "approve!", "~approve", "~first"]
    assert run.errors[0].name == "ValueError"


def test_an_answer_may_depend_on_the_attempt() -> None:
    @step(async_=True, max_retries=5)
    async def ask() -> None: ...

    @workflow
    def persistent() -> Any:
        return ask()

    def answer(attempt: int) -> Any:
        return ValueError("not yet") if attempt < 3 else attempt

    run = run_to_end(persistent, answers={"ask": answer})
    assert run.timeline == ["ask?", "ask!", "ask?", "ask!", "ask?", "ask"]
    assert run.result == 3

    given_up = run_to_end(persistent, answers={"ask": PermanentStepFailure("never")})
    assert given_up.timeline[:2] == ["ask?", "ask!"]
    assert given_up.state == "reverted"


def test_an_undo_is_answered_under_its_own_name() -> None:
    shape = SHAPES["awaiting-undo"]
    run = end_of(shape.workflow, answers=shape.answers)
    assert run.state == "reverted"
    assert run.timeline == ["approve?", "approve", "last!", "~approve?", "~approve"]


def test_a_nested_workflow_is_answered_and_told_too() -> None:
    shape = SHAPES["nested-awaiting"]
    run = end_of(shape.workflow, answers=shape.answers)
    assert run.state == "done"
    assert run.timeline == [
        "first",
        "asking-child/one",
        "asking-child/approve?",
        "asking-child-as-step?",
        "asking-child/approve",
        "asking-child-as-step",
        "last",
    ]


def test_who_may_answer_two_steps_of_one_name_names_one_by_its_key() -> None:
    @step(async_=True)
    async def ask() -> None: ...

    @workflow
    def inner() -> Any:
        return ask()

    @workflow
    def outer() -> Any:
        mine, yours = parallel(ask(), inner.as_step())
        return [mine, yours]

    run = run_to_end(outer, answers={"ask": 1, "inner:inner-as-step-test:ask:invoke": 2})
    assert run.result == [1, 2]


def test_an_answer_that_is_missing_is_named() -> None:
    with pytest.raises(
        NotEnded, match=r"waits for an answer: give it \(answers=\{'approve': ...\}"
    ):
        end_of(asking)


def test_an_answer_to_a_step_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no step of that name.*Did you mean approve"):
        end_of(asking, answers={"aprove": 1})
    with pytest.raises(UsageError, match="no step of that name"):
        end_of(asking, answers={"asking:test:nobody:invoke": 1})


def test_a_step_that_parks_after_a_failure_is_named() -> None:
    @step(async_=True, max_retries=1, auto_retry=False)
    async def flaky() -> str:
        raise ValueError

    @workflow
    def parked() -> Any:
        return flaky()

    with pytest.raises(NotEnded, match="waits for retry_step: flaky failed"):
        run_to_end(parked)


def test_what_goes_on_for_ever_is_given_up() -> None:
    @step(async_=True, retry_interval_awaiting=60)
    async def ask() -> None: ...

    @workflow
    def nagging() -> Any:
        return ask()

    with pytest.raises(NotEnded, match=r"3600 virtual seconds: give it more \(within=...\)"):
        run_to_end(nagging, within=3600)


def test_an_input_that_does_not_fit_is_refused() -> None:
    @workflow
    def counting(number: int) -> Any:
        return number

    assert run_to_end(counting, 3).result == 3
    with pytest.raises(InvalidInput):
        run_to_end(counting, "three")
    with pytest.raises(InvalidInput):
        run_to_end(counting)


def test_steps_find_resources_given_or_made_by_a_factory() -> None:
    @resource
    def greeting() -> str:
        return "hello"

    @step
    def greet(ctx: StepContext) -> str:
        return f"{ctx.resolve('greeting')} {ctx.resolve('name')}"

    @workflow
    def greeting_somebody() -> Any:
        return greet()

    assert run_to_end(greeting_somebody, resources={"name": "kim"}).result == "hello kim"
    fake = {"name": "kim", "greeting": "bye"}
    assert run_to_end(greeting_somebody, resources=fake).result == "bye kim"


def test_effects_carry_a_predictable_key() -> None:
    world = make_world()
    run_to_end(SHAPES["linear"].workflow, resources=world, transaction_id="42")
    assert list(world["world"].effects) == [
        "linear:42:first:invoke",
        "linear:42:second:invoke",
        "linear:42:third:invoke",
    ]


def test_what_was_emitted_is_there_only_where_all_went_well() -> None:
    @step
    def announce(ctx: StepContext, well: bool) -> None:
        ctx.emit("placed", {"id": 1})
        if not well:
            raise ValueError

    @workflow
    def announcing(well: bool) -> Any:
        announce(well)

    assert [(e.name, e.data) for e in run_to_end(announcing, True).emitted] == [
        ("placed", {"id": 1})
    ]
    assert run_to_end(announcing, False).emitted == ()


def test_timeline_has_a_word_for_what_was_skipped() -> None:
    @step
    def pass_over() -> Any:
        return StepResponse.skip("nothing to do")

    @workflow
    def skipping(gift: bool) -> Any:
        pass_over()
        with when(gift, name="gift"):
            pass_over.config(name="wrap")()

    run = run_to_end(skipping, False)
    assert run.timeline == ["(pass_over)", "(wrap)"]
    assert timeline([]) == []


def test_an_async_test_awaits_it_on_a_virtual_loop() -> None:
    async def main() -> Run:
        return await run_to_end_async(SHAPES["sleeping"].workflow, resources=make_world())

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()).seconds == 7 * DAY
    with pytest.raises(RuntimeError, match="loop_factory=VirtualLoop"):
        asyncio.run(main())


def test_a_running_loop_is_not_blocked() -> None:
    async def main() -> None:
        run_to_end(asking)

    with pytest.raises(UsageError, match="run_to_end_async"):
        asyncio.run(main())


def test_two_runs_are_alike_to_the_last_event() -> None:
    def seen(run: Run) -> list[Any]:
        return [(e.kind, e.step, e.action, e.attempt, e.time) for e in run.events]

    shape = SHAPES["background"]
    assert seen(end_of(shape.workflow)) == seen(end_of(shape.workflow))
