"""Running a workflow to its end: in memory, in virtual time, its questions answered by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from wfe.authoring.responses import NOT_GIVEN
from wfe.authoring.workflows import Workflow
from wfe.errors import UsageError
from wfe.model import (
    CommandResult,
    DomainEvent,
    Event,
    Execution,
    ExecutionKey,
    Recording,
    StepKind,
    StepRecord,
    StepStatus,
)
from wfe.runtime.engine import Engine
from wfe.store.contract import CheckpointStore, WaitingStep
from wfe.store.memory import MemoryStore
from wfe.testing.answers import Answers, accepted, answer_one, checked, key_of, short
from wfe.testing.families import family, registry_of
from wfe.testing.outcomes import Run
from wfe.testing.virtual import VirtualClock, VirtualLoop, running_loop

#: Virtual seconds after which a run that has not ended is given up.
YEAR = 366 * 24 * 3600.0


class NotEnded(AssertionError):
    """The workflow does not end by itself; the message says what it waits for."""


# --- the whole -----------------------------------------------------------------------------------


def run_to_end(
    workflow: Workflow[Any, Any],
    input: Any = NOT_GIVEN,
    *,
    answers: Answers | None = None,
    transaction_id: str = "test",
    resources: Mapping[str, Any] | None = None,
    store: CheckpointStore | None = None,
    within: float = YEAR,
) -> Run:
    """Run a workflow to its end, in virtual time. The end may be a bad one: see `Run.state`.

    `answers` says what steps are told that wait for an answer from outside. `resources` is what
    `ctx.resolve` finds, before the `@resource` factories. `store` keeps the execution (None: in
    memory).

    Raises:
        NotEnded: it waits for something else, or has not ended after `within` virtual seconds.
        InvalidInput: an input that does not fit. UsageError: an answer to a step that there is not.
    """
    refuse_in_a_loop("run_to_end()", instead="await run_to_end_async(...), on a VirtualLoop")
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(
            run_to_end_async(
                workflow,
                input,
                answers=answers,
                transaction_id=transaction_id,
                resources=resources,
                store=store,
                within=within,
            )
        )


async def run_to_end_async(
    workflow: Workflow[Any, Any],
    input: Any = NOT_GIVEN,
    *,
    answers: Answers | None = None,
    transaction_id: str = "test",
    resources: Mapping[str, Any] | None = None,
    store: CheckpointStore | None = None,
    within: float = YEAR,
) -> Run:
    """As `run_to_end`, for tests that run on a VirtualLoop themselves."""
    answers = checked(answers, workflow)
    clock = VirtualClock(running_loop())
    store = MemoryStore() if store is None else store
    events: list[Event] = []
    emitted: list[DomainEvent] = []
    engine = Engine(
        store=store,
        clock=clock,
        registry=registry_of(workflow),
        resources=resources,
        recording=Recording.EVERY_STEP,
        event_sink=emitted.extend,
    )
    for each in family(workflow):
        engine.subscribe(each, events.append)
    async with engine:
        key = ExecutionKey(workflow.id, transaction_id)
        await begin(engine, workflow, input, transaction_id)
        outcome = await to_end(engine, store, key, answers, within)
    return Run(outcome=outcome, events=tuple(events), emitted=tuple(emitted))


async def until_quiet(engine: Engine, max: float) -> Literal["quiet", "max"]:
    """Let everything that goes on by itself go on: handlers, deliveries, retries, timeouts.

    Returns "quiet" when nothing is at work and no timer is set, "max" after `max` virtual seconds.
    """
    loop = running_loop()
    end = loop.time() + max
    await loop.settled()
    while not engine.is_quiet:
        if loop.time() >= end:
            return "max"
        await loop.moved(end)
        await loop.settled()
    return "quiet"


# --- its parts -----------------------------------------------------------------------------------


def refuse_in_a_loop(what: str, *, instead: str) -> None:
    """
    Raises:
        UsageError: an event loop is running, which `what` would block.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        f"{what} would block the event loop that it is called in.", hint=f"Write {instead}."
    )


async def begin(
    engine: Engine, workflow: Workflow[Any, Any], input: Any, transaction_id: str
) -> None:
    """Start it, and wait for nothing."""
    given = {} if input is NOT_GIVEN else {"input": input}
    accepted(
        await engine.run(
            workflow,
            transaction_id=transaction_id,
            until="stored",
            throw_on_error=False,
            **given,
        )
    )


async def to_end(
    engine: Engine, store: CheckpointStore, key: ExecutionKey, answers: Answers, within: float
) -> CommandResult:
    """Let time pass, and answer what waits, until nothing goes on by itself any more."""
    loop = running_loop()
    end = loop.time() + within
    while True:
        await loop.settled()
        if await answer_one(engine, store, answers):
            continue
        if engine.is_quiet:
            break
        if loop.time() >= end:
            raise NotEnded(
                f"{key} has not ended after {within:g} virtual seconds: give it more (within=...)."
            )
        await loop.moved(end)
    execution = await store.load(key)
    if execution is None or not execution.head.is_final:
        raise NotEnded(_why(store, key, execution))
    return await engine.wait_for(
        key.workflow_id, key.transaction_id, until="stored", throw_on_error=False
    )


def _why(store: CheckpointStore, key: ExecutionKey, execution: Execution | None) -> str:
    """Why an execution does not go on."""
    if execution is None:
        return f"{key} is gone without an end."
    names = [
        short(key_of(step))
        for step in store.reader.steps_waiting()
        if not _is_nested(execution, step)
    ]
    if names:
        hints = ", ".join(f"{name!r}: ..." for name in names)
        return f"{key} waits for an answer: give it (answers={{{hints}}})."
    records = [execution.steps[name] for name in execution.active]
    parked = [record.name for record in records if _is_parked(record)]
    if parked:
        return f"{key} waits for retry_step: {', '.join(parked)} failed, and has auto_retry=False."
    active = ", ".join(f"{record.name} is {record.state}/{record.status}" for record in records)
    return f"{key} is {execution.head.state} and nothing is at work on it ({active})."


def _is_parked(record: StepRecord) -> bool:
    return record.status is StepStatus.TEMP_FAILURE and record.retry_at is None


def _is_nested(execution: Execution, step: WaitingStep) -> bool:
    """A step of this execution that waits for a workflow of its own to end."""
    if step.workflow_id != execution.head.workflow_id:
        return False
    return execution.flow.steps[step.step].kind is StepKind.WORKFLOW
