"""Contexts: what each attempt of a step is told about the execution it works for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from wfe.authoring.context import StepContext
from wfe.clock import Clock
from wfe.model import Action, DomainEvent, Event, EventKind, StepKey
from wfe.runtime.live import Live, Running
from wfe.runtime.values import Outputs
from wfe.store import codec

#: Tells who listens to an execution.
Publish = Callable[[Event], None]


class Contexts:
    """Makes the context of each attempt."""

    def __init__(self, resolve: Callable[[str], Any], clock: Clock, publish: Publish) -> None:
        self._resolve = resolve
        self._clock = clock
        self._publish = publish

    def of(self, live: Live, running: Running) -> StepContext:
        """The context of one attempt. It may be used from a thread."""
        head = live.execution.head
        call = running.call
        key = StepKey(head.workflow_id, head.transaction_id, call.step, call.action)
        loop = asyncio.get_running_loop()

        def progress(fraction: float | None, message: str) -> None:
            event = Event(
                kind=EventKind.PROGRESS,
                workflow_id=head.workflow_id,
                transaction_id=head.transaction_id,
                run_id=head.run_id,
                time=self._clock.now(),
                step=call.step,
                action=call.action,
                attempt=call.attempt,
                fraction=fraction,
                message=message,
            )
            loop.call_soon_threadsafe(self._publish, event)

        running.emitted = emitted = list[DomainEvent]()

        def emit(name: str, data: Any) -> None:
            value = codec.decode(codec.encode(data, what=f"event {name!r}"))
            emitted.append(
                DomainEvent(
                    name=name,
                    data=value,
                    event_group_id=head.event_group_id or head.run_id,
                    workflow_id=head.workflow_id,
                    transaction_id=head.transaction_id,
                    step=call.step,
                )
            )

        return StepContext(
            workflow_id=head.workflow_id,
            transaction_id=head.transaction_id,
            run_id=head.run_id,
            step_name=call.step,
            action=str(call.action),
            idempotency_key=str(key),
            attempt=call.attempt,
            event_group_id=head.event_group_id,
            parent_step_idempotency_key=head.parent_step_idempotency_key,
            scheduled_for=head.scheduled_for,
            metadata=head.metadata,
            outputs=Outputs(live.execution),
            resolve=self._resolve,
            is_cancelled=lambda: running.is_aborted or _is_in_vain(live, call.action),
            progress=progress,
            emit=emit,
        )


def _is_in_vain(live: Live, action: Action) -> bool:
    """Whatever an attempt still comes to will be undone. An undo never is."""
    head = live.execution.head
    return action is Action.INVOKE and (head.cancelled_at is not None or head.timed_out)
