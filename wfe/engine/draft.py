"""The draft: an execution as events change it, before anything is kept.

It reads through to the original and collects whole new records, sparsely; the rules of the other
modules write to it and nowhere else. Thrown away, it leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from wfe.engine import tables
from wfe.engine.events import Effect, Outcome, Tell
from wfe.engine.names import (
    EVENT_RESUME,
    EXECUTION_INVOKING,
    EXECUTION_WAITING_TO_COMPENSATE,
    STATUS_TEMP_FAILURE,
    STATUS_WAITING_RESPONSE,
    STEP_INVOKING,
)
from wfe.model import (
    FINAL_STATES,
    Action,
    Changes,
    ErrorRecord,
    EventKind,
    Execution,
    ExecutionState,
    Flow,
    Head,
    Json,
    StepOptions,
    StepRecord,
    StepState,
    TimelineEvent,
)


class Draft:
    """Several events may be applied to one draft; `outcome` sums them up for one commit."""

    __slots__ = (
        "_changed",
        "_effects",
        "_execution",
        "_fields",
        "_keeps_timeline",
        "_timeline",
        "awaiting",
        "by",
        "flow",
        "holds_back",
        "loose",
        "now",
        "open",
        "original",
        "running",
        "stage",
        "state",
    )

    def __init__(
        self,
        execution: Execution,
        now: datetime,
        *,
        holds_back: bool = False,
        keeps_timeline: bool = True,
    ) -> None:
        """`now`: when all of it happens. `holds_back`: no handler is to be called any more; steps that
        would start are held. `keeps_timeline`: False where nobody would read it or hear of it."""
        head = execution.head
        self.holds_back = holds_back
        self._keeps_timeline = keeps_timeline
        self.flow: Flow = execution.flow
        self.original: Head = head
        self.now = now
        #: Who gave the command that is being applied, until an entry of the timeline says so.
        self.by: str | None = None
        #: State and counters as changed so far; other fields of the head by `get` and `set`.
        self.state = head.state
        self.stage, self.open, self.loose = head.stage, head.open, head.loose
        self.running, self.awaiting = head.running, head.awaiting
        self._execution = execution
        self._fields: dict[str, Any] = {}
        self._changed: dict[str, StepRecord] = {}
        self._timeline: list[TimelineEvent] = []
        self._effects: list[Effect] = []

    # --- reading ---------------------------------------------------------------------------------

    def get(self, field: str) -> Any:
        """A field of the head, as changed so far."""
        return self._fields[field] if field in self._fields else getattr(self.original, field)

    def step(self, name: str) -> StepRecord:
        """The record of a step, as changed so far."""
        # As `Execution.step` does it, in place: each step is asked for several times.
        kept = self._execution.steps
        return self._changed.get(name) or kept.get(name) or self.flow.untouched[name]

    def options(self, record: StepRecord) -> StepOptions:
        """The options of a step."""
        return self.flow.steps[record.name].options

    def active(self) -> Iterator[StepRecord]:
        """Steps that have begun and not settled (and perhaps some that just have)."""
        return self._through(self._execution.active)

    def touched(self) -> Iterator[StepRecord]:
        """Every step that has a record."""
        return self._through(self._execution.steps)

    def invoke_states(self) -> set[StepState]:
        """Every state that the invoking side of a touched step is in."""
        changed = self._changed
        states = {record.invoke for record in changed.values()}
        for name, record in self._execution.steps.items():
            if name not in changed:
                states.add(record.invoke)
        return states

    def _through(self, names: dict[str, Any]) -> Iterator[StepRecord]:
        """Records as they are now; the draft may be changed meanwhile."""
        changed, kept = self._changed, self._execution.steps
        fresh = [name for name in changed if name not in names]
        for name in (*names, *fresh):
            yield changed.get(name) or kept[name]

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def is_given_up(self) -> bool:
        """Cancelled or timed out: nothing is tried again, no answer is waited for."""
        return self.get("cancelled_at") is not None or bool(self.get("timed_out"))

    # --- writing ---------------------------------------------------------------------------------

    def put(self, record: StepRecord) -> StepRecord:
        """Make this the record of its step."""
        self._changed[record.name] = record
        return record

    def set(self, **fields: Any) -> None:
        """Replace fields of the head that have no attribute here."""
        self._fields.update(fields)

    def to(self, state: ExecutionState) -> None:
        """Change the state of the execution."""
        self.state = tables.move(tables.EXECUTION, self.state, state)

    def tell(
        self,
        kind: EventKind,
        record: StepRecord | None = None,
        *,
        action: Action | None = None,
        error: ErrorRecord | None = None,
        detail: str | None = None,
        response: Json | None = None,
    ) -> None:
        """Add an entry to the timeline, and tell it to subscribers."""
        if not self._keeps_timeline:
            return
        if self.by is not None and detail is None and kind is not EVENT_RESUME:
            detail, self.by = f"by {self.by}", None
        event = TimelineEvent(
            kind=kind,
            time=self.now,
            step=record.name if record else None,
            action=action,
            attempt=record.attempts if record else None,
            error=error,
            detail=detail,
        )
        self._timeline.append(event)
        self._effects.append(Tell(event, response))

    def effect(self, effect: Effect) -> None:
        """Have the runtime do something once the changes are kept."""
        self._effects.append(effect)

    # --- deadlines -------------------------------------------------------------------------------

    def timeout_of(self, record: StepRecord) -> datetime | None:
        """When the timeout of a step passes; None where it has none or has not begun."""
        limit = self.options(record).timeout
        if limit is None or record.started_at is None:
            return None
        return record.started_at + timedelta(seconds=limit)

    def acts_on_timeout_at(self, record: StepRecord) -> datetime | None:
        """When the passing of a step's timeout must be acted on by itself. A handler that holds its
        caller is not interrupted: it runs to its end and is judged there."""
        if record.invoke is not STEP_INVOKING or not self.has_timeouts:
            return None
        if record.running and not self.options(record).async_:
            return None
        return self.timeout_of(record)

    @property
    def has_timeouts(self) -> bool:
        """Timeouts count until the execution is given up or is being undone."""
        return self.state in _FORWARD and not self.is_given_up

    def _deadlines_of(self, record: StepRecord) -> Iterator[datetime]:
        if record.status in _WAITING_STATUSES:
            if record.retry_at is not None:
                yield record.retry_at
            timeout = self.acts_on_timeout_at(record)
            if timeout is not None:
                yield timeout

    def _wake_at(self) -> datetime | None:
        """The next moment at which something is due.

        All that waits is looked at only where the moment known so far may have lost its meaning.
        """
        if self.is_final:
            return None
        wake_at = self.original.wake_at
        if self.state is not self.original.state or (
            wake_at is not None and self._is_over(wake_at)
        ):
            return self._first_of_all()
        for record in self._changed.values():
            for moment in self._deadlines_of(record):
                if wake_at is None or moment < wake_at:
                    wake_at = moment
        return wake_at

    def _is_over(self, moment: datetime) -> bool:
        """It has passed, or belongs to a step that has changed."""
        if self.now >= moment:
            return True
        before = map(self._execution.steps.get, self._changed)
        return any(moment in self._deadlines_of(record) for record in before if record is not None)

    def _first_of_all(self) -> datetime | None:
        moments = [self.get("times_out_at")] if self.has_timeouts else []
        for record in self.active():
            moments += self._deadlines_of(record)
        return min((moment for moment in moments if moment is not None), default=None)

    # --- what waits for somebody ------------------------------------------------------------------

    def _held(self) -> int:
        """How many steps begin when the execution is taken up."""
        return sum(record.held for record in self.active())

    def _parked(self) -> int:
        """How many steps wait for a `retry_step`."""
        if self.is_final:
            return 0
        return sum(
            record.status is STATUS_TEMP_FAILURE and record.retry_at is None and not record.held
            for record in self.active()
        )

    # --- summing up ------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """What has changed since the original, with the next version, and the effects."""
        original = self.original
        head = replace(
            original,
            version=original.version + 1,
            updated_at=self.now,
            state=self.state,
            stage=self.stage,
            open=self.open,
            loose=self.loose,
            running=self.running,
            awaiting=self.awaiting,
            entries=original.entries + len(self._timeline),
            wake_at=self._wake_at() if self.flow.has_deadlines else None,
        )
        # The others are changed by few events, and a call with so many names is twice as dear.
        if self.holds_back or original.held:
            self._fields["held"] = self._held()
        if self.flow.has_parking or original.parked:
            self._fields["parked"] = self._parked()
        if self._fields:
            head = replace(head, **self._fields)
        changes = Changes(head=head, steps=self._changed, events=tuple(self._timeline))
        return Outcome(changes, tuple(self._effects))


_FORWARD = frozenset({EXECUTION_INVOKING, EXECUTION_WAITING_TO_COMPENSATE})
_WAITING_STATUSES = frozenset({STATUS_WAITING_RESPONSE, STATUS_TEMP_FAILURE})
