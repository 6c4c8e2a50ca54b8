"""Steps: how they are made, named, configured, undone and called."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from wfe import (
    DuplicateStep,
    InvalidName,
    InvalidOption,
    PermanentStepFailure,
    StepContext,
    StepResponse,
    step,
    workflow,
)
from wfe import StepContext as Context
from wfe.authoring.responses import NOT_GIVEN
from wfe.model import StepKind, StepOptions

from .support import CONTEXT, Told, arguments, composed, line_of, place, refused

if TYPE_CHECKING:
    import wfe.authoring.context as seen_by_type_checkers_alone


@step
def make(value: Any = None) -> Any:
    return value


def test_each_call_of_a_body_is_a_stage_in_the_order_written() -> None:
    other = make.config(name="other")
    flow = composed(lambda: [make(), other(), make.config(name="third")()]).flow
    assert flow.stages == (("make",), ("other",), ("third",))
    assert [(spec.name, spec.stage, spec.kind) for spec in flow.steps.values()] == [
        ("make", 0, StepKind.STEP),
        ("other", 1, StepKind.STEP),
        ("third", 2, StepKind.STEP),
    ]


def test_a_step_is_named_like_its_function_unless_told_otherwise() -> None:
    def charge() -> None: ...

    assert step(charge).name == "charge"
    assert step("charge-card")(charge).name == "charge-card"
    assert step(max_retries=1)(charge).name == "charge"
    assert step()(charge).config(name="again").name == "again"


def test_the_functions_of_a_node_are_the_plain_ones() -> None:
    def charge() -> None: ...

    async def refund() -> None: ...

    made = step(charge)
    assert made.compensate(refund) is refund
    node = composed(lambda: made()).nodes["charge"]
    assert (node.handler.function, node.handler.is_coroutine) == (charge, False)
    assert (node.compensation, node.compensation_is_coroutine) == (refund, True)
    assert node.spec.has_compensation
    assert made.function is charge
    assert made.compensation is refund


def test_a_step_without_an_undo_has_none() -> None:
    node = composed(lambda: make()).nodes["make"]
    assert not node.spec.has_compensation
    assert node.compensation is None
    assert not node.compensation_is_coroutine


def test_uses_of_a_step_share_their_undo() -> None:
    @step
    def charge() -> None: ...

    twice = charge.config(name="twice")

    @charge.compensate
    def refund() -> None: ...

    assert composed(lambda: twice()).nodes["twice"].compensation is refund


class Callable_:  # noqa: N801 an object that is called like a function
    async def __call__(self, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("function", "is_coroutine"),
    [
        (functools.partial(lambda a, b: a + b, 1), False),
        (functools.partial(Callable_()), True),
        (Callable_(), True),
        (len, False),
        (str, False),
    ],
)
def test_anything_that_can_be_called_may_be_a_step(function: Any, is_coroutine: bool) -> None:
    node = composed(lambda: step("s")(function)(5)).nodes["s"]
    assert node.handler.is_coroutine is is_coroutine
    assert node.handler.function is function


# --- the context ---------------------------------------------------------------------------------


def test_a_first_parameter_for_the_context_receives_it() -> None:
    @step
    def annotated(context: StepContext, value: int) -> None: ...

    @step
    def quoted(context: "StepContext", value: int) -> None: ...  # noqa: UP037 as some write it

    @step
    def renamed(context: Context, value: int) -> None: ...

    @step
    def unseen(context: seen_by_type_checkers_alone.StepContext, value: int) -> None: ...

    @step
    def named(ctx: Any, value: int) -> None: ...

    @step
    def without(value: int) -> None: ...

    steps: list[Any] = [annotated, quoted, renamed, unseen, named, without]
    made = composed(lambda data: [each(data) for each in steps])
    for name in ("annotated", "quoted", "renamed", "unseen", "named"):
        assert arguments(made, name, Told(1)) == ((CONTEXT, 1), {})
    assert arguments(made, "without", Told(1)) == ((1,), {})


def test_an_undo_may_take_the_context_the_value_both_or_nothing() -> None:
    def undo_with(function: Any) -> Any:
        made = step("s")(lambda: None)
        made.compensate(function)
        node = composed(lambda: made()).nodes["s"]
        return node.compensation_arguments(CONTEXT, 7)

    def both(ctx: StepContext, value: int) -> None: ...
    def context(ctx: StepContext) -> None: ...
    def value(value: int) -> None: ...
    def optional(value: int = 0) -> None: ...
    def nothing() -> None: ...
    def anything(*values: int) -> None: ...

    assert undo_with(both) == ((CONTEXT, 7), {})
    assert undo_with(context) == ((CONTEXT,), {})
    assert undo_with(nothing) == ((), {})
    for function in (value, optional, anything):
        assert undo_with(function) == ((7,), {})


def test_a_context_that_is_not_first_is_refused() -> None:
    def late(value: int, context: StepContext) -> None: ...

    error = refused(lambda: step(late))
    assert "'context', which is not its first parameter" in error.message
    assert place(error) == line_of(late)


# --- calling it outside of a body ----------------------------------------------------------------


def test_outside_of_a_body_a_step_is_its_function() -> None:
    @step
    def double(value: int) -> StepResponse[int]:
        return StepResponse(value * 2)

    @step
    async def later(ctx: StepContext, value: int) -> str:
        return f"{ctx.step_name}{value}"

    response: Any = double(4)
    assert response.output == 8
    assert asyncio.run(later.function(StepContext(step_name="s"), 4)) == "s4"


# --- refusals ------------------------------------------------------------------------------------


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [generator, async_generator])
def test_a_function_that_yields_is_no_step(function: Any) -> None:
    error = refused(lambda: step(function))
    assert "`yield`" in error.message
    assert place(error) == line_of(function)


def test_what_is_no_function_is_no_step() -> None:
    assert "is a function, not 5" in refused(lambda: step(5)).message  # type: ignore[call-overload]  # as tested


def test_a_function_without_a_name_needs_one() -> None:
    error = refused(lambda: step(lambda: None))
    assert 'step("name")(function)' in error.hint


def test_a_method_is_refused() -> None:
    def define() -> None:
        class Shop:
            @step
            def charge(self, order: Any) -> None: ...

    error = refused(define)
    assert "is a method" in error.message
    assert error.file == __file__


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "a\x00", " a", "\ud800"])
def test_a_name_that_could_not_be_part_of_a_key_is_refused(name: str) -> None:
    for define in (
        lambda: step(name)(lambda: None),
        lambda: make.config(name=name),
        lambda: workflow(name)(lambda: None),
    ):
        error = refused(define, InvalidName)
        assert place(error)[0] == __file__
        assert "cannot be the name of a" in error.message


@pytest.mark.parametrize("name", ["a.b", "größe", "a b", "👨‍👩‍👧", "x" * 300, "-a"])
def test_any_other_name_is_accepted(name: str) -> None:
    assert list(composed(lambda: step(name)(lambda: None)()).nodes) == [name]


def test_a_name_used_twice_is_refused_with_both_places() -> None:
    def body() -> None:
        make()
        make()

    error = refused(lambda: composed(body), DuplicateStep)
    assert place(error) == line_of(body, 2)
    assert f"{__file__}:{line_of(body, 1)[1]}" in error.message
    assert '.config(name="...")' in error.hint


def test_a_second_undo_is_refused_with_both_places() -> None:
    charge = step("charge")(lambda: None)

    @charge.compensate
    def first() -> None: ...

    def second() -> None: ...

    error = refused(lambda: charge.compensate(second))
    assert place(error) == line_of(second)
    assert f"{__file__}:{line_of(first)[1]}" in error.message


def test_an_undo_after_the_body_that_uses_the_step_is_refused() -> None:
    charge = step("charge")(lambda: None)
    composed(lambda: charge())

    def refund() -> None: ...

    error = refused(lambda: charge.compensate(refund))
    assert "'w' uses the step 'charge' already" in error.message
    assert place(error) == line_of(refund)


def test_an_undo_that_needs_more_than_it_gets_is_refused() -> None:
    def refund(ctx: StepContext, receipt: str, reason: str) -> None: ...

    error = refused(lambda: step("charge")(lambda: None).compensate(refund))
    assert "one value at most" in error.message
    assert place(error) == line_of(refund)


# --- options -------------------------------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "max_retries": 3,
    "retry_interval": 1.5,
    "retry_backoff": 2.0,
    "retry_max_interval": 60.0,
    "retry_jitter": 0.1,
    "auto_retry": False,
    "async_": True,
    "timeout": 10.0,
    "retry_interval_awaiting": 5.0,
    "max_awaiting_retries": 2,
    "compensate_async": True,
    "continue_on_permanent_failure": True,
    "skip_on_permanent_failure": True,
    "no_wait": True,
    "save_response": False,
    "store": True,
    "pure": True,
}


def test_all_options_can_be_set_where_the_step_is_made_or_used() -> None:
    expected = StepOptions(**OPTIONS)
    assert step("s", **OPTIONS)(lambda: None).options == expected
    used = make.config(**OPTIONS)
    assert used.options == expected
    assert composed(lambda: used()).flow.steps["make"].options == expected
    assert make.options == StepOptions()
    assert set(OPTIONS) == set(StepOptions.__struct_fields__)


def test_a_use_changes_only_the_options_that_it_names() -> None:
    made = step("s", max_retries=3, timeout=4)(lambda: None).config(timeout=5)
    assert made.options == StepOptions(max_retries=3, timeout=5.0)
    assert type(made.options.timeout) is float


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("max_retries", -1, "a whole number from 0 on"),
        ("max_retries", 1.0, "a whole number from 0 on"),
        ("max_retries", True, "a whole number from 0 on"),
        ("max_retries", None, "a whole number from 0 on"),
        ("retry_interval", -0.1, "a number of seconds from 0 on"),
        ("retry_interval", "5s", "a number of seconds from 0 on"),
        ("retry_interval", float("nan"), "a number of seconds from 0 on"),
        ("retry_max_interval", float("inf"), "a number of seconds from 0 on, or None"),
        ("timeout", 1e12, "a number of seconds from 0 to a century, or None"),
        ("timeout", 10**400, "a number of seconds from 0 to a century, or None"),
        ("timeout", False, "a number of seconds from 0 to a century, or None"),
        ("retry_interval_awaiting", 1e300, "a number of seconds from 0 to a century, or None"),
        ("retry_backoff", 0.5, "a factor from 1 on"),
        ("retry_jitter", -1, "a fraction from 0 on"),
        ("max_awaiting_retries", -1, "a whole number from 0 on, or None"),
        ("async_", 1, "True or False"),
        ("store", "yes", "True, False or None"),
        ("skip_on_permanent_failure", 1, "True, False or the name of a later step"),
    ],
)
def test_a_value_out_of_range_is_refused(name: str, value: Any, wanted: str) -> None:
    for define in (
        lambda: step("s", **{name: value}),
        lambda: make.config(**{name: value}),
    ):
        error = refused(define, InvalidOption)
        assert error.message == f"{name}={value!r}: it must be {wanted}."
        assert place(error)[0] == __file__


@pytest.mark.parametrize(
    ("given", "hint"),
    [("max_retry", "max_retries"), ("retries", "max_retries"), ("zzz", "The options: max_retries")],
)
def test_an_unknown_option_is_refused_with_near_names(given: str, hint: str) -> None:
    error = refused(lambda: step("s", **{given: 1}), InvalidOption)  # type: ignore[call-overload]  # as tested
    assert error.message == f"There is no option {given!r} of a step."
    assert hint in error.hint
    error = refused(lambda: workflow("w", **{given: 1}), InvalidOption)  # type: ignore[call-overload]  # as tested
    assert error.message == f"There is no option {given!r} of a workflow."


def test_skipping_to_a_later_step_is_accepted() -> None:
    def body() -> None:
        make.config(skip_on_permanent_failure="last")()
        make.config(name="between")()
        make.config(name="last")()

    assert composed(body).flow.steps["make"].options.skip_on_permanent_failure == "last"


@pytest.mark.parametrize(
    ("target", "hint"),
    [("lst", "Did you mean last?"), ("make", "The later steps are last."), ("first", "last")],
)
def test_skipping_to_what_is_no_later_step_is_refused(target: str, hint: str) -> None:
    def body() -> None:
        make.config(name="first")()
        make.config(skip_on_permanent_failure=target)()
        make.config(name="last")()

    error = refused(lambda: composed(body), InvalidOption)
    assert target in error.message
    assert hint in error.hint
    assert place(error) == line_of(body, 2)


# --- responses -----------------------------------------------------------------------------------


def test_responses_say_what_the_step_answers() -> None:
    response = StepResponse({"id": 1})
    assert (response.kind, response.output) == ("output", {"id": 1})
    assert response.compensate_with is NOT_GIVEN
    assert StepResponse(1, compensate_with=None).compensate_with is None

    waiting = StepResponse.awaiting()
    assert (waiting.kind, waiting.output) == ("awaiting", None)
    assert waiting.compensate_with is NOT_GIVEN
    assert StepResponse.awaiting(compensate_with=3).compensate_with == 3

    skipped = StepResponse.skip("no need")
    assert (skipped.kind, skipped.output, skipped.reason) == ("skip", None, "no need")


def test_a_permanent_failure_carries_what_the_undo_needs() -> None:
    with pytest.raises(PermanentStepFailure, match="declined") as caught:
        StepResponse.permanent_failure("declined", compensate_with={"id": 1})
    assert caught.value.compensate_with == {"id": 1}
