"""Colours of states on paper. Told apart in grey, too: by the darkness of the line, by dashes, and by the
word and the sign that always stand with them."""

from __future__ import annotations

from typing import NamedTuple


class Color(NamedTuple):
    """Of a box: its ground, its line and what is written in it, as `#rrggbb`."""

    fill: str
    line: str
    ink: str

    @property
    def is_dashed(self) -> bool:
        """Nothing was done there."""
        return self in (_IDLE, _SKIPPED)


_GOOD = Color("#e8f5e9", "#2e7d32", "#1b3a1e")
_BAD = Color("#fdecea", "#b71c1c", "#5c0f0f")
_UNDONE = Color("#f3e8f7", "#6a1b9a", "#3a1155")
_MOVING = Color("#e1f0fa", "#01579b", "#0b3556")
_WAITING = Color("#fff6dd", "#b26a00", "#4d3000")
_SKIPPED = Color("#f7f7f7", "#757575", "#4a4a4a")
_IDLE = Color("#ffffff", "#9e9e9e", "#4a4a4a")

#: Of a step that has no state: of a workflow, not of an execution.
NEUTRAL = Color("#f5f7fa", "#455a64", "#1f2d33")

#: By the word of the state.
COLORS = {
    "done": _GOOD,
    "failed": _BAD,
    "timeout": _BAD,
    "reverted": _UNDONE,
    "running": _MOVING,
    "invoking": _MOVING,
    "compensating": _MOVING,
    "waiting_to_compensate": _MOVING,
    "interrupted": _WAITING,
    "waiting": _WAITING,
    "sleeping": _WAITING,
    "retrying": _WAITING,
    "parked": _WAITING,
    "skipped": _SKIPPED,
    "skipped_failure": _SKIPPED,
    "not_started": _IDLE,
    "dormant": _IDLE,
}
