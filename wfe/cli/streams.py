"""The standard streams of a process, as every command needs them before it begins."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


def prepare() -> None:
    """Make them such that a command can write to them, whatever it writes."""
    _open_closed()
    own = sys.__stderr__
    if own is not None and sys.stderr is own:  # else somebody has put one of theirs in its place
        sys.stderr = _heedless_stderr(own.encoding)
    _tolerate_any_text()


class _Heedless(io.FileIO):
    """Takes whatever is written, whether anybody reads it or there is room for it, or not."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _heedless_stderr(encoding: str) -> TextIO:
    """Stderr on which no write fails. What goes there is said beside the result, and may be lost; what
    steps print goes there, too, and no step is to fail because a `head` has read enough."""
    raw = _Heedless(2, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, line_buffering=True)


def _open_closed() -> None:
    """A standard stream that was closed leads nowhere. Else its number would be given to the next
    file that is opened, and what is meant for the stream would be written into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, mode))


def _tolerate_any_text() -> None:
    """What a terminal cannot show is written as an escape, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
