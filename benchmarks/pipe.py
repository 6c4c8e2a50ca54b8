"""Questions and answers between the benchmark and the processes that it measures: JSON, one per line.

Each side of a comparison is a process of its own, with the packages and the settings of its own. It reads
what it is asked from stdin, measures, and answers on what was its stdout; whatever else is printed there goes
to stderr. Only the standard library, because every side imports it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

#: What a measurement gives: the name of a figure → seconds, bytes or a count.
Figures = Mapping[str, float]

#: What a side can be asked: the name of a measurement → what carries it out.
Measures = Mapping[str, Callable[..., Figures]]

ROOT = Path(__file__).resolve().parents[1]


class Broken(Exception):
    """A side that has ended, or could not measure."""


class Side:
    """A process that measures, as the benchmark sees it. It ends with the block."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, measure: str, **arguments: Any) -> Figures:
        """Measure once.

        Raises:
            Broken: the side failed; what it printed is on stderr.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([measure, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise Broken(f"it ended with {self._process.wait()}")
        found = json.loads(answer)
        if "error" in found:
            raise Broken(found["error"])
        figures: Figures = found["figures"]
        return figures

    def kill(self) -> None:
        """End it the hard way, as `kill -9` does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def serve(measures: Measures) -> None:
    """Answer on stdout what is asked on stdin, until that ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        measure, arguments = json.loads(line)
        try:
            answer: dict[str, Any] = {"figures": dict(measures[measure](**arguments))}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
