"""An execution that is being driven in this process, and the handlers that are at work on it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from wfe.authoring.workflows import Workflow
from wfe.engine.events import Call, Event
from wfe.model import Changes, DomainEvent, Execution, ExecutionKey, Head
from wfe.runtime.audiences import Audience, Until, only_waits_outside
from wfe.runtime.values import ExecutionValues


class Running:
    """One handler of ours at work."""

    __slots__ = ("call", "emitted", "in_user_code", "is_aborted", "is_coroutine", "task")

    def __init__(self, call: Call) -> None:
        self.call = call
        #: What it has emitted so far.
        self.emitted: Sequence[DomainEvent] = ()
        self.task: asyncio.Task[None] | None = None
        self.is_coroutine = True
        self.is_aborted = False
        #: Only then may the task be cancelled: it drives the execution otherwise.
        self.in_user_code = False

    def abort(self) -> None:
        """Ask the handler to end. A coroutine is cancelled; a thread sees `ctx.cancelled`."""
        self.is_aborted = True
        if self.task is not None and self.in_user_code and self.is_coroutine:
            self.task.cancel()


_NO_SIGNALS: frozenset[int] = frozenset()

#: An event, who waits for what becomes of it, and the number of the signal it came as.
Posted = tuple[Event, "asyncio.Future[None] | None", "int | None"]


class Live:
    """An execution in memory, with everything that drives it."""

    __slots__ = (
        "audience",
        "deciding",
        "execution",
        "holding",
        "inbox",
        "is_abandoned",
        "is_pump_due",
        "is_pumping",
        "is_stored",
        "key",
        "owner",
        "running",
        "saved",
        "signals",
        "transforms",
        "unsaved",
        "values",
        "workflow",
    )

    def __init__(
        self,
        workflow: Workflow[Any, Any],
        execution: Execution,
        audience: Audience,
        *,
        owner: str,
        is_stored: bool,
        saved: Head | None,
    ) -> None:
        self.key: ExecutionKey = execution.head.key
        self.workflow = workflow
        self.execution = execution
        self.audience = audience
        #: The engine here.
        self.owner = owner
        self.is_stored = is_stored
        #: The head as the store has it; None: it has none yet.
        self.saved = saved
        #: Changes that the recording policy has not had written yet.
        self.unsaved: Changes | None = None
        self.inbox: deque[Posted] = deque()
        #: Numbers of the signals that have been put into the inbox.
        self.signals = _NO_SIGNALS
        self.is_pumping = False
        #: Somebody will drain the inbox soon.
        self.is_pump_due = False
        #: Another writer has gone on with it, or the store is out of reach: drive it no further.
        self.is_abandoned = False
        #: By step: at most one handler each.
        self.running: dict[str, Running] = {}
        #: How many of them hold their callers.
        self.holding = 0
        self.transforms: dict[int, Any] = {}
        self.values = ExecutionValues(execution, self.transforms)
        #: Conditions being evaluated.
        self.deciding: dict[str, asyncio.Future[bool]] = {}

    @property
    def is_foreign(self) -> bool:
        """Another engine has it in hand: it may be looked at here, and commanded by signals."""
        return self.execution.holder is not None and self.execution.holder != self.owner

    @property
    def is_quiet(self) -> bool:
        """Nothing is at work and nothing is about to be."""
        return not (self.running or self.inbox or self.is_pumping)

    @property
    def is_aborting(self) -> bool:
        """An overtaken handler is about to end, and something waits for that."""
        return any(running.is_aborted for running in self.running.values())

    @property
    def may_be_dropped(self) -> bool:
        """Nothing is lost by forgetting it: the store has it all, or it is over."""
        if not self.is_quiet:
            return False
        if self.is_abandoned or self.execution.head.is_final:
            return True
        return self.is_stored and self.unsaved is None

    def is_reached(self, until: Until) -> bool:
        """Is this the moment at which such a caller is released?"""
        if self.execution.head.is_final:
            return True
        if until == "finished" or self.holding or self.inbox or self.is_aborting:
            return False
        return until == "parked" or (not self.running and only_waits_outside(self.execution))

    def release(self) -> None:
        """Let go the callers whose moment has come."""
        self.audience.release(self.execution, self.is_reached)
