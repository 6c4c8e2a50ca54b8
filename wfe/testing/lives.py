"""Lives: an engine's, from its start to its end, or to the crash point at which it stops dead.

Crash points are in two places, and the engine knows of neither: around each write of its store
(`CrashingStore`) and around each function of a step (`watched`). They are numbered from 1 in the
order in which a life reaches them, and named:

    before commit 1     after commit 1      the first write of the store, not yet there; there
    before charge       after charge        the function of a step: not called; called, not recorded
    before ~charge      after ~charge       its undo
    before charge (attempt 2)

At its point a life ends as a killed process does: the loop stops in its next round, by Crash, and
whatever the engine wants to keep or call from then on waits for ever. Nothing is cleaned up.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

import msgspec

from wfe.authoring.context import StepContext
from wfe.authoring.nodes import Handler, Node
from wfe.authoring.references import Values
from wfe.authoring.workflows import Workflow
from wfe.model import Changes, Event, Execution, ExecutionKey, StepKind
from wfe.store.contract import CheckpointStore, Reader
from wfe.testing.outcomes import step_word

_USERS = frozenset({StepKind.STEP, StepKind.HOOK})


class Crash(SystemExit):
    """The engine has stopped dead. A SystemExit, because asyncio keeps any other exception."""

    def __init__(self, point: str) -> None:
        super().__init__(f"crashed {point}")
        self.point = point


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a step's function, or of its undo."""

    #: `charge`, `~charge`: see `timeline`.
    name: str
    attempt: int
    idempotency_key: str


class Life:
    """One life of an engine. It crashes `at` a point, by name or number; None: it does not."""

    def __init__(self, at: int | str | None = None) -> None:
        self._at = at
        self._commits = 0
        self._is_buried = False
        #: The points that were reached, the last one included.
        self.points: list[str] = []
        #: The point at which it ended; None: it did not crash.
        self.crashed_at: str | None = None
        #: What was recorded in this life, in order.
        self.events: list[Event] = []
        #: What was called in this life, in order.
        self.calls: list[Call] = []

    async def reach(self, point: str) -> None:
        """Go on past a point, unless the life ends here or has ended."""
        if self.crashed_at is None:
            self.points.append(point)
            if self._at not in (point, len(self.points)):
                return
            self.crashed_at = point
            asyncio.get_running_loop().call_soon(_stop, point)
        if self._is_buried:
            raise asyncio.CancelledError
        await asyncio.get_running_loop().create_future()

    def bury(self) -> None:
        """The loop is about to be closed: let no task that ends for it wait for ever again."""
        self._is_buried = True

    async def commit(self, write: Callable[[], Awaitable[Any]]) -> Any:
        """Write to the store, between two points."""
        self._commits += 1
        number = self._commits
        await self.reach(f"before commit {number}")
        written = await write()
        await self.reach(f"after commit {number}")
        return written


def _stop(point: str) -> None:
    raise Crash(point)


# --- around the store ----------------------------------------------------------------------------


