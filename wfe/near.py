"""Near names, for errors about a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of `known` that resemble `name`, the nearest first."""
    import difflib

    return difflib.get_close_matches(name, list(known), n=3)


def near(name: str, known: Iterable[str]) -> str:
    """`Did you mean x or y?`, or nothing."""
    names = near_names(name, known)
    return f"Did you mean {' or '.join(names)}?" if names else ""
