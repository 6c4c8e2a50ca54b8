"""The codec: what goes into the store comes out of it, or is refused with its place."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wfe
from tests.unit.support import Colour, Line, Pair, Rank, Stock, same
from wfe.errors import NonSerializableValue, PermanentStepFailure
from wfe.store.codec import decode, encode

#: For a process of its own.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(wfe.__file__).parent.parent)}


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


def test_the_codec_does_not_import_pydantic() -> None:
    program = (
        "import sys; from wfe.store.codec import encode; encode({'a': (1, 2)});"
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.check_call([sys.executable, "-c", program], env=ENVIRONMENT)


# --- what is refused -----------------------------------------------------------------------------


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
