"""Calls: the one place where user code is awaited, and what its returning or raising means.

Whatever a handler does, the outcome is an event for the machine; nothing that user code raises gets
any further, be it a SystemExit.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from wfe.authoring.context import StepContext
from wfe.authoring.responses import NOT_GIVEN, StepResponse
from wfe.authoring.workflows import Node
from wfe.clock import Clock
from wfe.engine.events import Awaits, Decided, Event, Failed, Skipped, Sleeps, Succeeded
from wfe.engine.names import COMPENSATE
from wfe.errors import PermanentStepFailure
from wfe.model import Json, StepKind
from wfe.runtime.failures import chance, record_of
from wfe.runtime.live import Live, Running
from wfe.runtime.nested import ChildFailed, Nested
from wfe.runtime.resources import Resources
from wfe.store import codec

_SLEEP, _WORKFLOW = StepKind.SLEEP, StepKind.WORKFLOW


class _Raised(Exception):
    """Carries whatever a thread raised across to the loop, which some exceptions would stop."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Calls:
    """Calls the handlers of steps."""

    def __init__(
        self,
        clock: Clock,
        threads: ThreadPoolExecutor,
        resources: Resources,
        context_of: Callable[[Live, Running], StepContext],
        post: Callable[[Live, Event], Any],
        nested: Nested,
    ) -> None:
        self._clock = clock
        self._threads = threads
        self._resources = resources
        self._context_of = context_of
        self._post = post
        self._nested = nested

    async def perform(self, live: Live, running: Running) -> Event:
        """Run one attempt. Raises nothing but CancelledError, where the engine is being closed."""
        call = running.call
        node = live.workflow.nodes[call.step]
        try:
            if call.action is COMPENSATE:
                return await self._compensate(live, running, node)
            if node.spec.guards and not await self._all_hold(live, node.spec.guards):
                return Skipped(step=call.step, attempt=call.attempt)
            handler = node.handler
            context = None
            if handler.signature.wants_context:
                if self._resources.are_to_be_opened:
                    await self._resources.open_async()
                context = self._context_of(live, running)
            at_hand = node.arguments_at_hand(context, live.values)
            args, kwargs = at_hand or await node.arguments(context, live.values)
            kind = node.spec.kind
            if kind is _SLEEP:
                until = self._clock.now() + timedelta(seconds=float(args[0]))
                return Sleeps(step=call.step, attempt=call.attempt, until=until)
            if kind is _WORKFLOW:
                returned = await self._nested.call(live, running, node, *args)
            else:
                returned = await self._called(
                    running, handler.function, handler.is_coroutine, args, kwargs
                )
            return self._event(running, returned, is_async=node.spec.options.async_)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                if not running.is_aborted:
                    raise
                task.uncancel()  # the task goes on: it has the failure to report
            return self._failure(live, running, error)
        except BaseException as error:
            return self._failure(live, running, error)
        finally:
            running.in_user_code = False

    # --- compensate, conditions ---------------------------------------------------------------------

    async def _compensate(self, live: Live, running: Running, node: Node) -> Event:
        call = running.call
        if node.spec.kind is _WORKFLOW:
            await self._nested.cancel(live, running, node)
            return Succeeded(step=call.step, action=call.action, attempt=call.attempt)
        if node.compensation is None:
            return Succeeded(step=call.step, action=call.action, attempt=call.attempt)
        stored = live.execution.step(call.step).compensate_with
        value = None if stored is None else codec.decode(stored)
        if self._resources.are_to_be_opened:
            await self._resources.open_async()
        context = self._context_of(live, running)
        args, kwargs = node.compensation_arguments(context, value)
        returned = await self._called(
            running, node.compensation, node.compensation_is_coroutine, args, kwargs
        )
        if returned is None and node.spec.options.compensate_async:
            return Awaits(step=call.step, action=call.action, attempt=call.attempt)
        if isinstance(returned, StepResponse):
            returned = returned.output
        return Succeeded(
            step=call.step,
            action=call.action,
            attempt=call.attempt,
            output=_if_storable(returned),
        )

    def _called(
        self,
        running: Running,
        function: Callable[..., Any],
        is_coroutine: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Awaitable[Any]:
        """Call user code: a coroutine function on the loop, a plain one in a thread. What it returns
        is awaited by whoever calls this: a coroutine around a coroutine costs, and adds nothing."""
        if running.is_aborted:
            raise asyncio.CancelledError
        running.is_coroutine = is_coroutine
        running.in_user_code = True
        if is_coroutine:
            awaitable: Awaitable[Any] = function(*args, **kwargs)
            return awaitable
        return self._in_thread(functools.partial(function, *args, **kwargs))

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, context.run, _guarded, call)
        except _Raised as carrier:
            raise carrier.error from carrier.error.__cause__

    async def _all_hold(self, live: Live, names: Sequence[str]) -> bool:
        """Do the conditions of these names hold? No further than the first that does not."""
        for name in names:
            if not await self._holds(live, name):
                return False
        return True

    async def _holds(self, live: Live, name: str) -> bool:
        """The condition's value, evaluated once per execution, and kept before it counts."""
        known = live.execution.head.guards.get(name)
        if known is not None:
            return known
        if name in live.deciding:
            return await live.deciding[name]
        deciding = live.deciding[name] = asyncio.get_running_loop().create_future()
        try:
            holds = await live.workflow.guards[name].evaluate(live.values)
            await self._post(live, Decided(guard=name, holds=holds))
        except BaseException as error:
            if isinstance(error, Exception):
                deciding.set_exception(error)
                deciding.exception()  # who waits raises it; nobody may
            else:
                deciding.cancel()
            raise
        finally:
            del live.deciding[name]
        deciding.set_result(holds)
        return holds

    # --- what it came to -------------------------------------------------------------------------

    def _event(self, running: Running, returned: Any, *, is_async: bool) -> Event:
        call = running.call
        if returned is None and is_async:
            return Awaits(step=call.step, action=call.action, attempt=call.attempt)
        compensate_with: Json | None = None
        output = returned
        if isinstance(returned, StepResponse):
            if returned.kind == "skip":
                return Skipped(step=call.step, attempt=call.attempt, reason=returned.reason)
            if returned.compensate_with is not NOT_GIVEN:
                compensate_with = codec.encode(
                    returned.compensate_with, what=f"compensate_with of step {call.step!r}"
                )
            if returned.kind == "awaiting":
                if not is_async:
                    raise PermanentStepFailure(
                        f"Step {call.step!r} answered StepResponse.awaiting(), but only a step "
                        "with async_=True can wait for an answer from outside."
                    )
                return Awaits(
                    step=call.step,
                    action=call.action,
                    attempt=call.attempt,
                    compensate_with=compensate_with,
                )
            output = returned.output
        stored = codec.encode(output, what=f"output of step {call.step!r}")
        return Succeeded(
            step=call.step,
            action=call.action,
            attempt=call.attempt,
            output=stored,
            compensate_with=stored if compensate_with is None else compensate_with,
            emitted=tuple(running.emitted),
        )

    def _failure(self, live: Live, running: Running, error: BaseException) -> Event:
        call = running.call
        live.audience.causes[call.step] = error
        permanent = isinstance(error, PermanentStepFailure)
        compensate_with: Json | None = None
        if (
            isinstance(error, (PermanentStepFailure, ChildFailed))
            and error.compensate_with is not None
        ):
            compensate_with = _if_storable(error.compensate_with)
        return Failed(
            step=call.step,
            action=call.action,
            attempt=call.attempt,
            error=record_of(error, call.step, call.action),
            permanent=permanent,
            compensate_with=compensate_with,
            chance=chance(),
        )


def _guarded(call: Callable[[], Any]) -> Any:
    """Call user code in a thread, where StopIteration or SystemExit would hurt the pool."""
    try:
        return call()
    except BaseException as error:
        raise _Raised(error) from None


def _if_storable(value: Any) -> Json | None:
    """The value of something that has already happened: where it cannot be kept, nothing is."""
    try:
        return codec.encode(value)
    except PermanentStepFailure:
        return None
