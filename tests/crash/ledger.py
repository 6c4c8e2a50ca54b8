"""The ledger: a file in which steps write what they do, in the order in which it happened, in
whatever process that was.

A line is one write to a file that is open for appending: lines of several processes do not mix, and
what was written outlives `kill -9`. The file is named by the variable CRASH_LEDGER, so that a command
that a test starts finds it, too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

VARIABLE = "CRASH_LEDGER"


What = Literal["begin", "end", "told", "answered", "log"]


class Line(msgspec.Struct, frozen=True):
    #: A function of a step was called; it had its effect; a subscriber was told that the step has
    #: ended; an answer to it was accepted; the engine logged something.
    what: What
    #: The step's idempotency key; what was logged.
    key: str
    attempt: int
    pid: int


def write(what: What, key: str, attempt: int = 0) -> None:
    """Append a line."""
    line = msgspec.json.encode(Line(what, key, attempt, os.getpid()))
    os.write(_opened(_path()), line + b"\n")


def times(key: str) -> int:
    """How often the function behind a key has been called, in all processes."""
    begin = msgspec.json.encode(Line("begin", key, 0, 0)).partition(b',"attempt"')[0]
    return Path(_path()).read_bytes().count(begin + b",")


def read(path: Path) -> Sequence[Line]:
    """All lines; none where nothing was written."""
    text = path.read_bytes() if path.exists() else b""
    return [msgspec.json.decode(line, type=Line) for line in text.splitlines()]


def _path() -> str:
    return os.environ[VARIABLE]


@functools.cache
def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
