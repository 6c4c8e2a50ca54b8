"""Starts: a claimed tick becomes an execution, or the ledger says why it does not.

Whoever begins a tick begins the same transaction id, and looks first whether that exists: it may have
been begun by a process that is gone before it could say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wfe.errors import EngineClosed, NotFound, StoreError, WfeError
from wfe.model import Execution, ExecutionKey
from wfe.runtime.engine import Engine
from wfe.scheduling.plan import Plan
from wfe.store.contract import could_go_on
from wfe.store.ledger import Settlement, Tick


class Starts:
    """Begins executions for the ticks of plans."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(self, plan: Plan, tick: Tick) -> Settlement | None:
        """Begin a claimed tick; what it came to. None: the engine is being shut down, and whoever
        comes may begin it.

        Raises:
            StoreError: it could not be kept; the claim stands.
        """
        busy = await self.busy(plan, tick)
        if busy is not None:
            told = f"{busy} is not finished"
            return Settlement(tick=tick, state="skipped", reason="overlap", error=told)
        try:
            execution = await self._begun(plan, tick)
        except StoreError:
            raise
        except EngineClosed:
            return None
        except WfeError as error:
            return Settlement(tick=tick, state="error", error=error.message)
        return Settlement(
            tick=tick,
            state="fired",
            execution_id=execution.head.execution_id,
            is_open=plan.schedule.concurrency == "forbid" and not execution.head.is_final,
        )

    async def _begun(self, plan: Plan, tick: Tick) -> Execution:
        key = ExecutionKey(plan.workflow_id, tick.transaction_id)
        known = await self._engine.store.load(key)
        if known is not None:
            return known
        given: dict[str, Any] = {}
        value = plan.input_for(tick.scheduled_for)
        if value is not None:
            given["input"] = value
        result = await self._engine.run(
            key.workflow_id,
            transaction_id=key.transaction_id,
            until="stored",
            throw_on_error=False,
            scheduled_for=tick.scheduled_for,
            **given,
        )
        if result.execution is None:
            assert result.acknowledgement.reason is not None
            raise result.acknowledgement.reason
        return result.execution

    async def busy(self, plan: Plan, tick: Tick) -> ExecutionKey | None:
        """What stands against beginning a tick, of a schedule whose executions must not overlap: one
        of its executions that goes on, or is about to begin."""
        if plan.schedule.concurrency == "allow":
            return None
        over: list[Tick] = []
        found = None
        for other in await self._others(plan, tick):
            key = ExecutionKey(plan.workflow_id, other.transaction_id)
            if other.state == "due" or await self._goes_on(key):
                found = key
                break
            over.append(other)
        await self._engine.store.ledger.end(over)
        return found

    async def _others(self, plan: Plan, tick: Tick) -> Sequence[Tick]:
        """Of two that are about to begin, the later one gives way."""
        unfinished = await self._engine.store.ledger.unfinished(plan.name)
        return [
            other
            for other in unfinished
            if other.scheduled_for < tick.scheduled_for
            or (other.state == "fired" and other.scheduled_for != tick.scheduled_for)
        ]

    async def _goes_on(self, key: ExecutionKey) -> bool:
        """Does this execution go on? One whose process is gone is taken up, so that it does; where
        that is refused, it goes on no more."""
        execution = await self._engine.store.load(key)
        if execution is None:
            return await self._is_live(key)
        head = execution.head
        if head.is_final:
            return False
        if execution.holder is not None or not could_go_on(head, self._engine.clock.now()):
            return True
        try:
            return await self._engine.take_up(key.workflow_id, key.transaction_id) is None
        except StoreError:
            raise
        except WfeError:
            return False

    async def _is_live(self, key: ExecutionKey) -> bool:
        """Is it one that is in memory alone, for want of anything worth storing?"""
        try:
            found = await self._engine.get_running_transaction(key.workflow_id, key.transaction_id)
        except NotFound:
            return False
        return not found.head.is_final
