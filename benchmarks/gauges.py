"""Readings of a process that every side takes in the same way. Only the standard library."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

_STATUS = Path("/proc/self/status")
_EMPTY = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]; import gauges; print(gauges.peak())"


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    if _STATUS.exists():
        # Not ru_maxrss: on Linux that also remembers the process that this one was forked from.
        line = next(line for line in _STATUS.read_text().split("\n") if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def empty() -> int:
    """Bytes of memory that a Python process of this interpreter has that does nothing."""
    told = subprocess.run(
        [sys.executable, "-c", _EMPTY], capture_output=True, check=True, env={**os.environ}
    )
    return int(told.stdout)


def pace(seconds: float) -> dict[str, float]:
    """How long one execution takes, and how many of them there are in a second."""
    return {"seconds": seconds, "rate": 1 / seconds}


async def idle(sleep: Callable[[float], Awaitable[object]], seconds: float, settle: float) -> float:
    """The part of one processor that this process takes while it has nothing to do, once it has had
    nothing to do for `settle` seconds."""
    await sleep(settle)
    began, used = time.perf_counter(), time.process_time()
    await sleep(seconds)
    return (time.process_time() - used) / (time.perf_counter() - began)
