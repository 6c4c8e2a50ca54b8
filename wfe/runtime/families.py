"""Families: when a parent and its children, taken together, wait for nothing but answers from outside.

A step that waits for its child waits for nobody outside as long as the child works. So whoever waits
for an execution to wait (`until="waiting"`) is let go when the last of its family has come to rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from wfe.model import Execution, ExecutionKey, StepKey
from wfe.runtime.audiences import Audiences, awaited_children, only_waits_outside
from wfe.runtime.driver import Driver
from wfe.runtime.live import Live
from wfe.store.contract import CheckpointStore


class Families:
    """Looks at executions together with those that are steps of them."""

    def __init__(self, store: CheckpointStore, driver: Driver, audiences: Audiences) -> None:
        self._store = store
        self._driver = driver
        self._audiences = audiences

    def at_rest(self, live: Live) -> None:
        """Nothing of this execution is at work: who waits for its family may be let go."""
        for key in _line(live):
            if self._audiences.has_patient(key):
                self._driver.spawn(self._release, key)

    async def _release(self, key: ExecutionKey) -> None:
        execution = await self._look(key)
        if execution is not None and await self._waits_outside(execution):
            self._audiences.of(key).release(execution, lambda until: until == "waiting")

    async def _waits_outside(self, execution: Execution) -> bool:
        if not only_waits_outside(execution, through_children=True):
            return False
        for key in awaited_children(execution):
            child = await self._look(key)
            if child is None or not await self._waits_outside(child):
                return False
        return True

    async def _look(self, key: ExecutionKey) -> Execution | None:
        """An execution as it is now, whoever drives it."""
        live = self._driver.lives.get(key)
        return await self._store.load(key) if live is None else live.execution


def _line(live: Live) -> Iterator[ExecutionKey]:
    """The execution, where it has children, its parent and its root."""
    head = live.execution.head
    if live.workflow.has_children:
        yield live.key
    if head.parent_step_idempotency_key is not None:
        yield StepKey.parse(head.parent_step_idempotency_key).execution
    if head.root is not None:
        workflow_id, _, transaction_id = head.root.partition(":")
        yield ExecutionKey(workflow_id, transaction_id)
