"""Ids are ULIDs, and read as python-ulid reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from wfe.runtime.ids import fresh_id, text_of


@given(st.binary(min_size=16, max_size=16))
def test_the_text_of_a_ulid_is_the_one_that_the_library_gives(octets: bytes) -> None:
    assert text_of(ULID(octets)) == str(ULID(octets))


def test_a_fresh_id_is_a_ulid_of_its_own() -> None:
    first, second = fresh_id(), fresh_id()
    assert str(ULID.from_str(first)) == first
    assert first != second
