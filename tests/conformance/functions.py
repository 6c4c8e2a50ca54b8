"""The named functions and conditions of scenarios, as the recordings' language computes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


def named(name: str, message: str) -> Exception:
    """An exception whose class is called `name`."""
    error = type(name, (Exception,), {})(message)
    assert isinstance(error, Exception)
    return error


def pick(value: Any, path: str) -> Any:
    """What lies at a dotted path; None where nothing does."""
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _values(value: Any) -> list[Any]:
    if value is None:
        raise TypeError("Cannot convert undefined or null to object")
    if isinstance(value, dict):
        return [item for item in value.values() if item is not None]
    return list(value) if isinstance(value, (list, str)) else []


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return sorted(key for key, item in value.items() if item is not None)
    return [str(index) for index in range(len(value))] if isinstance(value, (list, str)) else []


def _number(value: Any) -> float | int:
    return value if isinstance(value, (int, float)) else float(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def function(name: str) -> Callable[[Any], Any]:
    """The named function of a transform."""
    kind, _, argument = name.partition(":")
    match kind:
        case "identity":
            return lambda value: value
        case "sum":
            return lambda value: sum(map(_number, _values(value)))
        case "concat":
            return lambda value: argument.join(map(_text, _values(value)))
        case "pick":
            return lambda value: pick(value, argument)
        case "length":
            return lambda value: len(value) if isinstance(value, (str, list)) else len(_keys(value))
        case "keys":
            return _keys
        case "raise":
            return _raiser(argument)
    raise AssertionError(f"unknown function: {name}")


def _raiser(message: str) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise named("Error", message)

    return fail


def condition(cond: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The predicate of a `when`."""

    def holds(value: Any) -> bool:
        if "path" in cond:
            value = pick(value, cond["path"])
        match cond:
            case {"equals": other}:
                return bool(value == other)
            case {"not_equals": other}:
                return bool(value != other)
            case {"greater_than": other}:
                return isinstance(value, (int, float)) and value > other
            case {"truthy": _}:
                return _truthy(value)
            case {"falsy": _}:
                return not _truthy(value)
            case {"raise": message}:
                raise named("Error", message)
        raise AssertionError(f"unknown condition: {cond}")

    return holds


def _truthy(value: Any) -> bool:
    """As the reference's language sees it: an empty list or object is something."""
    return isinstance(value, (list, dict)) or bool(value)
