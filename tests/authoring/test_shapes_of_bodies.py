"""Stages, conditions, hooks, children and timers of a body."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import Any

import pytest

from wfe import (
    DefinitionError,
    DuplicateStep,
    InputMismatch,
    InvalidName,
    ReferenceMisuse,
    StepContext,
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
from wfe.model import StepKind, StepOptions

from .support import CONTEXT, Told, argument, arguments, composed, line_of, place, refused, result


@step
def a(value: Any = None) -> Any:
    return value


b = a.config(name="b")
c = a.config(name="c")
d = a.config(name="d")


# --- parallel ------------------------------------------------------------------------------------


def test_parallel_makes_one_stage_and_gives_the_references_in_order() -> None:
    def body() -> Any:
        a()
        first, second = parallel(b(), c())
        third = parallel([d(first)])
        return [first, second, third]

    made = composed(body)
    assert made.flow.stages == (("a",), ("b", "c"), ("d",))
    assert [spec.stage for spec in made.flow.steps.values()] == [0, 1, 1, 2]
    assert asyncio.run(made.result(Told(b=1, c=2, d=3))) == [1, 2, [3]]


def test_a_group_of_one_or_none_is_fine() -> None:
    assert composed(lambda: parallel(a())).flow.stages == (("a",),)
    assert composed(lambda: [parallel([]), a()]).flow.stages == (("a",),)
    assert composed(lambda: None).flow.stages == ()


def test_a_member_may_be_a_condition_around_one_step() -> None:
    def body(data: Any) -> Any:
        first, second = parallel(a(), when(data.flag).then(lambda: b()))
        return [first, second]

    made = composed(body)
    assert made.flow.stages == (("a", "b"),)
    assert made.flow.steps["b"].guards == ("when-1",)
    assert made.flow.steps["a"].guards == ()


def test_a_member_may_be_a_workflow() -> None:
    child = workflow("child")(lambda: c())
    assert composed(lambda: parallel(a(), child.as_step())).flow.stages == (("a", "child-as-step"),)


def called_before() -> None:
    first = a()
    b()
    parallel(first, c())


def called_before_all() -> None:
    first, second = a(), b()
    c()
    parallel(first, second)


def more_than_one_step_in_a_member() -> None:
    parallel(a(), b(c()))


def no_step(data: Any = None) -> None:
    parallel(a(), data)


def part_of_a_step() -> None:
    parallel(a().x, b())


def twice() -> None:
    first = a()
    parallel(first, first)


def already_parallel() -> None:
    first, second = parallel(a(), b())
    parallel(first, second)


def needs_its_sibling() -> None:
    parallel([first := a(), b(first)])


def guarded_by_its_sibling() -> None:
    parallel([first := a(), when(first.x).then(lambda: b())])


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        (called_before, "called inside its parentheses", 3),
        (called_before_all, "called inside its parentheses", 3),
        (more_than_one_step_in_a_member, "called inside its parentheses", 1),
        (no_step, "takes steps, not <reference data>", 1),
        (part_of_a_step, "takes steps, not <reference a.x>", 1),
        (twice, "'a' is given to parallel() twice", 2),
        (already_parallel, "called inside its parentheses", 2),
        (needs_its_sibling, "'b' needs what 'a' returns", 1),
        (guarded_by_its_sibling, "'b' needs what 'a' returns", 1),
    ],
)
def test_what_cannot_run_together_is_refused(body: Any, message: str, line: int) -> None:
    error = refused(lambda: composed(body), DuplicateStep if body is twice else DefinitionError)
    assert message in error.message
    assert place(error) == line_of(body, line)


def beside_a_sleep() -> None:
    parallel(a(), sleep(5))  # type: ignore[func-returns-value]  # that is the mistake


def beside_a_sleep_in_a_list() -> None:
    parallel([sleep(5), a()])  # type: ignore[func-returns-value]


def beside_no_step() -> None:
    parallel(a(), print())


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (beside_a_sleep, ".as_step()"),
        (beside_a_sleep_in_a_list, ".as_step()"),
        (beside_no_step, "@step"),
    ],
)
def test_what_gives_none_is_told_what_to_do_to_run_together(body: Any, hint: str) -> None:
    error = refused(lambda: composed(body), DefinitionError)
    assert error.message == "parallel() takes steps, not None."
    assert hint in (error.hint or "")


def test_a_workflow_with_a_sleep_rests_beside_other_steps() -> None:
    @workflow("rest")
    def rest() -> None:
        sleep(5)

    def body() -> None:
        parallel(a(), rest.as_step())

    assert composed(body).flow.stages == (("a", "rest-as-step"),)


# --- when ----------------------------------------------------------------------------------------


def holds(made: Any, name: str, values: Told) -> bool:
    return bool(asyncio.run(made.guards[name].evaluate(values)))


def test_steps_are_guarded_by_the_conditions_around_them_outermost_first() -> None:
    def body(data: Any) -> None:
        a()
        with when(data.x, name="outer"):
            b()
            with when(data.y):
                c()
        d()

    made = composed(body)
    guards = {spec.name: spec.guards for spec in made.flow.steps.values()}
    assert guards == {"a": (), "b": ("outer",), "c": ("outer", "when-2"), "d": ()}
    assert list(made.guards) == ["outer", "when-2"]


def test_a_condition_is_the_truth_of_a_reference() -> None:
    def body(data: Any) -> None:
        with when(data.x, name="x"):
            a()

    made = composed(body)
    values: list[Any] = [1, "", [], None, {"y": 0}]
    assert [holds(made, "x", Told({"x": value})) for value in values] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_a_predicate_gets_plain_values_unless_it_is_annotated() -> None:
    @dataclass
    class Order:
        total: float

    def big(order: Order) -> bool:
        return order.total > 100

    async def biggest(order: Any) -> bool:
        await asyncio.sleep(0)
        return bool(order["total"] > 1000)

    def body(order: Any) -> None:
        with when(order, lambda order: order["total"] > 10, name="some"):
            a()
        with when(order, big, name="big"):
            b()
        with when([order.total, 1000], lambda pair: pair[0] > pair[1], name="pair"):
            c()
        with when(order, biggest, name="biggest"):
            d()

    made = composed(body)
    found = {name: holds(made, name, Told({"total": 500})) for name in made.guards}
    assert found == {"some": True, "big": True, "pair": False, "biggest": False}
    with pytest.raises(InputMismatch, match="'order' \\(Order\\) of the condition 'big'"):
        holds(made, "big", Told({"total": "x"}))


def test_what_a_predicate_raises_comes_through() -> None:
    def body(data: Any) -> None:
        with when(data, lambda data: data["missing"], name="x"):
            a()

    with pytest.raises(KeyError):
        holds(composed(body), "x", Told({}))


def test_a_condition_kept_in_a_variable_may_guard_several_blocks() -> None:
    def body(data: Any) -> None:
        flag = when(data.flag, name="flag")
        with flag:
            a()
        b()
        with flag, flag:
            c()

    flow = composed(body).flow
    assert [flow.steps[name].guards for name in "abc"] == [("flag",), (), ("flag",)]


def test_a_block_that_returns_a_step_of_its_own_gives_that_step() -> None:
    def body(data: Any) -> Any:
        inner = when(data.flag).then(lambda: b(a()))
        nested = when(data.flag).then(lambda: when(data.other).then(lambda: c()))
        nothing = when(data.flag).then(lambda: _none(d()))
        return [inner, nested, nothing]

    made = composed(body)
    assert list(made.nodes) == ["a", "b", "c", "d"]
    assert asyncio.run(made.result(Told({}, b=1, c=2))) == [1, 2, None]


def _none(_: Any) -> None:
    return None


def test_a_block_that_returns_another_value_adds_a_step_named_like_the_condition() -> None:
    def body(data: Any) -> Any:
        boxed: Any = when(data.flag, name="boxed").then(lambda: {"boxed": a(), "k": 3})
        return [boxed, boxed["k"]]

    made = composed(body)
    spec = made.flow.steps["boxed"]
    assert made.flow.stages == (("a",), ("boxed",))
    assert (spec.kind, spec.guards, spec.has_compensation) == (StepKind.VALUE, ("boxed",), False)
    assert arguments(made, "boxed", Told(a=9)) == (({"boxed": 9, "k": 3},), {})
    assert asyncio.run(made.nodes["boxed"].handler.function({"k": 3})) == {"k": 3}
    assert asyncio.run(made.result(Told(boxed={"k": 3}))) == [{"k": 3}, 3]


def test_what_a_block_returns_from_outside_of_it_is_none_where_it_was_skipped() -> None:
    def body(data: Any) -> Any:
        outer = a()
        return when(data.flag, name="copy").then(lambda: outer)

    made = composed(body)
    assert list(made.nodes) == ["a", "copy"]
    assert asyncio.run(made.result(Told(a=1))) is None


def no_name(data: Any) -> None:
    when(data.flag).then(lambda: {"boxed": a()})


def never_entered(data: Any) -> None:
    a()
    when(data.flag)


def same_name(data: Any) -> None:
    with when(data.x, name="same"):
        a()
    with when(data.y, name="same"):
        b()


def decided_already(data: Any) -> None:
    with when(data is None):
        a()


def truth_of_a_condition(data: Any) -> None:
    print(bool(when(data.flag)))


def async_block(data: Any) -> None:
    async def block() -> None: ...

    when(data.flag).then(block)


def hook_as_value(data: Any) -> None:
    when(data.flag, name="x").then(lambda: hook("h"))


def step_as_value(data: Any) -> None:
    a({"step": b})


def predicate_of_two(data: Any) -> None:
    when(data, lambda x, y: x)  # type: ignore[arg-type, misc]  # as tested


@pytest.mark.parametrize(
    ("body", "kind", "message", "line"),
    [
        (no_name, DefinitionError, "needs a name that never changes", 1),
        (never_entered, DefinitionError, "The condition 'when-1' guards no step", 2),
        (same_name, DefinitionError, "Two conditions are named 'same'", 3),
        (decided_already, DefinitionError, "The condition False is decided already", 1),
        (truth_of_a_condition, ReferenceMisuse, "A condition has no truth value", 1),
        (async_block, DefinitionError, "is not async", 3),
        (hook_as_value, DefinitionError, "Hook has no JSON form", 1),
        (step_as_value, DefinitionError, "Step has no JSON form at $.step", 1),
        (predicate_of_two, DefinitionError, "cannot be called with one value", 1),
    ],
)
def test_a_condition_that_means_nothing_is_refused(
    body: Any, kind: type[DefinitionError], message: str, line: int
) -> None:
    error = refused(lambda: composed(body), kind)
    assert message in error.message
    assert error.hint
    assert place(error) == line_of(body, line)


# --- transform -----------------------------------------------------------------------------------


def test_a_transform_is_computed_once_and_not_before_its_inputs_have_settled() -> None:
    seen: list[Any] = []

    def look(value: Any) -> Any:
        seen.append(value)
        return {"value": value}

    def body(data: Any) -> Any:
        looked = transform(a(), data.x, fn=lambda value, x: look([value, x]))
        return [looked.value, looked["value"], looked]

    made = composed(body)
    values = Told({"x": 1})
    asyncio.run(made.result(values))
    assert seen == [[None, 1]] * 3
    assert values.cache == {}

    seen.clear()
    values.outputs["a"] = 7
    assert asyncio.run(made.result(values)) == [[7, 1], [7, 1], {"value": [7, 1]}]
    assert seen == [[7, 1]]
    assert list(values.cache) == [1]


def test_two_who_need_an_async_transform_at_once_compute_it_once() -> None:
    calls = 0

    async def slow(value: Any) -> Any:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        return value

    def body(data: Any) -> Any:
        return transform(transform(data, fn=slow), fn=lambda value: [value])

    made = composed(body)

    async def twice() -> Any:
        values = Told(5)
        return await asyncio.gather(made.result(values), made.result(values))

    assert asyncio.run(twice()) == [[5], [5]]
    assert calls == 1


def test_one_who_waits_for_a_transform_that_is_given_up_computes_it_itself() -> None:
    started: list[int] = []

    async def slow(value: Any) -> Any:
        started.append(len(started))
        await asyncio.sleep(0 if len(started) > 1 else 3600)
        return value

    made = composed(lambda data: transform(data, fn=slow))

    async def main() -> Any:
        values = Told(5)
        first = asyncio.ensure_future(made.result(values))
        second = asyncio.ensure_future(made.result(values))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(main()) == 5
    assert started == [0, 1]


def test_what_a_transform_raises_comes_through_and_is_tried_again() -> None:
    attempts: list[int] = []

    def flaky(value: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("not yet")
        return value

    made = composed(lambda data: a(transform(data, fn=flaky)))
    values = Told(5)
    with pytest.raises(ValueError, match="not yet"):
        arguments(made, "a", values)
    assert arguments(made, "a", values) == ((5,), {})


@dataclass
class Label:
    text: str

    @property
    def loud(self) -> str:
        return self.text.upper()


def test_what_a_transform_returns_is_looked_into_as_it_is_and_handed_on_as_json() -> None:
    def make_label(text: str) -> Label:
        return Label(text)

    def body(data: Any) -> Any:
        label = transform(data, fn=make_label)
        read = transform(label, fn=lambda label: label["text"])
        return [label.loud, label.text, read, label]

    assert result(body, "hi") == ["HI", "hi", "hi", {"text": "hi"}]


def test_a_decorated_transform_is_a_function_outside_and_a_reference_inside() -> None:
    @transform
    def add(x: int, *, y: int = 1) -> int:
        return x + y

    @transform
    async def twice(x: int) -> int:
        return x * 2

    assert add(1, y=2) == 3
    assert result(lambda data: [add(data), twice(add(data, y=data))], 4) == [5, 16]
    with pytest.raises(InputMismatch, match="'x' \\(int\\) of the transform 'add'"):
        result(lambda data: add(data), "text")


def test_a_builtin_may_be_a_transform() -> None:
    assert result(lambda data: [transform(data, fn=len), transform(data, fn=str)], [1, 2]) == [
        2,
        "[1, 2]",
    ]


def test_transforms_are_numbered_by_their_place_in_the_body() -> None:
    def body(data: Any) -> Any:
        return [transform(data, fn=lambda x: x), transform(data, fn=lambda x: x)]

    for made in (composed(body), composed(body)):
        values = Told(1)
        asyncio.run(made.result(values))
        assert sorted(values.cache) == [1, 2]


def no_function(data: Any) -> None:
    transform(data)


def wrong_arguments(data: Any) -> None:
    transform(data, data, fn=lambda x: x)


def yielding(data: Any) -> None:
    transform(data, fn=_numbers)


def _numbers(data: Any) -> Any:
    yield data


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (no_function, "no function to compute with"),
        (wrong_arguments, "gets arguments that do not fit: too many positional arguments"),
        (yielding, "`yield`"),
    ],
)
def test_a_transform_that_cannot_be_computed_is_refused(body: Any, message: str) -> None:
    error = refused(lambda: composed(body))
    assert message in error.message
    assert place(error) == (line_of(_numbers) if body is yielding else line_of(body, 1))


# --- hooks ---------------------------------------------------------------------------------------


def hooked() -> Workflow[Any, Any]:
    def body(data: Any) -> Any:
        validated = hook("validated", {"data": data})
        return WorkflowResponse(validated.result(), hooks=[validated])

    return composed(body)


def test_a_hook_is_a_step_that_does_nothing_until_somebody_handles_it() -> None:
    made = hooked()
    specs = made.flow.steps
    assert made.flow.stages == (("validated",), ("get-validated-result",))
    assert [spec.kind for spec in specs.values()] == [StepKind.HOOK, StepKind.HOOK_RESULT]
    assert all(spec.has_compensation for spec in specs.values())

    node = made.nodes["validated"]
    assert node.handler.is_coroutine
    assert node.compensation_is_coroutine
    args, kwargs = arguments(made, "validated", Told(1))
    assert asyncio.run(node.handler.function(*args, **kwargs)) is None
    assert node.compensation is not None
    args, kwargs = node.compensation_arguments(CONTEXT, None)
    assert asyncio.run(node.compensation(*args, **kwargs)) is None


def test_the_handler_of_a_hook_gets_its_value_and_may_have_an_undo() -> None:
    made = hooked()

    @made.hooks.validated
    def check(ctx: StepContext, value: dict[str, int]) -> int:
        return value["data"]

    @check.compensate
    def uncheck(value: int) -> None: ...

    node = made.nodes["validated"]
    assert (node.handler.function, node.handler.is_coroutine) == (check.function, False)
    assert (node.compensation, node.compensation_is_coroutine) == (uncheck, False)
    assert arguments(made, "validated", Told(1)) == ((CONTEXT, {"data": 1}), {})
    assert node.compensation_arguments(CONTEXT, 5) == ((5,), {})
    assert check(CONTEXT, {"data": 3}) == 3


def test_a_handler_may_take_nothing() -> None:
    made = hooked()
    made.hooks["validated"](lambda: None)
    assert arguments(made, "validated", Told(1)) == ((), {})


def test_the_result_of_a_hook_is_what_its_handler_returned_or_none() -> None:
    made = hooked()
    assert arguments(made, "get-validated-result", Told()) == ((None,), {})
    assert arguments(made, "get-validated-result", Told(validated={"x": 1})) == (({"x": 1},), {})
    assert asyncio.run(made.nodes["get-validated-result"].handler.function(4)) == 4


def test_the_result_of_a_hook_is_validated_against_its_type() -> None:
    def body() -> Any:
        return hook("h").result(Label).text

    made = composed(body)
    step = "get-h-result"
    assert arguments(made, step, Told(h={"text": "hi"})) == ((Label("hi"),), {})
    assert arguments(made, step, Told(h=None)) == ((None,), {})
    with pytest.raises(InputMismatch, match="of step 'get-h-result'"):
        arguments(made, step, Told(h={"text": 1}))
    assert (
        "Label has no field 'txt'"
        in refused(
            lambda: composed(lambda: getattr(hook("h").result(Label), "txt")),  # noqa: B009 mypy knows
            ReferenceMisuse,
        ).message
    )


def test_a_second_handler_is_refused_with_both_places() -> None:
    made = hooked()

    def first() -> None: ...
    def second() -> None: ...

    made.hooks.validated(first)
    error = refused(lambda: made.hooks.validated(second))
    assert place(error) == line_of(second)
    assert f"{__file__}:{line_of(first)[1]}" in error.message


def test_a_handler_that_cannot_be_one_is_refused() -> None:
    made = hooked()
    assert "takes more than" in refused(lambda: made.hooks.validated(lambda x, y: None)).message
    assert "has no handler" in refused(lambda: made.hooks.validated.compensate(_none)).message
    assert "`yield`" in refused(lambda: made.hooks.validated(_numbers)).message
    made.hooks.validated(_none)
    made.hooks.validated.compensate(_none)
    assert "twice" in refused(lambda: made.hooks.validated.compensate(_none)).message


def test_an_unknown_hook_is_refused_with_near_names() -> None:
    error = refused(lambda: hooked().hooks.validate)
    assert error.message == "The workflow 'w' has no hook 'validate'."
    assert error.hint == "Did you mean validated?"
    assert list(hooked().hooks) == ["validated"]


def test_a_condition_or_hook_of_another_body_is_refused() -> None:
    kept: list[Any] = []

    def first(data: Any) -> None:
        kept.append(when(data.x, name="x"))
        kept.append(hook("h"))
        with kept[0]:
            a()

    composed(first)
    condition, made = kept

    def guarded() -> None:
        with condition:
            a()

    def read() -> None:
        made.result()

    for misuse in (guarded, read):
        error = refused(functools.partial(composed, misuse), ReferenceMisuse)
        assert "is of the body of 'w', and means nothing elsewhere" in error.message
        assert error.file == __file__


def test_hooks_of_another_body_are_refused() -> None:
    def body() -> Any:
        return WorkflowResponse(None, hooks=[a()])

    assert "is no hook of this body" in refused(lambda: composed(body)).message
    refused(lambda: composed(lambda: _none([hook("h"), hook("h")])), DuplicateStep)
    refused(lambda: composed(lambda: hook("a:b")), InvalidName)


# --- children ------------------------------------------------------------------------------------


@dataclass
class Parcel:
    weight: float


def child(**options: Any) -> Workflow[Any, Any]:
    def body(parcel: Parcel) -> WorkflowResponse[Parcel]:
        return WorkflowResponse(a.config(**options)(parcel))

    return workflow("child")(body)


def test_a_workflow_is_a_step_of_another() -> None:
    inner = child()

    def body(data: Any) -> Any:
        first = inner.as_step(data)
        return inner.as_step.config(name="second", max_retries=2)({"weight": first.weight})

    made = composed(body)
    spec = made.flow.steps["child-as-step"]
    assert made.flow.stages == (("child-as-step",), ("second",))
    assert (spec.kind, spec.child, spec.has_compensation) == (StepKind.WORKFLOW, "child", True)
    assert spec.options == StepOptions()
    assert made.flow.steps["second"].options == StepOptions(max_retries=2)
    assert made.nodes["second"].child is inner
    assert (made.has_children, inner.has_children) == (True, False)
    assert arguments(made, "child-as-step", Told({"weight": 1})) == (({"weight": 1},), {})


def test_a_child_is_async_where_it_or_the_parent_so_far_has_async_steps() -> None:
    def is_async(child: Any, *before: Any) -> bool:
        made = composed(lambda: [*(each() for each in before), child.as_step({"weight": 1})])
        return made.flow.steps["child-as-step"].options.async_

    quick = child()
    assert not is_async(quick)
    assert not is_async(quick, b)
    assert is_async(quick, b.config(async_=True))
    assert is_async(quick, lambda: sleep(1))


def test_a_child_with_async_steps_makes_its_step_async() -> None:
    slow = child(async_=True)
    made = composed(lambda: slow.as_step({"weight": 1}))
    assert made.flow.steps["child-as-step"].options.async_


def test_a_child_without_input_gets_none() -> None:
    inner = workflow("child")(lambda: a())
    made = composed(lambda: inner.as_step())
    assert arguments(made, "child-as-step", Told()) == ((), {})


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda inner: inner.as_step({"weight": "x"}),
            "expected `float`, got `str` at parcel.weight",
        ),
        (lambda inner: inner.as_step(), "expected `object`, got `null`"),
        (lambda inner: inner.as_step({"weight": 1}, 2), "A workflow has one input"),
        (lambda inner: inner.as_step({"weight": 1}).wait, "Parcel has no field 'wait'"),
        (lambda inner: inner({"weight": 1}), "The workflow 'child' cannot be called"),
        (lambda inner: a(inner), "Workflow has no JSON form"),
        (lambda inner: a(inner.as_step), "NestedStep has no JSON form"),
    ],
)
def test_a_child_that_is_used_wrongly_is_refused(use: Any, message: str) -> None:
    inner = child()
    with pytest.raises(DefinitionError) as caught:
        composed(lambda: use(inner))
    assert message in caught.value.message
    assert place(caught.value) == line_of(use)


# --- sleep ---------------------------------------------------------------------------------------


def test_a_sleep_is_an_async_step_that_knows_its_seconds() -> None:
    def body(data: Any) -> None:
        sleep(5)
        sleep(data.seconds, name="nap")

    made = composed(body)
    spec = made.flow.steps["sleep"]
    assert made.flow.stages == (("sleep",), ("nap",))
    assert (spec.kind, spec.options, spec.has_compensation) == (
        StepKind.SLEEP,
        StepOptions(async_=True),
        False,
    )
    assert arguments(made, "sleep", Told()) == ((5.0,), {})
    assert arguments(made, "nap", Told({"seconds": 1.5})) == ((1.5,), {})


@pytest.mark.parametrize("seconds", [-1, "5s", None, True, float("inf"), 1e12])
def test_seconds_that_are_no_duration_are_refused(seconds: Any) -> None:
    error = refused(lambda: composed(lambda: sleep(seconds)))
    assert error.file == __file__
    if seconds != float("inf"):
        made = composed(lambda data: sleep(data))
        with pytest.raises(InputMismatch, match=r"'seconds' .* of step 'sleep'"):
            arguments(made, "sleep", Told(seconds))


def test_two_sleeps_need_names() -> None:
    refused(lambda: composed(lambda: [sleep(1), sleep(2)]), DuplicateStep)  # type: ignore[func-returns-value]  # as tested


# --- outside of a body ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: parallel(1, 2),
        lambda: when(1),
        lambda: transform(1, fn=len),
        lambda: hook("h"),
        lambda: sleep(1),
        lambda: child().as_step({"weight": 1}),
    ],
)
def test_what_belongs_into_a_body_is_refused_elsewhere(call: Any) -> None:
    error = refused(call)
    assert "only while the body of a workflow is composed" in error.message
    assert place(error) == line_of(call)


def test_the_same_argument_reaches_each_step_as_its_own() -> None:
    literal = {"list": [1]}
    made = composed(lambda: [a(literal), b(literal)])
    (first,), _ = arguments(made, "a", Told())
    first["list"].append(2)
    assert arguments(made, "a", Told()) == (({"list": [1]},), {})
    assert argument(lambda: a(literal)) == {"list": [1]}
