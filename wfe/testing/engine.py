"""VirtualEngine: an engine on virtual time for tests that are plain functions.

A command returns when the engine's own does, and everything that follows from it at that moment has
happened. Then time stands still until the test says `advance(seconds)`. What the engine offers beside
is reached by `call`:

    with VirtualEngine() as engine:
        engine.run(place_order, {"id": 1})
        engine.answer("approve", {"by": "kim"})
        count = engine.call(engine.inner.clear_expired())
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from wfe.authoring import registry as registries
from wfe.authoring.registry import Registry
from wfe.authoring.responses import NOT_GIVEN
from wfe.authoring.workflows import Workflow
from wfe.errors import UsageError
from wfe.model import CommandResult, DomainEvent, Event, Recording, StepKey
from wfe.runtime.engine import Engine
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.testing.answers import accepted, give, key_of, short
from wfe.testing.families import family
from wfe.testing.outcomes import Run, timeline
from wfe.testing.running import refuse_in_a_loop
from wfe.testing.virtual import VirtualClock, VirtualLoop

_T = TypeVar("_T")


class VirtualEngine:
    """An engine whose time the test moves. Use it as a context manager, or call `close`.

    `options` are those of `Engine`. Everything is recorded (`recording="every-step"`), in memory
    where no store is given. Commands are refused by exceptions, as always; an execution that comes to
    a bad end does not raise, its `Run` tells.
    """

    def __init__(
        self,
        *,
        store: CheckpointStore | None = None,
        resources: Mapping[str, Any] | None = None,
        recording: Recording = Recording.EVERY_STEP,
        **options: Any,
    ) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        self._registry = Registry()
        self._store = MemoryStore() if store is None else store
        self.loop = _virtual(self._runner)
        self.clock = VirtualClock(self.loop)
        #: All events of the workflows that were run here, and of those nested in them.
        self.events: list[Event] = []
        #: What steps have emitted and an end in `done` has released.
        self.emitted: list[DomainEvent] = []
        #: The engine itself, for `call`.
        self.inner = Engine(
            store=self._store,
            clock=self.clock,
            registry=self._registry,
            resources=resources,
            recording=recording,
            event_sink=self.emitted.extend,
            **options,
        )
        self.call(self.inner.start())

    # --- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Cut off what is at work and close everything; idempotent."""
        if not self.loop.is_closed():
            self.call(self.inner.shutdown(grace=0))
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the engine's loop; what it returns. Time jumps where it waits.

        Raises:
            UsageError: an event loop is running.
        """
        try:
            refuse_in_a_loop(
                "The engine of a plain test", instead="an Engine(clock=VirtualClock())"
            )
        except UsageError:
            coroutine.close()
            raise
        return self._runner.run(coroutine)

    # --- commands --------------------------------------------------------------------------------

    def run(
        self, workflow: Workflow[Any, Any] | str, input: Any = NOT_GIVEN, **options: Any
    ) -> Run:
        """Run a workflow until it is finished or parked; `options` are those of `Engine.run`."""
        given = {} if input is NOT_GIVEN else {"input": input}
        command = self.inner.run(
            self._known(workflow), **{"throw_on_error": False, **given, **options}
        )
        return self._settled(command)

    def answer(self, step: StepKey | str, value: Any = None) -> Run:
        """Complete a step from outside. `step` is its name (`~name`: its undo), where one step of
        that name waits, or its idempotency key."""
        return self._settled(give(self.inner, self._key(step), value))

    def fail(self, step: StepKey | str, error: Any, *, permanent: bool = False) -> Run:
        """Report a step as failed from outside. Its retries apply, unless it is `permanent`."""
        command = self.inner.set_step_failure(
            self._key(step), error, force_permanent_failure=permanent, throw_on_error=False
        )
        return self._settled(command)

    def retry(self, key: StepKey | str) -> Run:
        """Attempt a step again, named by its idempotency key, that waits or has failed."""
        return self._settled(self.inner.retry_step(key, throw_on_error=False))

    def cancel(self, workflow: Workflow[Any, Any] | str, transaction_id: str) -> Run:
        """Undo an execution; returns when it is undone, or waits."""
        command = self.inner.cancel(
            self._known(workflow), transaction_id, wait=True, throw_on_error=False
        )
        return self._settled(command)

    def _settled(self, command: Coroutine[Any, Any, CommandResult]) -> Run:
        """Let a command happen, and what follows from it at this moment."""

        async def happen() -> CommandResult:
            try:
                return accepted(await command)
            finally:
                await self.loop.settled()

        try:
            outcome = self.call(happen())
        finally:
            command.close()  # where it was refused before it began
        return Run(outcome=outcome, events=tuple(self.events), emitted=tuple(self.emitted))

    # --- time ------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Let time pass. What comes due meanwhile happens at its own moment."""

        async def pass_time() -> None:
            await asyncio.sleep(seconds)
            await self.loop.settled()

        self.call(pass_time())

    # --- looking ---------------------------------------------------------------------------------

    def look(self, workflow: Workflow[Any, Any] | str, transaction_id: str) -> Run:
        """An execution as it is now.

        Raises:
            TransactionNotFound: there is none, or none that is kept.
        """
        command = self.inner.wait_for(
            self._known(workflow), transaction_id, until="stored", throw_on_error=False
        )
        return self._settled(command)

    @property
    def timeline(self) -> list[str]:
        """All events so far in short words: see the function `timeline`."""
        return timeline(self.events)

    @property
    def waiting(self) -> list[str]:
        """The idempotency keys of steps that wait for an answer, the oldest first."""
        return [str(key) for key in self._waiting()]

    def _waiting(self) -> list[StepKey]:
        return [key_of(step) for step in self._store.reader.steps_waiting()]

    def _key(self, step: StepKey | str) -> StepKey | str:
        """The key of the one step of that name that waits."""
        if isinstance(step, StepKey) or ":" in step:
            return step
        keys = self._waiting()
        named = [key for key in keys if short(key) == step]
        if len(named) == 1:
            return named[0]
        there = ", ".join(map(str, named or keys)) or "none"
        raise UsageError(
            f"{len(named) or 'No'} step{'s' if named else ''} named {step!r} wait"
            f"{'' if named else 's'} for an answer.",
            hint=f"Waiting: {there}.",
        )

    def _known(self, workflow: Workflow[Any, Any] | str) -> Workflow[Any, Any]:
        """The workflow, which the engine will find again, and whose events are heard."""
        known = registries.current()
        if isinstance(workflow, str):
            own = self._registry if workflow in self._registry.ids() else known
            workflow = own.get(workflow)
        for name in known.resource_names():
            self._registry.add_resource(known.resource(name))
        for each in family(workflow):
            is_new = each.id not in self._registry.ids()
            self._registry.add(each)
            if is_new:
                self.inner.subscribe(each, self.events.append)
        return workflow


def _virtual(runner: asyncio.Runner) -> VirtualLoop:
    loop = runner.get_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
