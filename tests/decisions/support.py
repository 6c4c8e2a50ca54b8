"""A small world for the tests of decisions: an engine over a store, in virtual time, and what its
steps did.

Steps are scripted: one outcome per call of the step, the last one repeats. `log` tells what happened
in order: "a" begins, "a." has ended, "~a" and "~a." are its undo.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wfe import (
    CommandResult,
    Engine,
    Event,
    Execution,
    ExecutionKey,
    Recording,
    Registry,
    StepContext,
    step,
    workflow,
)
from wfe.store.contract import CheckpointStore, ExecutionSummary
from wfe.testing import VirtualClock, until_quiet

#: The workflow and the transaction of every test that does not say otherwise.
W, T = "w", "t"


class After(NamedTuple):
    """An outcome that takes so many seconds."""

    seconds: float
    outcome: Any


class World:
    """An engine that can be restarted over its store, and what happened in it."""

    def __init__(self, open_store: Callable[[], CheckpointStore], recording: Recording) -> None:
        self._open_store = open_store
        self._recording = recording
        self.registry = Registry()
        self.log: list[str] = []
        #: By step, what each call of it was handed; what each call of its undo was handed.
        self.received: dict[str, list[Any]] = {}
        self.handed_back: dict[str, list[Any]] = {}
        #: Every event of every workflow.
        self.told: list[Event] = []
        #: What went wrong and nobody was told.
        self.background: list[str] = []
        self.store: CheckpointStore
        self.engine: Engine

    # --- life ------------------------------------------------------------------------------------

    async def play(self, test: Callable[[], Any]) -> None:
        """Run a test in this world; nothing may go wrong behind its back."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self._complain(str(context)))
        handler = _Complaints(self._complain)
        logging.getLogger("wfe").addHandler(handler)
        try:
            with self.registry.scope():
                await self._start(self._open_store())
                try:
                    await test()
                finally:
                    await self.engine.shutdown()
        finally:
            logging.getLogger("wfe").removeHandler(handler)
        assert self.background == []

    def _complain(self, complaint: str) -> None:
        self.background.append(complaint)

    async def _start(self, store: CheckpointStore) -> None:
        self.store = store
        self.engine = Engine(
            store=store, clock=VirtualClock(), registry=self.registry, recording=self._recording
        )
        await self.engine.start()
        for name in self.registry.ids():
            self.engine.subscribe(name, self.told.append)

    async def restart(self) -> None:
        """The process is gone, with whatever was at work; a new one has the store."""
        await self.engine.shutdown(grace=0)
        await self._start(self.store)

    async def quiet(self, max: float = 60) -> None:
        """Let everything happen that happens by itself; it must come to an end."""
        assert await until_quiet(self.engine, max) == "quiet"

    @property
    def now(self) -> float:
        """Virtual seconds since the test began."""
        return asyncio.get_running_loop().time()

    # --- composing -------------------------------------------------------------------------------

    def step(
        self, name: str, *script: Any, undo: Sequence[Any] | None = (None,), **options: Any
    ) -> Any:
        """A step, to be called in bodies with nothing or one value. Without a script it returns its
        name; `undo` is the script of its undo, None: it has none."""
        calls = _Script(script or (name,))

        async def invoke(ctx: StepContext, value: Any = None) -> Any:
            self.received.setdefault(ctx.step_name, []).append(value)
            return await self._act(ctx.step_name, calls)

        made = step(name, **options)(invoke)
        if undo is not None:
            undoes = _Script(undo)

            async def compensate(ctx: StepContext, value: Any) -> Any:
                self.handed_back.setdefault(ctx.step_name, []).append(value)
                return await self._act(f"~{ctx.step_name}", undoes)

            made.compensate(compensate)
        return made

    async def _act(self, label: str, script: _Script) -> Any:
        self.log.append(label)
        try:
            return await script.next()
        finally:
            self.log.append(f"{label}.")

    def flow(self, body: Callable[..., Any], name: str = W, **options: Any) -> Any:
        """A workflow of this body, whose events are told to `told`."""
        made = workflow(name, **options)(body)
        self.engine.subscribe(made, self.told.append)
        return made

    # --- commanding ------------------------------------------------------------------------------

    async def run(self, name: str = W, **options: Any) -> CommandResult:
        return await self.engine.run(
            name, **{"transaction_id": T, "throw_on_error": False, **options}
        )

    def start(self, name: str = W, **options: Any) -> asyncio.Task[CommandResult]:
        """A run that goes on beside the test."""
        return asyncio.create_task(self.run(name, **options))

    async def cancel(self, name: str = W, **options: Any) -> CommandResult:
        return await self.engine.cancel(name, T, **{"throw_on_error": False, **options})

    async def succeed(self, step: str, response: Any = None, **options: Any) -> CommandResult:
        return await self.engine.set_step_success(
            key(step), response, **{"throw_on_error": False, **options}
        )

    async def fail(self, step: str, error: Any = "no", **options: Any) -> CommandResult:
        return await self.engine.set_step_failure(
            key(step), error, **{"throw_on_error": False, **options}
        )

    async def retry(self, step: str, **options: Any) -> CommandResult:
        return await self.engine.retry_step(key(step), **{"throw_on_error": False, **options})

    # --- looking ---------------------------------------------------------------------------------

    @property
    def begun(self) -> list[str]:
        """Every call, in order of its beginning."""
        return [entry for entry in self.log if not entry.endswith(".")]

    def calls_of(self, label: str) -> int:
        return self.log.count(label)

    def events(
        self, step: str | None = None, *, workflow: str = W, but: Sequence[str] = ()
    ) -> list[str]:
        """The kinds of what was told of a workflow, or of one step of it."""
        return [
            str(event.kind)
            for event in self.told
            if event.workflow_id == workflow
            and step in (None, event.step)
            and event.kind not in but
        ]

    def event(self, kind: str, step: str | None = None, *, workflow: str = W) -> Event:
        """The one event of that kind."""
        (found,) = (
            event
            for event in self.told
            if event.kind == kind and event.workflow_id == workflow and step in (None, event.step)
        )
        return found

    @property
    def state(self) -> str:
        """The state in which the execution of `w` has finished, once and no more."""
        return str(self.event("finish").state)

    async def stored(self, name: str = W, transaction: str = T) -> Execution | None:
        """What the store keeps of an execution."""
        return await self.store.load(ExecutionKey(name, transaction))

    async def rows(
        self, where: Mapping[str, Any] | None = None, q: str = ""
    ) -> list[ExecutionSummary]:
        return await self.engine.list_executions(q, where, order_by=["created_at"])


