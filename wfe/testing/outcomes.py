"""What a test looks at: a run with its outcome, its events, and its timeline in short words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from wfe.model import (
    Action,
    CommandResult,
    DomainEvent,
    ErrorRecord,
    Event,
    EventKind,
    Execution,
    ExecutionState,
)
from wfe.runtime.failures import raised_by
from wfe.runtime.values import Outputs

_WORDS = {
    EventKind.STEP_SUCCESS: "{}",
    EventKind.STEP_FAILURE: "{}!",
    EventKind.STEP_AWAITING: "{}?",
    EventKind.STEP_SKIPPED: "({})",
    EventKind.COMPENSATE_STEP_SUCCESS: "{}",
    EventKind.COMPENSATE_STEP_FAILURE: "{}!",
}


def timeline(events: Iterable[Event]) -> list[str]:
    """What the steps came to, in order, a word each.

    `charge` succeeded, `charge!` an attempt failed, `charge?` it waits for an answer, `(charge)` it
    was skipped; `~charge` and `~charge!` are its undo. A step of another workflow than that of the
    first event, such as a nested one, is written `other-workflow/charge`.
    """
    words = []
    home: str | None = None
    for event in events:
        home = home or event.workflow_id
        if event.kind in _WORDS and event.step is not None:
            word = step_word(event.workflow_id, event.step, event.action, home=home)
            words.append(_WORDS[event.kind].format(word))
    return words


def step_word(workflow_id: str, step: str, action: str | None, *, home: str) -> str:
    """`charge`, `~charge` where its undo is meant, `other-workflow/charge` where it is not at home."""
    place = "" if workflow_id == home else f"{workflow_id}/"
    return f"{'~' if action == Action.COMPENSATE else ''}{place}{step}"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a workflow, as a test looks at it."""

    #: What the last command returned.
    outcome: CommandResult
    #: All events, those of nested workflows included.
    events: tuple[Event, ...] = ()
    #: What steps have emitted and an end in `done` has released.
    emitted: tuple[DomainEvent, ...] = ()

    @property
    def execution(self) -> Execution:
        assert self.outcome.execution is not None
        return self.outcome.execution

    @property
    def state(self) -> ExecutionState:
        """It equals its text: `run.state == "done"`."""
        return self.execution.head.state

    @property
    def result(self) -> Any:
        """The workflow's result, as JSON.

        Raises:
            ExecutionError: what the workflow failed by. ValueError: it has not ended.
        """
        error = raised_by(self.execution, {})
        if error is not None:
            raise error
        if not self.state.is_final:
            raise ValueError(f"{self!r} has not ended")
        return self.outcome.result

    @property
    def errors(self) -> tuple[ErrorRecord, ...]:
        """The failures of steps, and of their undos, in the order in which they happened."""
        return self.execution.head.errors

    @property
    def outputs(self) -> Mapping[str, Any]:
        """What the steps returned, by name, as JSON."""
        return dict(Outputs(self.execution))

    @property
    def timeline(self) -> list[str]:
        """See the function `timeline`."""
        return timeline(self.events)

    @property
    def seconds(self) -> float:
        """From its begin to its end, in virtual seconds.

        Raises:
            ValueError: it has not ended.
        """
        head = self.execution.head
        if head.started_at is None or head.ended_at is None:
            raise ValueError(f"{self!r} has not ended")
        return (head.ended_at - head.started_at) / timedelta(seconds=1)

    def __repr__(self) -> str:
        """What a failed assertion shows."""
        words = " ".join(self.timeline)
        errors = "; ".join(f"{error.action}: {error.message}" for error in self.errors)
        return f"<run of {self.execution.head.workflow_id!r}: {self.state}: {words}; {errors}>"
