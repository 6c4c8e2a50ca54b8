"""Stages: which one is open, going forward and going backward, and the end of it all.

*Forward*, one stage is open. `open` counts its members that have not settled, `loose` the `no_wait`
members of every opened stage. At open = 0 the next stage opens; behind the last one, at loose = 0,
the execution is done. *Backward*, a pointer descends; at `undo_open` = 0 it goes on. A stage is
never looked at twice, so the cost of a step does not depend on the length of the flow.
"""

from __future__ import annotations

from msgspec.structs import replace

from wfe.engine import tables
from wfe.engine.draft import Draft
from wfe.engine.events import Abort, Call, Finished
from wfe.engine.names import (
    COMPENSATE,
    EVENT_COMPENSATE_BEGIN,
    EVENT_FINISH,
    EVENT_STEP_BEGIN,
    EVENT_TIMEOUT,
    EXECUTION_COMPENSATING,
    EXECUTION_DONE,
    EXECUTION_FAILED,
    EXECUTION_INVOKING,
    EXECUTION_REVERTED,
    EXECUTION_WAITING_TO_COMPENSATE,
    INVOKE,
    STATUS_WAITING_RESPONSE,
    STEP_COMPENSATING,
    STEP_DONE,
    STEP_FAILED,
    STEP_INVOKING,
    STEP_NOT_STARTED,
    STEP_REVERTED,
    STEP_SKIPPED,
    STEP_SKIPPED_FAILURE,
    STEP_TIMEOUT,
)
from wfe.model import Action, ExecutionState, StepRecord, StepState

#: Invoke states after which a step may have had an effect, and is undone.
_UNDOABLE = frozenset({STEP_DONE, STEP_FAILED, STEP_TIMEOUT})
_FAILURES = frozenset({STEP_FAILED, STEP_TIMEOUT})


def start(draft: Draft, record: StepRecord, action: Action) -> None:
    """The next attempt of a step.

    One handler at most is at work on a step: where an overtaken one has not ended, it is aborted
    and the step is held until its end.
    """
    if record.running or draft.holds_back:
        draft.put(replace(record, held=True, retry_at=None))
        if record.running:
            draft.effect(Abort(record.name))
        return
    if record.awaiting:
        draft.awaiting -= 1
    if action is INVOKE:
        state = record.invoke
        if state is STEP_NOT_STARTED:
            state = tables.move(tables.INVOKE, state, STEP_INVOKING)
        record = replace(
            record,
            invoke=state,
            invoke_status=tables.move(tables.STATUS, record.invoke_status, STATUS_WAITING_RESPONSE),
            started_at=record.started_at or draft.now,
            attempts=record.attempts + 1,
            last_attempt_at=draft.now,
            running=True,
            held=False,
            awaiting=False,
            retry_at=None,
        )
    else:
        state = record.compensate
        if state is STEP_NOT_STARTED:
            state = tables.move(tables.COMPENSATE, state, STEP_COMPENSATING)
        record = replace(
            record,
            compensate=state,
            compensate_status=tables.move(
                tables.STATUS, record.compensate_status, STATUS_WAITING_RESPONSE
            ),
            attempts=record.attempts + 1,
            last_attempt_at=draft.now,
            running=True,
            held=False,
            awaiting=False,
            retry_at=None,
        )
    draft.put(record)
    draft.running += 1
    draft.tell(EVENT_STEP_BEGIN, record, action=action)
    options = draft.options(record)
    answers_later = options.async_ if action is INVOKE else options.compensate_async
    draft.effect(Call(record.name, action, record.attempts, holds_caller=not answers_later))


# --- forward -------------------------------------------------------------------------------------


def advance(draft: Draft) -> None:
    """Open stages until one has a member to wait for; finish behind the last."""
    stages = draft.flow.stages
    while draft.open == 0:
        if draft.stage + 1 == len(stages):
            if draft.loose == 0:
                _finish(draft, EXECUTION_DONE)
            return
        draft.stage += 1
        for name in stages[draft.stage]:
            record = draft.step(name)
            if record.invoke is STEP_SKIPPED_FAILURE:
                continue
            if draft.options(record).no_wait:
                draft.loose += 1
            else:
                draft.open += 1
            start(draft, record, INVOKE)


def settle(draft: Draft, record: StepRecord) -> None:
    """A member of an opened stage has come to its end: go on, or turn once nothing is in flight."""
    if draft.options(record).no_wait:
        draft.loose -= 1
    else:
        draft.open -= 1
    if draft.state is EXECUTION_INVOKING:
        advance(draft)
    else:
        compensate_if_quiet(draft)


# --- backward ------------------------------------------------------------------------------------


def compensate_if_quiet(draft: Draft) -> None:
    """Begin to undo, where that is to be done and nothing is in flight any more."""
    if draft.state is not EXECUTION_WAITING_TO_COMPENSATE or draft.open + draft.loose > 0:
        return
    draft.to(EXECUTION_COMPENSATING)
    if draft.get("timed_out"):
        draft.tell(EVENT_TIMEOUT, detail="workflow")
    draft.tell(EVENT_COMPENSATE_BEGIN)
    _note_flags(draft)
    for record in draft.touched():
        if record.invoke in _UNDOABLE:
            waiting = tables.move(tables.COMPENSATE, record.compensate, STEP_NOT_STARTED)
            draft.put(
                replace(
                    record,
                    undo=True,
                    compensate=waiting,
                    attempts=0,
                    failures=0,
                    awaiting_retries=0,
                )
            )
    draft.set(undo_stage=len(draft.flow.stages))
    _descend(draft)


def undo_settled(draft: Draft) -> None:
    """A step of the stage being undone has come to its end."""
    draft.set(undo_open=draft.get("undo_open") - 1)
    _descend(draft)


def _descend(draft: Draft) -> None:
    """Undo stages, the latest first, until one has a member to wait for."""
    stages = draft.flow.stages
    undo_stage, undo_open = draft.get("undo_stage"), draft.get("undo_open")
    while undo_open == 0:
        undo_stage -= 1
        draft.set(undo_stage=undo_stage)
        if undo_stage < 0:
            failed = draft.get("undo_failed")
            _finish(draft, EXECUTION_FAILED if failed else EXECUTION_REVERTED)
            return
        for name in stages[undo_stage]:
            record = draft.step(name)
            if not record.undo:
                continue
            draft.set(has_reverted_steps=True)
            if draft.flow.steps[name].has_compensation:
                undo_open += 1
                start(draft, record, COMPENSATE)
            else:
                reverted = tables.move(tables.COMPENSATE, record.compensate, STEP_REVERTED)
                draft.put(replace(record, compensate=reverted, attempts=1, undone_at=draft.now))
    draft.set(undo_open=undo_open)


# --- the end -------------------------------------------------------------------------------------


def _note_flags(draft: Draft) -> set[StepState]:
    """Keep what is true of the invoking part as a whole, at its end."""
    states = draft.invoke_states()
    draft.set(
        has_skipped_steps=STEP_SKIPPED in states,
        has_skipped_on_failure_steps=STEP_SKIPPED_FAILURE in states,
    )
    return states


def _finish(draft: Draft, state: ExecutionState) -> None:
    draft.to(state)
    if state is EXECUTION_DONE:
        has_failed_steps = not _FAILURES.isdisjoint(_note_flags(draft))
        draft.set(ended_at=draft.now, has_failed_steps=has_failed_steps)
    else:
        draft.set(ended_at=draft.now)
    draft.tell(EVENT_FINISH, detail=str(state))
    draft.effect(Finished(state))
