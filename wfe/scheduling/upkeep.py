"""Upkeep: takes up what processes that are gone have left, and what is due and in nobody's hand.

Several processes may do so on one store: of those that try, one is faster, and the others find the
execution in its hand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from wfe.errors import EngineClosed, SkipExecutionError, StoreBusy, StoreError, WfeError
from wfe.model import ExecutionKey
from wfe.runtime.engine import Engine

logger = logging.getLogger("wfe")

#: From one look to the next; where nobody has written anything, and nothing is due, only a death may
#: have left something. And until what was refused is tried again.
_EVERY = timedelta(seconds=2)
_DEATHS = timedelta(seconds=6)
_REFUSED = timedelta(minutes=1)

#: At most so many at once.
_LIMIT = 1000


class Upkeep:
    """Looks after an engine's store until it is stopped.

    `on_taken` is told of each execution: None where it goes on here, else why it cannot, once.
    """

    def __init__(
        self, engine: Engine, *, on_taken: Callable[[ExecutionKey, WfeError | None], None]
    ) -> None:
        self._engine = engine
        self._on_taken = on_taken
        #: What could not be taken up: why, and when it is tried again.
        self._refused: dict[ExecutionKey, tuple[str, datetime]] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what there is, then look again every so often.

        Raises:
            StoreError
        """
        await self.look()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="wfe upkeep")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, StoreError):
                await task

    async def wait(self) -> None:
        """Return when it is stopped.

        Raises:
            StoreError: the store is out of reach for good, and nothing is taken up any more.
        """
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    def renew(self) -> None:
        """The workflows were loaded anew: try again soon what was refused."""
        now = self._engine.clock.now()
        self._refused = {key: (message, now) for key, (message, _) in self._refused.items()}

    async def _run(self) -> None:
        clock = self._engine.clock
        while True:
            await clock.sleep_until(clock.now() + _EVERY)
            try:
                if await self._may_find_something():
                    await self.look()
            except StoreBusy as error:
                logger.warning("Nothing is taken up for now: %s", error)
            except StoreError:
                raise
            except Exception:
                logger.exception("Looking for what was interrupted failed")

    async def _may_find_something(self) -> bool:
        now, store = self._engine.clock.now(), self._engine.store
        has_changed = store.reader.changed()
        if has_changed or now >= self._look_at or await store.due(now, limit=1):
            return True
        return now < self._look_at - _DEATHS  # the clock was set back

    async def look(self) -> None:
        """Take up what is interrupted, and have those told who are owed a notice.

        Raises:
            StoreError: some of it was not.
        """
        now = self._engine.clock.now()
        self._look_at = now + _DEATHS
        found = await self._engine.interrupted(limit=_LIMIT + len(self._refused))
        self._refused = {key: self._refused[key] for key in found if key in self._refused}
        keys = [key for key in found if key not in self._refused or self._refused[key][1] <= now]
        # Together, so that their commits are.
        outcomes = await asyncio.gather(*map(self._take_up, keys), return_exceptions=True)
        for key, outcome in zip(keys, outcomes, strict=True):
            if isinstance(outcome, SkipExecutionError | EngineClosed):
                continue  # another process was faster, or this one is at its end
            if isinstance(outcome, StoreError) or not isinstance(outcome, WfeError | None):
                raise outcome
            self._note(key, outcome, now)
        await self._engine.send_notices(wait=False)

    async def _take_up(self, key: ExecutionKey) -> None:
        await self._engine.take_up(key.workflow_id, key.transaction_id)

    def _note(self, key: ExecutionKey, refusal: WfeError | None, now: datetime) -> None:
        if refusal is None:
            self._refused.pop(key, None)
            self._on_taken(key, None)
            return
        told = self._refused.get(key)
        self._refused[key] = (refusal.message, now + _REFUSED)
        if told is None or told[0] != refusal.message:
            self._on_taken(key, refusal)
