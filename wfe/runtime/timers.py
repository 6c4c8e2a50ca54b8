"""Timers: one heap for all executions of an engine, one task that sleeps until the earliest.

An execution costs an entry, not a task. An entry is only a reminder: whoever is woken looks at the
execution itself, so a reminder that came too early, twice or for nothing does no harm. What is not
wanted any more stays in the heap until it is the most of it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from itertools import count

from wfe.clock import Clock
from wfe.model import ExecutionKey

#: So many entries that are not wanted any more never matter.
_FEW = 100


class Timers:
    """Calls `wake(key)` when the moment set for `key` has come."""

    def __init__(self, clock: Clock, wake: Callable[[ExecutionKey], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._heap: list[tuple[datetime, int, ExecutionKey]] = []
        self._moments: dict[ExecutionKey, datetime] = {}
        self._numbers = count()
        self._earlier = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._moments)

    def set(self, key: ExecutionKey, moment: datetime | None) -> None:
        """Remind of `key` at `moment`, and at no other; None: not at all."""
        if moment == self._moments.get(key):
            return
        self._tidy_up()
        if moment is None:
            self._moments.pop(key, None)
            return
        self._moments[key] = moment
        heapq.heappush(self._heap, (moment, next(self._numbers), key))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="wfe timers")
        elif self._heap[0][2] is key:
            self._earlier.set()

    async def close(self) -> None:
        """Forget everything."""
        self._moments.clear()
        self._heap.clear()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        while True:
            self._earlier.clear()
            if not self._heap:
                await self._earlier.wait()
                continue
            moment = self._heap[0][0]
            if self._clock.now() < moment:
                await self._sleep_until(moment)
                continue
            _, _, key = heapq.heappop(self._heap)
            if self._is_wanted(key, moment):
                del self._moments[key]
                self._wake(key)

    def _tidy_up(self) -> None:
        if len(self._heap) > 2 * len(self._moments) + _FEW:
            self._heap = [entry for entry in self._heap if self._is_wanted(entry[2], entry[0])]
            heapq.heapify(self._heap)

    def _is_wanted(self, key: ExecutionKey, moment: datetime) -> bool:
        return self._moments.get(key) == moment

    async def _sleep_until(self, moment: datetime) -> None:
        """Until that moment, or until an earlier one was set."""
        sleep = asyncio.ensure_future(self._clock.sleep_until(moment))
        earlier = asyncio.ensure_future(self._earlier.wait())
        try:
            await asyncio.wait((sleep, earlier), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            earlier.cancel()
