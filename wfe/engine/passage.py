"""The passage of an execution from one flow to another.

Nothing is decided about the steps themselves. The records move to the places and names that the
loaded flow has for them, and what the head says of them is counted anew; after that the machine goes
on as if the execution had always run by this flow.

Records of steps that the loaded flow does not have are left behind: a store never forgets a record,
so they stay as records of steps that never began, with a reason that says what became of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from wfe.engine.comparison import Names, is_same_step
from wfe.engine.draft import Draft
from wfe.engine.frontier import counted, is_under_way, waits_to_be_undone
from wfe.engine.names import (
    EVENT_RESUME,
    EXECUTION_COMPENSATING,
    EXECUTION_INVOKING,
    EXECUTION_WAITING_TO_COMPENSATE,
    STATUS_OK,
    STATUS_TEMP_FAILURE,
    STEP_DONE,
    STEP_FAILED,
    STEP_NOT_STARTED,
    STEP_REVERTED,
    STEP_SKIPPED,
    STEP_SKIPPED_FAILURE,
    STEP_TIMEOUT,
)
from wfe.model import Changes, Execution, Flow, StepKey, StepOptions, StepRecord

#: Why a step is skipped that execution would have to go back for.
ADDED = "added after the execution had passed"
BROUGHT_FORWARD = "brought forward to where the execution had passed"

_FORWARD = frozenset({EXECUTION_INVOKING, EXECUTION_WAITING_TO_COMPENSATE})
_MAY_HAVE_HAPPENED = frozenset({STEP_DONE, STEP_FAILED, STEP_TIMEOUT})


def changes_of_passage(
    execution: Execution, loaded: Flow, names: Names, now: datetime, *, differs: bool
) -> Changes:
    """What makes an execution go on by `loaded` from `now`, as a commit of its own. `differs`: the
    flows do, up to the point reached."""
    return _Passage(execution, loaded, names, differs=differs).changes(now)


def _has_begun(record: StepRecord) -> bool:
    return record.started_at is not None or record.held


def _is_undone_by_nobody(record: StepRecord) -> bool:
    """It may have had an effect that is still there."""
    return record.invoke in _MAY_HAVE_HAPPENED and record.compensate is not STEP_REVERTED


class _Passage:
    """An execution on its way from one flow to another."""

    def __init__(self, execution: Execution, loaded: Flow, names: Names, *, differs: bool) -> None:
        self._execution = execution
        self._flow = execution.flow
        self._loaded = loaded
        self._names = names
        self._differs = differs
        self._head = execution.head
        self._is_invoking = self._head.state is EXECUTION_INVOKING
        #: Records as they will be, those of the loaded flow by the names that it has.
        self._records: dict[str, StepRecord] = {}
        #: The names, in the loaded flow, of steps that both flows have.
        self._kept = frozenset(
            names.step(name)
            for name, spec in self._flow.steps.items()
            if (other := loaded.steps.get(names.step(name))) and is_same_step(spec, other)
        )
        self._notes: list[str] = []

    def changes(self, now: datetime) -> Changes:
        """The records that change, and a head that the machine sums up."""
        if self._flow.hash != self._loaded.hash:
            self._notes.append("the workflow has changed meanwhile")
        self._move_records()
        stage = self._stage()
        if self._is_invoking:
            if self._differs:
                self._pass_over(stage)
            self._skip_behind_failures(stage)
        self._adapt_waits()
        undo_stage = self._undo_stage()
        if self._head.state is EXECUTION_COMPENSATING:
            self._unflag(undo_stage)
        return self._summed_up(stage, undo_stage, now)

    def _summed_up(self, stage: int, undo_stage: int, now: datetime) -> Changes:
        records, before = self._records, self._execution.steps
        head = replace(
            self._head,
            definition=self._loaded.hash,
            stage=stage,
            undo_stage=undo_stage,
            guards=self._guards(),
            times_out_at=self._times_out_at(),
            # A moment that has passed says nothing any more, so that all deadlines are looked at.
            wake_at=min(now, self._head.updated_at),
        )
        head = counted(head, self._loaded, records.values())
        draft = Draft(Execution(self._loaded, head, steps=records.values()), now, holds_back=True)
        for note in self._notes:
            draft.tell(EVENT_RESUME, detail=note)
        changed = {name: record for name, record in records.items() if before.get(name) != record}
        return replace(draft.outcome().changes, steps=changed)

    # --- records ---------------------------------------------------------------------------------

    def _move_records(self) -> None:
        """Take each record to the name and place that its step has now; leave the others behind."""
        flow, steps = self._flow, self._execution.steps
        for name, record in steps.items():
            now = self._names.step(name)
            if name in flow.steps and now in self._kept:
                place = self._loaded.steps[now].stage
                self._records[now] = replace(record, name=now, stage=place)
                if now != name:
                    self._note_rename(record, now)
        for name, record in steps.items():
            now = self._names.step(name)
            is_gone = name in flow.steps and now not in self._kept
            if is_gone and _is_undone_by_nobody(record):
                what = "another step now" if name in self._loaded.steps else "no step any more"
                self._notes.append(f"{name} is {what}: what it did is not undone")
            if name not in self._records:
                self._records[name] = self._left_behind(record, now, is_gone=is_gone)

    def _left_behind(self, record: StepRecord, now: str, *, is_gone: bool) -> StepRecord:
        """What stays under a name that no step both flows have is called by."""
        name = record.name
        if name in self._loaded.steps:
            # Another step is called so. It begins afresh, where it has not been passed.
            return StepRecord(name=name, stage=self._loaded.steps[name].stage)
        if is_gone:
            reason = f"taken out of the workflow when it was {record.state}"
            emitted = record.emitted
            return StepRecord(name=name, stage=record.stage, reason=reason, emitted=emitted)
        if name in self._flow.steps:
            return StepRecord(name=name, stage=record.stage, reason=f"renamed to {now}")
        return record

    def _note_rename(self, record: StepRecord, now: str) -> None:
        note = f"{record.name} is called {now} from here on"
        if is_under_way(record):
            head = self._head
            key = StepKey(head.workflow_id, head.transaction_id, now, record.action)
            note += f", and its key is {key}"
        self._notes.append(note)

    # --- the point reached -----------------------------------------------------------------------

    def _stage(self) -> int:
        """The stage that is open in the loaded flow."""
        if not self._differs:
            return self._head.stage
        begun = [r.stage for r in self._records.values() if r.name in self._kept and _has_begun(r)]
        return max(begun, default=-1)

    def _pass_over(self, stage: int) -> None:
        """Skip what has not begun up to `stage`; have begin afresh what was skipped so, and is behind
        it now."""
        for number, members in enumerate(self._loaded.stages):
            for name in members:
                record = self._records.get(name)
                if record is not None and _has_begun(record):
                    continue
                state = STEP_NOT_STARTED if record is None else record.invoke
                if number <= stage and state is STEP_NOT_STARTED:
                    self._skip(name)
                elif number > stage and state is STEP_SKIPPED:
                    self._records[name] = StepRecord(name=name, stage=number)

    def _skip(self, name: str) -> None:
        reason = BROUGHT_FORWARD if name in self._kept else ADDED
        other = self._other_of_that_name(name)
        self._records[name] = StepRecord(
            name=name,
            stage=self._loaded.steps[name].stage,
            invoke=STEP_SKIPPED,
            invoke_status=STATUS_OK,
            output=None if other is None else other.output,
            emitted=() if other is None else other.emitted,
            reason=reason,
        )
        self._notes.append(f"{name} was {reason}: it is skipped")

    def _other_of_that_name(self, name: str) -> StepRecord | None:
        """The record of another step that was called so until now."""
        is_other = name in self._flow.steps and name not in self._kept
        is_other = is_other and self._names.step(name) == name
        return self._execution.steps.get(name) if is_other else None

    def _skip_behind_failures(self, stage: int) -> None:
        """What a failed step had skipped of the stages behind it is skipped of the present ones."""
        for record in self._execution.steps.values():
            now = self._names.step(record.name)
            if now not in self._kept or record.invoke not in (STEP_FAILED, STEP_TIMEOUT):
                continue
            until = self._skipped_until(record)
            for members in self._loaded.stages[max(stage, self._records[now].stage) + 1 : until]:
                for name in members:
                    later = self._records.get(name) or StepRecord(
                        name=name, stage=self._loaded.steps[name].stage
                    )
                    if later.invoke is STEP_NOT_STARTED:
                        self._records[name] = replace(later, invoke=STEP_SKIPPED_FAILURE)

    def _skipped_until(self, failed: StepRecord) -> int:
        """The stage of the loaded flow up to which the failure of a step skips; 0: it does not."""
        skip = self._flow.steps[failed.name].options.skip_on_permanent_failure
        if not skip:
            return 0
        if skip is True:
            end, until = len(self._flow.stages), len(self._loaded.stages)
        else:
            target = self._loaded.steps.get(self._names.step(skip))
            end, until = self._flow.steps[skip].stage, 0 if target is None else target.stage
        behind = [n for members in self._flow.stages[failed.stage + 1 : end] for n in members]
        # The option may have been given only after it had failed, and been passed over.
        has_skipped = all(self._execution.step(n).invoke is not STEP_NOT_STARTED for n in behind)
        return until if has_skipped else 0

    # --- options ---------------------------------------------------------------------------------

    def _adapt_waits(self) -> None:
        """A step under way waits only for what its options have it wait for."""
        for record in list(self._records.values()):
            spec = self._loaded.steps.get(record.name)
            if spec is not None and is_under_way(record):
                self._records[record.name] = _waiting(record, spec.options)

    # --- the head ---------------------------------------------------------------------------------

    def _undo_stage(self) -> int:
        """The stage being undone: all that is still to be undone comes before it."""
        if self._head.state is not EXECUTION_COMPENSATING or not self._differs:
            return self._head.undo_stage
        records = self._records.values()
        waiting = [r.stage + 1 for r in records if waits_to_be_undone(r)]
        return max([*waiting, *(r.stage for r in records if is_under_way(r))])

    def _unflag(self, undo_stage: int) -> None:
        """What has begun to be undone must not be come upon again, on the way down from there."""
        for record in list(self._records.values()):
            if record.undo and record.stage < undo_stage and not waits_to_be_undone(record):
                self._records[record.name] = replace(record, undo=False)

    def _guards(self) -> dict[str, bool]:
        """What was decided of the conditions that are the same: a name that is counted, such as
        `when-2`, may be another's now. A step that has it in both flows tells."""
        same = set()
        for name, spec in self._flow.steps.items():
            now = self._names.step(name)
            if now in self._kept:
                same |= {*self._names.guards_of(spec)} & {*self._loaded.steps[now].guards}
        decided = {self._names.guard(name): held for name, held in self._head.guards.items()}
        return {name: held for name, held in decided.items() if name in same}

    def _times_out_at(self) -> datetime | None:
        head, timeout = self._head, self._loaded.options.timeout
        is_fixed = head.state not in _FORWARD or head.timed_out or head.started_at is None
        if is_fixed or timeout == self._flow.options.timeout:
            return head.times_out_at
        assert head.started_at is not None
        return None if timeout is None else head.started_at + timedelta(seconds=timeout)


def _waiting(record: StepRecord, options: StepOptions) -> StepRecord:
    """A step under way, with its wait as the options have it. They count from the next attempt on; but
    where they know no such wait, nobody would ever end it."""
    if record.awaiting:
        is_repeated = options.retry_interval_awaiting is not None
        return record if is_repeated else replace(record, retry_at=None)
    if record.status is not STATUS_TEMP_FAILURE or record.held:
        return record
    if options.auto_retry:
        waits_on = options.retry_interval > 0 and record.retry_at is not None
        return record if waits_on else replace(record, retry_at=None, held=True)
    return record if options.retry_interval > 0 else replace(record, retry_at=None)
