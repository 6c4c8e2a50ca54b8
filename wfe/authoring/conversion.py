"""From JSON values to what an annotation asks for.

`converter` decides once per annotation; what it returns is cheap to call. An annotation that JSON
cannot be converted to (an arbitrary class, a protocol, a type variable) has no converter: its
parameter receives plain JSON values.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, Union
from weakref import WeakKeyDictionary

import msgspec

from wfe.plain import is_pydantic_model

Converter = Callable[[Any], Any]

#: Annotations that every JSON value fits as it is.
_ANYTHING = (Any, object)
_OBJECTS = (
    msgspec.inspect.StructType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.TypedDictType,
    msgspec.inspect.NamedTupleType,
)

_PARTS = (msgspec.inspect.Type, msgspec.inspect.Field)


class Mismatch(Exception):
    """A value does not fit. `reason` names both types, `path` (`.lines[0].price`) the place."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def converter(annotation: Any) -> Converter | None:
    """A function from a JSON value to a value of `annotation`; None where it stays as it is.

    The function raises Mismatch. An integer fits where a float is wanted; text that looks like a
    number is still text.

    Raises:
        NameError: a field's annotation names something that is not there (yet).
    """
    if annotation in _ANYTHING or isinstance(annotation, TypeVar):
        return None
    if is_pydantic_model(annotation):
        return _validating(annotation)
    try:
        info = msgspec.inspect.type_info(annotation)
    except NameError:
        raise
    except Exception:  # also what a user's metaclass raises: an annotation is no reason to fail
        return _first_that_fits(annotation)
    if any(_is_unsupported(part) for part in _parts(info)):
        return None
    if annotation in (int, str, bool, float):
        return _exact(annotation)
    convert = _converting(annotation)
    dataclasses_inside = any(
        isinstance(part, msgspec.inspect.DataclassType) for part in _parts(info, fields=True)
    )
    return _completing(convert) if dataclasses_inside else convert


def type_name(annotation: Any) -> str:
    """The annotation as its user would write it."""
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return annotation.__qualname__.rsplit(".", 1)[-1]
    return str(annotation).replace("typing.", "")


def _exact(type_: Any) -> Converter:
    convert = _converting(type_)

    def convert_scalar(value: Any) -> Any:
        return value if type(value) is type_ else convert(value)

    return convert_scalar


def _converting(annotation: Any) -> Converter:
    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, annotation, str_keys=True, dec_hook=_decode_custom)
        except (msgspec.ValidationError, TypeError) as error:
            reason, _, path = str(error).partition(" - at `$")
            raise Mismatch(reason[:1].lower() + reason[1:], path.rstrip("`")) from None

    return convert


def _completing(convert: Converter) -> Converter:
    """msgspec leaves a dataclass field that has a default out of the instance, so that its own
    encoder (and `vars`) would not find it there; put it in."""

    def convert_completely(value: Any) -> Any:
        converted = convert(value)
        _complete(converted)
        return converted

    return convert_completely


def _complete(value: Any) -> None:
    kind = type(value)
    if kind in _WITHOUT_PARTS:
        return
    if kind is dict:
        parts = value.values()
    elif kind in (list, tuple, set, frozenset):
        parts = value
    else:
        names = _field_names.get(kind)
        if names is None:
            names = _field_names[kind] = _names_of_fields(kind)
        parts = [getattr(value, name) for name in names]
        if dataclasses.is_dataclass(kind) and hasattr(value, "__dict__"):
            vars(value).update(zip(names, parts, strict=True))
    for part in parts:
        _complete(part)


_WITHOUT_PARTS = frozenset({str, int, float, bool, bytes, type(None)})


#: `dataclasses.fields` takes longer than the rest of a conversion.
_field_names: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def _names_of_fields(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(getattr(kind, "__struct_fields__", ()))


def _validating(model: Any) -> Converter:
    def convert(value: Any) -> Any:
        try:
            return model.model_validate_json(msgspec.json.encode(value))
        except ValueError as error:
            raise Mismatch(*_first_error(error)) from None

    return convert


def _decode_custom(type_: Any, value: Any) -> Any:
    """pydantic models inside what msgspec converts; other types stay, and msgspec checks them."""
    if not is_pydantic_model(type_):
        return value
    try:
        return type_.model_validate_json(msgspec.json.encode(value))
    except ValueError as error:
        reason, path = _first_error(error)
        raise ValueError(f"{reason} (at {path.lstrip('.')})" if path else reason) from None


def _first_error(error: ValueError) -> tuple[str, str]:
    details: Callable[[], list[Any]] | None = getattr(error, "errors", None)
    if details is None:
        return str(error), ""
    first = details()[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    return f"{first['msg']}, got `{type(first['input']).__name__}`", path


def _first_that_fits(annotation: Any) -> Converter | None:
    """For unions that msgspec cannot tell apart: their members in the order they are written."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return None
    members = [
        _identity_of_none if m is type(None) else converter(m) for m in typing.get_args(annotation)
    ]
    if None in members:
        return None
    candidates = typing.cast("list[Converter]", members)

    def convert(value: Any) -> Any:
        reasons = []
        for candidate in candidates:
            try:
                return candidate(value)
            except Mismatch as mismatch:
                reasons.append(mismatch.reason)
        raise Mismatch("; ".join(dict.fromkeys(reasons)))

    return convert


def _identity_of_none(value: Any) -> None:
    if value is not None:
        raise Mismatch(f"expected `null`, got `{type(value).__name__}`")


def _is_unsupported(part: Any) -> bool:
    return (
        isinstance(part, msgspec.inspect.CustomType)
        and part.cls is not object
        and not is_pydantic_model(part.cls)
    )


def _parts(info: Any, *, fields: bool = False) -> Iterator[Any]:
    """`info` and the types inside it, those of fields only where wanted."""
    seen: set[int] = set()
    rest = [info]
    while rest:
        part = rest.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, msgspec.inspect.Type):
            yield part
        if isinstance(part, _OBJECTS) and not fields:
            continue
        for name in getattr(part, "__struct_fields__", ()):
            inner = getattr(part, name)
            candidates = inner if isinstance(inner, tuple) else (inner,)
            rest += [each for each in candidates if isinstance(each, _PARTS)]


__all__ = ["Converter", "Mismatch", "converter", "type_name"]
