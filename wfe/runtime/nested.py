"""Nested: a workflow that runs as one step of another.

The step's function is running the child, its undo is cancelling the child. A child without async
steps is awaited like any function; any other reports back when it finishes, as an answer to the
parent's step, be the parent live or only stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wfe.authoring.responses import StepResponse
from wfe.authoring.workflows import Node
from wfe.errors import (
    NotAllowed,
    Refused,
    SkipExecutionError,
    TransactionFinished,
    TransactionNotFound,
)
from wfe.model import Action, CommandResult, ErrorRecord, ExecutionState, StepKey
from wfe.runtime.commands import names
from wfe.runtime.failures import StoredFailure
from wfe.runtime.live import Live, Running
from wfe.runtime.results import emitted_by
from wfe.runtime.values import decoded

if TYPE_CHECKING:
    from wfe.runtime.engine import Engine

logger = logging.getLogger("wfe")


class ChildFailed(StoredFailure):
    """A child came to a bad end: its error, as it is, is the failure of the parent's step."""

    def __init__(self, record: ErrorRecord, transaction_id: str) -> None:
        super().__init__(record)
        #: The undo of the step has to look at the child all the same.
        self.compensate_with = transaction_id


class Nested:
    """Runs, cancels and reports children."""

    def __init__(self, engine: Engine, is_calling: Callable[[StepKey], bool]) -> None:
        self._engine = engine
        #: Is the handler of this step at work here?
        self._is_calling = is_calling

    async def call(self, live: Live, running: Running, node: Node, *args: Any) -> Any:
        """Run the child of a step. Its transaction id is kept as what the undo needs.

        Raises:
            ChildFailed: it did not end done.
        """
        assert node.child is not None
        head = live.execution.head
        call = running.call
        transaction_id = f"{call.step}-{head.transaction_id}"
        failures = live.execution.step(call.step).failures
        if failures:
            # An attempt that a crash has cut off is no failure: it goes on with the same child.
            transaction_id += f"-attempt-{failures + 1}"
        reports = node.child.flow.has_async_steps
        result = await self._engine.run(
            node.child,
            *args,
            transaction_id=transaction_id,
            throw_on_error=False,
            until="stored" if reports else "finished",
            parent=StepKey(head.workflow_id, head.transaction_id, call.step, call.action),
            parent_run_id=head.run_id,
            root=head.root or str(head.key),
            event_group_id=head.event_group_id,
        )
        if result.acknowledgement.reason is not None:
            raise result.acknowledgement.reason
        if reports:
            return StepResponse.awaiting(compensate_with=transaction_id)
        failure = _failure_of(result, Action.INVOKE)
        if failure is not None:
            raise ChildFailed(failure, transaction_id)
        assert result.execution is not None
        running.emitted = emitted_by(result.execution)
        return StepResponse(result.result, compensate_with=transaction_id)

    async def cancel(self, live: Live, running: Running, node: Node) -> None:
        """Undo the child of a step, and wait until it is undone. One that has undone itself, or
        was never begun, is undone.

        Raises:
            ChildFailed: a compensation of the child failed.
        """
        assert node.child is not None
        transaction_id = decoded(live.execution.step(running.call.step).compensate_with)
        if transaction_id is None:
            return
        child = node.child.id
        result = await self._engine.cancel(
            node.child, transaction_id, until="finished", throw_on_error=False
        )
        reason = result.acknowledgement.reason
        if isinstance(reason, (NotAllowed, TransactionFinished)):
            result = await self._engine.wait_for(
                node.child, transaction_id, until="finished", throw_on_error=False
            )
            reason = result.acknowledgement.reason
        if isinstance(reason, TransactionNotFound):
            logger.debug("Child %s:%s left nothing to undo", child, transaction_id)
            return
        if reason is not None:
            raise reason
        failure = _failure_of(result, Action.COMPENSATE)
        if failure is not None:
            raise ChildFailed(failure, transaction_id)

    async def catch_up(self, live: Live) -> None:
        """Hear of children that ended while nobody listened, and take up those that nobody drives."""
        for name in list(live.execution.active):
            record = live.execution.steps[name]
            node = live.workflow.nodes[name]
            if node.child is None or not record.awaiting or record.compensate_with is None:
                continue
            try:
                result = await self._engine.take_up(node.child, decoded(record.compensate_with))
            except SkipExecutionError:
                continue  # another process has just taken it up
            except Refused as refusal:
                logger.warning("The child of step %s of %s: %s", name, live.key, refusal)
                continue
            if result is not None:
                await self._tell(StepKey(*names(live.key), name), result)

    async def report(self, live: Live, result: CommandResult) -> None:
        """Tell the parent how its child ended, where its step waits for that."""
        head = live.execution.head
        assert head.parent_step_idempotency_key is not None
        parent = StepKey.parse(head.parent_step_idempotency_key)
        if live.execution.flow.has_async_steps or not self._is_calling(parent):
            await self._tell(parent, result)  # otherwise the step's function awaits it

    async def _tell(self, key: StepKey, result: CommandResult) -> None:
        execution = result.execution
        assert execution is not None
        failure = _failure_of(result, Action.INVOKE)
        if failure is None:
            child = execution.head.transaction_id
            answer = StepResponse(result.result, compensate_with=child)
            told = await self._engine.set_step_success(
                key,
                answer,
                throw_on_error=False,
                until="stored",
                emitted=emitted_by(execution),
            )
        else:
            told = await self._engine.set_step_failure(
                key, StoredFailure(failure), throw_on_error=False, until="stored"
            )
        if told.acknowledgement.reason is not None:
            # The parent has turned meanwhile; its undo deals with the child.
            logger.debug("%s no longer waits for its child: %s", key, told.acknowledgement.reason)


def _failure_of(result: CommandResult, side: Action) -> ErrorRecord | None:
    """Why a child did not end as it should: done, or (its undo) reverted; None where it did."""
    execution = result.execution
    assert execution is not None
    head = execution.head
    good = ExecutionState.DONE if side is Action.INVOKE else ExecutionState.REVERTED
    if head.state is good:
        return None
    errors = execution.errors(side) or execution.errors(None)
    if errors:
        error = errors[0]
        if error.action is None or error.origin is not None:
            return error
        key = StepKey(head.workflow_id, head.transaction_id, error.action, error.handler_type)
        return replace(error, origin=str(key))
    return ErrorRecord(
        action=None,
        handler_type=side,
        name="ExecutionCancelled",
        message=f"Execution {head.workflow_id}:{head.transaction_id} was cancelled.",
    )
