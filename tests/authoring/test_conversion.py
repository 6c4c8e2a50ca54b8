"""Values are made to fit annotations, or the step fails and says where."""

from __future__ import annotations

import asyncio
import dataclasses
import decimal
import enum
import logging
import pathlib
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    Protocol,
    TypedDict,
    TypeVar,
)

import msgspec
import pydantic
import pytest

from wfe import InputMismatch, PermanentStepFailure, step
from wfe.authoring.conversion import Mismatch, converter

from .support import CONTEXT, Told, argument, arguments, composed, line_of, place, refused

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]  # a name that is never there


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Line:
    sku: str
    price: decimal.Decimal = decimal.Decimal(1)


@dataclasses.dataclass
class Order:
    id: str
    lines: list[Line] = dataclasses.field(default_factory=list)
    color: Color = Color.RED


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    n: int = 1


class Record(msgspec.Struct):
    n: int
    order: Order | None = None


class Typed(TypedDict):
    n: int


class Pair(NamedTuple):
    a: int
    b: str


class Model(pydantic.BaseModel):
    n: int
    when: datetime | None = None


Sku = NewType("Sku", str)
T = TypeVar("T")
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ID = uuid.UUID(int=7)

FITS: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (int, 2**70, 2**70),
    (float, 3, 3.0),
    (bool, True, True),
    (str, "x", "x"),
    (type(None), None, None),
    (bytes, "aGk=", b"hi"),
    (Color, "red", Color.RED),
    (Level, 3, Level.HIGH),
    (datetime, "2026-01-02T03:04:05Z", MOMENT),
    (date, "2026-01-02", date(2026, 1, 2)),
    (timedelta, "PT90S", timedelta(seconds=90)),
    (uuid.UUID, str(ID), ID),
    (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
    (decimal.Decimal, 2, decimal.Decimal(2)),
    (list[int], [1, 2], [1, 2]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (set[int], [1, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (dict[str, Level], {"a": 3}, {"a": Level.HIGH}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (Sequence[Color], ["red"], [Color.RED]),
    (Mapping[str, Color], {"a": "red"}, {"a": Color.RED}),
    (Order, {"id": "o"}, Order("o")),
    (Order | None, None, None),
    (Order | None, {"id": "o", "unknown": 1}, Order("o")),
    (int | str, "x", "x"),
    (Literal["a", "b"], "a", "a"),
    (Annotated[int, msgspec.Meta(ge=1)], 1, 1),
    (Sku, "s", "s"),
    (Slotted, {}, Slotted()),
    (Record, {"n": 1, "order": {"id": "o"}}, Record(1, Order("o"))),
    (Typed, {"n": 1}, {"n": 1}),
    (Pair, [1, "b"], Pair(1, "b")),
    (list[Order], [{"id": "o", "lines": [{"sku": "s"}]}], [Order("o", [Line("s")])]),
    (Model, {"n": 1, "when": "2026-01-02T03:04:05Z"}, Model(n=1, when=MOMENT)),
    (Model | None, None, None),
    (list[Model], [{"n": 1}], [Model(n=1)]),
    (Order | Record, {"n": 1}, Record(1)),
    (Order | Line | None, None, None),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), FITS)
def test_a_json_value_becomes_what_the_annotation_says(
    annotation: Any, value: Any, expected: Any
) -> None:
    convert = converter(annotation)
    assert convert is not None
    converted = convert(value)
    assert converted == expected
    assert type(converted) is type(expected)


MISFITS: list[tuple[Any, Any, str, str]] = [
    (int, "1", "int", "str"),
    (int, True, "int", "bool"),
    (int, 1.0, "int", "float"),
    (int, None, "int", "null"),
    (str, 1, "str", "int"),
    (bool, 0, "bool", "int"),
    (float, "1", "float", "str"),
    (Color, "blue", "enum", "blue"),
    (Order, None, "object", "null"),
    (Order, {}, "object", "id"),
    (list[int], {"a": 1}, "array", "object"),
    (Order | Record, {"x": 1}, "id", "n"),
    (Order | Record | None, 5, "object", "int"),
    (Annotated[int, msgspec.Meta(ge=1)], 0, "int", "1"),
    (Model, {"n": "x"}, "integer", "str"),
]


@pytest.mark.parametrize(("annotation", "value", "wanted", "got"), MISFITS)
def test_a_value_that_does_not_fit_is_refused_with_both_types(
    annotation: Any, value: Any, wanted: str, got: str
) -> None:
    convert = converter(annotation)
    assert convert is not None
    with pytest.raises(Mismatch) as caught:
        convert(value)
    assert wanted in caught.value.reason
    assert got in caught.value.reason


class Duck(Protocol):
    def quack(self) -> None: ...


@pytest.mark.parametrize(
    "annotation",
    [
        Any,
        object,
        T,
        Duck,
        logging.Logger,
        pathlib.Path,
        Callable[[], int],
        list[pathlib.Path],
        type[int],
    ],
)
def test_an_annotation_that_json_cannot_become_passes_plain_values(annotation: Any) -> None:
    assert converter(annotation) is None


def test_defaults_of_a_converted_dataclass_are_stored_like_those_of_a_made_one() -> None:
    convert = converter(dict[str, tuple[Order, Record | None]])
    assert convert is not None
    order, record = convert(
        {"x": [{"id": "o", "lines": [{"sku": "s"}]}, {"n": 1, "order": {"id": "p"}}]}
    )["x"]
    assert vars(order) == vars(Order("o", [Line("s")]))
    assert vars(order.lines[0]) == vars(Line("s"))
    assert vars(record.order) == vars(Order("p"))


# --- in steps ------------------------------------------------------------------------------------


@step
def ship(order: Order, *lines: Line, to: Color, **flags: bool) -> None: ...


def test_every_kind_of_parameter_is_converted() -> None:
    made = composed(lambda data: ship(data.order, data.line, to=data.color, fast=data.fast))
    values = Told({"order": {"id": "o"}, "line": {"sku": "s"}, "color": "red", "fast": True})
    assert arguments(made, "ship", values) == (
        (Order("o"), Line("s")),
        {"to": Color.RED, "fast": True},
    )


def test_a_mismatch_names_step_parameter_path_and_both_types() -> None:
    made = composed(lambda data: ship.config(name="send")(data, to=Color.RED))
    values = Told({"id": "o", "lines": [{"sku": "s"}, {"sku": 5}]})
    with pytest.raises(InputMismatch) as caught:
        arguments(made, "send", values)
    assert isinstance(caught.value, PermanentStepFailure)
    assert caught.value.parameter == "order"
    assert caught.value.path == ".lines[1].sku"
    assert str(caught.value) == (
        "Parameter 'order' (Order) of step 'send': expected `str`, got `int` at order.lines[1].sku."
    )


def test_a_mismatch_in_a_model_names_the_path_inside_it() -> None:
    @step
    def take(model: Model, models: list[Model]) -> None: ...

    made = composed(lambda data: take(data.one, data.many))
    with pytest.raises(InputMismatch, match=r"integer, got `str` at model\.n\.$"):
        arguments(made, "take", Told({"one": {"n": "x"}, "many": []}))
    with pytest.raises(InputMismatch, match=r"integer, got `str` \(at n\) at models\[0\]\.$"):
        arguments(made, "take", Told({"one": {"n": 1}, "many": [{"n": "x"}]}))


def test_nothing_where_something_is_wanted_tells_why_there_may_be_nothing() -> None:
    @step
    def wrap() -> Order:
        return Order("o")

    @step
    def send(parcel: Order) -> None: ...

    made = composed(lambda: send(wrap()))
    with pytest.raises(InputMismatch, match=r"got `null` \(it was skipped, or returned nothing\)"):
        arguments(made, "send", Told(wrap=None))


def test_no_annotation_means_plain_json_values() -> None:
    @step
    def take(value):  # type: ignore[no-untyped-def]  # that is what is tested
        return value

    assert argument(lambda: take(Order("o"))) == {"id": "o", "lines": [], "color": "red"}


def test_a_literal_becomes_what_a_stored_one_would() -> None:
    @step
    def take(order: Order) -> None: ...

    given = Order("o", [Line("s", decimal.Decimal("2.5"))])
    converted = argument(lambda: take(given))
    assert converted == given
    assert converted is not given


def test_a_literal_that_does_not_fit_is_refused_at_its_line() -> None:
    def body() -> None:
        ship({"id": 5}, to=Color.RED)  # type: ignore[arg-type]  # that is what is tested

    error = refused(lambda: composed(body))
    assert error.message == (
        "Parameter 'order' (Order) of step 'ship': expected `str`, got `int` at order.id."
    )
    assert place(error) == line_of(body, 1)


@step
def later() -> None: ...


def untyped(step: Any) -> Any:
    """The step without its type, as those see it who use no type checker."""
    return step


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda data: untyped(ship)(data), "missing a required argument: 'to'"),
        (
            lambda data: untyped(ship)(data, to="red", order=data),
            "multiple values for argument 'order'",
        ),
        (lambda data: untyped(later)(data), "too many positional arguments"),
        (lambda data: untyped(later)(x=data), "got an unexpected keyword argument 'x'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_parameters(
    call: Callable[[Any], Any], reason: str
) -> None:
    error = refused(lambda: composed(call))
    assert reason in error.message
    assert "Its parameters: " in error.hint
    assert place(error) == line_of(call)


# --- annotations that resolve late, or never -----------------------------------------------------


def test_a_class_of_the_same_function_is_found() -> None:
    @dataclasses.dataclass
    class Local:
        n: int

    @step
    def take(value: Local) -> None: ...

    assert argument(lambda data: take(data), {"n": 1}) == Local(1)


@step
def take_early(value: Defined, other: list[Defined]) -> None: ...


@dataclasses.dataclass
class Defined:
    n: int


def test_a_class_defined_further_down_is_found_when_the_first_value_arrives() -> None:
    made = composed(lambda data: take_early(data, [data]))
    assert arguments(made, "take_early", Told({"n": 1})) == ((Defined(1), [Defined(1)]), {})


def test_a_name_that_is_never_there_passes_plain_values() -> None:
    @step
    def take(value: Unknown, typed: int) -> Unknown: ...

    made = composed(lambda data: take(data, typed=data.n))
    assert arguments(made, "take", Told({"n": 1})) == (({"n": 1}, 1), {})


def test_a_field_whose_class_comes_later_does_not_spoil_the_annotation() -> None:
    namespace: dict[str, Any] = {}
    source = (
        "from __future__ import annotations\n"
        "import dataclasses\n"
        "from wfe import step\n"
        "@dataclasses.dataclass\n"
        "class Outer:\n"
        "    inner: Inner\n"
        "@step\n"
        "def take(outer: Outer) -> None: ...\n"
    )
    module = type(sys)("late_module")
    sys.modules["late_module"] = module
    namespace = vars(module)
    try:
        exec(source, namespace)
        made = composed(lambda: namespace["take"]({"inner": {"n": 1}}))
        exec("@dataclasses.dataclass\nclass Inner:\n    n: int\n", namespace)
        (outer,), _ = arguments(made, "take", Told())
    finally:
        del sys.modules["late_module"]
    assert outer.inner.n == 1


# --- compensations -------------------------------------------------------------------------------


def test_the_undo_receives_its_value_converted_and_none_as_it_is() -> None:
    @step
    def take() -> None: ...

    @take.compensate
    def undo(order: Order) -> None: ...

    node = composed(lambda: take()).nodes["take"]
    assert node.compensation is undo
    assert node.compensation_arguments(CONTEXT, {"id": "o"}) == ((Order("o"),), {})
    assert node.compensation_arguments(CONTEXT, None) == ((None,), {})
    with pytest.raises(
        InputMismatch, match=r"'order' \(Order\) of the compensation of step 'take'"
    ):
        node.compensation_arguments(CONTEXT, {"id": 1})


def test_arguments_may_be_asked_for_in_one_go() -> None:
    made = composed(lambda data: ship(data, to=Color.RED))

    async def ask() -> list[Any]:
        values = Told({"id": "o"})
        return list(
            await asyncio.gather(*(made.nodes["ship"].arguments(CONTEXT, values) for _ in range(3)))
        )

    assert asyncio.run(ask()) == [((Order("o"),), {"to": Color.RED})] * 3
