"""`wfe serve` as a process, from the moment on at which it serves."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.project import Project

#: Seconds that anything may take to come about.
PATIENCE = 20


class Serving:
    """The process, and what it tells as it goes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.told: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Whether or not anybody asks: a pipe that is full would stop the process."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put("")

    def next(self) -> dict[str, Any]:
        """What it tells next."""
        line = self._lines.get(timeout=PATIENCE)
        assert line, self.told
        self._tell(line)
        return self.told[-1]

    def _tell(self, line: str) -> None:
        self.told.append(json.loads(line) if line.startswith("{") else {"printed": line})

    def stop(self, number: signal.Signals = signal.SIGTERM) -> list[dict[str, Any]]:
        """Send a signal; what it tells until its end."""
        self.process.send_signal(number)
        return self.rest()

    def rest(self) -> list[dict[str, Any]]:
        """Wait for its end; what it tells until then."""
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        count = len(self.told)
        while not self._lines.empty() and (line := self._lines.get()):
            self._tell(line)
        return self.told[count:]

    def close(self) -> None:
        self._reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def until(self, **facts: Any) -> dict[str, Any]:
        """The next thing that it tells in which these are so; texts are parts of what is told."""
        deadline = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < deadline, (facts, self.told)
            told = self.next()
            if all(_fits(told.get(name), fact) for name, fact in facts.items()):
                return told


def _fits(told: Any, wanted: Any) -> bool:
    return wanted in told if isinstance(wanted, str) and isinstance(told, str) else told == wanted


@contextmanager
def serving(project: Project, *arguments: str, **environ: str) -> Iterator[Serving]:
    process = project.start("serve", "--log-format", "json", *arguments, **environ)
    served = Serving(process)
    try:
        served.until(event="schedule")
        yield served
    finally:
        process.kill()
        process.wait()
        served.close()
