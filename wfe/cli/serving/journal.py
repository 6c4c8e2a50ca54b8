"""What a serving process tells where nobody watches: a line for each thing that happens, for people
(`text`) or programs (`json`). Everything goes to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from wfe.cli import text
from wfe.cli.output import json_text
from wfe.clock import SystemClock
from wfe.errors import WfeError
from wfe.model import Event, EventKind, ExecutionKey, StepKey
from wfe.runtime.engine import Engine
from wfe.scheduling.loop import Scheduler
from wfe.scheduling.plan import Plan
from wfe.store.ledger import Tick

#: What is told of executions: not each step that goes well.
TOLD = frozenset(
    {
        EventKind.BEGIN,
        EventKind.COMPENSATE_BEGIN,
        EventKind.FINISH,
        EventKind.TIMEOUT,
        EventKind.STEP_AWAITING,
        EventKind.STEP_FAILURE,
        EventKind.COMPENSATE_STEP_FAILURE,
    }
)


class Reporter(Protocol):
    """Is told what happens in a process that serves, in order, and shows it."""

    def running(self) -> contextlib.AbstractContextManager[None]:
        """Show until the context ends."""
        ...

    def serving(self, engine: Engine, scheduler: Scheduler) -> None:
        """It has begun."""
        ...

    def on_event(self, event: Event) -> None:
        """Something has happened to an execution here."""
        ...

    def on_tick(self, tick: Tick) -> None:
        """A tick was decided on here."""
        ...

    def on_taken(self, key: ExecutionKey, error: WfeError | None) -> None:
        """What somebody had left was taken up here, or cannot be."""
        ...

    def on_log(self, key: StepKey | None, message: str) -> None:
        """A step, or wfe itself, has logged something."""
        ...

    def say(self, sentence: str) -> None:
        """A sentence for the person who watches."""
        ...

    def leave(self, sentence: str) -> None:
        """The process ends now, within a signal: a last word."""
        ...


class Journal:
    """Lines: time, what, key, and what there is to say; or a JSON object with these."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        yield

    def serving(self, engine: Engine, scheduler: Scheduler) -> None:
        for plan, moment in scheduler.upcoming:
            self._write("schedule", plan.name, timing=plan.timing, next=text.iso(moment))

    def on_event(self, event: Event) -> None:
        if event.kind not in TOLD:
            return
        key = f"{event.workflow_id}:{event.transaction_id}"
        if event.step is not None:
            key = f"{key}:{event.step}:{event.action or 'invoke'}"
        error = event.error and text.failure(event.error.name, event.error.message)
        self._write(str(event.kind), key, state=event.state, error=error, scope=event.scope)

    def on_tick(self, tick: Tick) -> None:
        self._write(
            "tick",
            tick.schedule,
            scheduled_for=text.iso(tick.scheduled_for),
            state=tick.state,
            reason=tick.reason,
            late=lateness(tick),
            transaction=tick.transaction_id if tick.state == "fired" else None,
            error=tick.error,
        )

    def on_taken(self, key: ExecutionKey, error: WfeError | None) -> None:
        if error is None:
            self._write("taken_up", str(key))
        else:
            self._write("not_taken_up", str(key), error=str(error))

    def on_log(self, key: StepKey | None, message: str) -> None:
        self._write("log", str(key or ""), message=message)

    def say(self, sentence: str) -> None:
        self._write("note", "", message=sentence)

    def leave(self, sentence: str) -> None:
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), f"{self._line('note', '', message=sentence)}\n".encode())

    def _write(self, what: str, key: str, **facts: Any) -> None:
        with contextlib.suppress(OSError):
            print(self._line(what, key, **facts), file=sys.stderr, flush=True)

    def _line(self, what: str, key: str, **facts: Any) -> str:
        now = text.iso(SystemClock().now())
        told = {name: str(fact) for name, fact in facts.items() if fact not in (None, "")}
        if self._as_json:
            return json_text({"time": now, "event": what, **({"key": key} if key else {}), **told})
        return "\t".join(map(text.safe, (now, what, key, *told.values()))).rstrip("\t")


def lateness(tick: Tick) -> str:
    """How late a tick is; empty where that is no news."""
    if tick.kind != "tick" or tick.late_by < 1:
        return ""
    return f"{text.elapsed(tick.late_by)} late"


def doubts(plan: Plan) -> Iterator[str]:
    """What may not be meant of a schedule, in sentences."""
    for warning in plan.timetable.timing.warnings:
        yield f"Schedule {plan.name}: {warning}"
