"""Plays the machine by hand: an execution, the calls that are at work, and a clock of its own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from wfe.engine.draft import Draft
from wfe.engine.events import (
    Abort,
    Answer,
    Awaits,
    Begin,
    Call,
    Cancel,
    Due,
    Event,
    Failed,
    Finished,
    Resume,
    Retry,
    Skip,
    Skipped,
    Succeeded,
    Tell,
)
from wfe.engine.machine import apply_to
from wfe.model import (
    Action,
    ErrorRecord,
    EventKind,
    Execution,
    ExecutionState,
    Flow,
    Head,
    StepOptions,
    StepRecord,
    StepSpec,
    TimelineEvent,
    WorkflowOptions,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def flow(
    *stages: str | Iterable[str],
    options: dict[str, dict[str, Any]] | None = None,
    without_undo: Iterable[str] = (),
    **workflow: Any,
) -> Flow:
    """A flow of stages: "a" or ("a", "b"); options by step name."""
    steps = {}
    members = [(stage,) if isinstance(stage, str) else tuple(stage) for stage in stages]
    for number, names in enumerate(members):
        for name in names:
            steps[name] = StepSpec(
                name=name,
                stage=number,
                options=StepOptions(**(options or {}).get(name, {})),
                has_compensation=name not in without_undo,
            )
    return Flow(
        workflow_id="w", stages=tuple(members), steps=steps, options=WorkflowOptions(**workflow)
    )


def execution_of(flow: Flow) -> Execution:
    head = Head(
        execution_id="x",
        workflow_id="w",
        transaction_id="t",
        run_id="r",
        created_at=START,
        updated_at=START,
    )
    return Execution(flow, head)


class Play:
    """An execution in the hands of a test."""

    def __init__(self, flow: Flow, *, begin: bool = True) -> None:
        self.execution = execution_of(flow)
        self.now = START
        #: Calls at work, by step: at most one each.
        self.calls: dict[str, Call] = {}
        #: Every call there was, as "step", or "~step" for its undo.
        self.called: list[str] = []
        self.aborted: list[str] = []
        self.timeline: list[TimelineEvent] = []
        self.finished: list[ExecutionState] = []
        #: The process is about to end: nothing is to start.
        self.is_closing = False
        #: A finished execution has handlers on record that ended with their process, as nobody rewrites
        #: what is final. Whoever takes it back resumes it.
        self.is_left = False
        if begin:
            self.send(Begin())

    @property
    def state(self) -> ExecutionState:
        return self.execution.head.state

    def is_in(self, state: ExecutionState) -> bool:
        """A call, not a comparison of `state`, which a type checker would take to stay as it is."""
        return self.state is state

    def step(self, name: str) -> StepRecord:
        return self.execution.step(name)

    def send(self, event: Event) -> None:
        draft = Draft(self.execution, self.now, holds_back=self.is_closing)
        apply_to(draft, event)
        outcome = draft.outcome()
        self.execution.take(outcome.changes)
        told = []
        for effect in outcome.effects:
            match effect:
                case Call(step, action):
                    assert step not in self.calls, f"two handlers at work on {step}"
                    self.calls[step] = effect
                    self.called.append(("~" if action is Action.COMPENSATE else "") + step)
                case Abort(step):
                    self.aborted.append(step)
                case Tell(entry):
                    told.append(entry)
                case Finished(state):
                    self.finished.append(state)
        assert tuple(told) == outcome.changes.events
        self.timeline += told

    def reopen(self) -> None:
        """The process is gone, with every handler it had, and another one takes over."""
        self.calls.clear()
        self.is_closing = False
        if self.execution.head.is_final:
            self.is_left = self.execution.head.running > 0
        else:
            self.send(Resume())

    def _end(self, step: str) -> dict[str, Any]:
        call = self.calls.pop(step)
        return {"step": step, "action": call.action, "attempt": call.attempt}

    def succeed(self, *steps: str, output: bytes | None = b"1") -> None:
        for step in steps:
            self.send(Succeeded(**self._end(step), output=output, compensate_with=output))

    def fail(self, step: str, message: str = "boom", *, permanent: bool = False) -> None:
        ended = self._end(step)
        error = ErrorRecord(
            action=step, handler_type=ended["action"], name="Error", message=message
        )
        self.send(Failed(**ended, error=error, permanent=permanent))

    def skip(self, step: str) -> None:
        ended = self._end(step)
        self.send(Skipped(step=step, attempt=ended["attempt"]))

    def wait(self, step: str) -> None:
        self.send(Awaits(**self._end(step)))

    def answer(self, step: str, action: Action = Action.INVOKE) -> None:
        self.send(Answer(step=step, action=action, output=b"2", compensate_with=b"2"))

    def answer_error(self, step: str, *, force: bool = False) -> None:
        error = ErrorRecord(action=step, handler_type=Action.INVOKE, name=None, message="no")
        self.send(Answer(step=step, action=Action.INVOKE, error=error, force_permanent=force))

    def retry(self, step: str, action: Action = Action.INVOKE) -> None:
        self.send(Retry(step=step, action=action))

    def skip_waiting(self, step: str, action: Action = Action.INVOKE) -> None:
        self.send(Skip(step=step, action=action, reason="nobody is there"))

    def cancel(self) -> None:
        self.send(Cancel())
        if self.is_left:
            self.is_left = self.execution.head.is_final  # it had nothing to undo
            self.send(Resume(at_work=frozenset(self.calls)))

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.send(Due())

    def to_the_end(self) -> None:
        """Let every handler succeed, one after the other, until none is at work."""
        while self.calls:
            self.succeed(next(iter(self.calls)))

    def told(self, kind: EventKind) -> list[str | None]:
        return [entry.step for entry in self.timeline if entry.kind is kind]
