"""Audiences: who in this process waits for an execution, or hears what happens to it.

An audience outlives the live execution: one that only waits is dropped from memory, while its callers
and handlers stay here until it ends, in this process or in another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from wfe.model import (
    CommandResult,
    EventKind,
    Execution,
    ExecutionKey,
    ExecutionState,
    Head,
    Json,
    StepStatus,
    TimelineEvent,
    event_told,
)
from wfe.model import Event as PublicEvent
from wfe.runtime.results import result_of
from wfe.runtime.subscriptions import Subscriber, Subscriptions
from wfe.runtime.values import decoded

#: How long a caller is held: until the command is accepted (nothing is waited for then); until the
#: execution is finished or parked; is finished or waits for nothing but answers from outside; is
#: finished.
Until = Literal["stored", "parked", "waiting", "finished"]


class Audience:
    """Who is interested in one execution."""

    __slots__ = ("causes", "handlers", "told", "waiters")

    def __init__(self) -> None:
        #: Handlers given to commands.
        self.handlers: list[Subscriber] = []
        self.waiters: list[tuple[Until, asyncio.Future[CommandResult]]] = []
        #: By step, the exceptions behind its errors, where they were raised in this process.
        self.causes: dict[str, BaseException] = {}
        #: How many timeline entries were told; None: nobody has looked yet.
        self.told: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.handlers and not self.waiters

    def waits_beyond(self, head: Head) -> bool:
        """Will somebody go on waiting when the execution has come to rest with this head?"""
        return any(
            until == "finished" or (until == "waiting" and head.wake_at is not None)
            for until, waiter in self.waiters
            if not waiter.done()
        )

    def expect(self, until: Until) -> asyncio.Future[CommandResult]:
        """What the execution will have come to when `release` finds that `until` is reached."""
        future: asyncio.Future[CommandResult] = asyncio.get_running_loop().create_future()
        self.waiters.append((until, future))
        return future

    def dismiss(
        self, waiter: asyncio.Future[CommandResult] | None, handler: Subscriber | None
    ) -> None:
        """A command was refused: its caller waits for nothing, and hears nothing."""
        if waiter is not None:
            waiter.cancel()
            if waiter.done() and not waiter.cancelled():
                waiter.exception()  # it is the caller's already, by another way
        self.waiters = [entry for entry in self.waiters if entry[1] is not waiter]
        if handler is not None:
            self.handlers.remove(handler)

    def release(self, execution: Execution, is_reached: Callable[[Until], bool]) -> None:
        """Let go the callers whose moment has come, with the execution as it is now."""
        if not self.waiters:
            return
        staying = []
        for until, waiter in self.waiters:
            if not is_reached(until):
                staying.append((until, waiter))
            elif not waiter.done():
                waiter.set_result(result_of(execution))
        self.waiters = staying

    def fail(self, error: Exception) -> None:
        """Nobody will learn any more what the execution comes to."""
        for _, waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self.waiters = []


class Audiences:
    """The audiences of an engine, and its subscribers."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._audiences: dict[ExecutionKey, Audience] = {}

    def of(self, key: ExecutionKey) -> Audience:
        """The audience of an execution; an empty one where nobody was interested so far."""
        audience = self._audiences.get(key)
        if audience is None:
            audience = self._audiences[key] = Audience()
        return audience

    def leave(self, key: ExecutionKey) -> None:
        """The execution is over, or nobody is interested in it."""
        self._audiences.pop(key, None)

    def fail_one(self, key: ExecutionKey, error: Exception) -> None:
        """Nobody who waits for this execution will learn what it comes to."""
        audience = self._audiences.get(key)
        if audience is not None:
            audience.fail(error)

    def has_patient(self, key: ExecutionKey) -> bool:
        """Does somebody wait for this execution to wait for nothing but answers from outside?"""
        audience = self._audiences.get(key)
        return audience is not None and any(until == "waiting" for until, _ in audience.waiters)

    def waited_for(self) -> list[ExecutionKey]:
        """Executions that somebody waits for."""
        return [key for key, audience in self._audiences.items() if audience.waiters]

    def has_listeners(self, audience: Audience) -> bool:
        """Might anybody hear the events of this audience's execution?"""
        return bool(audience.handlers or self._subscriptions.all)

    def listeners(self, key: ExecutionKey) -> list[Subscriber]:
        """Who hears the events of an execution."""
        audience = self._audiences.get(key)
        handlers = audience.handlers if audience is not None else []
        return self._subscriptions.of(key) + handlers

    def publish(self, event: PublicEvent) -> None:
        """Tell everybody who listens to the execution of this event."""
        key = ExecutionKey(event.workflow_id, event.transaction_id)
        self._subscriptions.publish(key, event, self.listeners(key))

    def tell(
        self, execution: Execution, entry: TimelineEvent, response: Json | None = None
    ) -> None:
        """Tell an entry of the timeline, where anybody listens."""
        key = execution.head.key
        listeners = self.listeners(key)
        if listeners:
            event = public_event(execution, entry, response)
            self._subscriptions.publish(key, event, listeners)

    def release_elsewhere(self, execution: Execution) -> None:
        """Let go whose moment has come, of an execution that is not driven in this process."""
        audience = self.of(execution.head.key)
        audience.release(execution, lambda until: is_reached_elsewhere(execution, until))

    def has_missed(self, execution: Execution) -> bool:
        """Has anything happened that those who listen here were not told?"""
        audience = self.of(execution.head.key)
        if audience.told is None or not self.has_listeners(audience):
            return False
        return audience.told < execution.head.entries

    def catch_up(self, execution: Execution, entries: Sequence[TimelineEvent]) -> None:
        """Another process has driven this execution: tell what was missed, let go whose moment has
        come. `entries` is its whole timeline, where something was missed."""
        audience = self.of(execution.head.key)
        # It may have left, and come again, while the entries were read.
        if audience.told is not None:
            # Nobody counts notices, and nobody is told of them: they come when it is all over.
            told = [entry for entry in entries if entry.kind is not EventKind.NOTICE]
            for entry in told[audience.told :]:
                self.tell(execution, entry, _response(execution, entry))
        audience.told = max(audience.told or 0, execution.head.entries)
        self.release_elsewhere(execution)

    def fail(self, error: Exception) -> None:
        """Nobody who waits will learn what their execution comes to."""
        for audience in self._audiences.values():
            audience.fail(error)

    def close(self, error: Exception) -> None:
        """Nobody will be told anything any more."""
        self.fail(error)
        self._audiences.clear()


