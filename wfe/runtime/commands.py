"""Commands: a command on an execution, from its key to what its caller gets back.

Finds the execution, hands the event to the driver, waits for what the caller waits for, and raises or
returns what it came to. What each command means is the machine's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from wfe.clock import Clock, monotonic
from wfe.engine.events import Begin, Cancel, Due, Event, Resume, Retry
from wfe.errors import (
    IdempotencyConflict,
    NotAccepted,
    NotFound,
    Refused,
    SkipExecutionError,
    StepNotWaiting,
    TransactionExists,
    TransactionFinished,
    TransactionNotFound,
    UsageError,
    WfeError,
    WrongAction,
)
from wfe.model import (
    Acknowledgement,
    CommandResult,
    EventKind,
    Execution,
    ExecutionKey,
    ExecutionState,
    Json,
    StepKey,
    StepStatus,
    TimelineEvent,
)
from wfe.runtime.audiences import Audiences, Until
from wfe.runtime.directory import REFUSE, Directory, OnChange
from wfe.runtime.driver import Driver
from wfe.runtime.failures import raised_by
from wfe.runtime.live import Live
from wfe.runtime.results import result_of
from wfe.runtime.signals import packed, signal_of, unpacked
from wfe.runtime.subscriptions import Subscriber
from wfe.runtime.watch import Watch
from wfe.store import codec
from wfe.store.contract import CheckpointStore, Peers, Settled
from wfe.store.owners import described

logger = logging.getLogger("wfe")

OnConflict = Literal["attach", "fail", "rerun"]

#: Seconds between two looks at what became of a signal.
_LOOKS = 0.05

#: How often a command gives way to another writer of the same execution before it gives up.
_TRIES = 100

#: A command under way: the execution it is about, and what it came to.
Outcome = tuple[Live, CommandResult]


class Commands:
    """Carries out the commands of an engine."""

    def __init__(
        self,
        store: CheckpointStore,
        clock: Clock,
        driver: Driver,
        directory: Directory,
        audiences: Audiences,
        watch: Watch,
        patience: float,
    ) -> None:
        self._store = store
        #: Seconds that another engine has to accept a command.
        self._patience = patience
        self._clock = clock
        self._driver = driver
        self._directory = directory
        self._audiences = audiences
        self._watch = watch

    # --- new, or known -----------------------------------------------------------------------

    def begin(
        self, live: Live, until: Until, handler: Subscriber | None
    ) -> Awaitable[CommandResult]:
        """Begin a new execution; what it comes to is to be awaited."""
        if until == "stored":
            return self.send(live, Begin(), until, handler)
        if handler is not None:
            live.audience.handlers.append(handler)
        waiter = live.audience.expect(until)
        self._driver.begin(live)
        self._watch.begin()
        return waiter

    async def attach(
        self,
        live: Live,
        payload: Json | None,
        until: Until,
        on_conflict: OnConflict,
        handler: Subscriber | None,
    ) -> CommandResult:
        """Join an execution that exists: wait for what its first caller waits for."""
        execution = live.execution
        head = execution.head
        if on_conflict == "fail":
            raise TransactionExists(*names(head.key), state=str(head.state))
        if payload is not None and not _is_same(payload, execution.input):
            raise IdempotencyConflict(*names(head.key))
        if head.is_final:
            self._tell_finish_again(live, handler)
            return result_of(execution)
        event = self._going_on(live)
        if event is not None:
            return await self.send(live, event, until, handler)
        if handler is not None:
            live.audience.handlers.append(handler)
        return await self.wait(live, until)

    async def wait(self, live: Live, until: Until) -> CommandResult:
        """Wait for an execution that somebody else may be driving."""
        if until == "stored":
            if not live.is_foreign:
                self._driver.rest(live)
            return result_of(live.execution)
        waiter = live.audience.expect(until)
        if live.is_foreign:
            self._audiences.release_elsewhere(live.execution)
            self._watch.begin_elsewhere()
        else:
            if not live.is_pumping:
                live.release()
            self._driver.rest(live)
            self._watch.begin()
        return await waiter

    def _tell_finish_again(self, live: Live, handler: Subscriber | None) -> None:
        """A finished execution was asked for once more, and answers with what is stored."""
        state = str(live.execution.head.state)
        entry = TimelineEvent(kind=EventKind.FINISH, time=self._clock.now(), detail=state)
        if handler is not None:
            self._audiences.of(live.key).handlers.append(handler)
        self._audiences.tell(live.execution, entry)
        self._audiences.leave(live.key)

    def _going_on(self, live: Live) -> Event | None:
        """What takes an execution up again that nobody drives, or that waits for a `retry_step`."""
        execution = live.execution
        if live.is_foreign:
            return None
        if execution.head.running and live.is_quiet:
            return Resume()
        wake_at = execution.head.wake_at
        if wake_at is not None and self._clock.now() >= wake_at:
            return Due()
        for name in execution.active:
            record = execution.steps[name]
            if record.held and not execution.head.running:
                return Resume()
            if record.status is StepStatus.TEMP_FAILURE and record.retry_at is None:
                return Retry(step=name, action=record.action)
        return None

    async def existing(
        self, key: ExecutionKey, on_change: OnChange = REFUSE, *, to_take_back: bool = False
    ) -> Live:
        live = await self._directory.open(key, on_change, to_take_back=to_take_back)
        if live is None:
            raise TransactionNotFound(*names(key))
        return live

    async def send(
        self, live: Live, event: Event, until: Until, handler: Subscriber | None
    ) -> CommandResult:
        """Let a command happen, then wait for what its caller waits for.

        Where another engine has the execution in hand, it is waited for that one to accept the
        command, and for the end only with `until="finished"`.
        """
        if live.is_foreign:
            return await self._hand_over(live, event, until, handler)
        self._driver.adopt(live)
        if handler is not None:
            live.audience.handlers.append(handler)
        waiter = None if until == "stored" else live.audience.expect(until)
        head = live.execution.head
        is_left = (head.running or head.held) and live.is_quiet and type(event) is not Resume
        try:
            if is_left and not head.is_final:
                await self._driver.post(live, Resume())
            await self._driver.post(live, event)
            if is_left and head.is_final:
                await self._driver.post(live, Resume())
        except BaseException:
            live.audience.dismiss(waiter, handler)
            self._driver.rest(live)
            raise
        if waiter is None:
            return result_of(live.execution)
        self._watch.begin()
        return await waiter

    async def _hand_over(
        self, live: Live, event: Event, until: Until, handler: Subscriber | None
    ) -> CommandResult:
        """Send a command to the engine that has the execution in hand."""
        peers = self._store.peers
        assert peers is not None
        key, holder = live.key, live.execution.holder
        signal = await peers.send(signal_of(live.execution, event, self._clock.now()))
        settled = await self._settled(peers, signal, key)
        if settled is None:
            assert holder is not None
            raise NotAccepted(*names(key), owner=described(holder), waited=self._patience)
        if settled.refusal is not None:
            refusal = unpacked(settled.refusal)
            if isinstance(event, Cancel) and isinstance(refusal, TransactionFinished):
                raise SkipExecutionError  # what is over now may be taken back
            raise refusal
        found = await self._directory.open(key) or live
        if found.execution.head.is_final or (found.is_foreign and until != "finished"):
            return result_of(found.execution)
        # The holder has died meanwhile: what it has left goes on here.
        left = self._going_on(found)
        if left is not None:
            return await self.send(found, left, until, handler)
        if handler is not None:
            found.audience.handlers.append(handler)
        return await self.wait(found, until)

    async def _settled(self, peers: Peers, signal: int, key: ExecutionKey) -> Settled | None:
        """What became of a signal; None: nothing, for so long."""
        deadline = monotonic() + self._patience
        while (settled := await peers.outcome(signal)) is None and monotonic() < deadline:
            try:
                # Where nobody has the execution in hand any more, this takes it, and the signal.
                now = await self.existing(key)
                if now.execution.head.is_final:
                    # It ended just before the signal came; had it been applied, it would be settled.
                    raise TransactionFinished(*names(key), state=str(now.execution.head.state))
            except (Refused, NotFound) as refusal:
                await peers.settle([Settled(signal, packed(refusal))])
            await asyncio.sleep(_LOOKS)
        return settled

    async def send_to_step(
        self, live: Live, key: StepKey, event: Event, until: Until, handler: Subscriber | None
    ) -> CommandResult:
        """As `send`, for an event that a step was waiting for when it arrived: where another one was
        faster, that is what the refusal says, whatever the faster one has led to."""
        execution = live.execution
        waited = waits(execution, key)
        try:
            return await self.send(live, event, until, handler)
        except (TransactionFinished, WrongAction) as refusal:
            if live.is_foreign:
                found = await self._directory.open(live.key)
                execution = execution if found is None else found.execution
            if not waited or execution.head.cancelled_at is not None:
                raise
            now = execution.step(key.step)
            state, status = now.invoke, now.invoke_status
            raise StepNotWaiting(
                *names(live.key),
                key.step,
                state=str(state),
                status=str(status),
                reason="another answer was faster",
            ) from refusal

    async def conclude(
        self,
        key: ExecutionKey,
        command: Callable[[], Awaitable[tuple[Live, CommandResult]]],
        throw_on_error: bool,
        log_on_error: bool = False,
        *,
        of_cancel: bool = False,
    ) -> CommandResult:
        """Carry out a command, and raise, log or return what it came to."""
        try:
            try:
                live, result = await command()
            except SkipExecutionError:
                live, result = await self._tried_again(command)
        except UsageError:
            raise
        except WfeError as refusal:
            if throw_on_error:
                raise
            return CommandResult(
                acknowledgement=Acknowledgement(
                    workflow_id=key.workflow_id,
                    transaction_id=key.transaction_id,
                    exists=not isinstance(refusal, TransactionNotFound)
                    or isinstance(refusal, TransactionFinished),
                    accepted=False,
                    reason=refusal,
                )
            )
        assert result.execution is not None
        error = raised_by(result.execution, live.audience.causes)
        if of_cancel and result.execution.head.state is not ExecutionState.FAILED:
            error = None
        if error is not None and log_on_error:
            logger.error("Execution %s: %s", key, error)
        if error is not None and throw_on_error:
            raise error
        return result

    async def _tried_again(
        self, command: Callable[[], Awaitable[tuple[Live, CommandResult]]]
    ) -> tuple[Live, CommandResult]:
        """Carry out a command once more, because another writer was faster: on what that one has
        made of the execution."""
        for _ in range(_TRIES):
            self._watch.begin()
            with contextlib.suppress(SkipExecutionError):
                return await command()
        return await command()


def waits(execution: Execution, key: StepKey) -> bool:
    """Does the step that a key names wait, at that action, for an answer?"""
    if key.step not in execution.flow.steps:
        return False
    record = execution.step(key.step)
    return record.action is key.action and record.status is StepStatus.WAITING_RESPONSE


def runs_again(execution: Execution, parent_run_id: str | None) -> bool:
    """A finished execution whose id may be used for a new run; not a child of this very run of its
    parent, which is asked for once more only because a process has died."""
    head = execution.head
    if parent_run_id is not None and head.parent_run_id == parent_run_id:
        return False
    return head.is_final and not head.idempotent


def _is_same(payload: Json, stored: Json | None) -> bool:
    """Do two stored inputs mean the same value, whatever the order of their keys?"""
    return stored is not None and (
        payload == stored or codec.decode(payload) == codec.decode(stored)
    )


def names(key: ExecutionKey) -> tuple[str, str]:
    return key.workflow_id, key.transaction_id
