"""The bell: a thread sleeps until somebody writes into a folder, where the system tells of that, or until
it is rung.

Linux tells (inotify); elsewhere, and where a process has no watch left, nobody does. It says no more than
that it is worth looking: a file is written before what is written counts.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from pathlib import Path

#: A file was written, made, removed, or moved there or away (inotify(7)).
_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200

_PORTION = 65536


class Bell:
    """For one thread that waits; anybody may ring. Open until `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rung, self._ringing = os.pipe()
        for end in (self._rung, self._ringing):
            os.set_blocking(end, False)
        #: None: it has not been tried to listen, or there is nothing to be heard.
        self._watching: int | None = None
        self._is_tried = False
        self._deaf, self._listening = select.poll(), select.poll()
        for poll in (self._deaf, self._listening):
            poll.register(self._rung, select.POLLIN)

    def listens(self) -> bool:
        """Does the system tell that somebody writes? It is asked to when this is called first; what was
        written until then is told by the first wait."""
        if not self._is_tried:
            self._is_tried = True
            self._watching = _watch(self._folder)
            if self._watching is not None:
                self._listening.register(self._watching, select.POLLIN)
                self.ring()
        return self._watching is not None

    def ring(self) -> None:
        """Wake who waits; where nobody does, the next who will."""
        with suppress(BlockingIOError):
            os.write(self._ringing, b"\0")

    def wait(self, seconds: float, *, deaf: bool = False) -> bool:
        """True: it was rung, or (unless `deaf`) somebody has written since it was listened to last."""
        poll = self._deaf if deaf else self._listening
        found = poll.poll(seconds * 1000)
        for number, _ in found:
            with suppress(BlockingIOError):
                while len(os.read(number, _PORTION)) == _PORTION:
                    pass
        return bool(found)

    def close(self) -> None:
        for number in (self._rung, self._ringing, self._watching):
            if number is not None:
                os.close(number)


def _watch(folder: Path) -> int | None:
    """A descriptor that can be read when something in the folder was written; None: there is none."""
    if sys.platform != "linux":
        return None
    import ctypes  # takes some milliseconds, which most commands are spared

    library = ctypes.CDLL(None, use_errno=True)
    try:
        number: int = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    except AttributeError:
        return None
    if number < 0:
        return None
    mask = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
    if library.inotify_add_watch(number, os.fsencode(folder), mask) < 0:
        os.close(number)
        return None
    return number
