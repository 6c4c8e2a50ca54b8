"""A command for an execution whose process has died in the middle of a step: the step goes on, too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wfe import Engine, parallel, step, workflow
from wfe.authoring.registry import Registry
from wfe.model import CommandResult, Recording
from wfe.store import owners
from wfe.store.memory import MemoryStore

calls: list[str] = []


def pair() -> Registry:
    with Registry().scope() as registry:

        @step
        async def work() -> str:
            calls.append("work")
            if len(calls) == 1:
                await asyncio.Event().wait()  # it dies here
            return "worked"

        @work.compensate
        async def undo_work(value: Any) -> None:
            calls.append(f"~work {value}")

        @step(async_=True)
        async def ask() -> None: ...

        @workflow("pair")
        def both() -> Any:
            return list(parallel([work(), ask()]))

    return registry


@pytest.mark.parametrize("command", ["answer", "cancel"])
def test_what_was_in_flight_is_attempted_again_beside_the_command(command: str) -> None:
    calls.clear()
    registry, store = pair(), MemoryStore()
    options: dict[str, Any] = {"registry": registry, "recording": Recording.EVERY_STEP}

    async def main() -> CommandResult:
        dead = Engine(store=store, **options)
        await dead.start()
        running = asyncio.create_task(dead.run("pair", transaction_id="t1"))
        while not store.reader.steps_waiting():  # noqa: ASYNC110 nothing tells
            await asyncio.sleep(0)
        owners.release(dead._driver.owner)
        async with Engine(store=store, **options) as engine:
            if command == "answer":
                outcome = await engine.set_step_success(
                    "pair:t1:ask:invoke", "yes", until="finished"
                )
            else:
                outcome = await engine.cancel("pair", "t1", until="finished")
        running.cancel()
        await dead.shutdown(grace=0)
        return outcome

    outcome = asyncio.run(main())
    if command == "answer":
        assert outcome.result == ["worked", "yes"]
        assert calls == ["work", "work"]
    else:
        assert calls == ["work", "work", "~work worked"]
