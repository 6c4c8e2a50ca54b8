"""How a step comes to its end, or to its next attempt: done, skipped, undone, failed, timed out.

Whoever completes a step, a handler of ours or an answer from outside, the step ends by one of these.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wfe.engine import tables
from wfe.engine.draft import Draft
from wfe.engine.events import Abort
from wfe.engine.stages import settle, start, undo_settled
from wfe.model import (
    Action,
    ErrorRecord,
    EventKind,
    ExecutionState,
    Json,
    StepOptions,
    StepRecord,
    StepState,
    StepStatus,
)


def retry_delay(options: StepOptions, failures: int, chance: float) -> float:
    """Seconds to wait after the n-th failure: interval * backoff ** (n - 1), at most
    `retry_max_interval`, and up to the fraction `retry_jitter` longer by `chance` in [0, 1)."""
    delay = options.retry_interval * options.retry_backoff ** (failures - 1)
    if options.retry_max_interval is not None:
        delay = min(delay, options.retry_max_interval)
    return delay * (1 + options.retry_jitter * chance)


def _at_rest(draft: Draft, record: StepRecord) -> dict[str, Any]:
    """The fields of a step that waits for nothing any more."""
    if record.awaiting:
        draft.awaiting -= 1
    return {"awaiting": False, "sleeping": False, "retry_at": None}


def _ended(
    draft: Draft, record: StepRecord, state: StepState, status: StepStatus, **fields: Any
) -> StepRecord:
    """Bring the present side of a step to an end."""
    fields |= _at_rest(draft, record)
    if record.action is Action.INVOKE:
        return draft.put(
            record,
            invoke=tables.move(tables.INVOKE, record.invoke, state),
            invoke_status=tables.move(tables.STATUS, record.invoke_status, status),
            ended_at=draft.now,
            **fields,
        )
    return draft.put(
        record,
        compensate=tables.move(tables.COMPENSATE, record.compensate, state),
        compensate_status=tables.move(tables.STATUS, record.compensate_status, status),
        undone_at=draft.now,
        **fields,
    )


def keep(
    draft: Draft, record: StepRecord, output: Json | None, compensate_with: Json | None
) -> StepRecord:
    """Keep what a step left behind, where its response is to be saved."""
    if not draft.options(record).save_response:
        return record
    return draft.put(record, output=output, compensate_with=compensate_with)


# --- good ends -----------------------------------------------------------------------------------


def done(
    draft: Draft, record: StepRecord, output: Json | None, compensate_with: Json | None
) -> None:
    record = keep(draft, record, output, compensate_with)
    record = _ended(draft, record, StepState.DONE, StepStatus.OK)
    draft.tell(EventKind.STEP_SUCCESS, record, action=Action.INVOKE, response=output)
    settle(draft, record)


def skipped(draft: Draft, record: StepRecord, reason: str | None) -> None:
    record = _ended(draft, record, StepState.SKIPPED, StepStatus.OK, reason=reason)
    draft.tell(EventKind.STEP_SKIPPED, record, action=Action.INVOKE, detail=reason)
    settle(draft, record)


def undone(draft: Draft, record: StepRecord, output: Json | None) -> None:
    record = _ended(draft, record, StepState.REVERTED, StepStatus.OK)
    draft.tell(EventKind.COMPENSATE_STEP_SUCCESS, record, action=Action.COMPENSATE, response=output)
    undo_settled(draft)


# --- failures ------------------------------------------------------------------------------------


def attempt_failed(
    draft: Draft, record: StepRecord, error: ErrorRecord, *, permanent: bool, chance: float
) -> None:
    """One attempt is over without success: try again at once, later, on request, or never."""
    action = record.action
    record = draft.put(record, failures=record.failures + 1, error=error)
    undoing = action is Action.COMPENSATE
    kind = EventKind.COMPENSATE_STEP_FAILURE if undoing else EventKind.STEP_FAILURE
    draft.tell(kind, record, action=action, error=error)
    options = draft.options(record)
    if permanent or record.failures > options.max_retries or _drops_retries(draft, options):
        failed_for_good(draft, record)
        return
    status = tables.move(tables.STATUS, record.status, StepStatus.TEMP_FAILURE)
    side = {"compensate_status" if undoing else "invoke_status": status}
    record = draft.put(record, **side, **_at_rest(draft, record))
    if not options.auto_retry:
        return
    delay = retry_delay(options, record.failures, chance)
    if delay > 0:
        draft.put(record, retry_at=draft.now + timedelta(seconds=delay))
    else:
        start(draft, record, action)


def _drops_retries(draft: Draft, options: StepOptions) -> bool:
    """An execution that has turned waits for no later retry; one that comes at once goes on, unless
    the execution was given up."""
    if draft.state is not ExecutionState.WAITING_TO_COMPENSATE:
        return False
    return draft.is_given_up or not options.auto_retry or options.retry_interval > 0


def failed_for_good(draft: Draft, record: StepRecord) -> None:
    """No attempt is left: its newest error becomes the execution's."""
    if record.error is not None:
        draft.errors = (*draft.errors, record.error)
    if record.action is Action.COMPENSATE:
        _ended(draft, record, StepState.FAILED, StepStatus.PERMANENT_FAILURE)
        draft.set(undo_failed=True)
        undo_settled(draft)
        return
    record = _ended(draft, record, StepState.FAILED, StepStatus.PERMANENT_FAILURE, held=False)
    _pass_over_or_turn(draft, record)


