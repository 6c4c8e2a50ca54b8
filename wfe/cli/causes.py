"""Causes: why an execution is where it is, in sentences for somebody who was just woken up.

Of an unfinished execution: each step that it waits for, since when, until when, and what can be done
about it; a step that runs another workflow is followed down to what that one waits for. Of a finished
one: what it came to, and because of which step.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from wfe.cli import family, text, ways
from wfe.cli.ways import Command, Way
from wfe.model import (
    Action,
    ErrorRecord,
    Execution,
    ExecutionState,
    StepKey,
    StepRecord,
    StepState,
    StepStatus,
)

if TYPE_CHECKING:
    from wfe.store.contract import Reader

#: How many levels of children are followed.
_DEEPEST = 20


class Cause(NamedTuple):
    """One step that an unfinished execution waits for."""

    #: `answer`, `child`, `parked`, `retry`, `sleep`, `handler`, `lost` or `start`.
    kind: str
    key: StepKey
    sentence: str
    since: datetime | None
    #: When it goes on by itself.
    until: datetime | None
    ways: tuple[Way, ...] = ()
    child: Explanation | None = None


#: The kind of a cause, its sentence, and what can be done.
Reading = tuple[str, str, tuple[Way, ...]]


class Timer(NamedTuple):
    """A moment at which something happens by itself."""

    at: datetime
    what: str


class Explanation(NamedTuple):
    """Why an execution is where it is."""

    execution: Execution
    sentences: tuple[str, ...]
    causes: tuple[Cause, ...]
    #: The earliest first.
    timers: tuple[Timer, ...]
    #: Who has it in hand, or had.
    held_by: str
    error: ErrorRecord | None
    #: What can be done about the execution as a whole.
    ways: tuple[Way, ...]


def explain(
    reader: Reader, execution: Execution, now: datetime, command: Command, *, depth: int = 0
) -> Explanation:
    """Why `execution` is where it is at `now`."""
    if execution.head.is_final:
        from wfe.cli import endings

        return Explanation(
            execution,
            tuple(endings.sentences(execution, now)),
            causes=(),
            timers=(),
            held_by="",
            error=endings.decisive_error(execution),
            ways=tuple(endings.ways_of(execution, command)),
        )
    view = _View(reader, execution, now, command, depth)
    causes = tuple(view.causes())
    return Explanation(
        execution,
        tuple(view.sentences(causes)),
        causes,
        tuple(sorted(view.timers())),
        view.held_by(),
        view.last_error(),
        tuple(view.ways()),
    )


class _View:
    """An unfinished execution at a moment."""

    def __init__(
        self, reader: Reader, execution: Execution, now: datetime, command: Command, depth: int
    ) -> None:
        self._reader = reader
        self._execution = execution
        self._head = execution.head
        self._now = now
        self._command = command
        self._depth = depth

    # --- the execution ---------------------------------------------------------------------------

    def sentences(self, causes: tuple[Cause, ...]) -> Iterator[str]:
        head = self._head
        if head.state in (ExecutionState.WAITING_TO_COMPENSATE, ExecutionState.COMPENSATING):
            begun = head.state is ExecutionState.COMPENSATING
            ahead = "is being undone" if begun else "is to be undone as soon as nothing is at work"
            yield f"It {ahead}, because {self._turned_because()}."
        if not causes:
            yield "Nothing is at work in it, and nothing is waited for: it has to be carried on."
        if head.wake_at is not None and self._execution.holder is None:
            yield "Nobody is there to see to what comes next: carry it on then, or have a wfe serve."
        if head.parent_step_idempotency_key is not None and self._depth == 0:
            yield f"It is the child of {head.parent_step_idempotency_key}."

    def _turned_because(self) -> str:
        head = self._head
        if head.cancelled_at is not None:
            return f"it was cancelled {text.ago(head.cancelled_at, self._now)}"
        if head.timed_out:
            limit = self._execution.flow.options.timeout
            return f"it took longer than {text.elapsed(limit)}"
        errors = self._execution.errors(Action.INVOKE)
        if not errors:
            return "a step failed"
        return f"{errors[0].action} failed: {text.failure(errors[0].name, errors[0].message)}"

    def held_by(self) -> str:
        from wfe.store import owners
        from wfe.store.contract import status_in_hand

        holder, owner = self._execution.holder, self._head.owner
        if holder is not None:
            return f"{owners.described(holder)}, which is alive"
        # Whoever waited for its end has left its name, too; a process that ended in order left nothing
        # at work.
        if owner is None or status_in_hand(self._head) != "running":
            return "nobody: it rests in the database"
        there = owners.is_there(owner)
        why = "is gone" if there is False else "does not answer any more"
        return f"nobody: {owners.described(owner)} {why}"

    def last_error(self) -> ErrorRecord | None:
        """Of the steps that have failed, for now or for good, that of the one that was tried last."""
        bad = (StepState.FAILED, StepState.TIMEOUT)
        failed = [
            record
            for record in self._execution.steps.values()
            if record.error is not None
            and (record.name in self._execution.active or record.invoke in bad)
        ]
        newest = max(failed, key=lambda r: r.last_attempt_at or self._now, default=None)
        return newest.error if newest is not None else None

    def ways(self) -> Iterator[Way]:
        from wfe.store.contract import could_go_on

        head = self._head
        moves = head.wake_at is not None or could_go_on(head, self._now)
        if self._execution.holder is not None:
            yield ways.watch(self._command, head.key)
        elif moves:
            yield ways.carry_on(self._command, head.key)
        if head.state is ExecutionState.INVOKING:
            yield ways.undo(self._command, head.key)
        yield ways.see(self._command, head.key, "--timeline")

    def timers(self) -> Iterator[Timer]:
        execution, head = self._execution, self._head
        forward = head.state is ExecutionState.INVOKING
        if forward and head.times_out_at is not None:
            yield Timer(head.times_out_at, "the workflow runs out of time, and all is undone")
        for name in execution.active:
            record, options = execution.step(name), execution.flow.steps[name].options
            if record.retry_at is not None:
                yield Timer(record.retry_at, _what_comes(record))
            limit = options.timeout
            if forward and limit is not None and record.started_at is not None:
                yield Timer(
                    record.started_at + timedelta(seconds=limit), f"{name} runs out of time"
                )

    # --- its steps -------------------------------------------------------------------------------

    def causes(self) -> Iterator[Cause]:
        for stage in self._execution.flow.stages:
            for name in stage:
                if name in self._execution.active:
                    yield self._cause(self._execution.step(name))

    def _cause(self, record: StepRecord) -> Cause:
        key = StepKey(self._head.workflow_id, self._head.transaction_id, record.name, record.action)
        undo = record.action is Action.COMPENSATE
        name = f"The undo of {record.name}" if undo else record.name
        child = None
        if self._depth < _DEEPEST and record.status is StepStatus.WAITING_RESPONSE:
            child = family.child_of(self._reader, self._execution, record.name)
        if child is not None:
            kind, sentence, found = self._reading_of_child(name, child)
        else:
            kind, sentence, found = self._reading(record, key, name)
        explained = None
        if kind == "child" and child is not None and not child.head.is_final:
            explained = explain(
                self._reader, child, self._now, self._command, depth=self._depth + 1
            )
        return Cause(kind, key, sentence, record.last_attempt_at, record.retry_at, found, explained)

    def _reading_of_child(self, name: str, child: Execution) -> Reading:
        head = child.head
        if not head.is_final:
            return "child", f"{name} waits for its child {head.key}.", ()
        carry_on = ways.carry_on(self._command, self._head.key)
        sentence = (
            f"{name} waits for its child {head.key}, which is {head.state}: it hears of that when "
            "the execution is carried on."
        )
        return "child", sentence, () if self._execution.holder is not None else (carry_on,)

    def _reading(self, record: StepRecord, key: StepKey, name: str) -> Reading:
        """What a step is doing."""
        now, attempt = self._now, self._attempt(record)
        since = text.since(record.last_attempt_at, now)
        if record.running and self._execution.holder is not None:
            return "handler", f"{name} is being executed {since}{attempt}.", ()
        if record.running:
            sentence = (
                f"{name} was being executed{attempt} when its process went away: it is attempted "
                "again, under the same idempotency key, when the execution is carried on."
            )
            return "lost", sentence, ()
        if record.held:
            return "start", f"{name} is about to begin{attempt}, when somebody carries it on.", ()
        if record.awaiting:
            again = record.retry_at
            tail = "" if again is None else f" It is asked again {text.to(again, now)}."
            sentence = f"{name} waits for an answer from outside {since}{attempt}.{tail}"
            found = (*ways.answer(self._command, key), ways.ask_again(self._command, key))
            return "answer", sentence, found
        if record.sleeping:
            return "sleep", f"{name} sleeps, and wakes {text.to(record.retry_at, now)}.", ()
        if record.retry_at is not None:
            sentence = (
                f"{name} has failed{attempt}; it is tried again {text.to(record.retry_at, now)}."
            )
            return "retry", sentence, ways.try_again(self._command, key)
        tried = text.ago(record.last_attempt_at, now)
        sentence = (
            f"{name} has failed{attempt}, last tried {tried}; it is tried again on request only."
        )
        return "parked", sentence, ways.try_again(self._command, key)

    def _attempt(self, record: StepRecord) -> str:
        most = self._execution.flow.steps[record.name].options.max_retries + 1
        if record.attempts <= 1 and most == 1:
            return ""
        return f" (attempt {record.attempts} of {max(most, record.attempts)})"


def _what_comes(record: StepRecord) -> str:
    if record.sleeping:
        return f"{record.name} has slept long enough"
    if record.awaiting:
        return f"{record.name} is asked again"
    undoes = record.compensate is not StepState.DORMANT
    return (
        f"the undo of {record.name} is tried again" if undoes else f"{record.name} is tried again"
    )
