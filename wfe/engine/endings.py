"""How a step comes to its end, or to its next attempt: done, skipped, undone, failed, timed out.

Whoever completes a step, a handler of ours or an answer from outside, the step ends by one of these.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from wfe.engine import tables
from wfe.engine.draft import Draft
from wfe.engine.events import Abort
from wfe.engine.names import (
    COMPENSATE,
    EVENT_COMPENSATE_STEP_FAILURE,
    EVENT_COMPENSATE_STEP_SUCCESS,
    EVENT_STEP_FAILURE,
    EVENT_STEP_SKIPPED,
    EVENT_STEP_SUCCESS,
    EVENT_TIMEOUT,
    EXECUTION_INVOKING,
    EXECUTION_WAITING_TO_COMPENSATE,
    INVOKE,
    STATUS_OK,
    STATUS_PERMANENT_FAILURE,
    STATUS_TEMP_FAILURE,
    STATUS_WAITING_RESPONSE,
    STEP_DONE,
    STEP_FAILED,
    STEP_NOT_STARTED,
    STEP_REVERTED,
    STEP_SKIPPED,
    STEP_SKIPPED_FAILURE,
    STEP_TIMEOUT,
)
from wfe.engine.stages import settle, start, undo_settled
from wfe.model import (
    DomainEvent,
    ErrorRecord,
    Json,
    StepOptions,
    StepRecord,
    StepState,
    StepStatus,
)

#: Ten years, in seconds: a moment further off may not exist.
_LONGEST_DELAY = 10 * 365 * 86_400.0


def retry_delay(options: StepOptions, failures: int, chance: float) -> float:
    """Seconds to wait after the n-th failure: interval * backoff ** (n - 1), at most
    `retry_max_interval`, and up to the fraction `retry_jitter` longer by `chance` in [0, 1)."""
    try:
        delay = options.retry_interval * float(options.retry_backoff) ** (failures - 1)
    except OverflowError:
        delay = _LONGEST_DELAY
    if options.retry_max_interval is not None:
        delay = min(delay, options.retry_max_interval)
    return min(delay * (1 + options.retry_jitter * chance), _LONGEST_DELAY)


def _ended(draft: Draft, record: StepRecord, state: StepState, status: StepStatus) -> StepRecord:
    """Bring the present side of a step to an end: it waits for nothing any more."""
    if record.awaiting:
        draft.awaiting -= 1
    if record.action is INVOKE:
        ended = replace(
            record,
            invoke=tables.move(tables.INVOKE, record.invoke, state),
            invoke_status=tables.move(tables.STATUS, record.invoke_status, status),
            awaiting=False,
            sleeping=False,
            retry_at=None,
            ended_at=draft.now,
        )
    else:
        ended = replace(
            record,
            compensate=tables.move(tables.COMPENSATE, record.compensate, state),
            compensate_status=tables.move(tables.STATUS, record.compensate_status, status),
            awaiting=False,
            retry_at=None,
            undone_at=draft.now,
        )
    return draft.put(ended)


# --- good ends -----------------------------------------------------------------------------------


def done(
    draft: Draft,
    record: StepRecord,
    output: Json | None,
    compensate_with: Json | None,
    *,
    emitted: tuple[DomainEvent, ...] = (),
    running: bool,
) -> None:
    """`running`: an overtaken handler is still at work on it."""
    if not draft.options(record).save_response:
        output = compensate_with = None
    if record.awaiting:
        draft.awaiting -= 1
    # As `_ended` does it, but in one go: most steps end here.
    record = replace(
        record,
        invoke=tables.move(tables.INVOKE, record.invoke, STEP_DONE),
        invoke_status=tables.move(tables.STATUS, record.invoke_status, STATUS_OK),
        output=output,
        compensate_with=compensate_with,
        emitted=emitted or record.emitted,
        running=running,
        awaiting=False,
        sleeping=False,
        retry_at=None,
        ended_at=draft.now,
    )
    draft.put(record)
    draft.tell(EVENT_STEP_SUCCESS, record, action=INVOKE, response=output)
    settle(draft, record)


def waiting_again(record: StepRecord) -> StepRecord:
    """A step between two attempts, as one that waits for somebody to say how it ends."""
    if record.action is INVOKE:
        status = tables.move(tables.STATUS, record.invoke_status, STATUS_WAITING_RESPONSE)
        return replace(record, invoke_status=status)
    status = tables.move(tables.STATUS, record.compensate_status, STATUS_WAITING_RESPONSE)
    return replace(record, compensate_status=status)


def skipped(draft: Draft, record: StepRecord, reason: str | None) -> None:
    record = _ended(draft, replace(record, reason=reason), STEP_SKIPPED, STATUS_OK)
    draft.tell(EVENT_STEP_SKIPPED, record, action=INVOKE, detail=reason)
    settle(draft, record)


def undone(draft: Draft, record: StepRecord, output: Json | None) -> None:
    record = _ended(draft, record, STEP_REVERTED, STATUS_OK)
    if not draft.options(record).save_response:
        output = None
    draft.tell(EVENT_COMPENSATE_STEP_SUCCESS, record, action=COMPENSATE, response=output)
    undo_settled(draft)


# --- failures ------------------------------------------------------------------------------------


def attempt_failed(
    draft: Draft, record: StepRecord, error: ErrorRecord, *, permanent: bool, chance: float
) -> None:
    """One attempt is over without success: try again at once, later, on request, or never."""
    action = record.action
    record = draft.put(replace(record, failures=record.failures + 1, error=error))
    undoing = action is COMPENSATE
    kind = EVENT_COMPENSATE_STEP_FAILURE if undoing else EVENT_STEP_FAILURE
    draft.tell(kind, record, action=action, error=error)
    options = draft.options(record)
    if permanent or record.failures > options.max_retries or _drops_retries(draft, options):
        failed_for_good(draft, record)
        return
    if record.awaiting:
        draft.awaiting -= 1
    delay = retry_delay(options, record.failures, chance)
    later = draft.now + timedelta(seconds=delay) if delay > 0 and options.auto_retry else None
    status = tables.move(tables.STATUS, record.status, STATUS_TEMP_FAILURE)
    side = {"compensate_status" if undoing else "invoke_status": status}
    record = draft.put(replace(record, awaiting=False, retry_at=later, **side))
    if delay == 0 and options.auto_retry:
        start(draft, record, action)


def _drops_retries(draft: Draft, options: StepOptions) -> bool:
    """An execution that has turned waits for no later retry; one that comes at once goes on, unless
    the execution was given up."""
    if draft.state is not EXECUTION_WAITING_TO_COMPENSATE:
        return False
    return draft.is_given_up or not options.auto_retry or options.retry_interval > 0


def failed_for_good(draft: Draft, record: StepRecord) -> None:
    """No attempt is left: its newest error becomes the execution's."""
    if record.error is not None:
        error = replace(record.error, attempts=record.attempts)
        record = replace(record, error=error)
        draft.set(errors=(*draft.get("errors"), error))
    if record.action is COMPENSATE:
        _ended(draft, record, STEP_FAILED, STATUS_PERMANENT_FAILURE)
        draft.set(undo_failed=True)
        undo_settled(draft)
        return
    record = _ended(draft, replace(record, held=False), STEP_FAILED, STATUS_PERMANENT_FAILURE)
    _pass_over_or_turn(draft, record)


