"""Values of many types, and when two values are the same."""

from __future__ import annotations

import dataclasses
from enum import IntEnum, StrEnum
from typing import Any

import msgspec


class Colour(StrEnum):
    RED = "red"


class Rank(IntEnum):
    FIRST = 1


@dataclasses.dataclass
class Line:
    sku: str
    price: Any


class Stock(msgspec.Struct, rename="camel", tag="stock"):
    on_hand: int
    note: str | msgspec.UnsetType = msgspec.UNSET


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: Any


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float):
        return repr(left) == repr(right)
    return bool(left == right)
