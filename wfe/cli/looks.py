"""Looks: how a state is shown, whatever draws it: a symbol, a word and a colour, never colour alone."""

from __future__ import annotations

from typing import Any, NamedTuple


class Look(NamedTuple):
    """How a state is shown."""

    symbol: str
    #: Stands in for the symbol where ASCII alone is known.
    plain: str
    #: On a terminal.
    style: str

    @property
    def ink(self) -> str:
        """The style of the word: yellow, which nobody can read on white, is left to the symbol."""
        return "bold" if self.style == "yellow" else self.style


LOOKS = {
    "done": Look("✓", "+", "green"),
    "ok": Look("✓", "+", "green"),
    "wrong": Look("✗", "x", "bold red"),
    "error": Look("✗", "x", "bold red"),
    "warning": Look("!", "!", "yellow"),
    "failed": Look("✗", "x", "bold red"),
    "timeout": Look("✗", "x", "bold red"),
    "reverted": Look("↺", "<", "magenta"),
    "running": Look("▸", ">", "cyan"),
    "interrupted": Look("◌", "?", "yellow"),
    "invoking": Look("▸", ">", "cyan"),
    "compensating": Look("◂", "<", "cyan"),
    "waiting_to_compensate": Look("◂", "<", "cyan"),
    "waiting": Look("●", "*", "yellow"),
    "sleeping": Look("◷", "~", "yellow"),
    "retrying": Look("↻", "~", "yellow"),
    "parked": Look("●", "*", "yellow"),
    "skipped": Look("○", "-", "dim"),
    "skipped_failure": Look("○", "-", "dim"),
    "not_started": Look("·", ".", "dim"),
    "dormant": Look("·", ".", "dim"),
}
_UNKNOWN = Look("?", "?", "")


def look(word: str) -> Look:
    """That of a state."""
    return LOOKS.get(word, _UNKNOWN)


def can_show_symbols(stream: Any) -> bool:
    """Whether what is written to `stream` may be more than ASCII."""
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        "✓▸●┌⠋".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
