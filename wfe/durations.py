"""Durations, as people write them."""

from __future__ import annotations

import re

#: The longest that anything may be set to take, in seconds: a moment further off may not exist.
CENTURY = 100 * 366 * 86_400.0

_NUMBER = r"\d+(?:\.\d+)?"
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def duration(text: str | float) -> float:
    """The seconds that `90s`, `15m`, `2h`, `7d`, several of them (`1h30m`, the largest first) or a
    bare number of seconds stands for.

    Raises:
        ValueError: it is none of these, or negative.
    """
    parts = "".join(rf"(?:({_NUMBER})\s*{unit}\s*)?" for unit in _UNITS)
    match = re.fullmatch(rf"\s*(?:({_NUMBER})\s*|(?=\d){parts})", str(text))
    if match is None or isinstance(text, bool):
        raise ValueError(f"{text!r} is no duration (90s, 15m, 2h, 7d, 1h30m, or seconds)")
    bare, *counts = match.groups(default="0")
    return float(bare) + sum(
        float(count) * size for count, size in zip(counts, _UNITS.values(), strict=True)
    )
