"""The watch: notices what other processes do to executions that somebody here waits for.

Whoever has an execution in hand drives it on. A process that waits for its end all the same is told
by the store when others have written, looks at what it waits for, and tells its audience what happened
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from wfe.errors import StoreBusy, StoreError, WfeError
from wfe.model import Execution, ExecutionKey, TimelineEvent
from wfe.runtime.audiences import Audiences, awaited_children
from wfe.runtime.driver import Driver
from wfe.store.contract import CheckpointStore, Signal, shown_status

#: Seconds from one look at executions that others have in hand to the next: whoever dies tells nobody.
_DEATHS = 1.0


class Watch:
    """Looks at the store for what others did to executions that somebody here waits for, and for
    what they want of executions that are in hand here."""

    def __init__(
        self,
        store: CheckpointStore,
        audiences: Audiences,
        driver: Driver,
        take_up: Callable[[ExecutionKey], Awaitable[object]],
        receive: Callable[[Sequence[Signal]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._audiences = audiences
        self._driver = driver
        self._take_up = take_up
        self._receive = receive
        self._is_watching = self._is_changed = self._is_looking = False
        #: The next look at executions that others have in hand.
        self._reminder: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look whenever others may have written: where somebody waits, or something is in hand."""
        peers = self._store.peers
        if peers is None:
            return
        if self._is_watching:
            self._remind()  # what was written before somebody began to wait is told to nobody else
            return
        if self._keys() or self._driver.is_holding:
            self._is_watching = True
            peers.watch(self._on_change)

    def begin_elsewhere(self) -> None:
        """The same, where another process has it in hand. It may die before anybody looks, and then
        nothing is written that would tell of it."""
        self.begin()
        if self._is_watching:
            self._remind()

    def close(self) -> None:
        """Look no more."""
        peers = self._store.peers if self._is_watching else None
        if peers is not None:
            peers.unwatch()
        if self._reminder is not None:
            self._reminder.cancel()
        self._is_watching = False

    def _on_change(self, error: StoreError | None) -> None:
        """On the loop. One look at a time, and never a change that nobody looks at."""
        if error is not None:
            self._audiences.fail(error)
            return
        self._is_changed = True
        if not self._is_looking and self._is_watching:
            self._is_looking = True
            self._driver.spawn(self._look)

    async def _look(self) -> None:
        try:
            while self._is_changed and self._is_watching:
                self._is_changed = False
                await self._look_once()
        except StoreBusy:
            self._remind()  # nothing was seen
        finally:
            self._is_looking = False

    async def _look_once(self) -> None:
        peers = self._store.peers
        if peers is not None and self._driver.is_holding:
            found = await peers.pending_for(self._driver.owner)
            if found:
                await self._receive(found)
        held_elsewhere = [await self._look_at(key) for key in self._keys()]
        if any(held_elsewhere):
            self._remind()

    def _remind(self) -> None:
        """Look again soon, even if nobody writes."""
        loop = asyncio.get_running_loop()
        if self._reminder is None or self._reminder.when() <= loop.time():
            self._reminder = loop.call_later(_DEATHS, self._on_change, None)

    def _keys(self) -> list[ExecutionKey]:
        """Executions that somebody here waits for, and that are not live here."""
        return [key for key in self._audiences.waited_for() if key not in self._driver.lives]

    async def _look_at(self, key: ExecutionKey) -> bool:
        """Tell what has happened, and take it up where whoever drove it is gone. Whether another
        process has it, or a child of it, in hand."""
        execution = await self._store.load(key)
        if execution is None or key in self._driver.lives:
            return False
        await self.catch_up(execution)
        # A child that has ended elsewhere may not have come to tell its parent, which is in hand here.
        is_ours = execution.holder == self._driver.owner and bool(awaited_children(execution))
        if is_ours or shown_status(execution.head, execution.holder) == "interrupted":
            try:
                await self._take_up(key)
            except StoreError:
                raise
            except WfeError as error:
                self._audiences.fail_one(key, error)
        return self._is_elsewhere(execution) or (
            is_ours and await self._has_child_elsewhere(execution)
        )

    async def _has_child_elsewhere(self, execution: Execution) -> bool:
        for key in awaited_children(execution):
            child = None if key in self._driver.lives else await self._store.load(key)
            if child is not None and self._is_elsewhere(child):
                return True
        return False

    def _is_elsewhere(self, execution: Execution) -> bool:
        """Does another process have it in hand?"""
        return execution.holder not in (None, self._driver.owner)

    async def catch_up(self, execution: Execution) -> None:
        """Tell the audience of an execution what happened to it elsewhere, and set its timer."""
        head = execution.head
        entries: Sequence[TimelineEvent] = ()
        if self._audiences.has_missed(execution):
            entries = await self._timeline(execution)
        self._audiences.catch_up(execution, entries)
        self._driver.remind(head.key, head.wake_at)
        if head.is_final:
            self._audiences.leave(head.key)

    async def _timeline(self, execution: Execution) -> Sequence[TimelineEvent]:
        loop = asyncio.get_running_loop()
        reader = self._store.reader
        return await loop.run_in_executor(None, reader.timeline, execution.head.execution_id)
