"""History: an execution as it stood at an entry of its timeline, folded from the entries up to there.

An entry says what happened to a step; what follows from it by the flow alone is filled in: steps that
are skipped behind a failure, steps without an undo that are passed over backwards. Two things that the
timeline does not tell are taken from the execution as it came to be later: whether a failure was for
good (the side has an error and an end), and the moment of a cancel or of the workflow's timeout.

What neither tells, the fold does not know:

- While no entry follows on a cancel, or on the passing of the workflow's timeout (a step is at work),
  the execution still counts as going forward.
- A `sleep` step counts as sleeping from its begin on; until when is not known. Nor is the moment of a
  retry that was to come, or whether an overtaken handler was still at work.
- A condition counts as evaluated as soon as a step in it has begun.
- An execution that was carried over to a changed definition has, in all of its past, the steps that it
  has now: what happened to others is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from wfe.errors import UsageError
from wfe.model import (
    Action,
    ErrorRecord,
    EventKind,
    Execution,
    ExecutionState,
    StepKind,
    StepRecord,
    StepSpec,
    StepState,
    StepStatus,
    TimelineEvent,
)

_TIMEOUTS = ("TransactionStepTimeoutError", "TransactionTimeoutError")
_FAILED = (StepState.FAILED, StepState.TIMEOUT)
_UNDOABLE = (StepState.DONE, *_FAILED)
_UNDONE = (StepState.REVERTED, StepState.FAILED)


def at(execution: Execution, timeline: Sequence[TimelineEvent], position: int) -> Execution:
    """The execution right after entry `position` (from 1) of its `timeline`, with the outputs and the
    result that it had then. `execution` is as it is now, or was at any later entry.

    Raises:
        UsageError: the timeline has no such entry.
    """
    if not 1 <= position <= len(timeline):
        raise UsageError(
            f"The timeline of {execution.head.key} has no entry {position}.",
            hint=f"It has 1 to {len(timeline)}." if timeline else "It is empty.",
        )
    past = _Past(execution)
    for entry in timeline[:position]:
        past.add(entry)
    return past.as_execution(timeline[position - 1].time)


class _Past:
    """What had happened so far."""

    def __init__(self, later: Execution) -> None:
        self._later = later
        self._flow = later.flow
        #: By step and side: what it failed with for good, in the end.
        self._errors = {(e.action, e.handler_type): e for e in later.head.errors}
        self._steps: dict[str, StepRecord] = {}
        #: Steps whose invoke is under way.
        self._open: dict[str, None] = {}
        self._state = ExecutionState.NOT_STARTED
        self._started_at: datetime | None = None
        self._ended_at: datetime | None = None
        self._is_cancelled = self._is_late = False
        self._was_done = False
        #: The invoking part is over: what is true of it as a whole is known.
        self._is_summed_up = False
        self._undo_stage = -1

    def add(self, entry: TimelineEvent) -> None:
        """Let one more thing happen."""
        self._give_up_by(entry.time)
        match entry.kind:
            case EventKind.BEGIN:
                self._state, self._started_at = ExecutionState.INVOKING, entry.time
            case EventKind.COMPENSATE_BEGIN:
                self._turn_back(entry.time)
            case EventKind.FINISH:
                assert entry.detail is not None
                self._state, self._ended_at = ExecutionState(entry.detail), entry.time
                self._was_done |= self._state is ExecutionState.DONE
                self._is_summed_up = True
            case EventKind.TIMEOUT | EventKind.RESUME | EventKind.PROGRESS | EventKind.NOTICE:
                pass  # the failures of the steps have said it; nothing follows
            case _:
                self._add_to_step(entry)
        self._drop_retries(entry.time)

    def as_execution(self, moment: datetime) -> Execution:
        head, records = self._later.head, self._steps.values()
        states = {record.invoke for record in records} if self._is_summed_up else set()
        then = replace(
            head,
            state=self._state,
            updated_at=moment,
            started_at=self._started_at,
            ended_at=self._ended_at,
            cancelled_at=head.cancelled_at if self._is_cancelled else None,
            timed_out=self._is_late,
            wake_at=None,
            owner=None,
            errors=tuple(error for error in head.errors if self._has_happened(error)),
            guards={name: held for name, held in head.guards.items() if name in self._guards()},
            running=sum(record.running for record in records),
            awaiting=sum(record.awaiting for record in records),
            undo_failed=any(record.compensate is StepState.FAILED for record in records),
            has_failed_steps=self._was_done and not states.isdisjoint(_FAILED),
            has_skipped_steps=StepState.SKIPPED in states,
            has_skipped_on_failure_steps=StepState.SKIPPED_FAILURE in states,
            has_reverted_steps=any(record.undo for record in records),
        )
        result = self._later.result if self._state is ExecutionState.DONE else None
        return Execution(self._flow, then, input=self._later.input, steps=records, result=result)

    def _has_happened(self, error: ErrorRecord) -> bool:
        if error.action is None:  # of the result, which comes with the end in `done`
            return self._was_done
        record = self._step(error.action)
        undoes = error.handler_type is Action.COMPENSATE
        return (record.compensate if undoes else record.invoke) in _FAILED

    def _guards(self) -> set[str]:
        begun = [name for name, record in self._steps.items() if record.started_at is not None]
        return {guard for name in begun for guard in self._spec(name).guards}

    # --- steps -----------------------------------------------------------------------------------

    def _step(self, name: str) -> StepRecord:
        known = self._steps.get(name)
        return known or StepRecord(name=name, stage=self._spec(name).stage)

    def _spec(self, name: str) -> StepSpec:
        """The flow's; something to go by for a step that it has no longer, or under another name."""
        return self._flow.steps.get(name) or StepSpec(name=name, stage=len(self._flow.stages))

    def _of_later(self, name: str) -> StepRecord:
        return self._later.steps.get(name) or StepRecord(name=name, stage=self._spec(name).stage)

    def _put(self, record: StepRecord, **fields: Any) -> None:
        record = self._steps[record.name] = replace(record, **fields)
        if record.invoke is StepState.INVOKING:
            self._open[record.name] = None
        else:
            self._open.pop(record.name, None)

    def _add_to_step(self, entry: TimelineEvent) -> None:
        assert entry.step is not None
        record, moment = self._step(entry.step), entry.time
        match entry.kind:
            case EventKind.STEP_BEGIN:
                self._begin(record, entry)
            case EventKind.STEP_AWAITING:
                self._put(record, running=False, awaiting=True)
            case EventKind.STEP_SUCCESS:
                record = self._with_output(record)
                self._end(record, StepState.DONE, StepStatus.OK, ended_at=moment)
            case EventKind.STEP_SKIPPED:
                reason = self._of_later(record.name).reason
                self._end(record, StepState.SKIPPED, StepStatus.OK, ended_at=moment, reason=reason)
            case EventKind.COMPENSATE_STEP_SUCCESS:
                self._end(record, StepState.REVERTED, StepStatus.OK, undone_at=moment)
                self._pass_over_backwards(moment)
            case _:
                self._fail(record, entry)

    def _begin(self, record: StepRecord, entry: TimelineEvent) -> None:
        sleeps = self._spec(record.name).kind is StepKind.SLEEP
        fields: dict[str, Any] = {
            "attempts": entry.attempt or 1,
            "last_attempt_at": entry.time,
            "running": True,
            "awaiting": False,
        }
        if entry.action is Action.COMPENSATE:
            fields["compensate"] = StepState.COMPENSATING
            fields["compensate_status"] = StepStatus.WAITING_RESPONSE
        else:
            fields["invoke"] = StepState.INVOKING
            fields["invoke_status"] = StepStatus.WAITING_RESPONSE
            fields["started_at"] = record.started_at or entry.time
            fields |= {"sleeping": True, "running": False} if sleeps else {}
        self._put(record, **fields)

    def _with_output(self, record: StepRecord) -> StepRecord:
        later = self._of_later(record.name)
        return replace(record, output=later.output, compensate_with=later.compensate_with)

    def _end(self, record: StepRecord, state: StepState, status: StepStatus, **fields: Any) -> None:
        """The present side of a step is over."""
        if record.action is Action.COMPENSATE:
            side = {"compensate": state, "compensate_status": status}
        else:
            side = {"invoke": state, "invoke_status": status}
        self._put(record, running=False, awaiting=False, sleeping=False, **side, **fields)

    # --- failures --------------------------------------------------------------------------------

    def _fail(self, record: StepRecord, entry: TimelineEvent) -> None:
        assert entry.error is not None
        moment, undoes = entry.time, record.action is Action.COMPENSATE
        record = replace(record, failures=record.failures + 1, error=entry.error)
        error = self._error_by(record, moment)
        if entry.error.name == "ExecutionCancelled":  # no failure of the step, so nothing follows
            self._end_badly(record, StepState.FAILED, ended_at=moment)
        elif error is None:
            side = "compensate_status" if undoes else "invoke_status"
            self._put(record, running=False, awaiting=False, **{side: StepStatus.TEMP_FAILURE})
        elif undoes:
            self._end_badly(record, StepState.FAILED, undone_at=moment, error=error)
            self._pass_over_backwards(moment)
        elif error.name in _TIMEOUTS:
            record = self._with_output(record)  # it may have come to something, but too late
            self._end_badly(record, StepState.TIMEOUT, ended_at=moment, error=error)
            self._go_on_without(record)
        else:
            self._end_badly(record, StepState.FAILED, ended_at=moment, error=error)
            self._go_on_without(record)

    def _end_badly(self, record: StepRecord, state: StepState, **fields: Any) -> None:
        self._end(record, state, StepStatus.PERMANENT_FAILURE, **fields)

    def _error_by(self, record: StepRecord, moment: datetime) -> ErrorRecord | None:
        """What the present side of a step has failed with for good by then, with this attempt."""
        later, side = self._of_later(record.name), record.action
        ended_at = later.undone_at if side is Action.COMPENSATE else later.ended_at
        error = self._errors.get((record.name, side))
        if error is None or ended_at is None or ended_at > moment:
            return None
        return error if error.attempts in (None, record.attempts) else None

    def _go_on_without(self, record: StepRecord) -> None:
        """What the failure of a step does to the rest."""
        options = self._spec(record.name).options
        skip = options.skip_on_permanent_failure
        if self._is_late:
            return
        if skip:
            stages = self._flow.stages
            end = self._spec(skip).stage if isinstance(skip, str) else len(stages)
            for name in (name for stage in stages[record.stage + 1 : end] for name in stage):
                if name not in self._steps:
                    self._put(self._step(name), invoke=StepState.SKIPPED_FAILURE)
        elif not options.continue_on_permanent_failure:
            self._turn()

    # --- turning ---------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Nothing new starts from here on."""
        if self._state in (ExecutionState.INVOKING, ExecutionState.DONE):
            self._state = ExecutionState.WAITING_TO_COMPENSATE

    def _give_up_by(self, moment: datetime) -> None:
        """What came by then, and has no entry: a cancel, the workflow's timeout, and the end of steps
        that are not tried again because of it."""
        head = self._later.head
        if head.cancelled_at is not None and moment >= head.cancelled_at and not self._is_cancelled:
            self._is_cancelled, self._ended_at = True, None
            self._turn()
        due = head.times_out_at if head.timed_out else None
        if due is not None and moment >= due and not self._is_late:
            self._is_late = True
            self._turn()
        for name in list(self._open):
            ended_at = self._of_later(name).ended_at
            if ended_at is not None and ended_at < moment:
                self._give_up(self._step(name), ended_at)

    def _drop_retries(self, moment: datetime) -> None:
        """Steps between two attempts that have failed, because another one has."""
        for name in list(self._open):
            record = self._step(name)
            is_between = record.invoke_status is StepStatus.TEMP_FAILURE
            if is_between and self._error_by(record, moment) is not None:
                self._give_up(record, moment)

    def _give_up(self, record: StepRecord, moment: datetime) -> None:
        error = self._error_by(record, moment) or record.error
        self._end_badly(record, StepState.FAILED, ended_at=moment, error=error)
        self._go_on_without(record)

    def _turn_back(self, moment: datetime) -> None:
        for name in list(self._open):  # in flight when the process died
            self._give_up(self._step(name), moment)
        self._state, self._ended_at = ExecutionState.COMPENSATING, None
        self._is_summed_up = True
        for record in list(self._steps.values()):
            if record.invoke in _UNDOABLE:
                waiting = StepState.NOT_STARTED
                self._put(record, undo=True, compensate=waiting, attempts=0, failures=0)
        self._undo_stage = len(self._flow.stages) - 1
        self._pass_over_backwards(moment)

    def _pass_over_backwards(self, moment: datetime) -> None:
        """Steps without an undo are reverted as soon as all that came after them are."""
        specs = self._flow.steps
        while self._undo_stage >= 0:
            stage = self._flow.stages[self._undo_stage]
            for record in map(self._step, stage):
                is_next = record.undo and record.compensate is StepState.NOT_STARTED
                if is_next and not specs[record.name].has_compensation:
                    self._put(record, compensate=StepState.REVERTED, attempts=1, undone_at=moment)
            if any(self._is_to_be_undone(self._step(name)) for name in stage):
                return
            self._undo_stage -= 1

    @staticmethod
    def _is_to_be_undone(record: StepRecord) -> bool:
        return record.undo and record.compensate not in _UNDONE
