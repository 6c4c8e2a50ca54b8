"""Executions and workflows as documents: what `-o json` prints, and what other formats draw from.

Values that users' steps gave are passed on as the JSON text in which they are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from wfe.cli import text, tree
from wfe.endings import error_document
from wfe.model import (
    Action,
    Execution,
    ExecutionKey,
    Json,
    StepRecord,
    TimelineEvent,
)
from wfe.store.contract import ExecutionSummary, shown_status

if TYPE_CHECKING:
    from wfe.authoring.workflows import Workflow

#: One failure.
error = error_document


def summary(item: ExecutionSummary) -> dict[str, Any]:
    """An execution in a list."""
    return {
        "key": str(item.key),
        "status": item.shown,
        "workflow": item.workflow_id,
        "transaction": item.transaction_id,
        "run": item.run_id,
        "state": str(item.state),
        "created": text.iso(item.created_at),
        "updated": text.iso(item.updated_at),
        "ended": text.iso(item.ended_at) or None,
        "parent": item.parent_step_idempotency_key,
    }


def outcome(execution: Execution) -> dict[str, Any]:
    """What an execution has come to, as the commands that drive it print it."""
    head = execution.head
    return {
        "key": str(head.key),
        "workflow": head.workflow_id,
        "transaction": head.transaction_id,
        "run": head.run_id,
        "state": str(head.state),
        "status": status(execution),
        "result": _raw(execution.result) if str(head.state) == "done" else None,
        "errors": [error(record) for record in head.errors],
        "waiting": [str(key) for key in tree.waiting_keys(execution)],
    }


def status(execution: Execution) -> str:
    """The derived status of an execution."""
    head = execution.head
    return shown_status(head, execution.holder)


def execution(item: Execution) -> dict[str, Any]:
    """All that is stored of an execution: its row, the checkpoint assembled in it."""
    head = item.head
    return {
        **outcome(item),
        "id": head.execution_id,
        "created": text.iso(head.created_at),
        "updated": text.iso(head.updated_at),
        "started": text.iso(head.started_at) or None,
        "ended": text.iso(head.ended_at) or None,
        "wake": text.iso(head.wake_at) or None,
        "cancelled": text.iso(head.cancelled_at) or None,
        "retention_time": head.retention_time,
        "parent": head.parent_step_idempotency_key,
        "metadata": head.metadata,
        "execution": {
            "state": str(head.state),
            "definition": head.definition,
            "has_async_steps": item.flow.has_async_steps,
            "has_failed_steps": head.has_failed_steps,
            "has_skipped_steps": head.has_skipped_steps,
            "has_skipped_on_failure_steps": head.has_skipped_on_failure_steps,
            "has_reverted_steps": head.has_reverted_steps,
            "timed_out": head.timed_out,
            "guards": head.guards,
            "stages": item.flow.stages,
            "steps": {name: _step(item.step(name)) for name in item.flow.steps},
        },
        "context": {
            "payload": _raw(item.input),
            "invoke": {
                name: {
                    "output": _raw(record.output),
                    "compensate_with": _raw(record.compensate_with),
                }
                for name, record in item.steps.items()
                if record.output is not None or record.compensate_with is not None
            },
            "errors": [error(record) for record in head.errors],
        },
    }


#: An entry of a timeline, as `entry` gives it.
Entry = dict[str, Any]


def entry(key: ExecutionKey, number: int, event: TimelineEvent) -> Entry:
    """Entry `number` (from 1) of the timeline of the execution `key`."""
    named = str(key)
    if event.step is not None:
        named = f"{key}:{event.step}:{event.action or Action.INVOKE}"
    return {
        "number": number,
        "time": text.iso(event.time),
        "kind": str(event.kind),
        "key": named,
        "step": event.step,
        "action": event.action,
        "attempt": event.attempt,
        "detail": event.detail,
        "error": error(event.error) if event.error is not None else None,
    }


def workflow(item: Workflow[Any, Any]) -> dict[str, Any]:
    """A workflow: its place, options, schedule, input and steps. Options that have their default are
    left out."""
    file, line = item.source
    return {
        "key": item.id,
        "description": item.options.description,
        "source": f"{file}:{line}",
        "options": {k: v for k, v in tree.given(item.options).items() if k != "description"},
        "schedule": None if item.schedule is None else msgspec.to_builtins(item.schedule),
        "stages": item.flow.stages,
        "steps": {
            name: {
                "stage": spec.stage,
                "kind": str(spec.kind),
                "has_compensation": spec.has_compensation,
                "when": spec.guards,
                "options": tree.given(spec.options),
            }
            for name, spec in item.flow.steps.items()
        },
        "input": item.input_schema(),
    }


def _step(record: StepRecord) -> dict[str, Any]:
    return {
        "stage": record.stage,
        "invoke": {"state": str(record.invoke), "status": str(record.invoke_status)},
        "compensate": {"state": str(record.compensate), "status": str(record.compensate_status)},
        "attempts": record.attempts,
        "failures": record.failures,
        "waiting": record.awaiting,
        "started": text.iso(record.started_at) or None,
        "last_attempt": text.iso(record.last_attempt_at) or None,
        "ended": text.iso(record.ended_at) or None,
        "undone": text.iso(record.undone_at) or None,
        "retry": text.iso(record.retry_at) or None,
        "error": error(record.error) if record.error is not None else None,
        "reason": record.reason,
    }


def _raw(value: Json | None) -> Any:
    return None if value is None else msgspec.Raw(value)
