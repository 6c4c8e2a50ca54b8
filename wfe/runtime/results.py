"""Results: an execution as it is at one moment, as commands return it."""

from __future__ import annotations

from wfe.model import (
    Acknowledgement,
    CommandResult,
    DomainEvent,
    Execution,
    ExecutionState,
)
from wfe.runtime.values import decoded

_BAD_ENDS = frozenset({ExecutionState.REVERTED, ExecutionState.FAILED})


def result_of(execution: Execution) -> CommandResult:
    """What a command returns for an execution as it is now."""
    head = execution.head
    return CommandResult(
        acknowledgement=Acknowledgement(
            workflow_id=head.workflow_id,
            transaction_id=head.transaction_id,
            run_id=head.run_id,
            parent_step_idempotency_key=head.parent_step_idempotency_key,
            has_finished=head.is_final,
            has_failed=head.state in _BAD_ENDS,
        ),
        result=decoded(execution.result) if head.state is ExecutionState.DONE else None,
        errors=execution.errors(),
        execution=execution.copy(),
    )


def emitted_by(execution: Execution) -> tuple[DomainEvent, ...]:
    """What the steps of an execution, and of its children, have emitted, in order of stages."""
    steps = [record for record in execution.steps.values() if record.emitted]
    steps.sort(key=lambda record: record.stage)
    return tuple(event for record in steps for event in record.emitted)
