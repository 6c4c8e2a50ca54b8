"""The engine: what a program, the command line and the tests use to run and command executions.

A façade: it wires the parts of the runtime together and spells out every method with its parameters,
which is what makes it long. `commands` carries them out.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from wfe.authoring.on_finish import Given
from wfe.authoring.registry import Registry, default
from wfe.authoring.responses import NOT_GIVEN, StepResponse
from wfe.authoring.workflows import Workflow
from wfe.clock import Clock, SystemClock
from wfe.engine.events import Answer, Cancel, Event, Resume, Retry, Skip
from wfe.errors import (
    HeldElsewhere,
    NotAllowed,
    NotFound,
    Refused,
    StoreError,
    TransactionFinished,
    TransactionNotFound,
    WfeError,
)
from wfe.model import (
    Action,
    CommandResult,
    DomainEvent,
    Execution,
    ExecutionKey,
    ExecutionState,
    Json,
    Recording,
    StepKey,
    check_transaction_id,
)
from wfe.runtime import recording as policy
from wfe.runtime.audiences import Audiences, Until
from wfe.runtime.calls import Calls
from wfe.runtime.commands import Commands, OnConflict, names, runs_again, waits
from wfe.runtime.contexts import Contexts
from wfe.runtime.directory import Directory, OnChange
from wfe.runtime.driver import Driver
from wfe.runtime.failures import chance, record_of_answer
from wfe.runtime.families import Families
from wfe.runtime.ids import fresh_id
from wfe.runtime.live import Live
from wfe.runtime.nested import Nested
from wfe.runtime.notices import Notices
from wfe.runtime.resources import Resources
from wfe.runtime.results import emitted_by, result_of
from wfe.runtime.subscriptions import EventHandlers, Subscriber, Subscriptions, listeners_of
from wfe.runtime.watch import Watch
from wfe.store import codec
from wfe.store.contract import CheckpointStore, ExecutionSummary, Query
from wfe.store.memory import MemoryStore
from wfe.store.owners import described

logger = logging.getLogger("wfe")

_ACTIONS: Mapping[str, Action] = {str(action): action for action in Action}

#: Receives what the steps of an execution have emitted; may be async.
EventSink = Callable[[Sequence[DomainEvent]], Any]

_Answer = TypeVar("_Answer")


class Engine:
    """Runs workflows and commands executions, in this process and event loop.

        async with Engine() as engine:
            outcome = await engine.run(place_order, {"id": 1})

    `store` keeps checkpoints (None: in memory); `recording` says when they are written;
    `retention_time`, in seconds, is how long finished executions are kept whose workflow does not
    say (None: for good). `def` steps run in at most `max_threads` threads. `event_sink` receives what
    steps have emitted (`ctx.emit`), once their outermost execution is done, and never otherwise.
    `accept_timeout`, in seconds: how long another process that has an execution in hand may take to
    accept a command for it. `on_finish` is told of the ends of executions, as a workflow's option of
    that name, which has precedence (see OnFinish); False: nobody is, whatever workflows say. It never
    delays or fails an execution. Where the end is kept in the store, it is told even if this process
    is gone before: by the next `recover`, or `send_notices`, of an engine with that workflow.
    """

    def __init__(
        self,
        *,
        store: CheckpointStore | None = None,
        clock: Clock | None = None,
        registry: Registry | None = None,
        resources: Mapping[str, Any] | None = None,
        recording: Recording = Recording.REFERENCE,
        retention_time: float | None = None,
        max_threads: int = 32,
        event_sink: EventSink | None = None,
        accept_timeout: float = 30.0,
        on_finish: Given = None,
    ) -> None:
        self._event_sink = event_sink
        self._store = MemoryStore() if store is None else store
        self._clock = SystemClock() if clock is None else clock
        self._registry = default if registry is None else registry
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix="wfe-step")
        self._subscriptions = Subscriptions()
        self._audiences = Audiences(self._subscriptions)
        self._resources = Resources(resources or {}, self._registry)
        self._nested = Nested(self, lambda key: self._driver.is_calling(key))
        calls = Calls(
            self._clock,
            self._threads,
            self._resources,
            Contexts(self._resources.get, self._clock, self._audiences.publish).of,
            lambda live, event: self._driver.post(live, event),
            self._nested,
        )
        self._notices = Notices(self, on_finish, lambda name: self._directory.workflow(name))
        self._driver = Driver(
            self._store,
            self._clock,
            self._audiences,
            perform=calls.perform,
            on_finish=self._finished,
            on_wake=self._wake,
            on_drop=lambda: self._watch.begin(),
            on_hold=lambda: self._watch.begin(),
            on_rest=lambda live: self._families.at_rest(live),
            owes=self._notices.are_owed,
        )
        self._families = Families(self._store, self._driver, self._audiences)
        self._watch = Watch(
            self._store,
            self._audiences,
            self._driver,
            take_up=self._take_up,
            receive=lambda signals: self._directory.receive(signals),
        )
        self._directory = Directory(
            self._store,
            self._clock,
            self._registry,
            self._driver,
            self._audiences,
            self._watch,
            recording,
            retention_time,
            on_load=self._loaded,
        )
        self._commands = Commands(
            self._store,
            self._clock,
            self._driver,
            self._directory,
            self._audiences,
            self._watch,
            accept_timeout,
        )
        self._is_open = False

    # --- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store; idempotent. `async with` does it.

        Raises:
            StoreError: the store cannot be used.
        """
        if not self._is_open:
            await self._store.open()
            self._is_open = True

    def hold_back(self) -> None:
        """Begin no step from now on: what is accepted here is for another engine to drive, such as that
        of `wfe serve`."""
        self._driver.hold_back()

    async def shutdown(self, *, grace: float = 10.0) -> None:
        """Start nothing new, let running steps end for `grace` seconds, then close everything.
        What was cut off is found in flight by whoever takes the execution up again."""
        if not self._is_open:
            return
        self._is_open = False
        self._watch.close()
        deadline = asyncio.get_running_loop().time() + grace
        await self._driver.close(grace)
        await self._notices.close(deadline - asyncio.get_running_loop().time())
        await self._subscriptions.drained()
        await self._resources.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._store.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.shutdown()

    @property
    def store(self) -> CheckpointStore:
        """Where its executions are kept."""
        return self._store

    @property
    def clock(self) -> Clock:
        """The time it goes by."""
        return self._clock

    @property
    def registry(self) -> Registry:
        """The workflows that it knows."""
        return self._registry

    @property
    def is_quiet(self) -> bool:
        """Nothing is at work and no timer is set: whatever goes on, goes on from outside."""
        is_told = self._subscriptions.is_idle and self._notices.is_idle
        return self._driver.is_idle and self._driver.has_no_timers and is_told

    # --- running ---------------------------------------------------------------------------------

    async def run(
        self,
        workflow: Workflow[Any, Any] | str,
        input: Any = NOT_GIVEN,
        *,
        transaction_id: str | None = None,
        run_id: str | None = None,
        throw_on_error: bool = True,
        until: Until = "parked",
        on_conflict: OnConflict = "attach",
        events: EventHandlers | None = None,
        log_on_error: bool = False,
        event_group_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        parent: StepKey | None = None,
        parent_run_id: str | None = None,
        root: str | None = None,
        scheduled_for: datetime | None = None,
        renames: Mapping[str, str] | None = None,
        allow_changed: bool = False,
    ) -> CommandResult:
        """Run a workflow, or attach to its execution of that transaction id.

        Without `transaction_id` the execution gets a fresh one. An unfinished execution of the id is
        attached to (`on_conflict="fail"`: TransactionExists); a finished one of an idempotent
        workflow answers with what is stored; any other finished one is run again, as is every finished
        one with `on_conflict="rerun"`.

        Where the workflow was changed up to the point that an unfinished execution has reached, it is
        refused; `renames` (old name of a step → new one) and `allow_changed` let it go on: see
        `wfe.engine.redefinition`.

        `parent`, `parent_run_id` and `root` are for a workflow that runs as a step of another,
        `scheduled_for` for one that a schedule starts.

        Raises:
            WorkflowNotFound, InvalidInput, InvalidTransactionId: whatever `throw_on_error` says.
            DefinitionChanged: the workflow has other steps than when the execution began.
            ExecutionError: the first error of the execution.
            IdempotencyConflict: the execution of that id has another input.
            StoreError: the store cannot be reached; what was accepted is kept.
        """
        definition = self._directory.workflow(workflow)
        payload: Json | None = None
        if input is not NOT_GIVEN:
            definition.check_input(input)
            payload = codec.encode(input, what="input")
        name: str | None = None
        change: OnChange | None = None
        if transaction_id is None:
            name = fresh_id()
            key = ExecutionKey(definition.id, f"auto-{name}")
        else:
            key = ExecutionKey(definition.id, check_transaction_id(transaction_id))
            change = OnChange(renames or {}, allow_changed)
        # Thousands may be under way: a closure would be an object for each of these names.
        create = partial(
            self._directory.create,
            definition,
            key,
            payload,
            name=name,
            run_id=run_id,
            parent=parent,
            parent_run_id=parent_run_id,
            root=root,
            event_group_id=event_group_id,
            metadata=metadata,
            scheduled_for=scheduled_for,
        )
        command = partial(
            self._begin_or_attach,
            definition,
            key,
            payload,
            create,
            change,
            run_id,
            parent_run_id,
            until,
            on_conflict,
            listeners_of(events),
        )
        return await self._commands.conclude(key, command, throw_on_error, log_on_error)

    async def _begin_or_attach(
        self,
        definition: Workflow[Any, Any],
        key: ExecutionKey,
        payload: Json | None,
        create: Callable[[], Live],
        change: OnChange | None,
        run_id: str | None,
        parent_run_id: str | None,
        until: Until,
        on_conflict: OnConflict,
        handler: Subscriber | None,
    ) -> tuple[Live, CommandResult]:
        """`payload` None: no input was given. `change` None: nobody can know the key yet."""
        if run_id is not None:
            await self._directory.make_way(key, run_id)
        if change is not None:
            live = await self._directory.open(key, change)
            again = on_conflict == "rerun" and live is not None and live.execution.head.is_final
            if live is not None and not again and not runs_again(live.execution, parent_run_id):
                outcome = await self._commands.attach(live, payload, until, on_conflict, handler)
                return live, outcome
        if payload is None:
            definition.check_input(None)
        live = create()
        return live, await self._commands.begin(live, until, handler)

    async def resume(
        self,
        workflow: Workflow[Any, Any] | str,
        transaction_id: str,
        *,
        throw_on_error: bool = True,
        until: Until = "parked",
        events: EventHandlers | None = None,
        renames: Mapping[str, str] | None = None,
        allow_changed: bool = False,
    ) -> CommandResult:
        """Take up an unfinished execution whose process is gone. Steps found in flight are
        attempted again under the same idempotency key; awaiting ones go on waiting. `renames` and
        `allow_changed` as for `run`.

        Raises:
            TransactionNotFound, TransactionFinished
        """
        key = ExecutionKey(self._directory.workflow(workflow).id, transaction_id)

        async def resume() -> tuple[Live, CommandResult]:
            change = OnChange(renames or {}, allow_changed)
            live = await self._commands.existing(key, change)
            if live.execution.head.is_final:
                raise TransactionFinished(*names(key), str(live.execution.head.state))
            if live.is_foreign:
                assert live.execution.holder is not None
                raise HeldElsewhere(*names(key), owner=described(live.execution.holder))
            if live.running:
                return live, await self._commands.attach(
                    live, None, until, "attach", listeners_of(events)
                )
            return live, await self._commands.send(live, Resume(), until, listeners_of(events))

        return await self._commands.conclude(key, resume, throw_on_error)

    async def wait_for(
        self,
        workflow: Workflow[Any, Any] | str,
        transaction_id: str,
        *,
        until: Until = "finished",
        throw_on_error: bool = True,
        events: EventHandlers | None = None,
    ) -> CommandResult:
        """What an execution has come to when `until` is reached, be it now. Starts nothing.

        Raises:
            TransactionNotFound; ExecutionError: the first error of the execution.
        """
        key = ExecutionKey(self._directory.workflow(workflow).id, transaction_id)
        handler = listeners_of(events)

        async def wait() -> tuple[Live, CommandResult]:
            live = await self._commands.existing(key)
            if live.execution.head.is_final:
                return live, result_of(live.execution)
            if handler is not None:
                live.audience.handlers.append(handler)
            return live, await self._commands.wait(live, until)

        return await self._commands.conclude(key, wait, throw_on_error)

    async def take_up(
        self, workflow: Workflow[Any, Any] | str, transaction_id: str
    ) -> CommandResult | None:
        """What an execution came to, where it is finished; otherwise None, and it goes on in case
        that the process which drove it is gone."""
        key = ExecutionKey(self._directory.workflow(workflow).id, transaction_id)
        live = await self._take_up(key)
        return result_of(live.execution) if live and live.execution.head.is_final else None

    async def _take_up(self, key: ExecutionKey) -> Live | None:
        live = await self._directory.open(key)
        if live is not None and not live.execution.head.is_final:
            await self._commands.attach(live, None, "stored", "attach", None)
        return live

    async def interrupted(self, *, limit: int = 1000) -> Sequence[ExecutionKey]:
        """Unfinished executions that could go on and that nobody drives, the oldest first: what
        processes that are gone have left, and what is overdue."""
        return await self._store.interrupted(self._clock.now(), limit=limit)

    async def recover(self, *, limit: int = 1000) -> dict[ExecutionKey, WfeError | None]:
        """Take up everything that is interrupted, as `resume` would; it goes on here, by itself.
        What became of each: None where it goes on, else why it does not. And tell, beside, what is
        owed."""
        keys = await self.interrupted(limit=limit)
        # Together, so that their commits are.
        outcomes = await asyncio.gather(
            *(self._take_up(key) for key in keys), return_exceptions=True
        )
        found: dict[ExecutionKey, WfeError | None] = {}
        for key, outcome in zip(keys, outcomes, strict=True):
            refused = isinstance(outcome, WfeError) and not isinstance(outcome, StoreError)
            if isinstance(outcome, BaseException) and not refused:
                raise outcome
            found[key] = outcome if isinstance(outcome, WfeError) else None
        if not self._notices.is_held_back:
            await self._notices.send(None, wait=False)
        return found

    async def send_notices(
        self, keys: Collection[ExecutionKey] | None = None, *, wait: bool = True
    ) -> int:
        """Tell of the ends that are owed (`keys`: of these executions alone), as far as nobody has
        taken that upon himself and it is known here who is to be told; how many there were. Returns
        when everybody has been told, or could not be; at once, without `wait`.

        Raises:
            StoreError: it is not known what is owed.
        """
        return await self._notices.send(keys, wait=wait)

    def hold_notices(self) -> tuple[ExecutionKey, ...]:
        """Leave what is owed from here on to `send_notices`, or to others. Gives those that were left
        so until now."""
        self._notices.hold_back()
        return tuple(self._notices.left)

    def workflow(self, workflow_id: str) -> Workflow[Any, Any]:
        """A loaded workflow.

        Raises:
            WorkflowNotFound: none of that id is loaded; the message lists near names.
        """
        return self._directory.workflow(workflow_id)

    # --- answering and commanding ----------------------------------------------------------------

    async def set_step_success(
        self,
        key: StepKey | str,
        response: Any = None,
        *,
        throw_on_error: bool = True,
        until: Until = "parked",
        events: EventHandlers | None = None,
        by: str | None = None,
        emitted: tuple[DomainEvent, ...] = (),
    ) -> CommandResult:
        """Complete a step from outside. `response` is its output, and what its compensation
        receives; a StepResponse says both apart. `by`: who says so, in words, for the timeline.
        `emitted` is what it tells the world beside.

        Where another process has the execution in hand, this returns as soon as that one has
        accepted it (with `until="finished"`: at the end). That holds for every command.

        Raises:
            MalformedKey, WorkflowNotFound, InvalidInput (an answer that the step's return annotation
            excludes): whatever `throw_on_error` says.
            StepNotWaiting, WrongAction, StepNotFound, TransactionNotFound, TransactionFinished
            NotAccepted: another process has it in hand, and does not answer. The command is kept.
            ExecutionError: the first error of the execution, where it came to one.
        """
        compensate_with: Any = response
        if isinstance(response, StepResponse):
            compensate_with = response.compensate_with
            response = response.output
            if compensate_with is NOT_GIVEN:
                compensate_with = response

        def event(step: StepKey) -> Event:
            stored = codec.encode(response, what="response")
            return Answer(
                step=step.step,
                action=step.action,
                output=stored,
                compensate_with=codec.encode(compensate_with, what="response")
                if compensate_with is not response
                else (None if response is None else stored),
                emitted=emitted,
                by=by,
            )

        def check(live: Live, step: StepKey) -> None:
            node = live.workflow.nodes[step.step]
            if node.child is None and step.action == Action.INVOKE:
                node.check_answer(codec.decode(codec.encode(response, what="response")))

        return await self._on_step(key, event, throw_on_error, until, events, check)

    async def set_step_failure(
        self,
        key: StepKey | str,
        error: Any,
        *,
        force_permanent_failure: bool = False,
        throw_on_error: bool = True,
        until: Until = "parked",
        events: EventHandlers | None = None,
        by: str | None = None,
    ) -> CommandResult:
        """Report a step as failed from outside. Its retries apply, unless
        `force_permanent_failure`. Raises what `set_step_success` raises."""

        def event(step: StepKey) -> Event:
            return Answer(
                step=step.step,
                action=step.action,
                error=record_of_answer(error, step.step, step.action),
                force_permanent=force_permanent_failure,
                chance=chance(),
                by=by,
            )

        return await self._on_step(key, event, throw_on_error, until, events)

    async def skip_step(
        self,
        key: StepKey | str,
        *,
        reason: str | None = None,
        throw_on_error: bool = True,
        until: Until = "parked",
        events: EventHandlers | None = None,
        by: str | None = None,
    ) -> CommandResult:
        """Go on without a step that waits for an answer, or for its next retry: its output is None,
        it will not be undone. Of a `compensate` key: its undo counts as done. Raises what
        `set_step_success` raises."""

        def event(step: StepKey) -> Event:
            return Skip(step=step.step, action=step.action, reason=reason, by=by)

        return await self._on_step(key, event, throw_on_error, until, events)

    async def retry_step(
        self,
        key: StepKey | str,
        *,
        throw_on_error: bool = True,
        until: Until = "parked",
        events: EventHandlers | None = None,
        by: str | None = None,
    ) -> CommandResult:
        """Attempt a step again that waits for an answer, or for its next retry. Raises what
        `set_step_success` raises."""

        def event(step: StepKey) -> Event:
            return Retry(step=step.step, action=step.action, by=by)

        return await self._on_step(key, event, throw_on_error, until, events)

    async def _on_step(
        self,
        key: StepKey | str,
        event: Callable[[StepKey], Event],
        throw_on_error: bool,
        until: Until,
        events: EventHandlers | None,
        check: Callable[[Live, StepKey], None] | None = None,
    ) -> CommandResult:
        """Send an event to a step; `check` may refuse it, where the step waits for one at all."""
        step = StepKey.parse(key) if isinstance(key, str) else key
        if step.action in _ACTIONS:
            step = replace(step, action=_ACTIONS[step.action])  # it may have been plain text
        self._directory.workflow(step.workflow_id)

        async def command() -> tuple[Live, CommandResult]:
            live = await self._commands.existing(step.execution)
            if check is not None and waits(live.execution, step):
                check(live, step)
            return live, await self._commands.send_to_step(
                live, step, event(step), until, listeners_of(events)
            )

        return await self._commands.conclude(step.execution, command, throw_on_error)

    async def cancel(
        self,
        workflow: Workflow[Any, Any] | str,
        transaction_id: str,
        *,
        wait: bool = False,
        until: Until = "parked",
        throw_on_error: bool = True,
        events: EventHandlers | None = None,
        by: str | None = None,
    ) -> CommandResult:
        """Undo an execution: one that runs, or one that is done and still kept.

        Returns when it is undone or parked; while another caller's step is in flight at once, unless
        `wait` or `until="finished"`.

        Raises:
            NotAllowed: it is being undone already. TransactionFinished, TransactionNotFound
            ExecutionError: a compensation failed for good.
        """
        key = ExecutionKey(self._directory.workflow(workflow).id, transaction_id)

        async def cancel() -> tuple[Live, CommandResult]:
            live = await self._commands.existing(key, to_take_back=True)
            at_once = live.holding > 0 and not wait and until == "parked"
            moment: Until = "stored" if at_once else until
            command = Cancel(by=by)
            return live, await self._commands.send(live, command, moment, listeners_of(events))

        result = await self._commands.conclude(key, cancel, throw_on_error, of_cancel=True)
        failed = result.execution is not None and (
            result.execution.head.state is ExecutionState.FAILED
        )
        acknowledgement = replace(result.acknowledgement, has_failed=failed)
        return replace(result, acknowledgement=acknowledgement)

    # --- looking ---------------------------------------------------------------------------------

    async def get_running_transaction(
        self, workflow: Workflow[Any, Any] | str, transaction_id: str
    ) -> Execution:
        """An unfinished execution, or a kept one of an idempotent workflow.

        Raises:
            TransactionNotFound; TransactionFinished, where it is over.
        """
        key = ExecutionKey(self._directory.workflow(workflow).id, transaction_id)
        live = await self._commands.existing(key)
        self._driver.rest(live)
        head = live.execution.head
        if head.is_final and not head.idempotent:
            raise TransactionFinished(*names(key), str(head.state))
        return live.execution.copy()

    async def list_executions(
        self,
        q: str = "",
        where: Mapping[str, Any] | None = None,
        *,
        order_by: Sequence[str] = ("-created_at",),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[ExecutionSummary]:
        """Stored executions: see `Query` for what the filters mean.

        Raises:
            UsageError: an unknown field or operator.
        """
        query = Query(q=q, where=where or {}, order_by=order_by, limit=limit, offset=offset)
        return list(await self._asked(lambda: self._store.reader.list(query)))

    async def list_and_count_executions(
        self,
        q: str = "",
        where: Mapping[str, Any] | None = None,
        *,
        order_by: Sequence[str] = ("-created_at",),
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[list[ExecutionSummary], int]:
        """A page of stored executions, and how many there are on all pages."""
        query = Query(q=q, where=where or {}, order_by=order_by, limit=limit, offset=offset)
        reader = self._store.reader
        return await self._asked(lambda: (list(reader.list(query)), reader.count(query)))

    async def _asked(self, question: Callable[[], _Answer]) -> _Answer:
        """Ask the store, which may have to look at the disk, off the loop."""
        return await asyncio.get_running_loop().run_in_executor(None, question)

    async def delete(
        self, workflow_id: str, transaction_id: str, run_id: str | None = None
    ) -> None:
        """Forget a finished run (None: the newest); with the last of its id go the children. The
        workflow need not be loaded.

        Raises:
            TransactionNotFound: there is none. NotAllowed: it is not finished.
        """
        key = ExecutionKey(workflow_id, transaction_id)
        execution = await self._store.load(key, run_id)
        if execution is None:
            raise TransactionNotFound(*names(key))
        head = execution.head
        if not head.is_final:
            raise NotAllowed(*names(key), command="deleted", state=str(head.state))
        await self._store.delete(key, head.run_id)
        if await self._store.load(key) is None:
            await self._store.delete_children(key)

    async def clear_expired(self) -> int:
        """Forget finished executions whose retention time has passed; says how many."""
        return await self._store.delete_expired(self._clock.now())

    # --- subscribing -----------------------------------------------------------------------------

    def subscribe(
        self,
        workflow: Workflow[Any, Any] | str,
        subscriber: Subscriber,
        *,
        transaction_id: str | None = None,
        subscriber_id: str | None = None,
    ) -> str:
        """Have `subscriber` called with each event of a workflow, or of one execution until it
        finishes. One of the same id replaces the former. Returns the id."""
        return self._subscriptions.add(_id_of(workflow), transaction_id, subscriber, subscriber_id)

    def unsubscribe(
        self,
        workflow: Workflow[Any, Any] | str,
        subscriber: Subscriber | str,
        *,
        transaction_id: str | None = None,
    ) -> bool:
        """Remove a subscriber, by id or by function; False where there is none."""
        return self._subscriptions.remove(_id_of(workflow), transaction_id, subscriber)

    def unregister(self, workflow_id: str) -> None:
        """Forget a workflow. Executions of it can no longer be commanded.

        Raises:
            WorkflowNotFound: there is none.
        """
        self._directory.forget(workflow_id)

    def renew(self, registry: Registry) -> None:
        """Know the workflows and resources of `registry`, and no others: modules were loaded anew.
        What is at work goes on with what it began with until it comes to rest; from then on what is
        said of changed definitions holds: see `wfe.engine.redefinition`."""
        self._directory.renew(registry)
        self._resources.renew()

    # --- what happens by itself ------------------------------------------------------------------

    def _finished(self, live: Live) -> None:
        self._subscriptions.forget(live.key)
        self._notices.of_end(live)
        head = live.execution.head
        if self._event_sink and head.root is None and head.state is ExecutionState.DONE:
            self._driver.spawn(_released, self._event_sink, emitted_by(live.execution))
        if head.parent_step_idempotency_key is not None:
            self._driver.spawn(self._nested.report, live, result_of(live.execution))
        elif not policy.is_kept(head) and live.workflow.has_children:
            self._driver.spawn(self._store.delete_children, live.key)

    def _loaded(self, live: Live) -> None:
        """An execution is live again: what happened to its children meanwhile is to be heard."""
        if live.workflow.has_children:
            self._driver.spawn(self._nested.catch_up, live)

    def _wake(self, key: ExecutionKey) -> None:
        """A deadline of this execution may have come."""
        self._driver.spawn(self._look_at_deadlines, key)

    async def _look_at_deadlines(self, key: ExecutionKey) -> None:
        try:
            live = await self._directory.open(key)
        except (NotFound, Refused) as error:
            logger.warning("What is due of %s is not done: %s", key, error.message)
            return
        if live is None or live.execution.head.is_final:
            return
        if live.is_foreign:
            self._watch.begin()  # whoever has it in hand looks at its deadlines
        else:
            self._driver.nudge(live)


async def _released(sink: EventSink, events: tuple[DomainEvent, ...]) -> None:
    """Hand what was emitted to the sink; one that raises is logged and changes nothing."""
    if not events:
        return
    try:
        told = sink(events)
        if inspect.isawaitable(told):
            await told
    except Exception:
        logger.exception("The event sink failed")


def _id_of(workflow: Workflow[Any, Any] | str) -> str:
    return workflow if isinstance(workflow, str) else workflow.id
