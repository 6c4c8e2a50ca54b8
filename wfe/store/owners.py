"""Owners: which engine has an execution in hand, and whether it still does.

An owner is written as `host/boot/pid/start/number`. A process id alone would be mistaken for the next
process that gets it; with the moment of its start, and the boot it belongs to, it cannot be. The number
tells several engines of one process apart.

Who writes to a store that others share holds a lease there, one row for all its executions, and renews
it in a thread of its own. Of an owner on this host the process itself is looked at, too: a dead one is
recognised at once. A process that lives but does not renew (it was stopped) loses its lease. The lease
is measured by the monotonic clock where owner and observer are of one boot, so that neither a suspended
laptop nor a clock that is set takes anything from anybody; between hosts, by the wall clock.

Losing a lease does no harm: what counts is the version of the execution, which whoever takes it in hand
raises. It only decides who may try.
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import NamedTuple

from wfe.clock import SystemClock, monotonic
from wfe.store.moments import to_micros

#: Seconds that a lease lasts, and from one renewal to the next.
LEASE = 30.0
RENEWAL = 10.0

_numbers = count(1)
_claimed: set[str] = set()


class Lease(NamedTuple):
    """Until when: in microseconds since 1970, and in seconds of the monotonic clock."""

    expires_at: int
    beats_until: float


def claim() -> str:
    """A new owner in this process, there until it is released."""
    owner = f"{platform.node()}/{_boot()}/{os.getpid()}/{_start(os.getpid())}/{next(_numbers)}"
    _claimed.add(owner)
    return owner


def release(owner: str) -> None:
    """This owner has nothing in hand any more."""
    _claimed.discard(owner)


def lease(now: datetime | None = None) -> Lease:
    """A lease that begins now."""
    until = (now or SystemClock().now()) + timedelta(seconds=LEASE)
    return Lease(to_micros(until), monotonic() + LEASE)


def is_there(owner: str) -> bool | None:
    """Does its process live? None: it is on another host, where nobody here can look."""
    host, boot, pid, start, _ = owner.rsplit("/", 4)
    if host != platform.node():
        return None
    if int(pid) == os.getpid():
        return owner in _claimed
    return boot == _boot() and start != "" and start == _start(int(pid))


def holds(owner: str | None, lease: Lease | None) -> bool:
    """Does it have in hand what is in its name? `lease` is what the store has; None: nothing."""
    if owner is None or lease is None:
        return False
    there = is_there(owner)
    if there is None:
        return to_micros(SystemClock().now()) < lease.expires_at
    return there and monotonic() < lease.beats_until


def holder(owner: str | None, expires_at: int | None, beats_until: float | None) -> str | None:
    """The owner, where the lease whose two moments came along with it holds."""
    if expires_at is None or beats_until is None:
        return None
    return owner if holds(owner, Lease(expires_at, beats_until)) else None


def described(owner: str) -> str:
    """For people: `process 4711`, with its host where that is another one."""
    host, _, pid, _, _ = owner.rsplit("/", 4)
    return f"process {pid}" + ("" if host == platform.node() else f" on {host}")


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
