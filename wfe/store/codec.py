"""A user's value as JSON and back: what is stored is what the next reader receives.

`encode` refuses what JSON cannot hold and says where in the value it stands; `decode` brings back
exactly what `encode` was given as long as that was plain JSON. Dataclasses, datetimes, sets and the
like go in as their JSON form (`wfe.plain`), and the reader's annotation brings the type back.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec

from wfe.errors import NonSerializableValue
from wfe.model import Json
from wfe.plain import MAX_DIGITS, Unfit, reduce, unchanged

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
    faithful = unchanged(value)
    text = _encode_reduced(value, what) if faithful is None else faithful[0]
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


def _encode_reduced(value: Any, what: str) -> Json:
    try:
        return _to_json(reduce(value, long_as_raw=True))
    except Unfit as unfit:
        raise unfit.refusal(what) from None
    except RecursionError:
        # The value is within the limit; the caller's own stack leaves too little room for it.
        raise NonSerializableValue("nesting that exhausts Python's stack", what=what) from None


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < MAX_DIGITS else int(Decimal(digits))
