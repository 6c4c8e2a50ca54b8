"""Impatience: whoever writes asks a thread that computes for the interpreter sooner.

Python lets a thread that never waits keep the interpreter for 5 ms, whoever else wants it, and a
transaction wants it back after each statement. While one is being written, a fraction of that has to do.
The setting is the process's, so it is put back, and those who write at the same time count as one.
"""

from __future__ import annotations

import sys
import threading

#: Seconds.
_INTERVAL = 0.0002

#: Python keeps whole microseconds, and cuts off the rest.
_HALF = 0.5e-6


class _Impatience:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._former = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                self._former = sys.getswitchinterval()
                sys.setswitchinterval(min(self._former + _HALF, _INTERVAL))
            self._count += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                sys.setswitchinterval(self._former + _HALF)


IMPATIENCE = _Impatience()
