"""Compares what was recorded with what we did, and says every difference.

Equality is exact, with two allowances that the recordings ask for: a key that holds null is the same
as an absent one, and `ANY` in the expected form is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .matchers import ANY, OneOf, Open, StartsWith
from .normal import Form


@dataclass(frozen=True)
class Mismatch:
    """One field that differs."""

    field: str
    expected: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.field}: recorded {_short(self.expected)}, ours {_short(self.ours)}"


def _short(value: Any, limit: int = 300) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= limit else f"{text[:limit]}…"


def differences(expected: Any, ours: Any, field: str = "") -> Iterator[Mismatch]:
    """Every place where `ours` is not what was expected."""
    if expected is ANY or (isinstance(expected, OneOf) and ours in expected.values):
        return
    if isinstance(expected, StartsWith):
        begin = ours[: len(expected.items)] if isinstance(ours, list) else ours
        yield from differences(expected.items, begin, field)
        if expected.last is not ANY:
            yield from differences(expected.last, ours[-1] if ours else None, f"{field}[-1]")
    elif isinstance(expected, Mapping) and isinstance(ours, Mapping):
        for key in expected if isinstance(expected, Open) else {**expected, **ours}:
            path = f"{field}.{key}" if field else str(key)
            yield from differences(expected.get(key), ours.get(key), path)
    elif isinstance(expected, list) and isinstance(ours, list) and len(expected) == len(ours):
        for index, (one, other) in enumerate(zip(expected, ours, strict=True)):
            yield from differences(one, other, f"{field}[{index}]")
    elif expected != ours or isinstance(expected, bool) is not isinstance(ours, bool):
        yield Mismatch(field, expected, ours)


def comparable(form: Form, match: str) -> Form:
    """What of a form a recording of this match level can answer for."""
    if match != "outcome":
        return form
    kept = {key: form[key] for key in ("workflows", "final", "background_errors")}
    calls = {key: _unordered(steps) for key, steps in form["calls"]["steps"].items()}
    return {**kept, "commands": [_unordered(each) for each in form["commands"]], "calls": calls}


def _unordered(holder: Any) -> Any:
    """A mapping in which every list is in an order of its own."""
    if not isinstance(holder, dict):
        return holder
    return type(holder)(
        (key, sorted(each, key=_order) if isinstance(each, list) else each)
        for key, each in holder.items()
    )


def _order(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
