"""Any value as plain JSON values, or the place at which it has none.

The slow half of the codec: it walks a value that is not plain JSON already. Lists and objects being
walked lie on a stack of our own, so that no depth of nesting can exhaust Python's; the places in
them spell the path for an error (`$.lines[3].price`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from wfe.errors import NonSerializableValue

#: How deep lists and objects may lie in each other.
MAX_DEPTH = 500

#: From this many digits on, Python refuses to convert an integer to or from text, unless it is told
#: otherwise for the whole process. Decimal converts them without that limit.
MAX_DIGITS = 4300

#: Leaves that msgspec knows a JSON text for.
_AS_TEXT = (date, time, timedelta, UUID, Decimal, bytes, bytearray, memoryview)

#: What to return instead, for kinds of objects that people do return.
_INSTEAD: tuple[tuple[type[Any], str], ...] = (
    (PurePath, "return str() of it"),
    (Coroutine, "await it and return what it gives"),
    (Iterator, "return a list of what it yields"),
    (BaseException, "return its text"),
    (complex, "return its real and imaginary part"),
    (type, "return its name"),
)


def plain(value: Any, *, what: str = "value") -> Any:
    """`value` as dicts, lists, str, int, float, bool and None (very long integers as msgspec.Raw).

    Raises:
        NonSerializableValue: a part of it has no JSON form; `what` names the value in the message.
    """
    return _Walk(what).run(value)


class _Level:
    """A list or an object being walked: where its children come from and where they go."""

    __slots__ = ("children", "is_set", "place", "source", "target")

    def __init__(
        self,
        source: Any,
        children: Iterable[tuple[Any, Any]],
        target: list[Any] | dict[str, Any],
        *,
        is_set: bool = False,
    ) -> None:
        #: Kept alive, so that its id stays its own while it is being walked.
        self.source = source
        self.children = iter(children)
        self.target = target
        self.is_set = is_set
        #: The index or key of the child at hand; None in a set.
        self.place: Any = None

    def put(self, child: Any) -> None:
        if isinstance(self.target, list):
            self.target.append(child)
        else:
            self.target[self.place] = child

    def finish(self) -> None:
        if self.is_set and isinstance(self.target, list):
            # The order of a set differs from process to process; its JSON must not.
            self.target.sort(key=msgspec.json.encode)


class _Walk:
    def __init__(self, what: str) -> None:
        self._what = what
        self._levels: list[_Level] = []
        self._open: set[int] = set()

    def run(self, value: Any) -> Any:
        result: list[Any] = []
        self._levels.append(_Level(result, [(None, value)], result))
        while self._levels:
            level = self._levels[-1]
            inner = self._advance(level)
            if inner is not None:
                level.put(inner.target)
                self._enter(inner)
            else:
                level.finish()
                self._open.discard(id(level.source))
                self._levels.pop()
        return result[0]

    def _advance(self, level: _Level) -> _Level | None:
        """Put leaves until a child has children of its own: that child; None at the end."""
        for place, child in level.children:
            level.place = place
            reduced = self._reduce(child)
            if isinstance(reduced, _Level):
                return reduced
            level.put(reduced)
        return None

    def _enter(self, inner: _Level) -> None:
        if id(inner.source) in self._open:
            raise self._refusal("a cycle (the value contains itself)")
        if len(self._levels) > MAX_DEPTH:
            raise self._refusal(f"more than {MAX_DEPTH} levels of nesting")
        self._open.add(id(inner.source))
        self._levels.append(inner)

    # --- one value ---

    def _reduce(self, value: Any) -> Any:
        """A leaf as plain JSON; a list or an object as the level to walk next."""
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is dict:
            return self._object(value, value)
        if kind is list or kind is tuple:
            return _Level(value, enumerate(value), [])
        if isinstance(value, Enum):
            return self._reduce(value.value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self._number(value)
        if isinstance(value, _AS_TEXT):
            return self._as_text(value)
        return self._collection(value)

    def _collection(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return _Level(value, enumerate(value), [])
        if isinstance(value, set | frozenset):
            return _Level(value, ((None, member) for member in value), [], is_set=True)
        if isinstance(value, Mapping):
            return self._object(value, value)
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._object(value, _attributes(value, dataclasses.fields(value)))
        attributes = getattr(type(value), "__attrs_attrs__", None)
        if attributes is not None:
            return self._object(value, _attributes(value, attributes))
        pydantic = sys.modules.get("pydantic")  # where it is not imported there is no such model
        if pydantic is not None and isinstance(value, pydantic.BaseModel):
            return self._model(value)
        raise self._refusal(_no_json_form(value))

    def _object(self, source: Any, members: Mapping[Any, Any]) -> _Level:
        texts: dict[str, Any] = {}
        for key, child in members.items():
            if not isinstance(key, str):
                raise self._refusal(f"the key {_short(key)}, which is no text (use str keys),")
            text = self._text(str(key.value) if isinstance(key, Enum) else key)
            if text in texts:
                raise self._refusal(f"two keys that are the same text {_short(text)}")
            texts[text] = child
        return _Level(source, texts.items(), {})

    def _struct(self, value: msgspec.Struct) -> _Level:
        config = value.__struct_config__
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        fields = {name: getattr(value, attribute) for name, attribute in names}
        tag = {} if config.tag_field is None else {config.tag_field: config.tag}
        if config.array_like:
            return _Level(value, enumerate([*tag.values(), *fields.values()]), [])
        given = {name: child for name, child in fields.items() if child is not msgspec.UNSET}
        return self._object(value, tag | given)

    def _model(self, value: Any) -> Any:
        try:
            form = value.model_dump(mode="json", by_alias=True)
        except ValueError as error:
            raise self._refusal(f"a model that pydantic cannot reduce ({error})") from error
        return self._reduce(form)

    # --- leaves ---

    def _text(self, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            code = ord(value[error.start])
            raise self._refusal(
                f"half of a surrogate pair (U+{code:04X}), which is no text,"
            ) from None
        return str.__str__(value)

    def _integer(self, value: int) -> Any:
        number = int.__index__(value)
        if number.bit_length() < 3 * MAX_DIGITS:
            return number
        return msgspec.Raw(str(Decimal(number)).encode())

    def _number(self, value: float) -> float:
        number = float.__float__(value)
        if math.isfinite(number):
            return number
        name = "NaN" if math.isnan(number) else "an infinite number"
        raise self._refusal(f"{name} (JSON has none; return None or a text instead)")

    def _as_text(self, value: Any) -> Any:
        try:
            return msgspec.to_builtins(value)
        except (TypeError, ValueError, BufferError):
            raise self._refusal(_no_json_form(value)) from None

    # --- refusing ---

    def _refusal(self, reason: str) -> NonSerializableValue:
        path = "$" + "".join(_step(level.place) for level in self._levels[1:])
        if len(path) > 300:
            path = f"{path[:200]}…{path[-90:]}"
        return NonSerializableValue(reason, path=path, what=self._what)


def _attributes(value: Any, fields: Iterable[Any]) -> dict[str, Any]:
    """The fields that are set; one declared with slots may not be."""
    return {f.name: getattr(value, f.name) for f in fields if hasattr(value, f.name)}


def _step(place: Any) -> str:
    if place is None:
        return "[*]"
    if isinstance(place, int):
        return f"[{place}]"
    return f".{place}" if place.isidentifier() else f"[{json.dumps(place, ensure_ascii=False)}]"


def _short(value: Any) -> str:
    try:
        text = ascii(value) if isinstance(value, str) else repr(value)
    except Exception:  # any: a class of the user's, or an integer too long to be printed
        return f"of type {type(value).__qualname__}"
    return text if len(text) <= 60 else f"{text[:59]}…"


def _no_json_form(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    for base, instead in _INSTEAD:
        if isinstance(value, base):
            return f"an object of type {name} ({instead})"
    return f"an object of type {name} (return its data as a dict, a list, a text or a dataclass)"