class _Script:
    """One outcome per call; the last one repeats."""

    def __init__(self, outcomes: Sequence[Any]) -> None:
        self._outcomes = list(outcomes)

    async def next(self) -> Any:
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        while isinstance(outcome, After):
            await asyncio.sleep(outcome.seconds)
            outcome = outcome.outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class _Complaints(logging.Handler):
    def __init__(self, complain: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = complain

    def emit(self, record: logging.LogRecord) -> None:
        self._say(f"{record.getMessage()} {record.exc_info and record.exc_info[1]!r}")


def key(step: str, action: str = "invoke", *, workflow: str = W, transaction: str = T) -> str:
    """The idempotency key of a step."""
    return f"{workflow}:{transaction}:{step}:{action}"


def state_of(result: CommandResult) -> str:
    """The state of the execution at the return of a command."""
    assert result.execution is not None
    return str(result.execution.head.state)


def step_of(result: CommandResult | Execution | None, name: str) -> str:
    """How a step stands, as "state/status" of the side it is at."""
    execution = result.execution if isinstance(result, CommandResult) else result
    assert execution is not None
    record = execution.step(name)
    return f"{record.state}/{record.status}"


def refusal(result: CommandResult) -> Exception:
    """Why a command was refused."""
    acknowledgement = result.acknowledgement
    assert not acknowledgement.accepted
    assert acknowledgement.reason is not None
    return acknowledgement.reason
