"""Telling the supervisor that has started this process how it is: the protocol of systemd's `Type=notify`.

A datagram to the socket that `NOTIFY_SOCKET` names, lines of `NAME=value`. Where there is none, nobody
is told. See docs/run-as-a-service.md.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from wfe.cli import text
from wfe.scheduling.loop import Scheduler

#: Seconds between two reports where no watchdog wants them sooner.
_PACE = 30.0


class Supervisor:
    """Whoever has started this process, until the context ends. Steps and the programs that they run
    know nothing of it."""

    def __init__(self) -> None:
        place = os.environ.pop("NOTIFY_SOCKET", "")
        self._address = f"\0{place[1:]}" if place.startswith("@") else place
        microseconds = os.environ.pop("WATCHDOG_USEC", "")
        is_watched = os.environ.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        #: Half of what the watchdog waits for.
        self._pace = _PACE
        if is_watched and microseconds.isdecimal():
            self._pace = min(int(microseconds) / 2_000_000, _PACE)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._reporting: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._reporting is not None:
            self._reporting.cancel()
        self._socket.close()

    def ready(self, status: Callable[[], str]) -> None:
        """It has begun. From now on it says every so often that it lives, and how it is."""
        if self._address:
            self._tell("READY=1", f"STATUS={status()}")
            self._reporting = asyncio.ensure_future(self._report(status))

    def stopping(self) -> None:
        """It is about to end, and goes on living until it has."""
        self._tell("STOPPING=1", "STATUS=Stopping: running steps may end first")

    async def _report(self, status: Callable[[], str]) -> None:
        # By the loop that everything goes on in: where that stands still, nobody hears that it lives.
        while True:
            await asyncio.sleep(self._pace)
            self._tell("WATCHDOG=1", f"STATUS={status()}")

    def _tell(self, *lines: str) -> None:
        if self._address:
            with suppress(OSError):  # that nobody reads it is no reason to end
                self._socket.sendto("\n".join(lines).encode(), self._address)


def status_of(scheduler: Scheduler) -> str:
    """What is served, in a line."""
    upcoming = scheduler.upcoming
    coming = min(((one.next, one.plan.name) for one in upcoming if one.next), default=None)
    following = f", next {coming[1]} at {text.iso(coming[0])}" if coming else ""
    return f"Serving {len(upcoming)} schedule{'s' * (len(upcoming) != 1)}{following}"
