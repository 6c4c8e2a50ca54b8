"""The standard streams of a process, as every command needs them before it begins."""

from __future__ import annotations

import os
import sys


def prepare() -> None:
    """Make them such that a command can write to them, whatever it writes."""
    _open_closed()
    _tolerate_any_text()


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
