"""What the engine and its store hold, in the shape of the recordings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from wfe import Engine
from wfe.errors import NotFound, StepFailed, WfeError
from wfe.model import (
    Acknowledgement,
    CommandResult,
    ErrorRecord,
    Event,
    EventKind,
    Execution,
    ExecutionKey,
    Flow,
    StepState,
    StepStatus,
)
from wfe.store.contract import CheckpointStore, Query

Raw = dict[str, Any]


def error(record: ErrorRecord) -> Raw:
    return {
        "action": record.action,
        "handler_type": str(record.handler_type),
        "name": record.name,
        "message": record.message,
    }


def errors(records: Iterable[ErrorRecord]) -> list[Raw]:
    return [error(each) for each in records]


def steps(execution: Execution) -> Raw:
    """Every step's states and counters."""
    records = [execution.step(name) for name in execution.flow.steps]
    return {
        record.name: {
            "invoke": f"{record.invoke}/{record.invoke_status}",
            "compensate": f"{record.compensate}/{record.compensate_status}",
            "attempts": record.attempts,
            "failures": record.failures,
        }
        for record in records
    }


def flags(execution: Execution) -> Raw:
    """The flags of a flow."""
    head = execution.head
    waiting = any(
        StepStatus.WAITING_RESPONSE in (record.invoke_status, record.compensate_status)
        for record in execution.steps.values()
    )
    undone = any(record.compensate is StepState.REVERTED for record in execution.steps.values())
    return {
        "async_steps": execution.flow.has_async_steps,
        "failed_steps": head.has_failed_steps,
        "skipped_steps": head.has_skipped_steps,
        "skipped_on_failure_steps": head.has_skipped_on_failure_steps,
        "waiting_steps": waiting,
        "reverted_steps": undone,
        "timed_out": head.timed_out,
        "cancelled": head.cancelled_at is not None,
    }


def flow(execution: Execution) -> Raw:
    return {
        "workflow_id": execution.head.workflow_id,
        "transaction_id": execution.head.transaction_id,
        "state": str(execution.head.state),
        "flags": flags(execution),
        "steps": steps(execution),
    }


