"""A user's value as JSON and back: what is stored is what the next reader receives.

JSON encoders lose silently: NaN becomes null, the key 1 becomes "1", two keys become one. `encode`
refuses what JSON cannot hold and says where in the value it stands; `decode` brings back exactly
what `encode` was given as long as that was plain JSON. Dataclasses, datetimes, sets and the like go
in as their JSON form, and the reader's annotation brings the type back.

The usual value is plain JSON, so the usual path is one encode, one decode and one comparison. The
comparison is Python's `==`, for which True, 1 and 1.0 are the same; that is enough, because the
encoder keeps these three apart (true, 1, 1.0). What it does not keep apart compares unequal: null
and NaN, "1" and the key 1, a list and a tuple. Whatever fails the comparison, or cannot be encoded
at all, is walked once (`plain`), which yields its JSON form or finds the place to complain about.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec

from wfe.errors import NonSerializableValue
from wfe.model import Json
from wfe.store.plain import MAX_DEPTH, MAX_DIGITS, plain

#: How long the JSON text of one value may be, in bytes, unless the caller says otherwise.
MAX_BYTES = 64_000_000

_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder().decode


def encode(value: Any, *, what: str = "value", limit: int = MAX_BYTES) -> Json:
    """The JSON text of `value`, compact and in UTF-8.

    `what` names the value in the message of an error. `limit` is in bytes.

    Raises:
        NonSerializableValue: JSON cannot hold it (NaN, keys that are not text, a cycle, half of a
            surrogate pair, an object without a JSON form), or it is nested too deeply, or as a
            whole too large.
    """
    try:
        text = _to_json(value)
        decoded = _from_json(text)
        faithful = bool(decoded == value) and not _is_deep(text, decoded)
    except (
        Exception
    ):  # any: a user's types compare and fail as they like; the walk says what is wrong
        faithful = False
    if not faithful:
        text = _encode_plain(plain(value, what=what), what)
    if len(text) > limit:
        raise NonSerializableValue(
            f"{len(text):,} bytes of JSON where {limit:,} are allowed"
            " (write it to a file and return the file's path)",
            what=what,
        )
    return text


def decode(text: Json) -> Any:
    """The value of a text that `encode` made: a fresh copy at each call."""
    try:
        return _from_json(text)
    except msgspec.ValidationError:
        # An integer longer than what Python converts at once.
        return json.loads(text, parse_int=_integer)


def _encode_plain(value: Any, what: str) -> Json:
    try:
        return _to_json(value)
    except RecursionError:
        # The value is within the limit; the caller's own stack leaves too little room for it.
        raise NonSerializableValue("nesting that exhausts Python's stack", what=what) from None


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < MAX_DIGITS else int(Decimal(digits))


def _is_deep(text: Json, decoded: Any) -> bool:
    """Whether a value has more than MAX_DEPTH levels; the text alone tells for most."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    level = [decoded]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for node in level:
            if type(node) is list:
                below += node
            elif type(node) is dict:
                below += node.values()
        if not below:
            return False
        level = below
    return True
