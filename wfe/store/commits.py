"""Group commit: what is ready at the same time shares a transaction.

One thread writes. `put` lays a parcel into a queue; where no group is being written, the thread is
asked to write one. It takes what lies in the queue when it begins, and what comes meanwhile is the
next group; where that is much already, it goes on with it by itself, while the loop still moves the rest.
A thousand executions that move at once cost a few commits, and the event loop waits neither for the disk
nor for another process's lock.

A parcel that comes alone may be written at once, by the calling thread: handing it over and back
takes as long as writing it. That is tried where nothing is queued, without waiting for any lock, and
not for a while after the disk has proved slow.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter
from typing import TypeVar

from wfe.errors import StoreBusy
from wfe.store.impatience import IMPATIENCE
from wfe.store.writer import Outcome, Parcel, Writer

_T = TypeVar("_T")

#: The most parcels of one transaction: others may want to write, too.
_MAX_GROUP = 2000

#: So many parcels are worth a commit while others are still coming; and so many groups are written before
#: other work for the thread has its turn.
_MUCH = 200
_IN_A_ROW = 8

#: Seconds from which on a write at once counts as slow, and how many are not tried after one.
_SLOW = 0.010
_PAUSE = 20

_Entry = tuple[Parcel, "asyncio.Future[bool]"]
_Settled = tuple["asyncio.Future[bool]", Outcome]


class Commits:
    """Takes parcels from an event loop, and other work for the writer's thread."""

    def __init__(self, writer: Writer, thread: ThreadPoolExecutor) -> None:
        self._writer = writer
        self._thread = thread
        #: Held while the writer is used: by the thread, or by a write at once.
        self._lock = threading.Lock()
        self._queue: deque[_Entry] = deque()
        #: The group being written.
        self._drain: asyncio.Future[None] | None = None
        self._pause = 0

    def put(self, parcel: Parcel, *, lone: bool) -> asyncio.Future[bool]:
        """To be awaited: True once the parcel is kept; False where it was not inserted.

        Raises:
            SkipExecutionError, StoreBusy, StoreUnusable: it is not kept.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        is_draining = self._is_draining(loop)
        if lone and not is_draining:
            outcome = self._at_once(parcel)
            if outcome is not None:
                _settle(future, outcome)
                return future
        self._queue.append((parcel, future))
        if not is_draining:
            self._begin(loop)
        return future

    async def run(self, function: Callable[[], _T]) -> _T:
        """Call a function of the writer, in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._alone, function)

    async def finish(self) -> None:
        """Return when all that was handed over is written."""
        loop = asyncio.get_running_loop()
        while self._queue or self._is_draining(loop):
            drain = self._drain
            if drain is None or not self._is_draining(loop):
                drain = self._begin(loop)
            await asyncio.wait([drain])  # `_written` has been called by then

    def _alone(self, function: Callable[[], _T]) -> _T:
        with self._lock, IMPATIENCE:
            return function()

    # --- at once ---

    def _at_once(self, parcel: Parcel) -> Outcome | None:
        """The outcome; None where the thread has to do it."""
        if self._pause:
            self._pause -= 1
            return None
        if not self._lock.acquire(blocking=False):
            return None
        try:
            began = perf_counter()
            with IMPATIENCE:
                (outcome,) = self._writer.write([parcel], wait=False)
            if perf_counter() - began > _SLOW:
                self._pause = _PAUSE
        finally:
            self._lock.release()
        return None if isinstance(outcome, StoreBusy) else outcome

    # --- in groups ---

    def _is_draining(self, loop: asyncio.AbstractEventLoop) -> bool:
        # A loop that ended in the middle of a group never hears of the group's end.
        return self._drain is not None and self._drain.get_loop() is loop

    def _begin(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        self._drain = loop.run_in_executor(self._thread, self._write_groups, loop)
        return self._drain

    def _write_groups(self, asker: asyncio.AbstractEventLoop) -> None:
        """In the thread."""
        for left in reversed(range(_IN_A_ROW)):
            if not self._write_group(asker, may_go_on=left > 0):
                return

    def _write_group(self, asker: asyncio.AbstractEventLoop, *, may_go_on: bool) -> bool:
        """Whatever happens here, each future of the group gets an outcome. Is another one to follow?"""
        group = self._take_group()
        outcomes: list[Outcome]
        try:
            with self._lock, IMPATIENCE:
                outcomes = self._writer.write([parcel for parcel, _ in group]) if group else []
        except BaseException as error:
            outcomes = [error for _ in group]
        told: dict[asyncio.AbstractEventLoop, list[_Settled]] = {asker: []}
        for (_, future), outcome in zip(group, outcomes, strict=True):
            told.setdefault(future.get_loop(), []).append((future, outcome))
        goes_on = may_go_on and len(self._queue) >= _MUCH
        for loop, settled in told.items():
            with suppress(RuntimeError):  # a loop that is closed has nobody who waits
                loop.call_soon_threadsafe(self._written, loop, settled, goes_on)
        return goes_on

    def _take_group(self) -> list[_Entry]:
        """From the queue, in order; of one key one parcel, because a later one builds on it."""
        group: list[_Entry] = []
        later: list[_Entry] = []
        keys = set()
        while self._queue and len(group) < _MAX_GROUP:
            entry = self._queue.popleft()
            key = entry[0].key
            (later if key in keys else group).append(entry)
            keys.add(key)
        self._queue.extendleft(reversed(later))
        return group

    def _written(
        self, loop: asyncio.AbstractEventLoop, settled: Iterable[_Settled], goes_on: bool
    ) -> None:
        if self._is_draining(loop) and not goes_on:
            self._drain = None
        for future, outcome in settled:
            if not future.done():  # cancelled: nobody waits any more
                _settle(future, outcome)
        if self._queue and self._drain is None:
            self._begin(loop)


def _settle(future: asyncio.Future[bool], outcome: Outcome) -> None:
    if isinstance(outcome, bool):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
