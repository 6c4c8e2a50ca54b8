"""Two engines on one database, as two processes have them: who has an execution in hand drives it,
and whatever the other one wants of it arrives as a signal."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from wfe import Engine, StepContext, Workflow, step, workflow
from wfe.authoring.registry import Registry
from wfe.errors import (
    EngineClosed,
    HeldElsewhere,
    NotAccepted,
    StepNotWaiting,
    StoreUnusable,
    TransactionFinished,
)
from wfe.model import ExecutionKey, ExecutionState, Recording
from wfe.store import owners
from wfe.store.contract import Signal
from wfe.store.sqlite import SQLiteStore

KEY = ExecutionKey("release", "t1")
APPROVE = "release:t1:approve:invoke"


class Scene:
    """A workflow whose second step waits, while another one of the same stage may run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        with Registry().scope() as self.registry:
            self.release, self.slow = self._compose()

    def _compose(self) -> tuple[Workflow[Any, Any], Workflow[Any, Any]]:
        scene = self

        @step
        async def build() -> str:
            scene.calls.append("build")
            return "1.2"

        @build.compensate
        async def remove(version: str) -> None:
            scene.calls.append("~build")

        @step(async_=True, max_retries=1)
        async def approve() -> Any:
            scene.calls.append("approve")

        @step
        async def publish(version: str, answer: Any) -> str:
            scene.calls.append("publish")
            scene.begun.set()
            await scene.go.wait()
            return f"{version} by {answer}"

        @workflow("release")
        def release() -> Any:
            version = build()
            return publish(version, approve())

        @workflow("slow")
        def slow() -> Any:
            return publish("1.2", "nobody")

        return release, slow

    async def engine(self, **options: Any) -> Engine:
        engine = Engine(
            store=SQLiteStore(self.folder / "wfe.db", synchronous="normal"),
            registry=self.registry,
            recording=Recording.EVERY_STEP,
            **options,
        )
        await engine.start()
        return engine

    async def waiting(self, engine: Engine) -> asyncio.Task[Any]:
        """Run it until it waits for the answer; the task goes on waiting for its end."""
        running = asyncio.create_task(
            engine.run(self.release, transaction_id="t1", until="finished", throw_on_error=False)
        )
        await until(lambda: engine.list_executions(where={"status": "waiting"}))
        return running


async def until(look: Callable[[], Any]) -> None:
    """Return when `look` sees something; no event tells of what another process has done."""
    while not (await seen if inspect.isawaitable(seen := look()) else seen):  # noqa: ASYNC110
        await asyncio.sleep(0)


