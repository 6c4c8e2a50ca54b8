"""A terminal of a hundred columns in which a command runs, and what stands on it at the end."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from pathlib import Path
from typing import IO

from tests.acceptance.screen import screen_after

#: Columns and lines.
WIDTH, HEIGHT = 100, 60
#: Seconds that anything may take.
PATIENCE = 60
#: What a command finds in its environment, beside `PATH` and `HOME`.
ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"}


class Terminal:
    """One command of bash in a terminal of its own. What it writes is read while it runs."""

    def __init__(self, command: str, folder: Path, path: str) -> None:
        self._changed = threading.Condition()
        self._written = ""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env={**ENVIRONMENT, "PATH": path, "HOME": str(folder)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=[ours], daemon=True)
        self._reader.start()

    def until(self, words: str) -> None:
        """Return when the command has written `words`."""
        with self._changed:
            found = self._changed.wait_for(lambda: words in self._written, PATIENCE)
        assert found, "\n".join(screen_after(self._written))

    def end(self) -> tuple[int, list[str]]:
        """The exit code, and what stands there at the end."""
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        lines = screen_after(self._written)
        while lines and not lines[-1]:
            lines.pop()
        return code, lines

    def kill(self) -> None:
        """End what still runs there."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)

    def _read(self, ours: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with open(ours, "rb", buffering=0) as stream:
            while portion := _portion(stream):
                with self._changed:
                    self._written += decoder.decode(portion)
                    self._changed.notify_all()


def _portion(stream: IO[bytes]) -> bytes:
    """What comes next; nothing at the end."""
    try:
        return stream.read(65536)
    except OSError:  # so Linux says that the other end is closed
        return b""
