"""The codec: what goes into the store comes out of it, or is refused with its place."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
import sys
import threading
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wfe
from wfe.errors import NonSerializableValue, PermanentStepFailure
from wfe.store.codec import decode, encode
from wfe.store.plain import MAX_DEPTH

#: For a process of its own.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(wfe.__file__).parent.parent)}


class Colour(StrEnum):
    RED = "red"


class Rank(IntEnum):
    FIRST = 1


class Shape(Enum):
    POINT = (0, 0)


@dataclasses.dataclass
class Line:
    sku: str
    price: Any


class Stock(msgspec.Struct, rename="camel", tag="stock"):
    on_hand: int
    note: str | msgspec.UnsetType = msgspec.UNSET


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: Any


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


def refusal(value: Any, **options: Any) -> NonSerializableValue:
    with pytest.raises(NonSerializableValue) as caught:
        encode(value, **options)
    return caught.value


# --- what survives -------------------------------------------------------------------------------

_plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float):
        return repr(left) == repr(right)
    return bool(left == right)


@given(_plain)
def test_plain_json_comes_back_with_its_types_and_order(value: Any) -> None:
    assert same(decode(encode(value)), value)


@given(_plain)
def test_what_was_decoded_encodes_to_the_same_text(value: Any) -> None:
    text = encode(value)
    assert encode(decode(text)) == text


@pytest.mark.parametrize("value", [True, 1, 1.0, 0, False, -0.0, "1", None])
def test_values_that_python_calls_equal_stay_apart(value: Any) -> None:
    assert same(decode(encode([value])), [value])


@pytest.mark.parametrize(
    "number",
    [2**63, -(2**63) - 1, 2**64, 2**70, 10**400, 10**4299, 10**4300, -(7**20_000)],
    ids=lambda number: f"{number.bit_length()} bits",
)
def test_integers_of_any_size_survive(number: int) -> None:
    assert same(decode(encode({"n": [number]})), {"n": [number]})


def test_each_decode_gives_a_copy_of_its_own() -> None:
    text = encode({"a": [1]})
    decode(text)["a"].append(2)
    assert decode(text) == {"a": [1]}


def test_text_may_hold_anything_but_half_a_surrogate_pair() -> None:
    value = 'a\x00\u2028\x1f"\\ é 👨‍👩‍👧 \uffff'
    assert decode(encode({value: value})) == {value: value}


# --- what goes in as its JSON form ---------------------------------------------------------------


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
def test_typed_values_go_in_as_their_json_form(value: Any, form: Any) -> None:
    assert same(decode(encode(value)), form)


@pytest.mark.parametrize(
    "value", [Line("a", 1.5), Stock(3, "x"), Pair(1, [2]), Colour.RED, Rank.FIRST, Decimal("1.50")]
)
def test_the_annotation_brings_the_type_back(value: Any) -> None:
    assert msgspec.convert(decode(encode(value)), type(value)) == value


def test_a_set_has_one_text_whatever_the_process() -> None:
    program = "from wfe.store.codec import encode; print(encode({'s': {'a','b','c',1,2,(1,2)}}))"
    texts = {
        subprocess.check_output(
            [sys.executable, "-c", program], env={**ENVIRONMENT, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_a_value_that_is_used_twice_is_no_cycle() -> None:
    shared = [(1,)]
    assert decode(encode({"a": shared, "b": [shared, shared]})) == {
        "a": [[1]],
        "b": [[[1]], [[1]]],
    }


def test_attrs_classes_are_recognised_by_what_they_declare() -> None:
    class Place:
        """What `attrs.define` leaves on a class, for who does not import attrs."""

        __attrs_attrs__ = (SimpleNamespace(name="x"), SimpleNamespace(name="y"))
        x = 1
        y = frozenset({"z"})

    assert decode(encode(Place())) == {"x": 1, "y": ["z"]}


def test_the_codec_does_not_import_pydantic() -> None:
    program = (
        "import sys; from wfe.store.codec import encode; encode({'a': (1, 2)});"
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.check_call([sys.executable, "-c", program], env=ENVIRONMENT)


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
        ({1: "a"}, "$", "the key 1, which is no text"),
        ({"a": {1.5: 0}}, "$.a", "the key 1.5"),
        ({True: 0}, "$", "the key True"),
        ({None: 0}, "$", "the key None"),
        ({(1, 2): 0}, "$", "the key (1, 2)"),
        (Line("a", {1: 2}), "$.price", "the key 1"),
        ({"a": "\ud800"}, "$.a", "U+D800"),
        ([{"\udcff": 1}], "$[0]", "U+DCFF"),
        ({"a b": float("nan")}, '$["a b"]', "NaN"),
        ({"tags": {"x", float("nan")}}, "$.tags[*]", "NaN"),
    ],
    ids=repr,
)
def test_what_json_cannot_hold_is_refused_with_its_place(
    value: Any, path: str, reason: str
) -> None:
    error = refusal(value)
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
def test_other_objects_are_refused_with_what_to_return_instead(value: Any, advice: str) -> None:
    error = refusal({"it": value})
    assert advice in error.reason
    assert error.path == "$.it"


def test_a_key_that_cannot_even_be_printed_is_refused() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "the key of type int" in refusal({10**5000: 1}).reason
    assert "the key of type" in refusal({Shy(): 1}).reason


def test_a_coroutine_that_nobody_awaited_is_named_as_such() -> None:
    coroutine = asyncio.sleep(0)
    assert "await it" in refusal(coroutine).reason
    coroutine.close()


def test_two_keys_that_become_the_same_text_are_refused() -> None:
    class Odd(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    assert "two keys that are the same text 'a'" in refusal({Odd("a"): 1, "a": 2}).reason


@pytest.mark.parametrize("key", ["list", "dict", "dataclass"])
def test_a_cycle_is_refused_where_it_closes(key: str) -> None:
    value: Any = {"list": [0], "dict": {}, "dataclass": Line("a", [])}[key]
    if key == "list":
        value.append({"x": value})
    elif key == "dict":
        value["x"] = [value]
    else:
        value.price.append(value)
    error = refusal({"it": value})
    assert "cycle" in error.reason
    assert (
        error.path == {"list": "$.it[1].x", "dict": "$.it.x[0]", "dataclass": "$.it.price[0]"}[key]
    )


def test_a_pydantic_model_that_contains_itself_is_refused() -> None:
    class Node(pydantic.BaseModel):
        next: Any = None

    node = Node()
    node.next = node
    assert "pydantic" in refusal([node]).reason


def test_nesting_ends_at_its_limit() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    assert "500 levels" in refusal(nested(MAX_DEPTH + 1)).reason


def test_nesting_is_counted_in_typed_values_too() -> None:
    assert decode(encode((nested(MAX_DEPTH - 1),))) == nested(MAX_DEPTH)
    assert "500 levels" in refusal((nested(MAX_DEPTH),)).reason


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    value = {"rows": [{"a": [], "b": "[[{"} for _ in range(2000)]}
    assert decode(encode(value)) == value


def test_no_depth_exhausts_the_stack() -> None:
    error = refusal(nested(100_000))
    assert "500 levels" in error.reason
    assert len(error.path) < 400


def test_size_ends_at_its_limit() -> None:
    assert encode("x" * 98, limit=100) == b'"' + b"x" * 98 + b'"'
    error = refusal("x" * 99, limit=100)
    assert "101 bytes of JSON where 100 are allowed" in error.reason
    assert error.path == "$"


def test_an_error_names_the_value_and_is_permanent() -> None:
    error = refusal(float("nan"), what="output of step 'charge'")
    assert str(error).startswith("The output of step 'charge' cannot be stored: NaN")
    assert isinstance(error, PermanentStepFailure)


@given(
    st.recursive(
        st.floats() | st.text(st.characters()) | st.integers() | st.just(object()),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text() | st.integers() | st.none(), inner)
            | st.tuples(inner)
        ),
        max_leaves=10,
    )
)
def test_any_value_either_goes_in_or_is_refused(value: Any) -> None:
    try:
        text = encode(value)
    except NonSerializableValue:
        return
    assert encode(decode(text)) == text
