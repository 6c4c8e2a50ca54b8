"""Workflows as wholes: their definition, input and result, and where they are found."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pydantic
import pytest

from wfe import (
    DefinitionError,
    DuplicateWorkflow,
    InvalidInput,
    Registry,
    UsageError,
    Workflow,
    WorkflowNotFound,
    WorkflowResponse,
    hook,
    parallel,
    sleep,
    step,
    transform,
    when,
    workflow,
)
from wfe.model import WorkflowOptions

from .support import Told, composed, line_of, place, refused, result


@step
def a(value: Any = None) -> Any:
    return value


b = a.config(name="b")


@dataclass
class Line:
    sku: str


@dataclass
class Order:
    id: str = "none"
    lines: list[Line] = field(default_factory=list)


@dataclass
class Parcel:
    weight: float


# --- the definition ------------------------------------------------------------------------------


def test_a_workflow_knows_its_name_options_and_place() -> None:
    def body() -> None:
        """Not the description."""

    made = workflow(
        "place-order",
        timeout=60,
        retention_time=7 * 24 * 3600,
        idempotent=True,
        store=True,
        description="Place an order",
    )(body)
    assert made.id == made.flow.workflow_id == "place-order"
    assert made.options == made.flow.options
    assert made.options == WorkflowOptions(
        timeout=60.0,
        retention_time=604800.0,
        idempotent=True,
        store=True,
        description="Place an order",
    )
    assert made.source == line_of(body)
    assert repr(made) == "<workflow 'place-order'>"


def test_without_a_name_a_workflow_is_named_like_its_body() -> None:
    @workflow
    def place_order() -> None: ...

    assert place_order.id == "place_order"


def base(data: Any) -> None:
    with when(data.x, name="x"):
        a()
    parallel(b(), a.config(name="c")())


def with_other_options(data: Any) -> None:
    with when(data.y, lambda y: y > 1, name="x"):
        a.config(max_retries=9)(data)
    parallel(b(), a.config(name="c", async_=True)(transform(data, fn=len)))


def with_other_guard(data: Any) -> None:
    with when(data.x, name="y"):
        a()
    parallel(b(), a.config(name="c")())


def with_other_stages(data: Any) -> None:
    with when(data.x, name="x"):
        a()
    b()
    a.config(name="c")()


def with_other_name(data: Any) -> None:
    with when(data.x, name="x"):
        a()
    parallel(b(), a.config(name="d")())


def with_other_kind(data: Any) -> None:
    with when(data.x, name="x"):
        hook("a")
    parallel(b(), a.config(name="c")())


def test_the_hash_is_of_the_shape_and_not_of_options_or_functions() -> None:
    assert composed(base).flow.hash == composed(with_other_options).flow.hash
    others = [with_other_guard, with_other_stages, with_other_name, with_other_kind]
    hashes = {composed(body).flow.hash for body in (base, *others)}
    assert len(hashes) == 1 + len(others)


def test_the_hash_tells_children_and_workflows_apart() -> None:
    one, two = workflow("one")(lambda: a()), workflow("two")(lambda: a())
    assert one.flow.hash != two.flow.hash
    first = composed(lambda: one.as_step.config(name="child")())
    second = composed(lambda: two.as_step.config(name="child")())
    assert first.flow.hash != second.flow.hash


def test_the_hash_is_the_same_in_every_process() -> None:
    script = (
        "from wfe import step, when, workflow\n"
        "a = step('a')(lambda value: value)\n"
        "def body(data):\n"
        "    with when(data.x, name='x'):\n"
        "        a({'set': {'p', 'q', 'r'}})\n"
        "print(workflow('w')(body).flow.hash)\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 32


# --- bodies --------------------------------------------------------------------------------------


def two_parameters(order: Any, user: Any) -> None: ...
def keyword_only(*, order: Any) -> None: ...
def any_number(*orders: Any) -> None: ...
def keywords(**orders: Any) -> None: ...
def default_value(order: Any = 5) -> None: ...


@pytest.mark.parametrize(
    "body", [two_parameters, keyword_only, any_number, keywords, default_value]
)
def test_a_body_takes_its_input_or_nothing(body: Any) -> None:
    error = refused(lambda: composed(body))
    assert "a body has one parameter, its input, or none" in error.message
    assert place(error) == line_of(body)


def test_an_input_may_default_to_none() -> None:
    def body(order: Order | None = None) -> Any:
        return order

    assert result(body) is None
    assert result(body, {"id": "o"}) == {"id": "o", "lines": []}


async def async_body(order: Any) -> None: ...


def yielding_body(order: Any) -> Any:
    yield order


@pytest.mark.parametrize(
    ("body", "message"), [(async_body, "is `async def`"), (yielding_body, "`yield`")]
)
def test_a_body_is_a_plain_function(body: Any, message: str) -> None:
    error = refused(lambda: composed(body))
    assert message in error.message
    assert error.hint
    assert place(error) == line_of(body)


def test_a_workflow_in_the_body_of_another_is_refused() -> None:
    def body() -> None:
        @workflow("inner")
        def inner() -> None: ...

    error = refused(lambda: composed(body))
    assert "'inner' is defined in the body of 'w'" in error.message
    assert "as_step" in error.hint
    assert place(error)[0] == __file__
    assert composed(lambda: a()).id == "w"  # nothing is left of the refused one


def test_a_workflow_cannot_be_called() -> None:
    made = workflow("place-order")(lambda: a())
    error = refused(lambda: made())
    assert "place_order.run_sync(input)" in error.hint
    assert place(error)[0] == __file__


def test_what_is_no_function_is_no_body() -> None:
    assert "A body is a function" in refused(lambda: composed(5)).message  # type: ignore[arg-type]  # as tested


def test_a_result_without_json_form_is_refused_at_the_body() -> None:
    def body() -> Any:
        return {"x": [object()]}

    error = refused(lambda: composed(body))
    assert (
        error.message
        == "The result of 'w' cannot be handed over: object has no JSON form at $.x[0]."
    )
    assert place(error) == line_of(body)


def test_a_body_that_raises_leaves_nothing_behind(registry: Registry) -> None:
    def body() -> None:
        a()
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        workflow("w")(body)
    assert registry.ids() == []
    assert a.function(3) == 3
    assert a(3) == 3  # outside of a body again


def test_the_result_is_what_the_body_returned() -> None:
    assert result(lambda: None) is None
    assert result(lambda: WorkflowResponse(None)) is None
    assert result(lambda: WorkflowResponse({"a": a(), "n": 1}), a=5) == {"a": 5, "n": 1}
    assert result(lambda: [a(), (1, 2)], a=5) == [5, [1, 2]]


def test_what_a_transform_in_the_result_raises_comes_through() -> None:
    def fail(value: Any) -> Any:
        raise LookupError("no label")

    made = composed(lambda: {"label": transform(a(), fn=fail)})
    with pytest.raises(LookupError, match="no label"):
        asyncio.run(made.result(Told(a=1)))


# --- the input -----------------------------------------------------------------------------------


def test_an_input_is_checked_against_the_annotation() -> None:
    def body(order: Order) -> None: ...

    made = composed(body)
    made.check_input({"id": "o", "lines": [{"sku": "s"}]})
    made.check_input(Order("o", [Line("s")]))
    with pytest.raises(InvalidInput) as caught:
        made.check_input({"lines": [{"sku": "s"}, {}]})
    assert caught.value.parameter == "order"
    assert caught.value.message == (
        "Parameter 'order' (Order) of workflow 'w': "
        "object missing required field `sku` at order.lines[1]."
    )
    assert caught.value.hint == "See what it takes with: wfe workflows show w"


def test_an_input_that_is_left_out_is_an_empty_one_where_that_fits() -> None:
    def lenient(order: Order) -> Any:
        return order.id

    def strict(parcel: Parcel) -> None: ...

    made = composed(lenient)
    made.check_input(None)
    assert asyncio.run(made.result(Told(None))) == "none"
    with pytest.raises(InvalidInput, match=r"'w' needs an input\. .* got `null` at parcel"):
        composed(strict).check_input(None)


def test_a_workflow_without_parameter_takes_no_input() -> None:
    made = composed(lambda: None)
    made.check_input(None)
    made.check_input({})
    with pytest.raises(InvalidInput, match="'w' takes no input"):
        made.check_input({"x": 1})


def test_an_input_without_annotation_may_be_any_json() -> None:
    made = composed(lambda data: None)
    for value in (None, 1, "x", [1], {"x": None}):
        made.check_input(value)
    with pytest.raises(InvalidInput, match=r"cannot be stored: NaN .* at \$\.x"):
        made.check_input({"x": float("nan")})


class Model(pydantic.BaseModel):
    name: str
    lines: list[Line] = []


def test_an_input_may_be_a_model() -> None:
    def body(order: Model) -> Any:
        return [order.name, order.lines]

    made = composed(body)
    made.check_input({"name": "x"})
    made.check_input(Model(name="x"))
    with pytest.raises(InvalidInput, match=r"at order\.name"):
        made.check_input({"name": 5})
    assert asyncio.run(made.result(Told({"name": "x"}))) == ["x", []]
    assert made.input_schema()["required"] == ["name"]


def test_the_schema_of_the_input_is_that_of_its_annotation() -> None:
    def typed(order: Order) -> None: ...
    def mixed(orders: list[Model]) -> None: ...
    def unsupported(order: type[int]) -> None: ...

    schema = composed(typed).input_schema()
    assert schema["$defs"]["Order"]["properties"]["id"] == {"type": "string", "default": "none"}
    assert composed(mixed).input_schema()["items"]["required"] == ["name"]
    assert composed(unsupported).input_schema() == {}
    assert composed(lambda data: None).input_schema() == {}
    assert composed(lambda: None).input_schema() == {"type": "null"}


# --- the registry --------------------------------------------------------------------------------


def test_what_is_defined_is_found_in_the_current_registry(registry: Registry) -> None:
    made = workflow("order")(lambda: a())
    other = Registry()
    with other.scope():
        workflow("report")(lambda: a())
    assert registry.ids() == ["order"]
    assert registry.get("order") is made
    assert other.ids() == ["report"]
    registry.remove("order")
    assert registry.ids() == []


def test_an_unknown_workflow_is_refused_with_near_names(registry: Registry) -> None:
    workflow("place-order")(lambda: a())
    for ask in (registry.get, registry.remove):
        with pytest.raises(WorkflowNotFound, match=r"Did you mean place-order\?") as caught:
            ask("place-ordr")
        assert caught.value.near == ("place-order",)


def define(*steps: str) -> Any:
    def body() -> None:
        for name in steps:
            a.config(name=name)()

    return workflow("w")(body)


def test_a_workflow_loaded_twice_from_one_place_is_replaced(registry: Registry) -> None:
    define("x")
    again = define("x")
    assert registry.get("w") is again
    registry.add(again)
    assert registry.get("w") is again


def test_two_workflows_of_one_name_are_refused_with_both_places(registry: Registry) -> None:
    first = define("x")

    def other() -> None:
        a.config(name="x")()

    error = refused(lambda: workflow("w")(other), DuplicateWorkflow)
    assert f"{first.source[0]}:{first.source[1]}" in error.message
    assert f"{__file__}:{line_of(other)[1]}" in error.message
    assert place(error) == line_of(other)
    refused(lambda: define("x", "y"), DuplicateWorkflow)
    assert registry.get("w") is first


# --- running without an engine -------------------------------------------------------------------


def test_a_workflow_runs_by_itself() -> None:
    @step
    async def double(value: int) -> int:
        return value * 2

    made: Workflow[Any, Any] = workflow("double")(lambda data: {"doubled": double(data)})
    assert made.run_sync(4) == {"doubled": 8}
    assert asyncio.run(made.run(input=5)) == {"doubled": 10}
    assert workflow("constant")(lambda: "done").run_sync() == "done"


def test_running_a_workflow_where_nothing_may_block_is_refused() -> None:
    made = workflow("place-order")(lambda: a())

    async def main() -> None:
        made.run_sync()

    with pytest.raises(UsageError, match=r"await place_order\.run"):
        asyncio.run(main())
    error = refused(lambda: composed(lambda: made.run_sync()))
    assert "cannot be called" in error.message
    assert error.file == __file__


# --- misplaced -----------------------------------------------------------------------------------


def test_errors_of_definition_are_all_of_one_kind() -> None:
    with pytest.raises(DefinitionError):
        composed(lambda: sleep(-1))
