"""Sentences beside what a command prints: on stderr, and on a terminal in lines that end between words."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from wfe.cli import text


def tell(sentence: str) -> None:
    """A sentence on stderr."""
    print(fitted(text.shown(sentence)), file=sys.stderr)


def fitted(sentence: str, *, indent: int = 0, is_begun: bool = False) -> str:
    """A sentence as stderr has room for it: on a terminal in several lines, all `indent` cells from its
    edge; elsewhere in one. `is_begun`: so many cells of the first line are taken already."""
    width, first = width_of(sys.stderr), "" if is_begun else " " * indent
    if width is None:
        return first + sentence
    lines = text.in_lines(sentence, max(width - indent, _LEAST))
    return first + f"\n{' ' * indent}".join(lines)


#: Cells that are used however narrow a terminal is.
_LEAST = 20


def width_of(stream: TextIO) -> int | None:
    """Of the terminal that a stream leads to, in cells; None where it is none, or does not tell."""
    try:
        if not stream.isatty():
            return None
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None
