"""Values that people give: inputs and answers, checked more strictly than what steps hand on.

A step's output may hold more than the next one asks for. In what a person types, a key that nothing
knows is a slip of the fingers, and dropping it in silence would do something else than was meant.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, Union

import msgspec

from wfe.authoring.conversion import Mismatch, converter, type_name
from wfe.authoring.responses import StepResponse
from wfe.errors import InvalidInput
from wfe.near import near


def refuse_strays(value: Any, fitted: Any, *, what: str) -> None:
    """Refuse keys of `value` that are nowhere in `fitted`, which was made of it.

    Raises:
        InvalidInput: with the nearest name that is known.
    """
    for path, key, known in _strays(value, fitted, ""):
        place = f" at {path}" if path else ""
        raise InvalidInput(
            f"{what} has no field {key!r}{place}.",
            hint=near(key, known) or f"Its fields: {', '.join(known)}." * bool(known),
        )


def refuse_misfit(answer: Any, returns: Any, *, what: str) -> None:
    """Refuse an answer that the step itself, by its return annotation, could not have given.

    Raises:
        InvalidInput: it does not fit; nothing has happened to the step.
    """
    annotation = _answered(returns)
    if annotation is None:
        return
    try:
        convert = converter(annotation)
        fitted = answer if convert is None else convert(answer)
    except NameError:
        return  # an annotation that does not resolve says nothing
    except Mismatch as mismatch:
        at = f" at ${mismatch.path}" if mismatch.path else ""
        raise InvalidInput(
            f"The answer does not fit {what}: {mismatch.reason}{at} "
            f"(it is {type_name(annotation)}).",
            hint="The step still waits.",
        ) from None
    refuse_strays(answer, fitted, what="The answer")


def _answered(returns: Any) -> Any:
    """What a step with this return annotation gives in the end; None where that is anything.
    Returning nothing means to wait, so nothing is no answer."""
    origin = typing.get_origin(returns)
    if origin in (StepResponse, Awaitable):
        return _answered(typing.get_args(returns)[-1])
    if origin in (Union, types.UnionType):
        members = [m for m in typing.get_args(returns) if m is not type(None)]
        given = [_answered(member) for member in members]
        if not given or None in given:
            return None
        return functools.reduce(operator.or_, given)
    return None if returns in (None, type(None), StepResponse) else returns


def _strays(value: Any, fitted: Any, path: str) -> Iterator[tuple[str, str, list[str]]]:
    if isinstance(value, Mapping):
        members = _members(fitted)
        if members is None:
            return
        for key, item in value.items():
            if key not in members:
                yield path, str(key), [str(name) for name in members]
            else:
                yield from _strays(item, members[key], f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and isinstance(fitted, list | tuple):
        for index, (item, other) in enumerate(zip(value, fitted, strict=False)):
            yield from _strays(item, other, f"{path}[{index}]")


def _members(fitted: Any) -> Mapping[Any, Any] | None:
    """What an object holds, by the names that JSON knows; None of objects that decide themselves."""
    if isinstance(fitted, Mapping):
        return fitted
    if isinstance(fitted, msgspec.Struct):
        names = zip(fitted.__struct_encode_fields__, fitted.__struct_fields__, strict=True)
        return {encoded: getattr(fitted, name) for encoded, name in names}
    if dataclasses.is_dataclass(fitted) and not isinstance(fitted, type):
        return {field.name: getattr(fitted, field.name) for field in dataclasses.fields(fitted)}
    attributes = getattr(type(fitted), "__attrs_attrs__", None)
    if attributes is not None:
        return {attribute.name: getattr(fitted, attribute.name) for attribute in attributes}
    return None