def given_up(draft: Draft, record: StepRecord) -> None:
    """Nobody's answer is waited for after a cancel. The step says so; the execution's errors do
    not, for nothing of it went wrong."""
    head = draft.original
    error = ErrorRecord(
        action=record.name,
        handler_type=Action.INVOKE,
        name="ExecutionCancelled",
        message=f"Execution {head.workflow_id}:{head.transaction_id} was cancelled.",
    )
    record = draft.put(record, failures=record.failures + 1, error=error)
    record = _ended(draft, record, StepState.FAILED, StepStatus.PERMANENT_FAILURE)
    draft.tell(EventKind.STEP_FAILURE, record, action=Action.INVOKE, error=error)
    settle(draft, record)


def _pass_over_or_turn(draft: Draft, record: StepRecord) -> None:
    """What a step that failed, or timed out, does to the rest."""
    options = draft.options(record)
    skip = options.skip_on_permanent_failure
    if skip:
        _skip_later(draft, record, None if skip is True else skip)
    elif not options.continue_on_permanent_failure:
        _turn(draft)
    settle(draft, record)


def _skip_later(draft: Draft, record: StepRecord, until: str | None) -> None:
    """Mark the steps of later stages skipped, up to the stage that holds `until`."""
    stages = draft.flow.stages
    end = len(stages) if until is None else draft.flow.steps[until].stage
    for stage in stages[record.stage + 1 : end]:
        for name in stage:
            later = draft.step(name)
            if later.invoke is StepState.NOT_STARTED:
                state = tables.move(tables.INVOKE, later.invoke, StepState.SKIPPED_FAILURE)
                draft.put(later, invoke=state)


def _turn(draft: Draft) -> None:
    """Nothing new starts from here on; retries that were to come later are dropped."""
    if draft.state is not ExecutionState.INVOKING:
        return
    draft.to(ExecutionState.WAITING_TO_COMPENSATE)
    drop_retries(draft)


def drop_retries(draft: Draft) -> None:
    """Steps between two attempts fail with the error they had."""
    for record in draft.active():
        if record.invoke_status is StepStatus.TEMP_FAILURE and not record.running:
            failed_for_good(draft, record)


# --- timeouts ------------------------------------------------------------------------------------


def is_late(draft: Draft, record: StepRecord) -> bool:
    """Its own timeout, or the workflow's, has passed."""
    deadline = draft.timeout_of(record)
    return bool(draft.get("timed_out")) or (deadline is not None and draft.now >= deadline)


def timed_out(draft: Draft, record: StepRecord) -> None:
    """The step took too long: end it, and do what its failing would do."""
    if draft.get("timed_out"):
        settle(draft, workflow_timed_out(draft, record))
        return
    limit = draft.options(record).timeout
    error = ErrorRecord(
        action=record.name,
        handler_type=Action.INVOKE,
        name="TransactionStepTimeoutError",
        message=f"Step {record.name!r} took longer than its timeout of {limit:g} s.",
    )
    record = _timed_out(draft, record, error)
    draft.tell(EventKind.TIMEOUT, record, action=Action.INVOKE, detail="step")
    _pass_over_or_turn(draft, record)


def workflow_timed_out(draft: Draft, record: StepRecord) -> StepRecord:
    """The workflow took too long: end this step. Settling it is the caller's."""
    limit = draft.flow.options.timeout
    error = ErrorRecord(
        action=record.name,
        handler_type=Action.INVOKE,
        name="TransactionTimeoutError",
        message=f"Workflow {draft.flow.workflow_id!r} took longer than its timeout of {limit:g} s.",
    )
    return _timed_out(draft, record, error)


def _timed_out(draft: Draft, record: StepRecord, error: ErrorRecord) -> StepRecord:
    record = draft.put(record, failures=record.failures + 1, error=error)
    record = _ended(draft, record, StepState.TIMEOUT, StepStatus.PERMANENT_FAILURE, held=False)
    draft.errors = (*draft.errors, error)
    if record.running:
        draft.effect(Abort(record.name))
    draft.tell(EventKind.STEP_FAILURE, record, action=Action.INVOKE, error=error)
    return record
