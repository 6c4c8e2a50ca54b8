"""Ids: a fresh ULID as text, which sorts by the moment at which it was made.

python-ulid makes it. Its text is put together here, two characters at a time: every run needs one, and
the library's own way, character by character, costs as much as the making.
"""

from __future__ import annotations

from ulid import ULID

#: Crockford's base 32, as https://github.com/ulid/spec has it.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def fresh_id() -> str:
    """26 characters."""
    return text_of(ULID())


def text_of(ulid: ULID) -> str:
    """What `str(ulid)` is."""
    number = int.from_bytes(ulid.bytes)
    high, low, pairs = number >> 60, number & 0xFFF_FFFF_FFFF_FFFF, _PAIRS
    return (
        f"{pairs[high >> 60]}{pairs[high >> 50 & 1023]}{pairs[high >> 40 & 1023]}"
        f"{pairs[high >> 30 & 1023]}{pairs[high >> 20 & 1023]}{pairs[high >> 10 & 1023]}"
        f"{pairs[high & 1023]}{pairs[low >> 50]}{pairs[low >> 40 & 1023]}"
        f"{pairs[low >> 30 & 1023]}{pairs[low >> 20 & 1023]}{pairs[low >> 10 & 1023]}"
        f"{pairs[low & 1023]}"
    )
