"""An errand: one command that is run for somebody else, with something to read and a time limit.

No shell is asked, and no output waits for anybody: what the command reads and what it says on stderr
are files, so that it neither fails for not reading nor is waited for once it has ended, whatever it has
started meanwhile.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

#: Of what a command says on stderr the end is told: so many lines, of so many bytes in all.
_LINES = 5
_BYTES = 2000


class Errand:
    """A command, to be run in a thread by `run`; `stop` ends it from another one."""

    def __init__(
        self,
        command: Sequence[str],
        given: bytes,
        *,
        variables: Mapping[str, str],
        folder: str | None,
        timeout: float,
    ) -> None:
        """`given` is what it can read from stdin, `timeout` how many seconds it may take."""
        self._command = command
        self._given = given
        self._environment = {**os.environ, **variables}
        self._folder = folder
        self._timeout = timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self) -> str | None:
        """Why it failed; None: it has ended with 0. Once it is stopped, that is no failure of its own."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(self._given)
            given.seek(0)
            try:
                process = self._begin(given, said)
            except OSError as error:
                lacks_folder = self._folder is not None and error.filename == self._folder
                where = f": {self._folder}" if lacks_folder else ""
                return f"cannot be run: {error.strerror or error}{where}"
            try:
                code = process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                _kill(process)
                return f"was killed after {self._timeout:g} seconds" + _end_of(said)
            if code == 0:
                return None
            how = f"ended with {code}" if code > 0 else f"was killed by signal {-code}"
            return how + _end_of(said)

    def stop(self) -> None:
        """Kill it, with all that it has started; or do not let it begin."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                _kill(self._process)

    def _begin(self, given: IO[bytes], said: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_stopped:
                raise InterruptedError("it was stopped before it began")
            self._process = subprocess.Popen(
                self._command,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=self._folder,
                env=self._environment,
                # It has a group of its own: Ctrl-C is none of its business, and what it has started
                # can be killed along with it.
                start_new_session=True,
            )
            return self._process


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:  # its number may be another process's by now
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_of(said: IO[bytes]) -> str:
    """The last lines that were said, behind a colon; empty: nothing was."""
    said.seek(max(0, said.seek(0, os.SEEK_END) - _BYTES))
    lines = said.read().decode(errors="replace").strip().splitlines()[-_LINES:]
    return ": " + "\n".join(lines) if lines else ""
