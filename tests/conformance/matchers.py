"""What an expectation holds where it is no plain value: what is not known, or known in part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


class _Any:
    """Equal to everything: see `compare`."""

    def __repr__(self) -> str:
        return "(anything)"


ANY: Final = _Any()


@dataclass(frozen=True)
class OneOf:
    """Equal to any of some values: where the recording does not say which."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class StartsWith:
    """Equal to any list that begins like this, and whose last item is such: what comes in between is
    not the recording's to say."""

    items: list[Any]
    last: Any = ANY


class Open(dict[str, Any]):
    """Equal to any mapping that has these: of other keys the recording does not say anything."""


class Entry(dict[str, Any]):
    """An event or a call, and when it was: its places in the common order, which are not compared."""

    def __init__(self, fields: Mapping[str, Any], at: float, until: float | None = None) -> None:
        super().__init__(fields)
        self.at = at
        self.until = until
