"""How far a long operation is: one line at the bottom of the terminal, nothing where there is none."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Self

_CLEAR = "\r\x1b[2K"


class Meter:
    """A context; `title` says what is done, and is gone at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._percent = -1

    def __enter__(self) -> Self:
        self.show(0, 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def show(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        percent = 100 * done // max(total, 1)
        if self._is_shown and percent != self._percent:
            self._percent = percent
            sys.stderr.write(f"{_CLEAR}{self._title} {percent} %")
            sys.stderr.flush()
