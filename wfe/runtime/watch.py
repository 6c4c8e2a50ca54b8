"""The watch: notices what other processes do to executions that somebody here waits for.

An execution that only waits is free: whoever answers it, in any process, drives it on. The process
that still waits for its end looks at the store, ten times a second and only while somebody waits,
and tells its audience what happened meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from wfe.model import Execution, ExecutionKey, TimelineEvent
from wfe.runtime.audiences import Audiences
from wfe.runtime.driver import Driver
from wfe.store.contract import CheckpointStore

#: Seconds between two looks.
INTERVAL = 0.1


class Watch:
    """Looks at the store for executions that have an audience here and are not live here."""

    def __init__(self, store: CheckpointStore, audiences: Audiences, driver: Driver) -> None:
        self._store = store
        self._audiences = audiences
        self._driver = driver
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look from now on, until nobody waits any more."""
        if self._task is None and not self._store.is_private and self._keys():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="wfe watch")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        try:
            while keys := self._keys():
                if await self._store.changed():
                    for key in keys:
                        await self._look(key)
                await asyncio.sleep(INTERVAL)
        finally:
            self._task = None

    def _keys(self) -> list[ExecutionKey]:
        """Executions that somebody here waits for, and that are not live here."""
        return [key for key in self._audiences.waited_for() if key not in self._driver.lives]

    async def _look(self, key: ExecutionKey) -> None:
        if key in self._driver.lives:
            return
        execution = await self._store.load(key)
        if execution is None or key in self._driver.lives:
            return
        await self.catch_up(execution)

    async def catch_up(self, execution: Execution) -> None:
        """Tell the audience of an execution what happened to it elsewhere, and set its timer."""
        head = execution.head
        self._audiences.catch_up(execution, await self._timeline(execution))
        self._driver.remind(head.key, head.wake_at)
        if head.is_final:
            self._audiences.leave(head.key)

    async def _timeline(self, execution: Execution) -> Sequence[TimelineEvent]:
        loop = asyncio.get_running_loop()
        reader = self._store.reader
        return await loop.run_in_executor(None, reader.timeline, execution.head.execution_id)