def is_reached_elsewhere(execution: Execution, until: Until) -> bool:
    """Is this the moment at which such a caller is released, of an execution that is not driven in
    this process?"""
    if execution.head.is_final:
        return True
    if until == "parked":
        return execution.head.running == 0
    return until == "waiting" and only_waits_outside(execution)


def only_waits_outside(execution: Execution, *, through_children: bool = False) -> bool:
    """Is everything that goes on a wait for somebody: an answer, or a `retry_step`? A step that waits
    for its child is not; `through_children`: that is for the caller to find out."""
    if not through_children and awaited_children(execution):
        return False
    records = [execution.steps[name] for name in execution.active]
    return (
        bool(records)
        and all(
            record.awaiting
            or (record.status is StepStatus.TEMP_FAILURE and record.retry_at is None)
            for record in records
            if not record.running
        )
        and not execution.head.running
    )


def awaited_children(execution: Execution) -> list[ExecutionKey]:
    """The executions that its steps wait for."""
    steps = execution.flow.steps
    found = []
    for name in execution.active:
        child, record = steps[name].child, execution.steps[name]
        if child is not None and record.awaiting and record.compensate_with is not None:
            found.append(ExecutionKey(child, decoded(record.compensate_with)))
    return found


def public_event(
    execution: Execution, entry: TimelineEvent, response: Json | None = None
) -> PublicEvent:
    """A timeline entry as subscribers receive it."""
    head = execution.head
    is_finish = entry.kind is EventKind.FINISH
    is_done = head.state is ExecutionState.DONE
    return event_told(
        head,
        entry,
        response=decoded(response),
        errors=execution.errors() if is_finish else (),
        state=head.state if is_finish else None,
        result=decoded(execution.result) if is_finish and is_done else None,
        parent_step_idempotency_key=head.parent_step_idempotency_key,
        parent_run_id=head.parent_run_id,
    )


def _response(execution: Execution, entry: TimelineEvent) -> Json | None:
    """The output that an entry of the past tells of, as far as it is stored."""
    if entry.kind is EventKind.STEP_SUCCESS and entry.step is not None:
        return execution.step(entry.step).output
    return None
