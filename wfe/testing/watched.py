"""Watched workflows: the same ones, each function of a step between two crash points of a life.

Neither the workflow nor the engine knows: its nodes are exchanged for twins that call the real ones.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine
from typing import Any

from wfe.authoring.context import StepContext
from wfe.authoring.nodes import Handler, Node
from wfe.authoring.references import Values
from wfe.authoring.workflows import Workflow
from wfe.model import StepKind
from wfe.testing.lives import Call, Life
from wfe.testing.outcomes import step_word

#: Kinds of steps behind which there is a function of the user's.
_USERS = frozenset({StepKind.STEP, StepKind.HOOK})


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

    def check_answer(self, answer: Any) -> None:
        self._node.check_answer(answer)

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

    def arguments_at_hand(self, context: StepContext | None, values: Values) -> None:
        return None

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
