"""What references resolve to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfe import NonSerializableValue, ReferenceMisuse, Registry, step, transform

from .support import argument, composed, line_of, place, refused, result


@step
def make(value: Any = None) -> Any:
    return value


@step
def take(value: Any) -> Any:
    return value


DATA = {"a": {"b": [10, {"c": "text"}], "n": None}, "key": "a", "items": 3, "0": "zero"}

PATHS = [
    (lambda v: v, DATA),
    (lambda v: v.a.b, DATA["a"]["b"]),  # type: ignore[index]  # a dict in a dict
    (lambda v: v["a"]["b"][1].c, "text"),
    (lambda v: v.a.b[-2], 10),
    (lambda v: v.a.b[:1], [10]),
    (lambda v: v.a.b[1].c[0], "t"),
    (lambda v: v[v.key].b[0], 10),
    (lambda v: v.items, 3),
    (lambda v: v["0"], "zero"),
    (lambda v: v[0], None),
    (lambda v: v.missing, None),
    (lambda v: v.missing.further[3], None),
    (lambda v: v.a.n.further, None),
    (lambda v: v.a.b[99], None),
    (lambda v: v.a.b["text"], None),
    (lambda v: v.a.b.append, None),
    (lambda v: v.key.upper, None),
    (lambda v: v.items[0], None),
    (lambda v: {"x": [v.key, {"y": v.items}], "z": (v.key,)}, {"x": ["a", {"y": 3}], "z": ["a"]}),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_items_and_attributes_are_looked_up_and_absent_ones_are_none(
    path: Any, expected: Any
) -> None:
    assert argument(lambda data: take(path(data)), DATA) == expected


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_the_output_of_a_step_is_looked_into_like_the_input(path: Any, expected: Any) -> None:
    assert argument(lambda: take(path(make())), make=DATA) == expected


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_what_a_transform_returned_is_looked_into_like_the_input(path: Any, expected: Any) -> None:
    body = lambda: take(path(transform(make(), fn=lambda value: value)))  # noqa: E731
    assert argument(body, make=DATA) == expected


def test_what_was_skipped_is_none() -> None:
    assert argument(lambda: take([make(), make.config(name="other")().x])) == [None, None]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


class _Hole:
    """A place that a reference takes."""


def fill(shape: Any, holes: list[Any]) -> Any:
    """The shape with what the list holds in place of its holes."""
    if shape is _Hole:
        return holes.pop(0)
    if isinstance(shape, dict):
        return {key: fill(item, holes) for key, item in shape.items()}
    if isinstance(shape, list):
        return [fill(item, holes) for item in shape]
    return shape


def holes_in(shape: Any) -> int:
    if isinstance(shape, dict):
        return sum(map(holes_in, shape.values()))
    if isinstance(shape, list):
        return sum(map(holes_in, shape))
    return int(shape is _Hole)


shapes = st.recursive(
    st.just(_Hole) | st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(shapes, st.data())
def test_references_at_any_depth_resolve_like_plain_python(shape: Any, data: st.DataObject) -> None:
    count = holes_in(shape)
    values = data.draw(st.lists(json_values, min_size=count, max_size=count))
    computed = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))

    def body(given: Any) -> Any:
        references = [
            transform(given[n], fn=lambda value: value) if computed[n] else given[n]
            for n in range(count)
        ]
        return fill(shape, references)

    with Registry().scope():
        assert result(body, values) == fill(shape, list(values))


def test_each_reader_gets_a_copy_of_its_own() -> None:
    @transform
    def shared(value: Any) -> Any:
        return {"list": [value]}

    def body(data: dict[str, Any]) -> Any:
        computed = shared(data["x"])
        literal = {"list": [1]}
        return [computed, computed, computed["list"], computed["list"], literal, literal]

    values = result(body, {"x": 1})
    assert values == [{"list": [1]}, {"list": [1]}, [1], [1], {"list": [1]}, {"list": [1]}]
    assert len({id(value) for value in values}) == len(values)
    assert values[2] is not values[0]["list"]


def test_keys_that_are_no_text_and_odd_indexes_are_refused() -> None:
    assert "is not text" in refused(lambda: composed(lambda data: make({data: 1}))).message
    error = refused(lambda: composed(lambda data: data[1.5]), ReferenceMisuse)
    assert "an item is named by text" in error.message
    refused(lambda: composed(lambda data: data[: data.n]), ReferenceMisuse)


# --- the input as its annotation makes it --------------------------------------------------------


@dataclass
class Line:
    sku: str
    quantity: int = 1


@dataclass
class Order:
    id: str
    lines: list[Line] = field(default_factory=list)
    created: datetime | None = None
    gift: bool = False

    @property
    def size(self) -> int:
        return len(self.lines)


def test_defaults_of_the_input_are_filled_in() -> None:
    def body(order: Order) -> Any:
        return {"gift": order.gift, "quantity": order.lines[0].quantity, "all": order}

    assert result(body, {"id": "o1", "lines": [{"sku": "s"}]}) == {
        "gift": False,
        "quantity": 1,
        "all": {
            "id": "o1",
            "lines": [{"sku": "s", "quantity": 1}],
            "created": None,
            "gift": False,
        },
    }


def test_an_input_without_annotation_stays_as_it_is() -> None:
    assert result(lambda data: data.x, {"x": {"y": 1}}) == {"y": 1}


# --- what the annotations rule out ---------------------------------------------------------------


class Point(NamedTuple):
    x: int


class Renamed(msgspec.Struct, rename="camel"):
    line_count: int = 0


class Model(pydantic.BaseModel):
    name: str = ""
    shown: str = pydantic.Field(default="", serialization_alias="shownAs")

    @pydantic.computed_field  # type: ignore[prop-decorator]  # how pydantic writes it
    @property
    def size(self) -> int:
        return len(self.name)


class Loose(pydantic.BaseModel, extra="allow"):
    name: str = ""


class Dictionary(TypedDict):
    order: Order


@step
def get_order(order_id: str = "") -> Order | None:
    return None


@step
def get_point() -> Point:
    return Point(1)


@step
def get_model() -> Model:
    return Model()


@step
def get_loose() -> Loose:
    return Loose()


@step
def get_mapping() -> dict[str, list[Order]]:
    return {}


@step
def get_dictionary() -> Dictionary:
    return {"order": Order("")}


def untyped(step: Any) -> Any:
    """The step without its type, as those see it who use no type checker."""
    return step


REFUSED: list[tuple[Any, str, str]] = [
    (lambda order: order.giftt, "Order has no field 'giftt'.", "Did you mean gift?"),
    (lambda order: order.zzz, "Order has no field 'zzz'.", "Its fields: id, lines, created, gift."),
    (lambda order: order.size, "'size' is computed by Order", "whose parameter is annotated Order"),
    (lambda order: order.lines[0].skuu, "Line has no field 'skuu'.", "Did you mean sku?"),
    (
        lambda order: order.created.year,
        "is text, which has no attributes",
        "transform(order.created",
    ),
    (
        lambda order: order.lines.first,
        "is a list, which has no attributes",
        "transform(order.lines",
    ),
    (lambda order: order.gift.real, "is a number, which has no attributes", "transform(order.gift"),
    (lambda _: untyped(get_order)().giftt, "Order has no field 'giftt'.", "Did you mean gift?"),
    (lambda _: get_point().x, "is a list, which has no attributes", "transform(get_point"),
    (lambda _: untyped(get_model)().nam, "Model has no field 'nam'.", "Did you mean name?"),
    (
        lambda _: untyped(get_mapping)()["a"][0].gft,
        "Order has no field 'gft'.",
        "Did you mean gift?",
    ),
]


@pytest.mark.parametrize(("path", "message", "hint"), REFUSED)
def test_an_attribute_that_the_stored_form_cannot_have_is_refused(
    path: Any, message: str, hint: str
) -> None:
    def body(order: Order) -> Any:
        return path(order)

    error = refused(lambda: composed(body), ReferenceMisuse)
    assert message in error.message
    assert hint in error.hint
    assert place(error) == line_of(path)


def test_what_the_annotations_do_not_rule_out_is_looked_up() -> None:
    def body(data: Any) -> Any:
        order, model = get_order(), get_model()
        return [
            order["giftt"],  # type: ignore[index]  # the way around the annotation
            get_loose().more,  # type: ignore[attr-defined]  # extra fields are allowed
            model.size,
            model.shown,
            get_mapping()["a"][0].gift,
            get_dictionary()["order"].gift,
        ]

    assert result(
        body,
        get_order={"giftt": 1},
        get_loose={"more": 2},
        get_model={"size": 3, "shownAs": 4},
        get_mapping={"a": [{"gift": 5}]},
        get_dictionary={"order": {"gift": 6}},
    ) == [1, 2, 3, 4, 5, 6]


def test_a_renamed_field_is_found_under_its_stored_name() -> None:
    def body(data: Renamed) -> Any:
        return data.line_count

    assert result(body, {"lineCount": 7}) == 7


# --- literals ------------------------------------------------------------------------------------


def test_objects_may_hold_references() -> None:
    def body(data: Any) -> Any:
        return [
            Order(id=data.id, lines=[Line(sku=data.sku)]),
            Renamed(data.n),
            Point(data.n),
            {data.n},
        ]

    assert result(body, {"id": "o", "sku": "s", "n": 1}) == [
        {"id": "o", "lines": [{"sku": "s", "quantity": 1}], "created": None, "gift": False},
        {"lineCount": 1},
        [1],
        [1],
    ]


def test_a_literal_reaches_the_step_as_a_stored_one_would() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    body = lambda: take([Order("o", created=moment), (1, 2), b"hi"])  # noqa: E731
    assert argument(body) == [
        {"id": "o", "lines": [], "created": "2026-01-01T00:00:00Z", "gift": False},
        [1, 2],
        "aGk=",
    ]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1: 2}, object(), len, [{"x": {3: 4}}]]
)
def test_a_literal_without_json_form_is_refused_with_the_place_inside_it(value: Any) -> None:
    def body() -> None:
        make({"deep": [value]})

    error = refused(lambda: composed(body))
    assert "An argument of step 'make' cannot be handed over" in error.message
    assert "$.deep[0]" in error.message
    assert place(error) == line_of(body, 1)


def test_a_model_that_cannot_be_reduced_is_refused() -> None:
    class Holder(pydantic.BaseModel):
        content: Any

    message = refused(lambda: composed(lambda: make([Holder(content=object())]))).message
    assert "Holder has no JSON form (" in message
    refused(lambda: composed(lambda data: make(Holder(content=data.x))), ReferenceMisuse)


def test_a_literal_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in refused(lambda: composed(lambda: make(loop))).message


def test_a_transform_whose_value_has_no_json_form_fails_who_needs_it() -> None:
    with pytest.raises(NonSerializableValue, match=r"argument 'value' of step 'take'.* at \$\.x\."):
        argument(lambda: take(transform(1, fn=lambda value: {"x": float("nan")})))
