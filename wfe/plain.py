"""Any value as plain JSON values, or the place at which it has none.

A value is passed on, kept and compared in its JSON form: dicts with text keys, lists, text, numbers,
booleans and None, always in new containers, so that nobody can change what another one holds.

JSON encoders lose silently: NaN becomes null, the key 1 becomes "1", two keys become one. The usual
value is plain JSON, so the usual path is one encode, one decode and one comparison. The comparison
is Python's `==`, for which True, 1 and 1.0 are the same; that is enough, because the encoder keeps
these three apart (true, 1, 1.0). What it does not keep apart compares unequal: null and NaN, "1" and
the key 1, a list and a tuple. Whatever fails the comparison, or cannot be encoded at all, is walked
once, which yields its JSON form or finds the place to complain about. Lists and objects being walked
lie on a stack of our own, so that no depth of nesting can exhaust Python's; the places in them spell
the path for an error (`$.lines[3].price`).
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

#: The types whose every value is its own JSON form.
_AS_IS = frozenset({int, bool, type(None)})

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

_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder().decode
#: A set has no order that is the same in every process; the texts of its members have. Leaves that
#: pass through have none, but a representation.
_order = msgspec.json.Encoder(enc_hook=repr).encode


class Unfit(Exception):
    """`culprit` has no JSON form, because of `reason`; `path` is its place inside the value.

    `advice` says what a function could return instead.
    """

    def __init__(self, culprit: Any, reason: str, *, path: str, advice: str = "") -> None:
        super().__init__(reason)
        self.culprit = culprit
        self.reason = reason
        self.path = path
        self.advice = advice

    def refusal(self, what: str) -> NonSerializableValue:
        """The error for users; `what` names the value in its message."""
        reason = f"{self.reason} ({self.advice})" if self.advice else self.reason
        return NonSerializableValue(reason, path=self.path, what=what)


def plain(value: Any, *, what: str = "value") -> Any:
    """`value` in its JSON form; `what` names it in the message of an error.

    Raises:
        NonSerializableValue: a part of it has no JSON form (NaN, keys that are not text, a cycle,
            half of a surrogate pair, any other object), or it is nested too deeply.
    """
    kind = type(value)
    if kind is dict or kind is list:
        faithful = unchanged(value)
        if faithful is not None:
            return faithful[1]
    elif _is_leaf(kind, value):
        return value
    try:
        return reduce(value)
    except Unfit as unfit:
        raise unfit.refusal(what) from None


def unchanged(value: Any) -> tuple[bytes, Any] | None:
    """The JSON text of `value` and a copy decoded from it; None where a walk must decide."""
    try:
        text = _to_json(value)
        kind = type(value)
        if kind in _AS_IS or _is_leaf(kind, value):
            return text, value  # nobody can change it, and decoding gives the same again
        decoded = _from_json(text)
        if decoded == value and (len(text) <= MAX_DEPTH or not _is_deep(text, decoded)):
            return text, decoded
    # Any: a user's types compare and fail as they like; the walk says what is wrong.
    except Exception:
        pass
    return None


def reduce(value: Any, *, leaf: type | None = None, long_as_raw: bool = False) -> Any:
    """`value` in its JSON form, always by the walk. Objects of exactly the type `leaf` stay as they
    are; with `long_as_raw`, integers of MAX_DIGITS and more are the msgspec.Raw an encoder needs.

    Raises:
        Unfit: as NonSerializableValue of `plain`, for those who have more to say about it.
    """
    return _Walk(leaf, long_as_raw).run(value)


def is_pydantic_model(type_: Any) -> bool:
    """Whether it is a model class of pydantic, which only its own users have imported."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None and isinstance(type_, type) and issubclass(type_, pydantic.BaseModel)
    )


def _is_leaf(kind: type, value: Any) -> bool:
    """Whether a value of exactly that type is its own JSON form; False where it must be looked at."""
    if kind is str:
        return bool(value.isascii())
    return kind in _AS_IS or (kind is float and math.isfinite(value))


class _Level:
    """A list or an object being walked: where its children come from and where they go."""

    __slots__ = ("children", "is_set", "place", "source", "target")

    def __init__(
        self,
        source: Any,
        children: Iterable[tuple[Any, Any]],
        target: list[Any] | dict[str, Any],
        is_set: bool = False,
    ) -> None:
        #: Kept alive, so that its id stays its own while it is being walked.
        self.source = source
        self.children = iter(children)
        self.target = target
        self.is_set = is_set
        #: The index or key of the child at hand; None in a set.
        self.place: Any = None


