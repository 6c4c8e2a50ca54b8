"""The directory: from a key to a live execution, whether it is in memory, in the store, or new.

Two commands that arrive for one key at the same time find one live execution: a load that is under
way is waited for, and between finding nothing and adopting something new nothing else runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from weakref import WeakSet

import msgspec
from msgspec.structs import replace

from wfe.authoring.registry import Registry
from wfe.authoring.workflows import Workflow
from wfe.clock import Clock
from wfe.engine.events import Event
from wfe.engine.redefinition import carried_over
from wfe.errors import NotFound, Refused
from wfe.model import Execution, ExecutionKey, Head, Json, Recording, StepKey
from wfe.runtime import recording as policy
from wfe.runtime.audiences import Audience, Audiences
from wfe.runtime.driver import Driver
from wfe.runtime.ids import fresh_id
from wfe.runtime.live import Live
from wfe.runtime.signals import event_of, packed
from wfe.runtime.watch import Watch
from wfe.store import codec
from wfe.store.contract import CheckpointStore, Settled, Signal


class OnChange(msgspec.Struct, frozen=True):
    """What is to be done with an execution whose workflow was changed before the point it has
    reached: see `carried_over`."""

    #: Old name of a step → its new one.
    renames: Mapping[str, str] = {}
    #: Go on all the same.
    allow: bool = False


REFUSE = OnChange()


class Directory:
    """Finds and makes the executions that commands are about."""

    def __init__(
        self,
        store: CheckpointStore,
        clock: Clock,
        registry: Registry,
        driver: Driver,
        audiences: Audiences,
        watch: Watch,
        recording: Recording,
        retention_time: float | None,
        on_load: Callable[[Live], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        #: Workflows that commands were given as themselves, be they registered or not.
        self._given: dict[str, Workflow[Any, Any]] = {}
        #: Those that were replaced: who began with one may hand it over still.
        self._former: WeakSet[Workflow[Any, Any]] = WeakSet()
        self._driver = driver
        self._audiences = audiences
        self._watch = watch
        self._recording = recording
        self._retention_time = retention_time
        self._on_load = on_load
        #: Loads under way. Who waits for one goes on before whatever its own command leads to.
        self._opening: dict[ExecutionKey, asyncio.Event] = {}

    def workflow(self, workflow: Workflow[Any, Any] | str) -> Workflow[Any, Any]:
        """The workflow itself, or the one of that id: one that was handed over before, or is registered.

        Raises:
            WorkflowNotFound: none of that id is loaded.
        """
        if isinstance(workflow, str):
            return self._given.get(workflow) or self._registry.get(workflow)
        if self._given.get(workflow.id) is not workflow and workflow not in self._former:
            self._given[workflow.id] = workflow
        return workflow

    def renew(self, registry: Registry) -> None:
        """Mean the workflows of `registry` by their names from now on."""
        present = {registry.get(name) for name in registry.ids()}
        known = {self._registry.get(name) for name in self._registry.ids()}
        self._former = (self._former | known) - present
        for workflow in self._former & set(self._given.values()):
            del self._given[workflow.id]
        self._registry.become(registry)

    def forget(self, workflow_id: str) -> None:
        """Know this workflow no longer.

        Raises:
            WorkflowNotFound: it was not known.
        """
        if self._given.pop(workflow_id, None) is None or workflow_id in self._registry.ids():
            self._registry.remove(workflow_id)

    async def open(
        self, key: ExecutionKey, on_change: OnChange = REFUSE, *, to_take_back: bool = False
    ) -> Live | None:
        """The newest run of `key`, live; a finished one only to be looked at, unless `to_take_back`.
        None: there is none. `on_change`: what to do where its workflow was changed meanwhile.

        Raises:
            WorkflowNotFound: its workflow is not loaded. DefinitionChanged: it is another one now.
        """
        while (opening := self._opening.get(key)) is not None:
            await opening.wait()
        live = self._driver.lives.get(key)
        if live is not None:
            return live
        opening = self._opening[key] = asyncio.Event()
        try:
            execution = await self._store.load(key)
            if execution is None:
                return None
            if self._store.peers is not None:
                await self._watch.catch_up(execution)
            try:
                if execution.head.is_final and not to_take_back:
                    return self._live(execution, Audience())  # nobody will wait for it any more
                live = self._live(execution, self._audiences.of(key))
                if live.is_foreign:
                    return live
                live = await self._by_definition(live, on_change)
            except (NotFound, Refused):
                self._driver.remind(key, None)  # nobody is to be woken for what cannot go on
                raise
            if not live.execution.head.is_final:
                await self._take(live)
            return live
        finally:
            del self._opening[key]
            opening.set()

    async def _take(self, live: Live) -> None:
        """Drive an execution that nobody drives, beginning with what others want of it."""
        head = live.execution.head
        peers = self._store.peers if live.execution.has_signals else None
        pending = [] if peers is None else await peers.pending_of(head.execution_id)
        self._driver.adopt(live)
        self._driver.remind(live.key, head.wake_at)
        self._on_load(live)
        if pending:
            if head.running or head.held:
                # A command is about to drive it: what was left goes on along with it.
                self._driver.resume(live)
            await self._deliver(live, pending)

    async def receive(self, signals: Sequence[Signal]) -> None:
        """Commands have come for executions that are in hand here."""
        by_key: dict[ExecutionKey, list[Signal]] = {}
        for signal in signals:
            by_key.setdefault(signal.key, []).append(signal)
        for key, found in by_key.items():
            live = self._driver.lives.get(key)
            if live is None:
                await self.open(key)  # which finds them itself
            else:
                await self._deliver(live, found)

    async def _deliver(self, live: Live, signals: Sequence[Signal]) -> None:
        known: list[tuple[int, Event]] = []
        for signal in signals:
            try:
                known.append((signal.id, event_of(signal)))
            except Refused as refusal:
                assert self._store.peers is not None
                await self._store.peers.settle([Settled(signal.id, packed(refusal))])
        self._driver.deliver(live, known)

    async def make_way(self, key: ExecutionKey, run_id: str) -> None:
        """A finished run whose own id is used again is replaced."""
        execution = await self._store.load(key, run_id)
        if execution is not None and execution.head.is_final and not execution.head.idempotent:
            await self._store.delete(key, run_id)

    async def _by_definition(self, live: Live, on_change: OnChange) -> Live:
        """The execution by the definition that is loaded, which may not be the one it began with."""
        carried = carried_over(
            live.execution,
            live.workflow.flow,
            self._clock.now(),
            renames=on_change.renames,
            allow_changed=on_change.allow,
        )
        if carried.changes is None:
            return live
        before = live.execution.head
        if not before.is_final:
            await self._store.commit(carried.execution, carried.changes)
        carried.execution.take(carried.changes)
        by_now = self._live(carried.execution, live.audience)
        if before.is_final:
            # A final row is rewritten only by what takes it back: that commit keeps both.
            by_now.saved, by_now.unsaved = before, carried.changes
        return by_now

    def _live(self, execution: Execution, audience: Audience) -> Live:
        head = execution.head
        return Live(
            self.workflow(head.workflow_id),
            execution,
            audience,
            owner=self._driver.owner,
            is_stored=True,
            saved=head,
        )

    def create(
        self,
        workflow: Workflow[Any, Any],
        key: ExecutionKey,
        payload: Json | None,
        *,
        name: str | None,
        run_id: str | None,
        parent: StepKey | None,
        parent_run_id: str | None,
        root: str | None,
        event_group_id: str | None,
        metadata: Mapping[str, Any] | None,
        scheduled_for: datetime | None = None,
    ) -> Live:
        """A new run, live, about to begin. `name` is a fresh ULID, where one is at hand."""
        now = self._clock.now()
        name = name or fresh_id()
        options = workflow.options
        retention_time = options.retention_time
        if retention_time is None and self._recording is Recording.EVERY_STEP:
            retention_time = self._retention_time
        head = Head(
            execution_id=f"wf_exec_{name}",
            workflow_id=key.workflow_id,
            transaction_id=key.transaction_id,
            run_id=run_id or name,
            definition=workflow.flow.hash,
            recording=self._recording,
            retention_time=retention_time,
            idempotent=options.idempotent,
            created_at=now,
            updated_at=now,
            event_group_id=event_group_id or name,
        )
        if parent or parent_run_id or root or metadata or scheduled_for:
            # Apart: few runs have any of these, and a call with so many names is twice as dear.
            head = replace(
                head,
                parent_step_idempotency_key=None if parent is None else str(parent),
                parent_run_id=parent_run_id,
                root=root,
                metadata=codec.decode(codec.encode(metadata or {}, what="metadata")),
                scheduled_for=scheduled_for,
            )
        # A child is kept as long as its root: undoing the step means cancelling the child.
        is_stored = root is not None or policy.is_stored(workflow.flow, self._recording)
        audience = self._audiences.of(key)
        if is_stored:
            audience.told = 0  # others may go on with it, and what they do is told here
        live = Live(
            workflow,
            Execution(workflow.flow, head, input=payload),
            audience,
            owner=self._driver.owner,
            is_stored=is_stored,
            saved=None,
        )
        self._driver.adopt(live)
        return live
