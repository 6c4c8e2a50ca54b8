"""Rows of lists: what is said of an execution, and of a step that waits, among many."""

from __future__ import annotations

from typing import Any

from peewee import JOIN, SQL

from wfe.model import Action, ExecutionState, StepState, StepStatus
from wfe.store import owners
from wfe.store.contract import ExecutionSummary, WaitingStep
from wfe.store.moments import from_micros, from_micros_or_none
from wfe.store.tables import UNFINISHED, ExecutionStep, Owner, WorkflowExecution

_row = WorkflowExecution

_SUMMARY = (
    _row.id,
    _row.workflow_id,
    _row.transaction_id,
    _row.run_id,
    _row.state,
    _row.created_at,
    _row.updated_at,
    _row.ended_at,
    _row.wake_at,
    _row.retention_time,
    _row.parent_step_idempotency_key,
    _row.running,
    _row.awaiting,
    _row.held,
    _row.parked,
    _row.owner,
    Owner.expires_at,
    Owner.beats_until,
)


def summary_rows() -> Any:
    """A query of rows for `summary_of`."""
    return _row.select(*_SUMMARY).join(Owner, JOIN.LEFT_OUTER, on=(Owner.id == _row.owner))


def waiting_rows(limit: int | None) -> Any:
    """A query of rows for `waiting_of`, those that have waited longest first; None: of all."""
    step = ExecutionStep
    query = (
        step.select(
            _row.workflow_id,
            _row.transaction_id,
            _row.run_id,
            step.name,
            step.invoke,
            step.invoke_status,
            step.compensate,
            step.compensate_status,
            step.attempts,
            step.last_attempt_at,
        )
        .join(_row, on=(_row.id == step.execution_id))
        .where(step.awaiting, SQL(UNFINISHED), _row.deleted_at.is_null())
        .order_by(step.last_attempt_at, step.execution_id, step.name)
    )
    return query if limit is None else query.limit(limit)


def summary_of(row: Any) -> ExecutionSummary:
    execution_id, workflow, transaction, run, state, *moments, retention, parent = row[:-7]
    created, updated, ended, wake = moments
    running, awaiting, held, parked, *lease = row[-7:]
    return ExecutionSummary(
        execution_id=execution_id,
        workflow_id=workflow,
        transaction_id=transaction,
        run_id=run,
        state=ExecutionState(state),
        created_at=from_micros(created),
        updated_at=from_micros(updated),
        ended_at=from_micros_or_none(ended),
        wake_at=from_micros_or_none(wake),
        retention_time=retention,
        parent_step_idempotency_key=parent,
        running=running,
        awaiting=awaiting,
        held=held,
        parked=parked,
        holder=owners.holder(*lease),
    )


def waiting_of(row: Any) -> WaitingStep:
    workflow, transaction, run, name, *states, attempts, since = row
    invoke, invoke_status, compensate, compensate_status = states
    invoking = compensate == StepState.DORMANT
    return WaitingStep(
        workflow_id=workflow,
        transaction_id=transaction,
        run_id=run,
        step=name,
        action=Action.INVOKE if invoking else Action.COMPENSATE,
        state=StepState(invoke if invoking else compensate),
        status=StepStatus(invoke_status if invoking else compensate_status),
        attempts=attempts,
        since=from_micros_or_none(since),
    )