def given_up(draft: Draft, record: StepRecord) -> None:
    """Nobody's answer is waited for after a cancel. The step says so; the execution's errors do
    not, for nothing of it went wrong."""
    head = draft.original
    error = ErrorRecord(
        action=record.name,
        handler_type=INVOKE,
        name="ExecutionCancelled",
        message=f"Execution {head.workflow_id}:{head.transaction_id} was cancelled.",
    )
    # It may be held back: a process that is about to end was to ask for the answer once more.
    record = replace(record, failures=record.failures + 1, error=error, held=False)
    record = _ended(draft, record, STEP_FAILED, STATUS_PERMANENT_FAILURE)
    draft.tell(EVENT_STEP_FAILURE, record, action=INVOKE, error=error)
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
            # One that is held had its turn already, before a `no_wait` step failed.
            if later.invoke is STEP_NOT_STARTED and not later.held:
                state = tables.move(tables.INVOKE, later.invoke, STEP_SKIPPED_FAILURE)
                draft.put(replace(later, invoke=state))


def _turn(draft: Draft) -> None:
    """Nothing new starts from here on; retries that were to come later are dropped."""
    if draft.state is not EXECUTION_INVOKING:
        return
    draft.to(EXECUTION_WAITING_TO_COMPENSATE)
    drop_retries(draft)


def drop_retries(draft: Draft) -> None:
    """Steps between two attempts fail with the error they had."""
    for record in draft.active():
        if record.invoke_status is STATUS_TEMP_FAILURE and not record.running:
            failed_for_good(draft, record)


# --- timeouts ------------------------------------------------------------------------------------


def is_late(draft: Draft, record: StepRecord) -> bool:
    """Its own timeout, or the workflow's, has passed."""
    if not draft.flow.has_deadlines:
        return False
    deadline = draft.timeout_of(record)
    return bool(draft.get("timed_out")) or (deadline is not None and draft.now >= deadline)


def timed_out(draft: Draft, record: StepRecord, late: ErrorRecord | None = None) -> None:
    """The step took too long: end it, and do what its failing would do. What it failed with, too
    late to count, is told beside."""
    if draft.get("timed_out"):
        workflow_timed_out(draft, record, late)
        settle(draft, record)
        return
    limit = draft.options(record).timeout
    error = ErrorRecord(
        action=record.name,
        handler_type=INVOKE,
        name="TransactionStepTimeoutError",
        message=f"Step {record.name!r} took longer than its timeout of {limit:g} s.",
    )
    record = _timed_out(draft, record, error, late)
    draft.tell(EVENT_TIMEOUT, record, action=INVOKE, detail="step")
    _pass_over_or_turn(draft, record)


def workflow_timed_out(
    draft: Draft, record: StepRecord, late: ErrorRecord | None = None
) -> StepRecord:
    """The workflow took too long: end this step. Settling it is the caller's."""
    limit = draft.flow.options.timeout
    of = "" if limit is None else f" of {limit:g} s"  # a changed definition may have none any more
    error = ErrorRecord(
        action=record.name,
        handler_type=INVOKE,
        name="TransactionTimeoutError",
        message=f"Workflow {draft.flow.workflow_id!r} took longer than its timeout{of}.",
    )
    return _timed_out(draft, record, error, late)


def _timed_out(
    draft: Draft, record: StepRecord, error: ErrorRecord, late: ErrorRecord | None
) -> StepRecord:
    record = replace(record, failures=record.failures + 1, error=error, held=False)
    record = _ended(draft, record, STEP_TIMEOUT, STATUS_PERMANENT_FAILURE)
    draft.set(errors=(*draft.get("errors"), error))
    if record.running:
        draft.effect(Abort(record.name))
    detail = None if late is None else f"{late.name or 'failure'}: {late.message}"
    draft.tell(EVENT_STEP_FAILURE, record, action=INVOKE, error=error, detail=detail)
    return record
