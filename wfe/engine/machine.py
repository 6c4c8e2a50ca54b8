"""The machine: what follows from an event, and nothing else.

    apply(execution, event, now) -> Outcome(changes, effects)

Pure: it reads an execution, an event and a moment, and says what changes and what is to be done.
A refused event raises before its draft is touched, so it changes nothing. The rules are a table from
the type of an event to a function; this module has the rules, `endings` how a step ends, `stages`
what that opens, `tables` which change of state exists.

How an execution moves:

- *Forward*, stage by stage.
- *Turning.* A failure for good, a cancel or the workflow's timeout makes it `waiting_to_compensate`:
  no stage opens, retries to come are dropped, what is in flight comes to its end. After a cancel or
  timeout nothing is retried and no answer is waited for.
- *Backward*, every step that may have had an effect is undone after everything that came after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from msgspec.structs import replace

from wfe.engine.draft import Draft
from wfe.engine.endings import (
    attempt_failed,
    done,
    drop_retries,
    failed_for_good,
    given_up,
    is_late,
    skipped,
    timed_out,
    undone,
    waiting_again,
    workflow_timed_out,
)
from wfe.engine.events import (
    Answer,
    Awaits,
    Begin,
    Cancel,
    Decided,
    Due,
    Event,
    Failed,
    Outcome,
    Resume,
    Retry,
    Skip,
    Skipped,
    Sleeps,
    Succeeded,
)
from wfe.engine.names import (
    COMPENSATE,
    EVENT_BEGIN,
    EVENT_RESUME,
    EVENT_STEP_AWAITING,
    EXECUTION_COMPENSATING,
    EXECUTION_FAILED,
    EXECUTION_INVOKING,
    EXECUTION_REVERTED,
    EXECUTION_WAITING_TO_COMPENSATE,
    INVOKE,
    STATUS_TEMP_FAILURE,
    STATUS_WAITING_RESPONSE,
    STEP_INVOKING,
    STEP_NOT_STARTED,
)
from wfe.engine.stages import advance, compensate_if_quiet, settle, start
from wfe.errors import NotAllowed, StepNotFound, StepNotWaiting, TransactionFinished, WrongAction
from wfe.model import (
    FINAL_STATES,
    Action,
    Execution,
    StepRecord,
)


def apply(execution: Execution, event: Event, now: datetime) -> Outcome:
    """What follows from `event` at `now`.

    Raises:
        Refused, NotFound: the state does not allow the command; nothing follows from it.
    """
    draft = Draft(execution, now)
    apply_to(draft, event)
    return draft.outcome()


def apply_to(draft: Draft, event: Event) -> None:
    """Let `event` happen to a draft, after any that happened to it before.

    Raises:
        Refused, NotFound: the state does not allow the command; the draft is as it was.
    """
    _RULES[type(event)](draft, event)
    draft.by = None


# --- what happens by itself ----------------------------------------------------------------------


def _begin(draft: Draft, event: Begin) -> None:
    draft.to(EXECUTION_INVOKING)
    timeout = draft.flow.options.timeout
    if timeout is not None:
        draft.set(times_out_at=draft.now + timedelta(seconds=timeout))
    draft.set(started_at=draft.now)
    draft.tell(EVENT_BEGIN)
    advance(draft)


def _counting(draft: Draft, step: str, action: Action, attempt: int) -> StepRecord | None:
    """Note that a handler has ended. The step's record as it was at work, for the caller to put at
    rest, where what the handler says still counts; None where an answer, a timeout or the end of the
    execution was faster."""
    record = draft.step(step)
    if not record.running:
        return None
    draft.running -= 1
    if (
        record.attempts == attempt
        and not record.held
        and record.action is action
        and record.status is STATUS_WAITING_RESPONSE
        and draft.state not in FINAL_STATES
    ):
        return record
    ended = draft.put(replace(record, running=False, held=False))
    if record.held:
        _release(draft, ended)
    return None


def _returned(draft: Draft, step: str, action: Action, attempt: int) -> StepRecord | None:
    """The same, for whatever does not end the step at once: its record at rest."""
    record = _counting(draft, step, action, attempt)
    return None if record is None else replace(record, running=False)


def _release(draft: Draft, record: StepRecord) -> None:
    """What was held back can start, unless the execution was given up meanwhile."""
    if record.action is COMPENSATE or not draft.is_given_up:
        start(draft, record, record.action)
    elif record.invoke is STEP_NOT_STARTED:
        settle(draft, record)
    else:
        failed_for_good(draft, record)


def _succeeded(draft: Draft, event: Succeeded) -> None:
    record = _counting(draft, event.step, event.action, event.attempt)
    if record is None:
        return
    if event.action is COMPENSATE:
        undone(draft, replace(record, running=False), event.output)
    elif is_late(draft, record):
        record = replace(record, running=False)
        if draft.options(record).save_response:
            # What it left behind is what its undo needs.
            record = replace(record, output=event.output, compensate_with=event.compensate_with)
        timed_out(draft, record)
    else:
        done(
            draft,
            record,
            event.output,
            event.compensate_with,
            emitted=event.emitted,
            running=False,
        )


def _failed(draft: Draft, event: Failed) -> None:
    record = _returned(draft, event.step, event.action, event.attempt)
    if record is None:
        return
    if event.action is INVOKE and event.compensate_with is not None:
        record = replace(record, compensate_with=event.compensate_with)
    if event.action is INVOKE and is_late(draft, record):
        timed_out(draft, record, event.error)
    else:
        attempt_failed(draft, record, event.error, permanent=event.permanent, chance=event.chance)


def _skipped(draft: Draft, event: Skipped) -> None:
    record = _returned(draft, event.step, INVOKE, event.attempt)
    if record is not None:
        skipped(draft, record, event.reason)


def _awaits(draft: Draft, event: Awaits) -> None:
    record = _returned(draft, event.step, event.action, event.attempt)
    if record is None:
        return
    fields: dict[str, Any] = {"awaiting": True}
    if event.compensate_with is not None:
        fields["compensate_with"] = event.compensate_with
    options = draft.options(record)
    again = options.retry_interval_awaiting
    limit = options.max_awaiting_retries
    if again is not None and (limit is None or record.awaiting_retries < limit):
        fields["retry_at"] = draft.now + timedelta(seconds=again)
    record = draft.put(replace(record, **fields))
    draft.awaiting += 1
    draft.tell(EVENT_STEP_AWAITING, record, action=event.action)
    if event.action is INVOKE and draft.is_given_up:
        given_up(draft, record)


def _sleeps(draft: Draft, event: Sleeps) -> None:
    record = _returned(draft, event.step, INVOKE, event.attempt)
    if record is None:
        return
    record = draft.put(replace(record, sleeping=True, retry_at=event.until))
    if draft.is_given_up:
        given_up(draft, record)


def _decided(draft: Draft, event: Decided) -> None:
    draft.set(guards={**draft.get("guards"), event.guard: event.holds})


def _due(draft: Draft, event: Due) -> None:
    if draft.is_final:
        return
    times_out_at = draft.get("times_out_at")
    if draft.has_timeouts and times_out_at is not None and draft.now >= times_out_at:
        _workflow_is_due(draft)
    for record in draft.active():
        deadline = draft.acts_on_timeout_at(record)
        if deadline is not None and draft.now >= deadline:
            timed_out(draft, record)
        elif record.retry_at is not None and draft.now >= record.retry_at:
            _retry_is_due(draft, record)


def _retry_is_due(draft: Draft, record: StepRecord) -> None:
    if record.sleeping:
        done(draft, record, None, record.compensate_with, running=record.running)
        return
    if record.awaiting:
        record = replace(record, awaiting_retries=record.awaiting_retries + 1)
    start(draft, record, record.action)


def _workflow_is_due(draft: Draft) -> None:
    """Every step that waits, or works in the background, becomes `timeout`. A handler that holds
    its caller runs to its end first."""
    draft.set(timed_out=True)
    if draft.state is EXECUTION_INVOKING:
        draft.to(EXECUTION_WAITING_TO_COMPENSATE)
    over = [
        workflow_timed_out(draft, record)
        for record in draft.active()
        if record.invoke is STEP_INVOKING and (draft.options(record).async_ or not record.running)
    ]
    for record in over:
        settle(draft, record)
    compensate_if_quiet(draft)


def _resume(draft: Draft, event: Resume) -> None:
    """Handlers that were at work are gone. A step found in flight is attempted again, under the
    same key, even where the execution was given up: what it did, or its undo needs, is known to
    nobody else. One that was held begins; a handler that was overtaken has nothing left to tell."""
    if draft.is_final:
        return
    draft.tell(EVENT_RESUME)
    lost = [
        record
        for record in draft.active()
        if (record.running or record.held) and record.name not in event.at_work
    ]
    for record in lost:
        draft.put(replace(record, running=False, held=False))
        draft.running -= record.running
    for record in lost:
        if record.held:
            _release(draft, draft.step(record.name))
        elif record.status is STATUS_WAITING_RESPONSE:
            start(draft, draft.step(record.name), record.action)


# --- commands ------------------------------------------------------------------------------------


def _named(draft: Draft, step: str, action: Action) -> StepRecord:
    """The record of the step that a key names, at the action that it names.

    Raises:
        TransactionFinished, StepNotFound, WrongAction
    """
    head = draft.original
    key = (head.workflow_id, head.transaction_id)
    if draft.is_final and not head.idempotent:
        raise TransactionFinished(*key, str(draft.state))
    if step not in draft.flow.steps:
        raise StepNotFound(*key, step, near=get_close_matches(step, draft.flow.steps))
    record = draft.step(step)
    if record.action is not action:
        raise WrongAction(*key, step, action=str(action), current=str(record.action))
    return record


def _not_waiting(draft: Draft, record: StepRecord, reason: str = "") -> StepNotWaiting:
    return StepNotWaiting(
        draft.original.workflow_id,
        draft.original.transaction_id,
        record.name,
        state=str(record.state),
        status=str(record.status),
        reason=reason,
    )


def _goes_on(draft: Draft) -> None:
    if draft.running == 0:
        draft.tell(EVENT_RESUME)


def _answer(draft: Draft, event: Answer) -> None:
    record = _named(draft, event.step, event.action)
    if record.status is not STATUS_WAITING_RESPONSE or record.held:
        raise _not_waiting(draft, record)
    draft.by = event.by
    _goes_on(draft)
    if event.error is not None:
        attempt_failed(
            draft, record, event.error, permanent=event.force_permanent, chance=event.chance
        )
    elif event.action is COMPENSATE:
        undone(draft, record, event.output)
    else:
        kept = record.compensate_with if event.compensate_with is None else event.compensate_with
        done(draft, record, event.output, kept, emitted=event.emitted, running=record.running)


def _between_attempts(draft: Draft, event: Retry | Skip) -> StepRecord:
    """The step that a key names, where it waits for an answer or for its next attempt."""
    record = _named(draft, event.step, event.action)
    if record.running:
        raise _not_waiting(draft, record, "it is being executed")
    waits = record.status in (STATUS_WAITING_RESPONSE, STATUS_TEMP_FAILURE)
    if record.sleeping or record.held or not waits:
        raise _not_waiting(draft, record)
    return record


def _retry(draft: Draft, event: Retry) -> None:
    record = _between_attempts(draft, event)
    draft.by = event.by
    _goes_on(draft)
    start(draft, record, event.action)


def _skip(draft: Draft, event: Skip) -> None:
    record = _between_attempts(draft, event)
    draft.by = event.by
    _goes_on(draft)
    if record.status is STATUS_TEMP_FAILURE:
        record = waiting_again(record)
    if event.action is COMPENSATE:
        undone(draft, record, None)
    else:
        skipped(draft, record, event.reason)


def _cancel(draft: Draft, event: Cancel) -> None:
    head = draft.original
    key = (head.workflow_id, head.transaction_id)
    if draft.state in (EXECUTION_REVERTED, EXECUTION_FAILED):
        raise TransactionFinished(*key, str(draft.state))
    waits = draft.state is EXECUTION_WAITING_TO_COMPENSATE
    if draft.state is EXECUTION_COMPENSATING or (
        waits and (draft.is_given_up or draft.awaiting == 0)
    ):
        raise NotAllowed(*key, command="cancelled", state=str(draft.state))
    if not waits:
        draft.to(EXECUTION_WAITING_TO_COMPENSATE)
    draft.set(cancelled_at=draft.now, ended_at=None)
    draft.by = event.by
    for record in draft.active():
        waiting = record.awaiting or record.sleeping
        if record.invoke is STEP_INVOKING and waiting and not record.running:
            given_up(draft, record)
    drop_retries(draft)
    compensate_if_quiet(draft)


_RULES: Mapping[type, Callable[[Draft, Any], None]] = {
    Begin: _begin,
    Succeeded: _succeeded,
    Failed: _failed,
    Skipped: _skipped,
    Awaits: _awaits,
    Sleeps: _sleeps,
    Decided: _decided,
    Answer: _answer,
    Skip: _skip,
    Retry: _retry,
    Cancel: _cancel,
    Due: _due,
    Resume: _resume,
}
