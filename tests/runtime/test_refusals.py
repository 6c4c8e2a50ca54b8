"""Refusals: each has a class of its own, whose fields and message tell what is wrong and what to do;
a refused command has changed nothing and told nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

import pytest

from tests.decisions.support import After, T, W, World
from wfe import (
    Action,
    CommandResult,
    DefinitionChanged,
    Event,
    IdempotencyConflict,
    NonSerializableValue,
    NotAllowed,
    Refused,
    StepKey,
    StepNotFound,
    StepNotWaiting,
    TransactionExists,
    TransactionFinished,
    TransactionNotFound,
    WfeError,
    WrongAction,
    parallel,
)

# --- executions in every state -------------------------------------------------------------------


async def nothing(world: World) -> None:
    """The workflow is there, an execution is not."""
    _define(world)


async def waiting(world: World) -> None:
    """`first` is done, `asks` waits for an answer, `last` has not begun."""
    _define(world)
    await world.run(input={"n": 1})
    await world.quiet()


async def working(world: World) -> None:
    """`asks` is being executed in the background."""
    _define(world, After(1_000, None))
    await world.run(input={"n": 1})


async def parked(world: World) -> None:
    """`asks` has failed once, and waits for a `retry_step`."""
    _define(world, ValueError("boom"), auto_retry=False, max_retries=1)
    await world.run(input={"n": 1})
    await world.quiet()


async def undoing(world: World) -> None:
    """`asks` is being undone, and waits for an answer to that."""
    _define(world, undo=(None,), compensate_async=True)
    await world.run(input={"n": 1})
    await world.quiet()
    await world.cancel()
    await world.quiet()


async def stopped(world: World) -> None:
    """A step has failed; the execution waits for the end of `asks` before it is undone."""
    _define(world, After(1_000, 1), fails_beside=True)
    await world.run(input={"n": 1})


async def done(world: World) -> None:
    """Finished, and kept."""
    _define(world, "answer")
    await world.run(input={"n": 1}, until="finished")


async def reverted(world: World) -> None:
    """Undone, and kept."""
    await waiting(world)
    await world.cancel(wait=True)


async def gone(world: World) -> None:
    """Finished, and not kept."""
    _define(world, "answer", retention_time=None)
    await world.run(input={"n": 1}, until="finished")


async def idempotent(world: World) -> None:
    """Finished, and kept as the answer to every further run."""
    _define(world, "answer", idempotent=True)
    await world.run(input={"n": 1}, until="finished")


async def changed(world: World) -> None:
    """`asks` waits, but the workflow has other steps by now."""
    await waiting(world)
    await world.restart()
    world.engine.unregister(W)
    other = world.step("other")
    world.flow(lambda order: other(order))


def _define(
    world: World,
    *script: Any,
    undo: Any = (None,),
    fails_beside: bool = False,
    retention_time: float | None = 3600.0,
    idempotent: bool = False,
    **options: Any,
) -> None:
    first, last = world.step("first"), world.step("last")
    asks = world.step("asks", *(script or (None,)), undo=undo, async_=True, **options)
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body(order: Any) -> None:
        first(order)
        if fails_beside:
            parallel(asks(), boom())
        else:
            asks()
        last()

    world.flow(body, retention_time=retention_time, idempotent=idempotent)


# --- commands ------------------------------------------------------------------------------------

Command = Callable[..., Awaitable[CommandResult]]


def succeed(step: str, action: str = "invoke", response: Any = 1) -> Command:
    return lambda world, **options: world.engine.set_step_success(
        _key(step, action), response, **options
    )


def fail(step: str, action: str = "invoke") -> Command:
    return lambda world, **options: world.engine.set_step_failure(
        _key(step, action), "no", **options
    )


def retry(step: str, action: str = "invoke") -> Command:
    return lambda world, **options: world.engine.retry_step(_key(step, action), **options)


def _key(step: str, action: str) -> StepKey:
    is_known = action in {*Action}
    return StepKey(W, T, step, Action(action) if is_known else cast("Action", action))


def cancel(world: World, **options: Any) -> Awaitable[CommandResult]:
    return world.engine.cancel(W, T, **options)


def resume(world: World, **options: Any) -> Awaitable[CommandResult]:
    return world.engine.resume(W, T, **options)


def wait_for(world: World, **options: Any) -> Awaitable[CommandResult]:
    return world.engine.wait_for(W, T, **options)


def run(input: Any = None, **more: Any) -> Command:
    given = {} if input is None else {"input": input}
    return lambda world, **options: world.engine.run(
        W, transaction_id=T, **given, **more, **options
    )


# --- which command is refused in which state, and how --------------------------------------------


class Case(NamedTuple):
    state: Callable[[World], Awaitable[None]]
    name: str
    command: Command
    error: type[WfeError]
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.state.__name__}-{self.name}"


def on_each_answer(
    state: Callable[[World], Awaitable[None]],
    step: str,
    error: type[WfeError],
    key_action: str = "invoke",
    /,
    **fields: Any,
) -> list[Case]:
    """The three commands on a step are refused alike."""
    commands = {"succeed": succeed, "fail": fail, "retry": retry}
    return [
        Case(state, f"{name} {step} {key_action}", make(step, key_action), error, fields)
        for name, make in commands.items()
    ]


NOT_WAITING: dict[str, Any] = {"step": "first", "state": "done", "status": "ok"}
CASES = [
    *on_each_answer(nothing, "asks", TransactionNotFound),
    Case(nothing, "cancel", cancel, TransactionNotFound, {}),
    Case(nothing, "resume", resume, TransactionNotFound, {}),
    Case(nothing, "wait for", wait_for, TransactionNotFound, {}),
    *on_each_answer(gone, "asks", TransactionNotFound),
    Case(gone, "cancel", cancel, TransactionNotFound, {}),
    # A step that waits for no answer.
    *on_each_answer(waiting, "first", StepNotWaiting, **NOT_WAITING),
    *on_each_answer(
        waiting, "last", StepNotWaiting, step="last", state="not_started", status="idle"
    ),
    Case(
        working,
        "retry what is being executed",
        retry("asks"),
        StepNotWaiting,
        {"step": "asks", "state": "invoking", "status": "waiting_response"},
    ),
    Case(
        parked,
        "succeed what waits for a retry",
        succeed("asks"),
        StepNotWaiting,
        {"step": "asks", "state": "invoking", "status": "temp_failure"},
    ),
    *on_each_answer(idempotent, "first", StepNotWaiting, **NOT_WAITING),
    # A key that names something else.
    *on_each_answer(waiting, "aks", StepNotFound, step="aks", near=("asks",)),
    *on_each_answer(
        waiting,
        "asks",
        WrongAction,
        "compensate",
        step="asks",
        action="compensate",
        current="invoke",
    ),
    *on_each_answer(
        undoing, "asks", WrongAction, step="asks", action="invoke", current="compensate"
    ),
    Case(
        waiting,
        "succeed an action that does not exist",
        succeed("asks", "undo"),
        WrongAction,
        {"step": "asks", "action": "undo", "current": "invoke"},
    ),
    # An execution that is over, or on its way back.
    *on_each_answer(done, "asks", TransactionFinished, state="done"),
    *on_each_answer(reverted, "asks", TransactionFinished, state="reverted"),
    Case(done, "resume", resume, TransactionFinished, {"state": "done"}),
    Case(reverted, "cancel", cancel, TransactionFinished, {"state": "reverted"}),
    Case(undoing, "cancel", cancel, NotAllowed, {"command": "cancelled", "state": "compensating"}),
    Case(
        stopped,
        "cancel",
        cancel,
        NotAllowed,
        {"command": "cancelled", "state": "waiting_to_compensate"},
    ),
    # An id that is taken.
    Case(waiting, "run with another input", run({"n": 2}), IdempotencyConflict, {}),
    Case(idempotent, "run with another input", run({"n": 2}), IdempotencyConflict, {}),
    Case(
        waiting,
        "run and not attach",
        run(on_conflict="fail"),
        TransactionExists,
        {"state": "invoking"},
    ),
    Case(
        idempotent,
        "run and not attach",
        run(on_conflict="fail"),
        TransactionExists,
        {"state": "done"},
    ),
    # A definition that is another one now.
    *on_each_answer(changed, "asks", DefinitionChanged),
    Case(changed, "cancel", cancel, DefinitionChanged, {}),
    Case(changed, "run", run(), DefinitionChanged, {}),
    Case(changed, "resume", resume, DefinitionChanged, {}),
]
each_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


@each_case
async def test_a_refusal_says_what_is_wrong_where_and_what_to_do(world: World, case: Case) -> None:
    await case.state(world)
    with pytest.raises(WfeError) as caught:
        await case.command(world)

    error = caught.value
    assert type(error) is case.error
    fields = {"workflow_id": W, "transaction_id": T, **case.fields}
    assert {name: getattr(error, name) for name in fields} == fields
    assert error.message.endswith((".", "?"))
    assert error.hint
    for name, value in case.fields.items():
        if isinstance(value, str):
            assert value in str(error), name


@each_case
async def test_without_throwing_a_refusal_is_acknowledged(world: World, case: Case) -> None:
    await case.state(world)
    result = await case.command(world, throw_on_error=False)

    acknowledgement = result.acknowledgement
    assert not acknowledgement.accepted
    assert type(acknowledgement.reason) is case.error
    fields = {"workflow_id": W, "transaction_id": T, **case.fields}
    assert {name: getattr(acknowledgement.reason, name) for name in fields} == fields
    assert acknowledgement.exists is (case.error is not TransactionNotFound)
    assert (acknowledgement.workflow_id, acknowledgement.transaction_id) == (W, T)
    assert not acknowledgement.has_finished
    assert not acknowledgement.has_failed
    assert result.result is None
    assert result.execution is None


@each_case
async def test_a_refused_command_changes_nothing_and_tells_nobody(world: World, case: Case) -> None:
    await case.state(world)
    heard: list[Event] = []
    before = await _everything(world)
    await case.command(world, throw_on_error=False, events=heard.append)
    assert await _everything(world) == before

    # Its handlers hear nothing of what comes later either.
    await asyncio.sleep(0)
    if case.state in (waiting, parked):
        await world.cancel(wait=True)
        assert await _everything(world) != before
    assert heard == []


async def _everything(world: World) -> Any:
    """All there is to be seen of the execution: what is kept, what was told, what was called."""
    kept = await world.stored()
    seen: list[Any] = [list(world.told), list(world.log)]
    if kept is not None:
        timeline = world.store.reader.timeline(kept.head.execution_id)
        seen += [kept.head, dict(kept.steps), kept.result, list(timeline)]
    return seen


async def test_a_second_answer_is_told_the_state_and_changes_nothing(world: World) -> None:
    await waiting(world)
    await world.succeed("asks", "first")
    before = await _everything(world)
    result = await world.succeed("asks", "second")

    assert type(result.acknowledgement.reason) is TransactionFinished
    assert await _everything(world) == before


async def test_an_answer_that_cannot_be_stored_is_refused(world: World) -> None:
    await waiting(world)
    before = await _everything(world)
    with pytest.raises(NonSerializableValue) as caught:
        await succeed("asks", response={"total": float("nan")})(world)
    result = await succeed("asks", response=object())(world, throw_on_error=False)

    assert caught.value.path == "$.total"
    assert isinstance(result.acknowledgement.reason, NonSerializableValue)
    assert result.acknowledgement.exists
    assert await _everything(world) == before
    assert (await world.succeed("asks", 1)).acknowledgement.accepted


@pytest.mark.parametrize("side", ["invoke", "compensate"])
async def test_a_structured_key_may_spell_its_action_as_a_text(world: World, side: str) -> None:
    await (waiting if side == "invoke" else undoing)(world)
    step = StepKey(W, T, "asks", cast("Action", side))
    result = await world.engine.set_step_success(step, 1, throw_on_error=False)

    assert result.acknowledgement.reason is None
    assert world.event("finish").state == ("done" if side == "invoke" else "reverted")


def test_a_refusal_by_the_state_ends_a_command_with_4_and_what_is_missing_with_3() -> None:
    refusals = {case.error for case in CASES}
    for error in refusals:
        assert error.exit_code == (4 if issubclass(error, (Refused, TransactionFinished)) else 3)
    assert len({error.code for error in refusals}) == len(refusals)
