"""What is known, while composing, about the value a reference will have.

A type checker lets `order.created.year` pass, since it knows `created` as a datetime; at run time the
stored form is text, and the answer would be None without a word. Where the annotation of the input
or of a step tells the fields, an attribute that the stored form does not have is refused at once.
Item access (`order["x"]`) is never checked: it is the way to reach what no annotation tells.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import types
import typing
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Union

import msgspec

from wfe.authoring.places import refuse
from wfe.authoring.responses import StepResponse, WorkflowResponse
from wfe.errors import ReferenceMisuse
from wfe.near import near
from wfe.plain import is_pydantic_model

_NUMBERS = (int, float, bool)
_TEXTS = (
    str,
    bytes,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    decimal.Decimal,
)
_LISTS = (list, tuple, set, frozenset, Sequence)


def _bare(annotation: Any) -> Any:
    """Without Annotated, NewType and `| None`: what remains says how the value looks, if present."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = annotation.__origin__
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif origin in (Union, types.UnionType):
            members = [m for m in typing.get_args(annotation) if m is not type(None)]
            if len(members) != 1:
                return None
            annotation = members[0]
        else:
            return None if annotation is type(None) else annotation


class Shape:
    """An annotation, or nothing."""

    __slots__ = ("_annotation",)

    def __init__(self, annotation: Any = None) -> None:
        self._annotation = _bare(annotation)

    def attribute(self, name: str, spelled: str) -> tuple[str, Shape]:
        """The key that holds this attribute in the stored form, and the shape of its value.

        Raises:
            ReferenceMisuse: the stored form is known not to have it.
        """
        fields = _fields(self._annotation)
        if fields is None:
            self._refuse_without_fields(name, spelled)
            return name, self.item(name)
        if name in fields:
            key, annotation = fields[name]
            return key, Shape(annotation)
        kind = self._annotation.__qualname__.rsplit(".", 1)[-1]
        if hasattr(self._annotation, name):
            reason = f"{name!r} is computed by {kind} and not among its stored fields"
            hint = f"Compute it in a step or transform whose parameter is annotated {kind}."
        else:
            reason = f"{kind} has no field {name!r}"
            hint = near(name, fields) or f"Its fields: {', '.join(fields)}."
        raise refuse(ReferenceMisuse, f"{spelled}.{name}: {reason}.", hint=hint)

    def item(self, key: Any) -> Shape:
        """The shape of an item."""
        origin, arguments = typing.get_origin(self._annotation), typing.get_args(self._annotation)
        if not (isinstance(origin, type) and arguments) or isinstance(key, slice):
            return UNKNOWN
        if issubclass(origin, Mapping):
            return Shape(arguments[-1])
        is_list = issubclass(origin, _LISTS)
        if is_list and (origin is not tuple or arguments[-1] is Ellipsis or len(arguments) == 1):
            return Shape(arguments[0])
        return UNKNOWN

    def _refuse_without_fields(self, name: str, spelled: str) -> None:
        stored = _stored_as(self._annotation)
        if stored is not None:
            raise refuse(
                ReferenceMisuse,
                f"{spelled}.{name}: the stored form of {spelled} is {stored}, "
                "which has no attributes.",
                hint=f"Write transform({spelled}, fn=...) with a function whose parameter is annotated.",
            )


UNKNOWN: Final = Shape()


def shape_of_return(annotation: Any) -> Shape:
    """The shape of what a step or workflow gives whose function returns this annotation."""
    annotation = _bare(annotation)
    origin = typing.get_origin(annotation)
    if origin in (StepResponse, WorkflowResponse, Awaitable):
        return shape_of_return(typing.get_args(annotation)[-1])
    return UNKNOWN if annotation in (None, StepResponse, WorkflowResponse) else Shape(annotation)


def _fields(annotation: Any) -> Mapping[str, tuple[str, Any]] | None:
    """Attribute → (key, annotation), of a class whose stored form has exactly these; else None."""
    class_ = typing.get_origin(annotation) or annotation
    if not isinstance(class_, type):
        return None
    keys: Mapping[str, str]
    if issubclass(class_, msgspec.Struct):
        if class_.__struct_config__.array_like:
            return None
        keys = dict(zip(class_.__struct_fields__, class_.__struct_encode_fields__, strict=True))
    elif dataclasses.is_dataclass(class_):
        keys = {field.name: field.name for field in dataclasses.fields(class_)}
    elif is_pydantic_model(class_):
        model: Any = class_
        if model.model_config.get("extra") == "allow":
            return None
        keys = {n: f.serialization_alias or n for n, f in model.model_fields.items()}
        keys |= {n: f.alias or n for n, f in model.model_computed_fields.items()}
    elif hasattr(class_, "__attrs_attrs__"):
        keys = {attribute.name: attribute.name for attribute in class_.__attrs_attrs__}
    else:
        return None
    try:
        hints = typing.get_type_hints(class_, include_extras=True)
    except Exception:  # names that cannot be looked up (yet): the fields are known, their types not
        hints = {}
    return {name: (key, hints.get(name)) for name, key in keys.items()}


def _stored_as(annotation: Any) -> str | None:
    class_ = typing.get_origin(annotation) or annotation
    if not isinstance(class_, type):
        return None
    if issubclass(class_, Enum):
        return "the value of the enum"
    if issubclass(class_, _NUMBERS):
        return "a number"
    if issubclass(class_, _TEXTS):
        return "text"
    if issubclass(class_, _LISTS):
        return "a list"
    return None
