"""The JSON form of any value: what it is, or the place at which there is none."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from tests.unit.support import Colour, Line, Pair, Rank, Stock, same
from wfe.errors import NonSerializableValue
from wfe.plain import MAX_DEPTH, Unfit, plain, reduce
from wfe.store.codec import decode, encode


class Shape(Enum):
    POINT = (0, 0)


class Order(pydantic.BaseModel):
    number: int
    lines: list[Line]
    by_rank: dict[int, str] = {}


class Text(str):
    __slots__ = ()


class Count(int):
    pass


class Ratio(float):
    pass


Point = namedtuple("Point", "x y")


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def stored(value: Any) -> Any:
    """What the next reader of the store receives."""
    return decode(encode(value))


def walked(value: Any) -> Any:
    """The JSON form without the short way that plain values take."""
    try:
        return reduce(value)
    except Unfit as unfit:
        raise unfit.refusal("value") from None


#: There is one JSON form, however one comes to it.
WAYS = (plain, walked, stored)
Way = Callable[[Any], Any]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


def refusal(value: Any, way: Way = plain) -> NonSerializableValue:
    with pytest.raises(NonSerializableValue) as caught:
        way(value)
    return caught.value


# --- the form ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (Line("a", 2.5), {"sku": "a", "price": 2.5}),
        (Line("a", Line("b", (1, 2))), {"sku": "a", "price": {"sku": "b", "price": [1, 2]}}),
        (Stock(3), {"type": "stock", "onHand": 3}),
        (Pair(1, {2}), [1, [2]]),
        (
            Order(number=1, lines=[Line("a", 1)], by_rank={1: "x"}),
            {"number": 1, "lines": [{"sku": "a", "price": 1}], "by_rank": {"1": "x"}},
        ),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006Z"),
        (datetime.fromisoformat("2026-01-02"), "2026-01-02T00:00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(1, 2), "01:02:00"),
        (timedelta(seconds=90), "PT90S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (b"ab", "YWI="),
        (bytearray(b"ab"), "YWI="),
        (Colour.RED, "red"),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (Rank.FIRST, 1),
        (Shape.POINT, [0, 0]),
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (frozenset(["b", "a", "c"]), ["a", "b", "c"]),
        ({"a": set()}, {"a": []}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        ({Text("k"): [Text("v"), Count(1), Ratio(0.5)]}, {"k": ["v", 1, 0.5]}),
    ],
    ids=repr,
)
def test_typed_values_go_in_as_their_json_form(value: Any, form: Any, way: Way) -> None:
    assert same(way(value), form)


def test_a_value_that_is_used_twice_is_no_cycle(way: Way) -> None:
    shared = [(1,)]
    assert way({"a": shared, "b": [shared, shared]}) == {
        "a": [[1]],
        "b": [[[1]], [[1]]],
    }


def test_attrs_classes_are_recognised_by_what_they_declare(way: Way) -> None:
    class Place:
        """What `attrs.define` leaves on a class, for who does not import attrs."""

        __attrs_attrs__ = (SimpleNamespace(name="x"), SimpleNamespace(name="y"))
        x = 1
        y = frozenset({"z"})

    assert way(Place()) == {"x": 1, "y": ["z"]}


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (float("nan"), "$", "NaN"),
        ({"a": [1, 2, 3, {"b": float("nan")}]}, "$.a[3].b", "NaN"),
        ([float("inf")], "$[0]", "infinite"),
        ({"x": (0, float("-inf"))}, "$.x[1]", "infinite"),
        (Line("a", float("nan")), "$.price", "NaN"),
        ([Ratio("nan")], "$[0]", "NaN"),
        ({1: "a"}, "$", "the key 1 is not text"),
        ({"a": {1.5: 0}}, "$.a", "the key 1.5"),
        ({True: 0}, "$", "the key True"),
        ({None: 0}, "$", "the key None"),
        ({(1, 2): 0}, "$", "the key (1, 2)"),
        (Line("a", {1: 2}), "$.price", "the key 1"),
        ({"a": "\ud800"}, "$.a", "U+D800"),
        ([{"\udcff": 1}], "$[0]", "U+DCFF"),
        ({"a b": float("nan")}, '$["a b"]', "NaN"),
        # Named, because a NaN has another hash each time, and the set another order.
        pytest.param({"tags": {"x", float("nan")}}, "$.tags[*]", "NaN", id="a set with NaN"),
    ],
    ids=repr,
)
def test_what_json_cannot_hold_is_refused_with_its_place(
    value: Any, path: str, reason: str, way: Way
) -> None:
    error = refusal(value, way)
    assert error.path == path
    assert reason in error.reason
    assert str(error).endswith(f"at {path}.")


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (Path("x"), "return str() of it"),
        ((n for n in range(3)), "return a list of what it yields"),
        (object(), "return its data"),
        (threading.Lock(), "return its data"),
        (ValueError("x"), "return its text"),
        (int, "return its name"),
        (1j, "return its real and imaginary part"),
        (refusal, "return its data"),
        (memoryview(b"abcd")[::2], "return its data"),
        (msgspec.UNSET, "return its data"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_objects_are_refused_with_what_to_return_instead(
    value: Any, advice: str, way: Way
) -> None:
    error = refusal({"it": value}, way)
    assert advice in error.reason
    assert error.path == "$.it"


def test_a_key_that_cannot_even_be_printed_is_refused(way: Way) -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "the key of type int" in refusal({10**5000: 1}, way).reason
    assert "the key of type" in refusal({Shy(): 1}, way).reason


def test_a_coroutine_that_nobody_awaited_is_named_as_such(way: Way) -> None:
    coroutine = asyncio.sleep(0)
    assert "await it" in refusal(coroutine, way).reason
    coroutine.close()


def test_two_keys_that_become_the_same_text_are_refused(way: Way) -> None:
    class Odd(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    assert "two keys that are the same text 'a'" in refusal({Odd("a"): 1, "a": 2}, way).reason


@pytest.mark.parametrize("key", ["list", "dict", "dataclass"])
def test_a_cycle_is_refused_where_it_closes(key: str, way: Way) -> None:
    value: Any = {"list": [0], "dict": {}, "dataclass": Line("a", [])}[key]
    if key == "list":
        value.append({"x": value})
    elif key == "dict":
        value["x"] = [value]
    else:
        value.price.append(value)
    error = refusal({"it": value}, way)
    assert "cycle" in error.reason
    assert (
        error.path == {"list": "$.it[1].x", "dict": "$.it.x[0]", "dataclass": "$.it.price[0]"}[key]
    )


def test_a_pydantic_model_that_contains_itself_is_refused(way: Way) -> None:
    class Node(pydantic.BaseModel):
        next: Any = None

    node = Node()
    node.next = node
    assert "pydantic" in refusal([node], way).reason


def test_nesting_ends_at_its_limit(way: Way) -> None:
    assert way(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert "500 levels" in refusal(nested(MAX_DEPTH + 1), way).reason


def test_nesting_is_counted_in_typed_values_too(way: Way) -> None:
    assert way((nested(MAX_DEPTH - 1),)) == nested(MAX_DEPTH)
    assert "500 levels" in refusal((nested(MAX_DEPTH),), way).reason


def test_many_brackets_side_by_side_are_no_nesting(way: Way) -> None:
    value = {"rows": [{"a": [], "b": "[[{"} for _ in range(2000)]}
    assert way(value) == value


def test_no_depth_exhausts_the_stack(way: Way) -> None:
    error = refusal(nested(100_000), way)
    assert "500 levels" in error.reason
    assert len(error.path) < 400


# --- who hands it on -----------------------------------------------------------------------------


class Later:
    """Stands for a value, and refuses to be looked at as references do."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __getattribute__(self, name: str) -> Any:
        assert name != "__class__", "looked at"
        return super().__getattribute__(name)