def decoded(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


def outputs(execution: Execution) -> Raw:
    """The outputs of finished steps, wrapped as the reference wraps a step response."""
    return {
        name: {
            "output": {
                "output": decoded(record.output),
                "compensateInput": decoded(record.compensate_with),
            }
        }
        for name, record in execution.steps.items()
        if record.output is not None
    }


def row(execution: Execution) -> Raw:
    """One row of the table of executions."""
    head = execution.head
    return {
        "run": head.run_id,
        "state": str(head.state),
        "retention_time": head.retention_time,
        "has_execution": True,
        "flow_state": str(head.state),
        "steps": steps(execution),
        "invoke": outputs(execution),
        "compensate": {},
        "payload": decoded(execution.input),
        "errors": errors(execution.errors(None)),
    }


async def stored(
    engine: Engine, store: CheckpointStore, seen: Iterable[tuple[str, str]]
) -> list[Raw]:
    """Per execution that the store holds, or that goes on: its unfinished checkpoint and its rows."""
    rows: dict[tuple[str, str], list[Raw]] = {}
    for summary in store.reader.list(Query(order_by=("created_at", "execution_id"))):
        key = (summary.workflow_id, summary.transaction_id)
        execution = store.reader.load(ExecutionKey(*key), summary.run_id)
        if execution is not None:  # else it has just been deleted
            rows.setdefault(key, []).append(row(execution))
    found = []
    for key in sorted({*rows, *seen}):
        memory = await unfinished(engine, store, ExecutionKey(*key))
        if memory is not None or key in rows:
            found.append(
                {
                    "workflow_id": key[0],
                    "transaction_id": key[1],
                    "memory": memory,
                    "rows": rows.get(key, []),
                }
            )
    return found


async def unfinished(engine: Engine, store: CheckpointStore, key: ExecutionKey) -> Raw | None:
    """State and steps of an execution that can still go on, in the engine or after it was shut down;
    None where there is none."""
    try:
        found = await engine.get_running_transaction(key.workflow_id, key.transaction_id)
    except NotFound:
        return None
    except WfeError:
        stored = store.reader.load(key)
        if stored is None:
            return None
        found = stored
    if found.head.is_final:
        return None
    return {"state": str(found.head.state), "steps": steps(found)}


def running(execution: Execution) -> Raw:
    """What `get_running_transaction` gives."""
    return {
        "flow": flow(execution),
        "invoke": outputs(execution),
        "compensate": {},
        "payload": decoded(execution.input),
        "all_errors": errors(execution.errors(None)),
    }


def acknowledgement(given: Acknowledgement, *, cancelling: bool) -> Raw:
    form: Raw = {
        "transaction_id": given.transaction_id,
        "workflow_id": given.workflow_id,
        "has_finished": given.has_finished,
        "has_failed": given.has_failed,
    }
    if given.parent_step_idempotency_key is not None:
        form["parent_step_idempotency_key"] = given.parent_step_idempotency_key
    if cancelling:
        form["exists"] = given.exists
    return form


def result(command: str, given: CommandResult) -> Raw:
    """What a command returned; the reference acknowledges run and cancel only."""
    form: Raw = {}
    if command in ("run", "cancel"):
        form["acknowledgement"] = acknowledgement(
            given.acknowledgement, cancelling=command == "cancel"
        )
    execution = given.execution
    return form | {
        "result": given.result,
        "errors": errors(given.errors),
        "all_errors": errors(execution.errors(None)) if execution else [],
        "thrown_error": None,
        "flow": flow(execution) if execution else None,
    }


def thrown(exception: BaseException) -> Raw:
    """A command that raised: an error of the user's code by name and text, ours by kind."""
    if isinstance(exception, StepFailed):
        return {"name": exception.name, "message": exception.text}
    if isinstance(exception, WfeError):
        message = exception.message
        return {
            "name": type(exception).__name__,
            "message": message,
            "kind": type(exception).__name__,
        }
    return {"name": type(exception).__name__, "message": str(exception)}


def event(told: Event) -> Raw:
    """An event as a subscriber's list shows it."""
    form: Raw = {
        "event": str(told.kind),
        "workflow": told.workflow_id,
        "transaction_id": told.transaction_id,
    }
    if told.step is not None:
        form["step"] = told.step
    if told.kind in (EventKind.STEP_SUCCESS, EventKind.COMPENSATE_STEP_SUCCESS):
        form["response"] = told.response
    if told.error is not None:
        form["errors"] = [error(told.error)]
    if told.kind is EventKind.FINISH:
        form |= {"state": str(told.state), "result": told.result, "errors": errors(told.errors)}
    return form


def handler_event(told: Event) -> Raw:
    """An event as a handler given to a command sees it: not told which execution it is."""
    form = event(told)
    return {key: form[key] for key in ("event", "step", "response", "errors") if key in form}


def listed(rows: Iterable[Any]) -> Raw:
    """What `list_executions` gives."""
    return {
        "rows": [
            {
                "workflow_id": each.workflow_id,
                "transaction_id": each.transaction_id,
                "state": str(each.state),
                "retention_time": each.retention_time,
            }
            for each in rows
        ]
    }


def definition(defined: Flow) -> Raw:
    """What is said of a workflow that was composed."""
    last = "_root"
    graph: Raw = {}
    for depth, stage in enumerate(defined.stages, start=1):
        for name in stage:
            options = defined.steps[name].options
            graph[name] = {
                "id": f"{last}.{name}",
                "depth": depth,
                "store": bool(options.store),
                "async": options.async_,
            }
        if stage:
            last = graph[stage[-1]]["id"]
    return {"stored": is_stored(defined), "graph": graph}


def is_stored(defined: Flow) -> bool:
    """Does the reference's policy write executions of this workflow down."""
    options = defined.options
    return bool(
        options.store
        or options.retention_time
        or options.idempotent
        or options.timeout is not None
        or any(
            step.options.async_ or step.options.retry_interval or step.options.compensate_async
            for step in defined.steps.values()
        )
    )
