"""Keeping what steps print, and programs that they run, out of the way of what is ours.

File descriptors are turned round, not only `sys.stdout`: a program that a step starts inherits them.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

_ENDS = re.compile(rb"\r\n|\r|\n")


@contextlib.contextmanager
def stdout_kept() -> Iterator[None]:
    """Keep stdout for the result: what is printed meanwhile goes to stderr."""
    sys.stdout.flush()
    with contextlib.redirect_stdout(sys.stderr), _pointing(1, at=2):
        yield


@contextlib.contextmanager
def stdout_as_it_is() -> Iterator[TextIO]:
    """What stdout is now, whatever `stdout_kept` does meanwhile."""
    try:
        stream = another(sys.stdout)
    except (OSError, ValueError):  # closed, or no file
        yield sys.stdout
        return
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):  # nobody reads any more
            stream.close()


def another(stream: TextIO) -> TextIO:
    """A stream that leads to where `stream` leads now, whatever becomes of its descriptor.

    Raises:
        OSError, ValueError: it is closed, or no file.
    """
    return os.fdopen(
        os.dup(stream.fileno()),
        "w",
        buffering=1,
        encoding=stream.encoding,
        errors="backslashreplace",
    )


@contextlib.contextmanager
def lines_of_output(on_line: Callable[[str], None]) -> Iterator[None]:
    """Call `on_line`, in a thread of its own, with each line that is printed meanwhile."""
    ends = os.pipe()
    reader = threading.Thread(target=_read, args=(ends[0], on_line), name="wfe output", daemon=True)
    reader.start()
    try:
        with _pointing(1, at=ends[1]), _pointing(2, at=ends[1]):
            yield
            sys.stderr.flush()
    finally:
        os.close(ends[1])
        reader.join(0.5)  # longer only where a program that a step has left behind still holds it


def _read(end: int, on_line: Callable[[str], None]) -> None:
    pending = b""
    while part := os.read(end, 65_536):
        *lines, pending = _ENDS.split(pending + part)
        for line in lines:
            on_line(line.decode(errors="replace"))
    if pending:
        on_line(pending.decode(errors="replace"))
    os.close(end)


@contextlib.contextmanager
def _pointing(descriptor: int, *, at: int) -> Iterator[None]:
    """Let `descriptor` mean what `at` means; nothing where it is closed."""
    try:
        kept = os.dup(descriptor)
    except OSError:
        yield
        return
    os.dup2(at, descriptor)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)
