"""Traces for OpenTelemetry: an execution is a trace, an attempt of a step is a span of it.

    provider = TracerProvider()
    traces = Traces(provider, open_reader=lambda: nullcontext(engine.store.reader))
    engine.subscribe("order", traces.on_event)

The ids of traces and spans are computed from run ids and steps, never drawn: whichever process goes on
with an execution adds to the trace that another one has begun. A span is made when what it tells of is
over; nothing is held open for an execution that waits for days, and a process that dies leaves no span
without an end. An execution that is a step of another one is in the trace of the outermost, beneath the
attempt that has begun it. One that is undone after its end has another span for that, beneath the first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Tracer, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from wfe.errors import StoreError
from wfe.model import (
    Action,
    ErrorRecord,
    Event,
    EventKind,
    Execution,
    ExecutionKey,
    ExecutionState,
    StepKey,
)
from wfe.store.contract import Reader

#: Gives the store, to be read; None: there is none.
OpenReader = Callable[[], AbstractContextManager[Reader | None]]

#: So many unfinished runs are remembered; of others the store is asked.
_REMEMBERED = 10_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SUCCESSES = frozenset({EventKind.STEP_SUCCESS, EventKind.COMPENSATE_STEP_SUCCESS})
_FAILURES = frozenset({EventKind.STEP_FAILURE, EventKind.COMPENSATE_STEP_FAILURE})

#: Attempts that have begun, by step and action: their number and moment.
_Attempts = dict[tuple[str, str], tuple[int, datetime]]


class _Run(msgspec.Struct):
    """What is known of a run while it goes on."""

    trace_id: int
    span_id: int
    #: The attempt of a step that it belongs to.
    parent_span_id: int | None
    begun: datetime
    attempts: _Attempts


class Traces:
    """Makes spans of what it is told; `on_event` is the subscriber.

    `open_reader` lets it look up what happened to an execution before it was told of it.
    """

    def __init__(
        self,
        provider: TracerProvider,
        *,
        open_reader: OpenReader = lambda: nullcontext(None),
    ) -> None:
        self._open_reader = open_reader
        self._ids = _Ids()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        tracer = provider.get_tracer("wfe")
        #: None: tracing was switched off (OTEL_SDK_DISABLED).
        self._tracer: Tracer | None = None
        if isinstance(tracer, Tracer):
            tracer.id_generator = self._ids
            self._tracer = tracer

    def on_event(self, event: Event) -> None:
        """Something has happened to an execution."""
        if self._tracer is None or event.kind is EventKind.PROGRESS:
            return
        run = self._run_of(event)
        if event.step is not None and event.kind is EventKind.STEP_BEGIN:
            run.attempts[event.step, str(event.action)] = (event.attempt or 1, event.time)
        elif event.step is not None and event.kind in (_SUCCESSES | _FAILURES):
            self._end_attempt(run, event, event.step)
        elif event.kind is EventKind.FINISH:
            self._end(run, event)
            del self._runs[event.run_id]

    # --- spans -----------------------------------------------------------------------------------

    def _end_attempt(self, run: _Run, event: Event, step: str) -> None:
        action = str(event.action)
        known = run.attempts.pop((step, action), None)
        attempt, begun = known or (event.attempt or 1, event.time)
        key = StepKey(event.workflow_id, event.transaction_id, step, event.action or Action.INVOKE)
        span = self._start(
            f"{step}:{action}",
            run,
            span_id=_attempt_id(event.run_id, step, action, attempt),
            parent=run.span_id,
            begun=begun,
            attributes={
                "wfe.step": step,
                "wfe.action": action,
                "wfe.attempt": attempt,
                "wfe.idempotency_key": str(key),
                **_identity(event),
            },
        )
        errors = (event.error,) if event.error is not None else ()
        _finish(span, event.time, errors, is_good=event.kind in _SUCCESSES)

    def _end(self, run: _Run, event: Event) -> None:
        span = self._start(
            event.workflow_id,
            run,
            span_id=run.span_id,
            parent=run.parent_span_id,
            begun=run.begun,
            attributes={"wfe.state": str(event.state), **_identity(event)},
        )
        is_good = event.state is ExecutionState.DONE
        _finish(span, event.time, () if is_good else event.errors, is_good=is_good)

    def _start(
        self,
        name: str,
        run: _Run,
        *,
        span_id: int,
        parent: int | None,
        begun: datetime,
        attributes: Mapping[str, Any],
    ) -> Span:
        assert self._tracer is not None
        self._ids.trace_id, self._ids.span_id = run.trace_id, span_id
        context = Context()
        if parent is not None:
            above = SpanContext(run.trace_id, parent, is_remote=False, trace_flags=self._flags(run))
            context = set_span_in_context(NonRecordingSpan(above), context)
        return self._tracer.start_span(
            name, context, attributes=attributes, start_time=_nanoseconds(begun)
        )

    def _flags(self, run: _Run) -> TraceFlags:
        """Whether the trace is sampled: the same for all that is in it, whoever asks."""
        assert self._tracer is not None
        decision = self._tracer.sampler.should_sample(None, run.trace_id, "wfe").decision
        is_sampled = decision is Decision.RECORD_AND_SAMPLE
        return TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT)

    # --- what is known of a run ------------------------------------------------------------------

    def _run_of(self, event: Event) -> _Run:
        run = self._runs.get(event.run_id)
        if run is None:
            run = self._begun(event) or self._recalled(event)
            self._runs[event.run_id] = run
            if len(self._runs) > _REMEMBERED:
                self._runs.popitem(last=False)
        return run

    def _begun(self, event: Event) -> _Run | None:
        """A run that has begun just now, as an execution of its own or beneath one that is known."""
        if event.kind is not EventKind.BEGIN:
            return None
        if event.parent_run_id is None or event.parent_step_idempotency_key is None:
            return _Run(_trace_id(event.run_id), _run_id(event.run_id), None, event.time, {})
        above = self._runs.get(event.parent_run_id)
        if above is None:
            return None
        step = StepKey.parse(event.parent_step_idempotency_key)
        attempt, _ = above.attempts.get((step.step, str(step.action)), (1, event.time))
        parent = _attempt_id(event.parent_run_id, step.step, str(step.action), attempt)
        return _Run(above.trace_id, _run_id(event.run_id), parent, event.time, {})

    def _recalled(self, event: Event) -> _Run:
        """A run that other processes have had in hand, or that belongs to such a one."""
        key = ExecutionKey(event.workflow_id, event.transaction_id)
        found = _Run(_trace_id(event.run_id), _run_id(event.run_id), None, event.time, {})
        try:
            with self._open_reader() as reader:
                if reader is not None:
                    above = event.parent_step_idempotency_key, event.parent_run_id
                    found.trace_id, found.parent_span_id = _beneath(reader, event.run_id, *above)
                    execution = reader.load(key, event.run_id)
                    if execution is not None:
                        _recall(found, execution, _ends(reader, execution, event))
        except StoreError:
            pass  # it is busy: the trace is poorer, and the execution goes on
        return found


def _beneath(
    reader: Reader, run_id: str, key: str | None, parent_run_id: str | None
) -> tuple[int, int | None]:
    """The trace of a run, which is that of the outermost, and the span that it belongs to."""
    parent_span_id = None
    while key is not None and parent_run_id is not None:
        step = StepKey.parse(key)
        above = reader.load(step.execution, parent_run_id)
        if parent_span_id is None:
            attempt = 1 if above is None else max(above.step(step.step).attempts, 1)
            parent_span_id = _attempt_id(parent_run_id, step.step, str(step.action), attempt)
        run_id = parent_run_id
        key = None if above is None else above.head.parent_step_idempotency_key
        parent_run_id = None if above is None else above.head.parent_run_id
    return _trace_id(run_id), parent_span_id


def _recall(run: _Run, execution: Execution, ends: int) -> None:
    """What an execution says of its run, which has come to its end so often. One that is undone after it
    was done comes to another: what happens until then is beneath what was."""
    run.attempts = _attempts(execution)
    if not ends:
        run.begun = execution.head.started_at or execution.head.created_at
        return
    run.parent_span_id = run.span_id
    run.span_id = _number("run", execution.head.run_id, str(ends), size=8)


def _ends(reader: Reader, execution: Execution, event: Event) -> int:
    """How often it had ended before this event, which was told together with what followed it."""
    ends = before = 0
    for entry in reader.timeline(execution.head.execution_id):
        told = (entry.kind, entry.step, entry.action, entry.time)
        if told == (event.kind, event.step, event.action, event.time):
            before = ends
        ends += entry.kind is EventKind.FINISH
    return before


def _attempts(execution: Execution) -> _Attempts:
    return {
        (name, str(record.action)): (record.attempts, record.last_attempt_at)
        for name, record in execution.steps.items()
        if record.last_attempt_at is not None
    }


# --- ids and values ------------------------------------------------------------------------------


class _Ids(IdGenerator):
    """Gives the ids that were laid down before."""

    trace_id = span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


def _trace_id(run_id: str) -> int:
    return _number("trace", run_id, size=16)


def _run_id(run_id: str) -> int:
    return _number("run", run_id, size=8)


def _attempt_id(run_id: str, step: str, action: str, attempt: int) -> int:
    return _number("attempt", run_id, step, action, str(attempt), size=8)


def _number(*words: str, size: int) -> int:
    """The same number for the same words, never 0, which means that there is none."""
    return int.from_bytes(sha256("\0".join(words).encode()).digest()[:size], "big") or 1


def _identity(event: Event) -> dict[str, Any]:
    return {
        "wfe.workflow": event.workflow_id,
        "wfe.transaction_id": event.transaction_id,
        "wfe.run_id": event.run_id,
    }


def _finish(span: Span, ended: datetime, errors: tuple[ErrorRecord, ...], *, is_good: bool) -> None:
    moment = _nanoseconds(ended)
    for error in errors:
        facts = {
            "exception.type": error.name,
            "exception.message": error.message,
            "exception.stacktrace": error.stack,
        }
        told = {name: fact for name, fact in facts.items() if fact is not None}
        span.add_event("exception", told, timestamp=moment)
    if is_good:
        span.set_status(Status(StatusCode.OK))
    else:
        first = f"{errors[0].name or 'error'}: {errors[0].message}" if errors else None
        span.set_status(Status(StatusCode.ERROR, first))
    span.end(end_time=moment)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
