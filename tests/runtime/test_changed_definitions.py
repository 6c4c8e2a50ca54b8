"""A workflow is changed while executions of it wait: which of them go on, and by what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from wfe import Engine, step, workflow
from wfe.authoring.registry import Registry
from wfe.errors import DefinitionChanged
from wfe.model import CommandResult, ExecutionState, Recording
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore

calls: list[str] = []


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    calls.clear()
    return MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "wfe.db")


def version(*names: str) -> Registry:
    """The workflow with these steps; `ask` waits for an answer."""
    with Registry().scope() as registry:

        def act(name: str) -> Any:
            @step(name, async_=name.startswith("ask"))
            async def run() -> str | None:
                calls.append(name)
                return None if name.startswith("ask") else name

            @run.compensate
            async def undo(value: Any) -> None:
                calls.append(f"~{name}")

            return run

        @workflow("order")
        def order() -> Any:
            for name in names:
                result = act(name)()
            return result

    return registry


Use = Callable[[Engine], Awaitable[CommandResult]]


def play(store: CheckpointStore, registry: Registry, use: Use) -> CommandResult:
    """One process: it has these workflows, and does that."""

    async def main() -> CommandResult:
        async with Engine(store=store, registry=registry, recording=Recording.EVERY_STEP) as engine:
            return await use(engine)

    return asyncio.run(main())


def begin(store: CheckpointStore, *names: str) -> None:
    play(store, version(*names), lambda engine: engine.run("order", transaction_id="t1"))


def go_on(store: CheckpointStore, *names: str, key: str = "ask", **options: Any) -> CommandResult:
    async def use(engine: Engine) -> CommandResult:
        await engine.run("order", transaction_id="t1", **options)
        return await engine.set_step_success(f"order:t1:{key}:invoke", "yes", until="finished")

    return play(store, version(*names), use)


def test_what_comes_after_the_point_reached_may_change(store: CheckpointStore) -> None:
    begin(store, "reserve", "ask", "ship")
    outcome = go_on(store, "reserve", "ask", "pack", "send")
    assert outcome.result == "send"
    assert calls == ["reserve", "ask", "pack", "send"]


def test_what_was_inserted_before_the_point_reached_is_refused_with_a_diff(
    store: CheckpointStore,
) -> None:
    begin(store, "reserve", "ask", "ship")
    with pytest.raises(DefinitionChanged) as refusal:
        go_on(store, "check", "reserve", "ask", "ship")
    assert "+ check" in refusal.value.changes
    assert "check" in refusal.value.message
    assert "--allow-changed" in refusal.value.hint
    assert go_on(store, "reserve", "ask", "ship").result == "ship", "nothing was changed by that"


def test_a_change_that_is_allowed_skips_what_was_added(store: CheckpointStore) -> None:
    begin(store, "reserve", "ask", "ship")
    outcome = go_on(store, "check", "reserve", "ask", "ship", allow_changed=True)
    assert outcome.result == "ship"
    assert calls == ["reserve", "ask", "ship"]


def test_a_step_that_was_renamed_is_answered_and_undone_by_its_new_name(
    store: CheckpointStore,
) -> None:
    begin(store, "reserve", "ask", "ship")
    renames = {"reserve": "hold", "ask": "ask-kim"}
    outcome = go_on(store, "hold", "ask-kim", "ship", key="ask-kim", renames=renames)
    assert outcome.result == "ship"
    undone = play(
        store, version("hold", "ask-kim", "ship"), lambda engine: engine.cancel("order", "t1")
    )
    assert undone.execution is not None
    assert undone.execution.head.state is ExecutionState.REVERTED
    assert calls == ["reserve", "ask", "ship", "~ship", "~ask-kim", "~hold"]


def test_a_done_execution_that_is_cancelled_is_undone_by_the_steps_there_are(
    store: CheckpointStore,
) -> None:
    begin(store, "reserve", "ship")
    with pytest.raises(DefinitionChanged):
        play(store, version("reserve"), lambda engine: engine.cancel("order", "t1"))
    assert calls == ["reserve", "ship"]


def test_a_done_execution_is_cancelled_by_what_was_changed_meanwhile_after_its_end(
    store: CheckpointStore,
) -> None:
    begin(store, "reserve", "ship")
    play(store, version("reserve", "ship", "more"), lambda engine: engine.cancel("order", "t1"))
    assert calls == ["reserve", "ship", "~ship", "~reserve"]


def test_the_options_of_the_next_attempt_are_those_of_the_loaded_workflow(
    store: CheckpointStore,
) -> None:
    def with_retries(count: int) -> Registry:
        with Registry().scope() as registry:

            @step(max_retries=count, auto_retry=False)
            async def charge() -> None:
                calls.append("charge")
                raise RuntimeError("no money")

            @workflow("order")
            def order() -> Any:
                return charge()

        return registry

    quiet: dict[str, Any] = {"throw_on_error": False}
    play(store, with_retries(9), lambda e: e.run("order", transaction_id="t1", **quiet))
    outcome = play(
        store, with_retries(1), lambda e: e.retry_step("order:t1:charge:invoke", **quiet)
    )
    assert calls == ["charge", "charge"]
    assert outcome.acknowledgement.has_failed


def with_child(*names: str, begun: asyncio.Event, ends: asyncio.Event) -> Registry:
    """A workflow whose one step is a child of these steps; `work` ends when it is told to."""

    @step
    async def work() -> None:
        calls.append("work")
        begun.set()
        await ends.wait()

    with Registry().scope() as registry:

        @step(async_=True)
        async def ask() -> None: ...

        known: dict[str, Any] = {"work": work, "ask": ask}

        @workflow("child")
        def child() -> Any:
            for name in names:
                known[name]()
            return "from the child"

        @workflow("parent")
        def parent() -> Any:
            return child.as_step()

    return registry


def test_a_child_that_waits_for_nobody_any_more_reports_to_its_parent_all_the_same(
    store: CheckpointStore,
) -> None:
    async def one_life(*names: str, dies: bool) -> Any:
        begun, ends, waits = asyncio.Event(), asyncio.Event(), asyncio.Event()
        registry = with_child(*names, begun=begun, ends=ends)
        engine = Engine(store=store, registry=registry, recording=Recording.EVERY_STEP)
        engine.subscribe("parent", lambda e: waits.set() if e.kind == "step_awaiting" else None)
        await engine.start()
        running = asyncio.ensure_future(
            engine.run("parent", transaction_id="t1", until="stored" if dies else "finished")
        )
        await begun.wait()
        if dies:
            await waits.wait()
        else:
            ends.set()
        outcome = await running
        await engine.shutdown(grace=0)
        return outcome.result

    asyncio.run(one_life("work", "ask", dies=True))
    found = asyncio.run(asyncio.wait_for(one_life("work", dies=False), 20))
    assert found == "from the child"
    assert calls == ["work", "work"]
