"""Who waits for an execution when the engine is shut down is told so, and the execution is kept."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from wfe import Engine, step, workflow
from wfe.authoring.registry import Registry
from wfe.errors import EngineClosed
from wfe.testing import VirtualClock, VirtualLoop


def test_a_caller_that_waits_is_told_that_the_engine_was_shut_down() -> None:
    with Registry().scope() as registry:

        @step(async_=True)
        async def ask() -> None: ...

        @workflow("closing")
        def closing() -> Any:
            return ask()

    async def main() -> None:
        engine = Engine(clock=VirtualClock(), registry=registry)
        await engine.start()
        waiting = asyncio.create_task(engine.run(closing, transaction_id="t1", until="finished"))
        await asyncio.sleep(1)
        await engine.shutdown()
        with pytest.raises(EngineClosed, match="run again under its transaction id"):
            await waiting

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_what_had_no_time_to_begin_leaves_no_coroutine_behind() -> None:
    called: list[str] = []

    async def work(name: str) -> None:
        called.append(name)

    async def main() -> None:
        async with Engine() as engine:
            engine._driver.spawn(work, "cancelled")
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
            engine._driver.spawn(work, "called")
        engine._driver.spawn(work, "closed")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()
    assert called == ["called"]
