"""What the machine is told, and what it answers.

Events are facts (a handler returned, an answer came, time passed) or commands (retry, cancel).
Effects are what the runtime must do once the changes are safe; it does nothing else.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from wfe.model import Action, Changes, DomainEvent, ErrorRecord, ExecutionState, Json, TimelineEvent


class Begin(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A new execution starts."""


class Succeeded(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A handler of ours returned a value."""

    step: str
    action: Action
    attempt: int
    output: Json | None = None
    compensate_with: Json | None = None
    emitted: tuple[DomainEvent, ...] = ()


class Failed(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A handler of ours raised. `chance` in [0, 1) is what jitter is made of."""

    step: str
    action: Action
    attempt: int
    error: ErrorRecord
    permanent: bool = False
    compensate_with: Json | None = None
    chance: float = 0.0


class Skipped(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The step answered with a skip, or a `when` around it does not hold."""

    step: str
    attempt: int
    reason: str | None = None


class Awaits(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A handler of ours returned, and the step now waits for an answer from outside."""

    step: str
    action: Action
    attempt: int
    compensate_with: Json | None = None


class Sleeps(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A durable timer: the step is done, with output null, at `until`."""

    step: str
    attempt: int
    until: datetime


class Decided(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A `when` condition was evaluated. Kept, so that a restart does not flip it."""

    guard: str
    holds: bool


class Answer(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A step is completed from outside: with an output, or with an error."""

    step: str
    action: Action
    output: Json | None = None
    compensate_with: Json | None = None
    error: ErrorRecord | None = None
    emitted: tuple[DomainEvent, ...] = ()
    #: An error that is not to be retried.
    force_permanent: bool = False
    chance: float = 0.0
    #: Who gave it, in words; of every command. None: nobody in particular.
    by: str | None = None


class Skip(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Go on without a step that waits for an answer, or for its next attempt."""

    step: str
    action: Action
    reason: str | None = None
    by: str | None = None


class Retry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Invoke a step that waits, or is parked, again now."""

    step: str
    action: Action
    by: str | None = None


class Cancel(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Undo everything."""

    by: str | None = None


class Due(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Time has passed: fire every deadline that has come."""


class Resume(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The process that drove the execution is gone: whatever was at work then is lost, but for the
    handlers of `at_work`, which have been called since."""

    at_work: frozenset[str] = frozenset()


Event = (
    Begin
    | Succeeded
    | Failed
    | Skipped
    | Awaits
    | Sleeps
    | Decided
    | Answer
    | Skip
    | Retry
    | Cancel
    | Due
    | Resume
)


class Call(msgspec.Struct, frozen=True, gc=False):
    """Call the step's handler, and report what it came to with the same action and attempt."""

    step: str
    action: Action
    attempt: int
    #: The caller of the engine is held until this one has ended.
    holds_caller: bool


class Abort(msgspec.Struct, frozen=True, gc=False):
    """End the handler that is at work on this step; report its end like any other."""

    step: str


class Tell(msgspec.Struct, frozen=True, gc=False):
    """Tell subscribers. `response` is the output of a step that succeeded."""

    event: TimelineEvent
    response: Json | None = None


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The execution has reached a final state."""

    state: ExecutionState


Effect = Call | Abort | Tell | Finished


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What follows from an event: changes to keep, then effects to carry out in order."""

    changes: Changes
    effects: tuple[Effect, ...]