class _Walk:
    def __init__(self, leaf: type | None, long_as_raw: bool) -> None:
        self._leaf = leaf
        self._long_as_raw = long_as_raw
        self._levels: list[_Level] = []
        self._open: set[int] = set()

    def run(self, value: Any) -> Any:
        reduced = self._reduce(value)
        # Not isinstance: it asks a leaf for its class, which it may refuse to tell.
        if type(reduced) is not _Level:
            return reduced
        self._enter(reduced)
        while self._levels:
            level = self._levels[-1]
            inner = self._advance(level)
            if inner is not None:
                self._enter(inner)
            else:
                if level.is_set and isinstance(level.target, list):
                    level.target.sort(key=self._rank)
                self._open.discard(id(level.source))
                self._levels.pop()
        return reduced.target

    def _advance(self, level: _Level) -> _Level | None:
        """Put leaves until a child has children of its own: that child; None at the end."""
        target = level.target
        for place, child in level.children:
            level.place = place
            reduced = self._reduce(child)
            inner = reduced if type(reduced) is _Level else None
            form = reduced if inner is None else inner.target
            if isinstance(target, list):
                target.append(form)
            else:
                target[place] = form
            if inner is not None:
                return inner
        return None

    def _enter(self, inner: _Level) -> None:
        if id(inner.source) in self._open:
            raise self._unfit(inner.source, "a cycle (the value contains itself)")
        if len(self._levels) >= MAX_DEPTH:
            raise self._unfit(inner.source, f"more than {MAX_DEPTH} levels of nesting")
        self._open.add(id(inner.source))
        self._levels.append(inner)

    def _rank(self, member: Any) -> bytes:
        try:
            return _order(member)
        except ValueError:  # a very long integer in it
            return _order(reduce(member, leaf=self._leaf, long_as_raw=True))

    # --- one value ---

    def _reduce(self, value: Any) -> Any:
        """A leaf as plain JSON; a list or an object as the level to walk next."""
        kind = type(value)
        if kind is self._leaf:
            return value
        if kind is dict:
            return self._object(value, value)
        if kind is list or kind is tuple:
            return _Level(value, enumerate(value), [])
        if _is_leaf(kind, value) and (kind is not int or not self._long_as_raw):
            return value
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
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, (list, tuple)):
            return _Level(value, enumerate(value), [])
        if isinstance(value, (set, frozenset)):
            return _Level(value, ((None, member) for member in value), [], True)
        if isinstance(value, Mapping):
            return self._object(value, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._object(value, _attributes(value, dataclasses.fields(value)))
        attributes = getattr(type(value), "__attrs_attrs__", None)
        if attributes is not None:
            return self._object(value, _attributes(value, attributes))
        if is_pydantic_model(type(value)):
            return self._model(value)
        raise self._formless(value)

    def _object(self, source: Any, members: Mapping[Any, Any]) -> _Level:
        texts: dict[str, Any] = {}
        for key, child in members.items():
            # Not isinstance, for the reason given in `run`.
            if not issubclass(type(key), str):
                reason = f"the key {_short(key)} is not text"
                raise self._unfit(key, reason, advice="use str keys")
            text = self._text(str(key.value) if isinstance(key, Enum) else key)
            if text in texts:
                raise self._unfit(key, f"two keys that are the same text {_short(text)}")
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
            reason = f"{type(value).__qualname__} has no JSON form (pydantic: {error})"
            raise self._unfit(value, reason) from None
        return self._reduce(form)

    # --- leaves ---

    def _text(self, value: str) -> str:
        if value.isascii():
            return str.__str__(value)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            code = ord(value[error.start])
            reason = f"half of a surrogate pair (U+{code:04X}), which is no text,"
            raise self._unfit(value, reason) from None
        return str.__str__(value)

    def _integer(self, value: int) -> Any:
        number = int.__index__(value)
        if self._long_as_raw and number.bit_length() >= 3 * MAX_DIGITS:
            return msgspec.Raw(str(Decimal(number)).encode())
        return number

    def _number(self, value: float) -> float:
        number = float.__float__(value)
        if math.isfinite(number):
            return number
        name = "NaN" if math.isnan(number) else "an infinite number"
        raise self._unfit(value, name, advice="JSON has none; return None or a text instead")

    def _as_text(self, value: Any) -> Any:
        try:
            return msgspec.to_builtins(value)
        except (TypeError, ValueError, BufferError):
            raise self._formless(value) from None

    # --- refusing ---

    def _formless(self, value: Any) -> Unfit:
        reason = f"{type(value).__qualname__} has no JSON form"
        return self._unfit(value, reason, advice=_instead(value))

    def _unfit(self, culprit: Any, reason: str, *, advice: str = "") -> Unfit:
        path = "$" + "".join(_step(level.place) for level in self._levels)
        if len(path) > 300:
            path = f"{path[:200]}…{path[-90:]}"
        return Unfit(culprit, reason, path=path, advice=advice)


def _attributes(value: Any, fields: Iterable[Any]) -> dict[str, Any]:
    """The fields that are set; one declared with slots may not be."""
    return {f.name: getattr(value, f.name) for f in fields if hasattr(value, f.name)}


def _is_deep(text: bytes, decoded: Any) -> bool:
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


def _step(place: Any) -> str:
    if place is None:
        return "[*]"
    if isinstance(place, int):
        return f"[{place}]"
    return f".{place}" if place.isidentifier() else f"[{json.dumps(place, ensure_ascii=False)}]"


def _short(value: Any) -> str:
    try:
        text = ascii(value) if type(value) is str else repr(value)
    except Exception:  # any: a class of the user's, or an integer too long to be printed
        return f"of type {type(value).__qualname__}"
    return text if len(text) <= 60 else f"{text[:59]}…"


def _instead(value: Any) -> str:
    for base, instead in _INSTEAD:
        if isinstance(value, base):
            return instead
    return "return its data as a dict, a list, a text or a dataclass"