@pytest.mark.parametrize("value", [{"a": [1, {"b": "c"}]}, [[]], {"a": (1, {2})}, Line("a", [1])])
def test_every_container_of_the_form_is_new(value: Any, way: Way) -> None:
    def containers(part: Any) -> list[int]:
        if isinstance(part, dict | list):
            inner = part.values() if isinstance(part, dict) else part
            return [id(part), *(each for item in inner for each in containers(item))]
        return []

    first, second = way(value), way(value)
    assert not set(containers(first)) & set(containers(second) + containers(value))


def test_leaves_stay_as_they_are_wherever_they_stand() -> None:
    first, second = Later("a"), Later("b")
    reduced = reduce(
        {"x": first, "y": [Line("s", first), (second,)], "z": {second, "t", first}}, leaf=Later
    )
    assert reduced["x"] is first
    assert reduced["y"][0]["price"] is first
    assert reduced["y"][1][0] is second
    assert reduced["z"][0] is first
    assert reduced["z"][1] is second
    assert reduced["z"][2] == "t"
    assert reduce(first, leaf=Later) is first


def test_a_leaf_is_no_key() -> None:
    with pytest.raises(Unfit, match="the key <a> is not text"):
        reduce({Later("a"): 1}, leaf=Later)


def test_what_is_unfit_is_told_with_its_place_and_what_to_return_instead() -> None:
    culprit = Path("x")
    with pytest.raises(Unfit) as caught:
        reduce({"files": [1, culprit]})
    unfit = caught.value
    assert unfit.culprit is culprit
    assert unfit.path == "$.files[1]"
    assert unfit.advice == "return str() of it"
    assert str(unfit.refusal("output")) == (
        f"The output cannot be stored: {type(culprit).__qualname__} has no JSON form"
        " (return str() of it) at $.files[1]."
    )


@pytest.mark.parametrize("number", [2**64, 10**4300, -(7**20_000)], ids=["64 bits", "long", "less"])
def test_integers_of_any_size_are_integers(number: int, way: Way) -> None:
    assert same(way({"n": [number]}), {"n": [number]})
    assert same(way((number,)), [number])


def test_a_set_has_one_order_whatever_it_holds(way: Way) -> None:
    long = 10**5000
    assert way({"b", "a", 2, (1, 2), long}) == ["a", "b", long, 2, [1, 2]]


@pytest.mark.parametrize("value", [True, 1, 1.0, 0, False, -0.0, "é", "1", None, 1e300])
def test_leaves_keep_their_type_and_sign(value: Any, way: Way) -> None:
    assert same(way(value), value)
    assert same(way([value]), [value])
    assert same(way((value,)), [value])