class CrashingStore:
    """A store whose engine stops dead `at` a crash point: `"after commit 2"`, or its number."""

    def __init__(self, store: CheckpointStore, at: int | str | None = None) -> None:
        self._store = store
        self.life = Life(at)

    @property
    def is_private(self) -> bool:
        return self._store.is_private

    @property
    def reader(self) -> Reader:
        return self._store.reader

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def insert(self, execution: Execution, changes: Changes, *, lone: bool = False) -> bool:
        async def write() -> bool:
            kept = await self._store.insert(execution, changes, lone=lone)
            if kept:
                self._note(changes)
            return kept

        return bool(await self.life.commit(write))

    async def commit(self, execution: Execution, changes: Changes, *, lone: bool = False) -> None:
        async def write() -> None:
            await self._store.commit(execution, changes, lone=lone)
            self._note(changes)

        await self.life.commit(write)

    def _note(self, changes: Changes) -> None:
        head = changes.head
        for entry in changes.events:
            self.life.events.append(
                Event(
                    kind=entry.kind,
                    workflow_id=head.workflow_id,
                    transaction_id=head.transaction_id,
                    run_id=head.run_id,
                    time=entry.time,
                    step=entry.step,
                    action=entry.action,
                    attempt=entry.attempt,
                    error=entry.error,
                )
            )

    async def delete(self, key: ExecutionKey, run_id: str) -> bool:
        return bool(await self.life.commit(lambda: self._store.delete(key, run_id)))

    async def delete_children(self, root: ExecutionKey) -> int:
        return int(await self.life.commit(lambda: self._store.delete_children(root)))

    async def delete_expired(self, now: datetime) -> int:
        return int(await self.life.commit(lambda: self._store.delete_expired(now)))

    async def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        return await self._store.load(key, run_id)

    async def due(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        return await self._store.due(now, limit=limit)

    async def changed(self) -> bool:
        return await self._store.changed()


# --- around the functions of steps ---------------------------------------------------------------


def watched(
    workflow: Workflow[Any, Any], life: Life, *, home: str | None = None
) -> Workflow[Any, Any]:
    """The same workflow, its functions and those of nested ones between crash points of `life`."""
    home = home or workflow.id
    twin = copy.copy(workflow)
    twin.nodes = {name: _watched_node(node, life, home) for name, node in workflow.nodes.items()}
    return twin


def _watched_node(node: Node, life: Life, home: str) -> Node:
    if node.child is not None:
        return Node(node.spec, node._work, node.place, watched(node.child, life, home=home))
    return _WatchedNode(node, life, home) if node.spec.kind in _USERS else node


async def _called(ctx: StepContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What a watched function looks like to whoever calls it."""


_ASKS_FOR_CONTEXT = Handler(_called)


class _WatchedNode(Node):
    """A node whose functions are called with the context beside what they ask for."""

    __slots__ = ("_handler", "_home", "_life", "_node")

    def __init__(self, node: Node, life: Life, home: str) -> None:
        super().__init__(node.spec, node._work, node.place)
        self._node = node
        self._life = life
        self._home = home

        self._handler = copy.copy(_ASKS_FOR_CONTEXT)
        self._handler.function = self._invoke

    @property
    def handler(self) -> Handler:
        return self._handler

    @property
    def compensation(self) -> Callable[..., Any] | None:
        return None if self._node.compensation is None else self._undo

    @property
    def compensation_is_coroutine(self) -> bool:
        return True

    def arguments(
        self, context: StepContext | None, values: Values
    ) -> Coroutine[Any, Any, tuple[tuple[Any, ...], dict[str, Any]]]:
        return self._arguments(context, values)

    async def _arguments(
        self, context: StepContext | None, values: Values
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        wanted = context if self._node.handler.signature.wants_context else None
        return (context, *await self._node.arguments(wanted, values)), {}

    def compensation_arguments(
        self, context: StepContext, compensate_with: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (context, *self._node.compensation_arguments(context, compensate_with)), {}

    async def _invoke(self, ctx: StepContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        handler = self._node.handler
        return await self._call(ctx, handler.function, handler.is_coroutine, args, kwargs)

    async def _undo(self, ctx: StepContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        undo = self._node.compensation
        assert undo is not None
        return await self._call(ctx, undo, self._node.compensation_is_coroutine, args, kwargs)

    async def _call(
        self,
        ctx: StepContext,
        function: Callable[..., Any],
        is_coroutine: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        word = step_word(ctx.workflow_id, ctx.step_name, ctx.action, home=self._home)
        point = word if ctx.attempt == 1 else f"{word} (attempt {ctx.attempt})"
        await self._life.reach(f"before {point}")
        self._life.calls.append(
            Call(name=word, attempt=ctx.attempt, idempotency_key=ctx.idempotency_key)
        )
        try:
            if is_coroutine:
                return await function(*args, **kwargs)
            returned, error = await asyncio.to_thread(_outcome, function, args, kwargs)
        finally:
            await self._life.reach(f"after {point}")
        if error is not None:
            raise error
        return returned


def _outcome(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    """What a function returned or raised; some exceptions a thread could not raise to the loop."""
    try:
        return function(*args, **kwargs), None
    except BaseException as error:
        return None, error
