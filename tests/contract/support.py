"""Executions to keep, and strategies that make them up."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec

from hypothesis import strategies as st
from msgspec.structs import replace

from wfe.model import (
    Action,
    Changes,
    ErrorRecord,
    EventKind,
    Execution,
    ExecutionState,
    Flow,
    Head,
    Recording,
    StepRecord,
    StepSpec,
    StepState,
    StepStatus,
    TimelineEvent,
)
from wfe.store.codec import encode
from wfe.store.contract import CheckpointStore

_P = ParamSpec("_P")

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


def on_loop(test: Callable[_P, Awaitable[None]]) -> Callable[_P, None]:
    """Run an async test in a loop of its own; its `store` is open meanwhile."""

    @functools.wraps(test)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        async def body() -> None:
            store = kwargs.get("store")
            if store is None:
                await test(*args, **kwargs)
                return
            await store.open()  # type: ignore[attr-defined]  # a fixture's value
            try:
                await test(*args, **kwargs)
            finally:
                await store.close()  # type: ignore[attr-defined]  # a fixture's value

        asyncio.run(body())

    return run


def flow_of(workflow_id: str = "order", *names: str) -> Flow:
    """A flow of one step a stage."""
    names = names or ("reserve", "charge", "send")
    return Flow(
        workflow_id=workflow_id,
        stages=tuple((name,) for name in names),
        steps={name: StepSpec(name=name, stage=stage) for stage, name in enumerate(names)},
        hash="-".join(names),
    )


def new(
    transaction_id: str = "t1",
    run_id: str = "r1",
    *,
    workflow_id: str = "order",
    input: bytes | None = b'{"total":5}',
    **fields: Any,
) -> Execution:
    """A run that nobody has kept yet."""
    fields.setdefault("created_at", NOW)
    flow = flow_of(workflow_id)
    head = Head(
        execution_id=f"wf_exec_{workflow_id}_{transaction_id}_{run_id}",
        workflow_id=workflow_id,
        transaction_id=transaction_id,
        run_id=run_id,
        definition=flow.hash,
        **{"updated_at": fields["created_at"], **fields},
    )
    return Execution(flow, head, input=input)


def changed(
    execution: Execution,
    *steps: StepRecord,
    events: tuple[TimelineEvent, ...] = (),
    result: bytes | None = None,
    **fields: Any,
) -> Changes:
    """Changes of the next version."""
    head = replace(execution.head, version=execution.head.version + 1, **fields)
    named = {step.name: step for step in steps}
    return Changes(head=head, steps=named, events=events, result=result)


async def keep(store: CheckpointStore, execution: Execution, **fields: Any) -> Execution:
    """`execution`, inserted with its first changes."""
    fields.setdefault("state", ExecutionState.INVOKING)
    changes = changed(execution, **fields)
    assert await store.insert(execution, changes)
    execution.take(changes)
    return execution


async def move(
    store: CheckpointStore, execution: Execution, *steps: StepRecord, **fields: Any
) -> None:
    """Commit changes and take them."""
    changes = changed(execution, *steps, **fields)
    await store.commit(execution, changes)
    execution.take(changes)


def begun(name: str = "reserve", **fields: Any) -> StepRecord:
    """A step at work."""
    return StepRecord(
        name=name,
        **{
            "stage": 0,
            "invoke": StepState.INVOKING,
            "invoke_status": StepStatus.WAITING_RESPONSE,
            "attempts": 1,
            "running": True,
            "started_at": NOW,
            "last_attempt_at": NOW,
            **fields,
        },
    )


def told(kind: EventKind = EventKind.BEGIN, **fields: Any) -> TimelineEvent:
    return TimelineEvent(kind=kind, time=NOW, **fields)


def parts_of(execution: Execution | None) -> Any:
    """What makes two executions equal."""
    if execution is None:
        return None
    return execution.flow, execution.head, execution.input, execution.steps, execution.result


# --- strategies ----------------------------------------------------------------------------------

#: Names and ids as they may be: any script, no control characters.
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2300, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 bounds
values = st.builds(
    encode,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ),
)
counts = st.integers(0, 2**40)
errors = st.builds(
    ErrorRecord,
    action=st.none() | names,
    handler_type=st.sampled_from(Action),
    name=st.none() | texts,
    message=texts,
    stack=st.none() | texts,
)
events = st.builds(
    TimelineEvent,
    kind=st.sampled_from(EventKind),
    time=moments,
    step=st.none() | names,
    action=st.none() | st.sampled_from(Action),
    attempt=st.none() | counts,
    error=st.none() | errors,
    detail=st.none() | names,
)
_states = st.sampled_from(StepState)
_statuses = st.sampled_from(StepStatus)
_maybe = st.none() | moments


def steps(name: str, stage: int) -> st.SearchStrategy[StepRecord]:
    return st.builds(
        StepRecord,
        name=st.just(name),
        stage=st.just(stage),
        invoke=_states,
        invoke_status=_statuses,
        compensate=_states,
        compensate_status=_statuses,
        attempts=counts,
        failures=counts,
        running=st.booleans(),
        held=st.booleans(),
        awaiting=st.booleans(),
        sleeping=st.booleans(),
        awaiting_retries=counts,
        undo=st.booleans(),
        started_at=_maybe,
        last_attempt_at=_maybe,
        ended_at=_maybe,
        undone_at=_maybe,
        retry_at=_maybe,
        output=st.none() | values,
        compensate_with=st.none() | values,
        error=st.none() | errors,
        reason=st.none() | texts,
    )


def heads(**fixed: Any) -> st.SearchStrategy[Head]:
    return st.builds(
        Head,
        **{
            "execution_id": names,
            "workflow_id": names,
            "transaction_id": names,
            "run_id": names,
            "definition": names,
            "state": st.sampled_from(ExecutionState),
            "version": st.integers(0, 2**40),
            "recording": st.sampled_from(Recording),
            "retention_time": st.none() | st.floats(0, 1e300),
            "idempotent": st.booleans(),
            "created_at": moments,
            "updated_at": moments,
            "started_at": _maybe,
            "ended_at": _maybe,
            "times_out_at": _maybe,
            "cancelled_at": _maybe,
            "timed_out": st.booleans(),
            "wake_at": _maybe,
            "parent_step_idempotency_key": st.none() | names,
            "root": st.none() | names,
            "event_group_id": st.none() | names,
            "metadata": st.dictionaries(texts, st.integers() | texts, max_size=3),
            "errors": st.lists(errors, max_size=3).map(tuple),
            "guards": st.dictionaries(names, st.booleans(), max_size=3),
            "stage": st.integers(-1, 10_000),
            "open": counts,
            "loose": counts,
            "running": counts,
            "awaiting": counts,
            "undo_stage": st.integers(-1, 10_000),
            "undo_open": counts,
            "undo_failed": st.booleans(),
            "has_failed_steps": st.booleans(),
            "has_skipped_steps": st.booleans(),
            "has_skipped_on_failure_steps": st.booleans(),
            "has_reverted_steps": st.booleans(),
            **fixed,
        },
    )
