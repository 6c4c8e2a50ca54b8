"""Owners: which process drives an execution, and whether that process is still there.

An owner is written as `host/boot/pid/start/number`. A process id alone would be mistaken for the next
process that gets it; with the moment of its start, and the boot it belongs to, it cannot be. The number
tells several engines of one process apart.
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from itertools import count
from pathlib import Path

_numbers = count(1)
_claimed: set[str] = set()


def claim() -> str:
    """A new owner in this process, alive until it is released."""
    owner = f"{platform.node()}/{_boot()}/{os.getpid()}/{_start(os.getpid())}/{next(_numbers)}"
    _claimed.add(owner)
    return owner


def release(owner: str) -> None:
    """This owner drives nothing any more."""
    _claimed.discard(owner)


def is_alive(owner: str | None) -> bool:
    """Is it there? Of a process on another host nobody here can tell: it counts as there."""
    if owner is None:
        return False
    host, boot, pid, start, _ = owner.rsplit("/", 4)
    if host != platform.node():
        return True
    if int(pid) == os.getpid():
        return owner in _claimed
    return boot == _boot() and start != "" and start == _start(int(pid))


@functools.cache
def _boot() -> str:
    """Names the present boot of this machine, as far as the system tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _said_by("sysctl", "-n", "kern.bootsessionuuid") or "boot"


def _start(pid: int) -> str:
    """When a process started, in whatever unit the system counts; empty where there is none."""
    try:
        # The command's name is in parentheses and may hold anything; the state is field 3, the start
        # field 22. A process that has ended and that nobody has waited for is a zombie.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else fields[19]
    except (OSError, IndexError):
        return (
            "" if Path("/proc/self").exists() else _said_by("ps", "-o", "lstart=", "-p", str(pid))
        )


def _said_by(*command: str) -> str:
    """What a program prints on one line; empty where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "_".join(done.stdout.split())
