"""Who is told what happens: subscribers of a workflow or an execution, and handlers of one run.

Delivery is in order per execution and never part of it: a subscriber that raises is logged and
changes nothing. A plain function is called at once; where a coroutine function listens, it is
awaited in a task of its own, and what follows in that execution waits behind it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from wfe.model import Event, ExecutionKey

logger = logging.getLogger("wfe")

Subscriber = Callable[[Event], Any]
EventHandlers = Subscriber | Mapping[str, Subscriber]


class _Subscription(msgspec.Struct, frozen=True):
    workflow_id: str
    transaction_id: str | None
    id: str
    subscriber: Subscriber


class Subscriptions:
    """The subscribers of an engine."""

    def __init__(self) -> None:
        #: To be read only.
        self.all: Sequence[_Subscription] = ()
        self._backlogs: dict[ExecutionKey, deque[tuple[Subscriber, Event]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0

    def add(
        self,
        workflow_id: str,
        transaction_id: str | None,
        subscriber: Subscriber,
        subscriber_id: str | None,
    ) -> str:
        """Add a subscriber; one of the same id at the same place is replaced. Returns the id."""
        if subscriber_id is None:
            self._number += 1
            subscriber_id = f"subscriber-{self._number}"
        else:
            self.remove(workflow_id, transaction_id, subscriber_id)
        added = _Subscription(workflow_id, transaction_id, subscriber_id, subscriber)
        self.all = (*self.all, added)
        return subscriber_id

    def remove(
        self, workflow_id: str, transaction_id: str | None, subscriber: Subscriber | str
    ) -> bool:
        """Remove by id or by function; False where there was none."""

        def is_meant(subscription: _Subscription) -> bool:
            return (subscription.workflow_id, subscription.transaction_id) == (
                workflow_id,
                transaction_id,
            ) and subscriber in (subscription.id, subscription.subscriber)

        kept = [s for s in self.all if not is_meant(s)]
        removed = len(kept) < len(self.all)
        self.all = kept
        return removed

    def of(self, key: ExecutionKey) -> list[Subscriber]:
        """Who listens to this execution."""
        if not self.all:
            return []
        return [
            s.subscriber
            for s in self.all
            if s.workflow_id == key.workflow_id and s.transaction_id in (None, key.transaction_id)
        ]

    def forget(self, key: ExecutionKey) -> None:
        """The execution has finished: who listened to it alone is gone."""
        if not self.all:
            return
        self.all = [
            s
            for s in self.all
            if (s.workflow_id, s.transaction_id) != (key.workflow_id, key.transaction_id)
        ]

    @property
    def is_idle(self) -> bool:
        """Everything has been delivered."""
        return not self._backlogs

    def publish(self, key: ExecutionKey, event: Event, listeners: Iterable[Subscriber]) -> None:
        """Deliver one event."""
        backlog = self._backlogs.get(key)
        for subscriber in listeners:
            if backlog is None:
                result = _call(subscriber, event)
                if result is None:
                    continue
                backlog = self._backlogs[key] = deque()
                self._start(key, result)
            else:
                backlog.append((subscriber, event))

    def _start(self, key: ExecutionKey, first: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._drain(key, first), name="wfe events")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, key: ExecutionKey, result: Any) -> None:
        backlog = self._backlogs[key]
        try:
            await _awaited(result)
            while backlog:
                result = _call(*backlog.popleft())
                if result is not None:
                    await _awaited(result)
        finally:
            del self._backlogs[key]

    async def drained(self) -> None:
        """Return when everything has been delivered."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _call(subscriber: Subscriber, event: Event) -> Any:
    """What is to be awaited, if anything."""
    try:
        result = subscriber(event)
    except Exception:
        logger.exception("A subscriber of %s raised", event.kind)
        return None
    return result if inspect.isawaitable(result) else None


async def _awaited(result: Any) -> None:
    try:
        await result
    except Exception:
        logger.exception("A subscriber raised")


def listeners_of(handlers: EventHandlers | None) -> Subscriber | None:
    """One subscriber made of the handlers that were given to a run."""
    if handlers is None or callable(handlers):
        return handlers
    by_kind = dict(handlers)

    def dispatch(event: Event) -> Any:
        handler = by_kind.get(event.kind)
        return handler(event) if handler is not None else None

    return dispatch
