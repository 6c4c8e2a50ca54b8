"""Values as JSON would give them back: what a step receives whether or not a process died.

`plain` reduces a Python value to dicts with text keys, lists, text, numbers, booleans and None, and
always returns new containers, so that nobody can change what another one holds.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import msgspec

from wfe.errors import NonSerializableValue

_AS_IS = frozenset({str, int, bool, type(None)})
#: What a subclass holds, whatever its own `__str__` and the like say.
_EXACT: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


def plain(value: Any, *, what: str = "value", leaf: type | None = None) -> Any:
    """`value` in its JSON form. Objects of exactly the type `leaf` stay as they are.

    Raises:
        NonSerializableValue: NaN, infinities, keys that are not text, cycles, and objects that have
            no JSON form; `path` is the place inside the value.
    """
    try:
        return reduce(value, leaf)
    except Unfit as unfit:
        raise NonSerializableValue(unfit.reason, path=path_text(unfit.path), what=what) from None


class Unfit(Exception):
    """`culprit` has no JSON form. `path` leads to it, innermost step first."""

    def __init__(self, culprit: Any, reason: str) -> None:
        super().__init__(reason)
        self.culprit = culprit
        self.reason = reason
        self.path: list[Any] = []


def reduce(value: Any, leaf: type | None) -> Any:
    """As `plain`, but raises Unfit, for those who have more to say about it."""
    try:
        return _reduce(value, leaf)
    except RecursionError:
        raise Unfit(value, "it contains itself, or nests too deeply") from None


def path_text(steps: list[Any]) -> str:
    """The place inside a value, innermost step first in `steps`: `$.lines[3].price`."""
    text = "$"
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(step, str) and step.isidentifier():
            text += f".{step}"
        else:
            text += f"[{step!r}]"
    return text


def is_pydantic_model(type_: Any) -> bool:
    """Whether it is a model class of pydantic, which only its own users have imported."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None and isinstance(type_, type) and issubclass(type_, pydantic.BaseModel)
    )


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """The fields of a dataclass, Struct or attrs instance under their JSON names; None of others."""
    kind = type(value)
    if isinstance(value, msgspec.Struct):
        names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        fields = {encoded: getattr(value, name) for encoded, name in names}
        tag = kind.__struct_config__
        return fields if tag.tag is None else {str(tag.tag_field): tag.tag, **fields}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is not None:
        return {attribute.name: getattr(value, attribute.name) for attribute in attributes}
    return None


def _reduce(value: Any, leaf: type | None) -> Any:
    kind = type(value)
    if kind in _AS_IS or kind is leaf:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise Unfit(value, f"{value} is no JSON number")
        return value
    if kind is dict:
        return _reduce_mapping(value, leaf)
    if kind in (list, tuple, set, frozenset):
        return _reduce_items(value, leaf)
    return _reduce_object(value, leaf)


def _reduce_mapping(value: Mapping[Any, Any], leaf: type | None) -> dict[str, Any]:
    reduced = {}
    for key, item in value.items():
        if type(key) is not str:
            raise Unfit(key, f"the key {key!r} is not text")
        try:
            reduced[key] = _reduce(item, leaf)
        except Unfit as unfit:
            unfit.path.append(key)
            raise
    return reduced


def _reduce_items(value: Any, leaf: type | None) -> list[Any]:
    reduced = []
    for index, item in enumerate(value):
        try:
            reduced.append(_reduce(item, leaf))
        except Unfit as unfit:
            unfit.path.append(index)
            raise
    return reduced


def _dumped(model: Any) -> Any:
    try:
        return model.model_dump(mode="json", by_alias=True)
    except ValueError as error:
        reason = f"{type(model).__qualname__} has no JSON form ({error})"
        raise Unfit(model, reason) from None


def _reduce_object(value: Any, leaf: type | None) -> Any:
    if isinstance(value, Enum):
        return _reduce(value.value, leaf)
    if is_pydantic_model(type(value)):
        return _reduce(_dumped(value), leaf)
    for base, exact in _EXACT:
        if isinstance(value, base):
            return _reduce(exact(value), leaf)
    if isinstance(value, Mapping):
        return _reduce_mapping(value, leaf)
    if isinstance(value, tuple | list | set | frozenset):
        return _reduce_items(value, leaf)
    try:
        builtin = msgspec.to_builtins(value)
    except (
        Exception
    ):  # what is inside decides: a leaf, a pydantic model, something without JSON form
        fields = fields_of(value)
        if fields is None:
            raise Unfit(value, f"{type(value).__qualname__} has no JSON form") from None
        return _reduce_mapping(fields, leaf)
    return _reduce(builtin, leaf)