def with_two(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test gets two engines on one database; both are shut down at its end."""
    given = ("scene", "first", "second")
    parameters = inspect.signature(test).parameters
    fixtures = [parameters[name] for name in parameters if name not in given]

    def run(tmp_path: Path, **fixtures: Any) -> None:
        async def main() -> None:
            scene = Scene(tmp_path)
            first, second = await scene.engine(), await scene.engine(accept_timeout=0.2)
            try:
                await test(scene, first, second, **fixtures)
            finally:
                scene.go.set()
                await first.shutdown()
                await second.shutdown()

        asyncio.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    folder = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([folder, *fixtures])  # type: ignore[attr-defined]
    return run


@with_two
async def test_an_answer_given_elsewhere_is_applied_by_whoever_waits(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    scene.go.set()
    accepted = await second.set_step_success(APPROVE, "kim", until="waiting", by="kim at a desk")
    assert accepted.acknowledgement.accepted
    outcome = await running
    assert outcome.result == "1.2 by kim"
    assert scene.calls == ["build", "approve", "publish"]
    assert second.is_quiet, "the other process has driven nothing"
    timeline = await _timeline(first)
    assert ("step_success", "approve", "by kim at a desk") in timeline


async def _ends_before_it_is_asked(
    scene: Scene, first: Engine, second: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever `second` sends is sent just after `first` has come to the end of the execution."""
    running = await scene.waiting(first)
    scene.go.set()
    peers = second.store.peers
    assert peers is not None
    send = peers.send

    async def late(signal: Signal) -> int:
        if not running.done():
            await first.set_step_success(APPROVE, "kim", until="stored")
            await running
        return await send(signal)

    monkeypatch.setattr(peers, "send", late)


@with_two
async def test_an_answer_to_what_ends_before_it_arrives_is_refused_at_once(
    scene: Scene, first: Engine, second: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _ends_before_it_is_asked(scene, first, second, monkeypatch)
    with pytest.raises(StepNotWaiting, match="another answer was faster"):
        await second.set_step_success(APPROVE, "lee")
    assert scene.calls == ["build", "approve", "publish"]


@with_two
async def test_a_cancel_of_what_ends_before_it_arrives_takes_it_back(
    scene: Scene, first: Engine, second: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _ends_before_it_is_asked(scene, first, second, monkeypatch)
    outcome = await second.cancel(scene.release, "t1", until="finished")
    assert outcome.execution is not None
    assert outcome.execution.head.state is ExecutionState.REVERTED
    assert scene.calls == ["build", "approve", "publish", "~build"]


async def _timeline(engine: Engine) -> list[tuple[str, str | None, str | None]]:
    (summary,) = await engine.list_executions()
    store = engine.store
    entries = store.reader.timeline(summary.execution_id)
    return [(str(entry.kind), entry.step, entry.detail) for entry in entries]


@with_two
async def test_a_second_answer_is_refused_wherever_it_is_given(
    scene: Scene, first: Engine, second: Engine
) -> None:
    await scene.waiting(first)
    await second.set_step_success(APPROVE, "kim")
    for engine in (first, second):
        with pytest.raises(StepNotWaiting) as refusal:
            await engine.set_step_success(APPROVE, "lee")
        assert (refusal.value.step, refusal.value.state) == ("approve", "done")
    await scene.begun.wait()


@with_two
async def test_a_failure_given_elsewhere_is_retried_and_then_undone(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    for reason in ("not today", "not today either"):
        await second.set_step_failure(APPROVE, reason, throw_on_error=False)
    outcome = await running
    assert outcome.execution is not None
    assert outcome.execution.head.state is ExecutionState.REVERTED
    assert scene.calls == ["build", "approve", "approve", "~build"]


@with_two
async def test_a_retry_and_a_skip_given_elsewhere_are_applied_by_whoever_waits(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    scene.go.set()
    await second.retry_step(APPROVE)
    await second.skip_step(APPROVE, reason="kim is away")
    outcome = await running
    assert outcome.result == "1.2 by None"
    assert scene.calls == ["build", "approve", "approve", "publish"]


@with_two
async def test_a_cancel_given_elsewhere_reaches_a_step_that_is_being_executed(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    await first.set_step_success(APPROVE, "kim", until="stored")
    await scene.begun.wait()
    accepted = await second.cancel("release", "t1")
    assert not accepted.acknowledgement.has_finished
    scene.go.set()
    outcome = await running
    assert outcome.execution is not None
    assert outcome.execution.head.cancelled_at is not None
    assert scene.calls == ["build", "approve", "publish", "~build"]


@with_two
async def test_who_wants_the_end_waits_for_it(scene: Scene, first: Engine, second: Engine) -> None:
    await scene.waiting(first)
    scene.go.set()
    outcome = await second.set_step_success(APPROVE, "kim", until="finished")
    assert outcome.result == "1.2 by kim"


@with_two
async def test_a_run_of_the_same_id_elsewhere_waits_and_starts_nothing(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = asyncio.create_task(first.run(scene.slow, transaction_id="t1", until="finished"))
    await scene.begun.wait()
    joined = asyncio.create_task(second.run(scene.slow, transaction_id="t1", until="finished"))
    await until(second._audiences.waited_for)
    scene.go.set()
    assert (await running).result == (await joined).result == "1.2 by nobody"
    assert scene.calls == ["publish"]


@with_two
async def test_an_execution_in_another_hand_is_not_resumed(
    scene: Scene, first: Engine, second: Engine
) -> None:
    await scene.waiting(first)
    with pytest.raises(HeldElsewhere, match="in the hand of process"):
        await second.resume("release", "t1")
    assert await second.recover() == {}


@with_two
async def test_what_a_closed_engine_had_in_hand_is_free(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    await first.shutdown()
    with pytest.raises(EngineClosed):
        await _raised(running)
    scene.go.set()
    outcome = await second.set_step_success(APPROVE, "lee", until="finished")
    assert outcome.result == "1.2 by lee"


async def _raised(running: asyncio.Task[Any]) -> None:
    outcome = await running
    raise outcome.acknowledgement.reason


@with_two
async def test_an_owner_that_does_not_answer_keeps_the_command_for_later(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    first._watch.close()  # it lives, and looks at nothing
    with pytest.raises(NotAccepted, match=r"has not taken it for 0\.2 s"):
        await second.set_step_success(APPROVE, "kim")
    scene.go.set()
    first._watch.begin()
    assert (await running).result == "1.2 by kim"


@with_two
async def test_the_command_of_a_sender_that_died_is_applied_by_whoever_comes(
    scene: Scene, first: Engine, second: Engine
) -> None:
    await scene.waiting(first)
    first._watch.close()
    with pytest.raises(NotAccepted):
        await second.set_step_success(APPROVE, "kim")
    await first.shutdown()
    scene.go.set()
    third = await scene.engine()
    try:
        outcome = await third.run(scene.release, transaction_id="t1", until="finished")
        assert outcome.result == "1.2 by kim"
    finally:
        await third.shutdown()


@with_two
async def test_a_sender_takes_over_from_an_owner_that_died_and_applies_its_own_command(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    first._watch.close()
    answer = asyncio.create_task(second.set_step_success(APPROVE, "kim", until="finished"))
    peers = first.store.peers
    assert peers is not None
    await until(lambda: peers.pending_for(first._driver.owner))
    owners.release(first._driver.owner)
    scene.go.set()
    assert (await answer).result == "1.2 by kim"
    assert scene.calls == ["build", "approve", "publish"]
    running.cancel()


@with_two
async def test_who_waits_for_an_execution_takes_it_up_when_its_process_dies(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = asyncio.create_task(
        first.run(scene.slow, transaction_id="t1", until="finished", throw_on_error=False)
    )
    await scene.begun.wait()
    scene.begun.clear()
    joined = asyncio.create_task(second.run(scene.slow, transaction_id="t1", until="finished"))
    await until(second._audiences.waited_for)
    owners.release(first._driver.owner)
    await scene.begun.wait()
    scene.go.set()
    assert (await joined).result == "1.2 by nobody"
    assert scene.calls == ["publish", "publish"]
    assert (await running).result == "1.2 by nobody", "it learns what the other one came to"


@with_two
async def test_a_death_is_noticed_by_who_was_watching_for_something_else(
    scene: Scene, first: Engine, second: Engine
) -> None:
    other = await scene.waiting(second)  # it watches already, and nothing is in another hand
    running = asyncio.create_task(
        first.run(scene.slow, transaction_id="t1", until="finished", throw_on_error=False)
    )
    await scene.begun.wait()
    joined = asyncio.create_task(second.run(scene.slow, transaction_id="t1", until="finished"))
    await until(lambda: ExecutionKey("slow", "t1") in second._audiences.waited_for())
    scene.begun.clear()
    owners.release(first._driver.owner)
    await scene.begun.wait()
    scene.go.set()
    assert (await joined).result == "1.2 by nobody"
    await running
    other.cancel()


@with_two
async def test_a_stale_owner_does_no_harm(scene: Scene, first: Engine, second: Engine) -> None:
    running = asyncio.create_task(
        first.run(scene.slow, transaction_id="t1", until="finished", throw_on_error=False)
    )
    await scene.begun.wait()
    owners.release(first._driver.owner)  # as if it had been stopped, and lost its lease
    assert list(await second.recover()) == [ExecutionKey("slow", "t1")]
    scene.go.set()
    outcome = await second.wait_for("slow", "t1")
    assert outcome.execution is not None
    assert outcome.execution.steps["publish"].attempts == 2
    assert (await running).result == "1.2 by nobody"
    assert outcome.execution.head.version == 3


@with_two
async def test_a_stale_owner_is_told_what_the_other_one_did(
    scene: Scene, first: Engine, second: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "wfe")
    running = asyncio.create_task(
        first.run(scene.slow, transaction_id="t1", until="finished", throw_on_error=False)
    )
    await scene.begun.wait()
    owners.release(first._driver.owner)
    await second.recover()
    scene.calls.clear()
    cancelled = await second.cancel("slow", "t1")
    assert cancelled.acknowledgement.accepted
    scene.go.set()
    await running
    assert "Another process has cancelled this execution." in caplog.text


@with_two
async def test_of_two_that_take_up_the_same_execution_one_does(
    scene: Scene, first: Engine, second: Engine
) -> None:
    dead = await scene.engine()
    left = asyncio.create_task(
        dead.run(scene.slow, transaction_id="t1", until="finished", throw_on_error=False)
    )
    await scene.begun.wait()
    owners.release(dead._driver.owner)
    scene.calls.clear()
    outcomes = await asyncio.gather(
        first.resume("slow", "t1", until="stored"),
        second.resume("slow", "t1", until="stored"),
        return_exceptions=True,
    )
    refusals = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [type(refusal) for refusal in refusals] == [HeldElsewhere]
    scene.go.set()
    assert (await first.wait_for("slow", "t1")).result == "1.2 by nobody"
    assert scene.calls == ["publish"]
    await dead.shutdown()
    await left


@with_two
async def test_an_execution_that_is_over_answers_alike_everywhere(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    scene.go.set()
    await second.set_step_success(APPROVE, "kim", until="finished")
    await running
    for engine in (first, second):
        with pytest.raises(TransactionFinished):
            await engine.retry_step(APPROVE)


@with_two
async def test_who_waits_is_told_that_the_database_is_gone(
    scene: Scene, first: Engine, second: Engine
) -> None:
    running = await scene.waiting(first)
    (scene.folder / "wfe.db").unlink()
    outcome = await running
    assert isinstance(outcome.acknowledgement.reason, StoreUnusable)


@with_two
async def test_a_cancel_reaches_a_background_step_that_is_all_that_another_process_has(
    scene: Scene, first: Engine, second: Engine
) -> None:
    with scene.registry.scope():
        begun = asyncio.Event()

        @step(async_=True)
        async def watch(ctx: StepContext) -> str:
            begun.set()
            while not ctx.cancelled:  # noqa: ASYNC110  (nothing else tells of a cancel)
                await asyncio.sleep(0)
            return "what it had come to"

        @watch.compensate
        async def forget(found: str) -> None:
            scene.calls.append(f"~{found}")

        @workflow("watching")
        def watching() -> Any:
            return watch()

    running = asyncio.create_task(
        first.run(watching, transaction_id="t1", until="finished", throw_on_error=False)
    )
    await begun.wait()
    outcome = await second.cancel(watching, "t1", until="finished")
    assert outcome.execution is not None
    assert outcome.execution.head.state is ExecutionState.REVERTED
    assert scene.calls == ["~what it had come to"]
    await running
