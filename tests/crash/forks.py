"""Forking: a process for one life, and the pipe on which it is heard."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
from collections.abc import Callable


class Fork:
    """A process that does what `life` says, which gets the pipe to write to, and then ends."""

    def __init__(self, life: Callable[[int], None], *, deadline: float) -> None:
        """After `deadline` seconds it is killed, whatever it is at."""
        self.pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _live(life, writing)
        os.close(writing)
        self._ends_at = time.monotonic() + deadline

    def hear(self) -> bytes:
        """What it says next; empty when it has ended."""
        left = max(self._ends_at - time.monotonic(), 0)
        if not select.select([self.pipe], [], [], left)[0]:
            self.kill()
        return os.read(self.pipe, 1 << 16)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def status(self) -> int:
        """How it has ended, as `os.waitpid` says it."""
        os.close(self.pipe)
        return os.waitpid(self.pid, 0)[1]


def _live(life: Callable[[int], None], pipe: int) -> None:
    """In the child. What it inherits from its parent is not its business: no cleaning up."""
    try:
        life(pipe)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def say(pipe: int, message: bytes) -> None:
    """Write all of it, however long it is."""
    while message:
        message = message[os.write(pipe, message) :]
