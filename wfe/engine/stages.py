"""Stages: which one is open, going forward and going backward, and the end of it all.

*Forward*, one stage is open. `open` counts its members that have not settled, `loose` the `no_wait`
members of every opened stage. At open = 0 the next stage opens; behind the last one, at loose = 0,
the execution is done. *Backward*, a pointer descends; at `undo_open` = 0 it goes on. A stage is
never looked at twice, so the cost of a step does not depend on the length of the flow.
"""

from __future__ import annotations

from typing import Any

from wfe.engine import tables
from wfe.engine.draft import Draft
from wfe.engine.events import Abort, Call, Finished
from wfe.model import Action, EventKind, ExecutionState, StepRecord, StepState, StepStatus

#: Invoke states after which a step may have had an effect, and is undone.
_UNDOABLE = frozenset({StepState.DONE, StepState.FAILED, StepState.TIMEOUT})


def start(draft: Draft, record: StepRecord, action: Action) -> None:
    """The next attempt of a step.

    One handler at most is at work on a step: where an overtaken one has not ended, it is aborted
    and the step is held until its end.
    """
    if record.running:
        draft.put(record, held=True, retry_at=None)
        draft.effect(Abort(record.name))
        return
    fields: dict[str, Any] = {
        "attempts": record.attempts + 1,
        "last_attempt_at": draft.now,
        "running": True,
        "retry_at": None,
    }
    if record.awaiting:
        draft.awaiting -= 1
        fields["awaiting"] = False
    if action is Action.INVOKE:
        if record.invoke is StepState.NOT_STARTED:
            fields["invoke"] = tables.move(tables.INVOKE, record.invoke, StepState.INVOKING)
            fields["started_at"] = draft.now
        fields["invoke_status"] = tables.move(
            tables.STATUS, record.invoke_status, StepStatus.WAITING_RESPONSE
        )
    else:
        if record.compensate is StepState.NOT_STARTED:
            fields["compensate"] = tables.move(
                tables.COMPENSATE, record.compensate, StepState.COMPENSATING
            )
        fields["compensate_status"] = tables.move(
            tables.STATUS, record.compensate_status, StepStatus.WAITING_RESPONSE
        )
    record = draft.put(record, **fields)
    draft.running += 1
    draft.tell(EventKind.STEP_BEGIN, record, action=action)
    options = draft.options(record)
    answers_later = options.async_ if action is Action.INVOKE else options.compensate_async
    draft.effect(Call(record.name, action, record.attempts, holds_caller=not answers_later))


# --- forward -------------------------------------------------------------------------------------


def advance(draft: Draft) -> None:
    """Open stages until one has a member to wait for; finish behind the last."""
    stages = draft.flow.stages
    while draft.open == 0:
        if draft.stage + 1 == len(stages):
            if draft.loose == 0:
                _finish(draft, ExecutionState.DONE)
            return
        draft.stage += 1
        for name in stages[draft.stage]:
            record = draft.step(name)
            if record.invoke is StepState.SKIPPED_FAILURE:
                continue
            if draft.options(record).no_wait:
                draft.loose += 1
            else:
                draft.open += 1
            start(draft, record, Action.INVOKE)


def settle(draft: Draft, record: StepRecord) -> None:
    """A member of an opened stage has come to its end: go on, or turn once nothing is in flight."""
    if draft.options(record).no_wait:
        draft.loose -= 1
    else:
        draft.open -= 1
    if draft.state is ExecutionState.INVOKING:
        advance(draft)
    else:
        compensate_if_quiet(draft)


# --- backward ------------------------------------------------------------------------------------


def compensate_if_quiet(draft: Draft) -> None:
    """Begin to undo, where that is to be done and nothing is in flight any more."""
    if draft.state is not ExecutionState.WAITING_TO_COMPENSATE or draft.open + draft.loose > 0:
        return
    draft.to(ExecutionState.COMPENSATING)
    draft.tell(EventKind.COMPENSATE_BEGIN)
    _note_flags(draft)
    for record in draft.touched():
        if record.invoke in _UNDOABLE:
            draft.put(
                record,
                undo=True,
                compensate=tables.move(tables.COMPENSATE, record.compensate, StepState.NOT_STARTED),
                attempts=0,
                failures=0,
                awaiting_retries=0,
            )
    draft.undo_stage = len(draft.flow.stages)
    _descend(draft)


def undo_settled(draft: Draft) -> None:
    """A step of the stage being undone has come to its end."""
    draft.undo_open -= 1
    _descend(draft)


def _descend(draft: Draft) -> None:
    """Undo stages, the latest first, until one has a member to wait for."""
    stages = draft.flow.stages
    while draft.undo_open == 0:
        draft.undo_stage -= 1
        if draft.undo_stage < 0:
            failed = draft.get("undo_failed")
            _finish(draft, ExecutionState.FAILED if failed else ExecutionState.REVERTED)
            return
        for name in stages[draft.undo_stage]:
            record = draft.step(name)
            if not record.undo:
                continue
            draft.set(has_reverted_steps=True)
            if draft.flow.steps[name].has_compensation:
                draft.undo_open += 1
                start(draft, record, Action.COMPENSATE)
            else:
                reverted = tables.move(tables.COMPENSATE, record.compensate, StepState.REVERTED)
                draft.put(record, compensate=reverted, attempts=1, undone_at=draft.now)


# --- the end -------------------------------------------------------------------------------------


def _note_flags(draft: Draft) -> set[StepState]:
    """Keep what is true of the invoking part as a whole, at its end."""
    states = {record.invoke for record in draft.touched()}
    draft.set(
        has_skipped_steps=StepState.SKIPPED in states,
        has_skipped_on_failure_steps=StepState.SKIPPED_FAILURE in states,
    )
    return states


def _finish(draft: Draft, state: ExecutionState) -> None:
    draft.to(state)
    draft.set(ended_at=draft.now)
    if state is ExecutionState.DONE:
        states = _note_flags(draft)
        draft.set(has_failed_steps=not states.isdisjoint({StepState.FAILED, StepState.TIMEOUT}))
    draft.tell(EventKind.FINISH, detail=str(state))
    draft.effect(Finished(state))
