"""What a process that lives for long does not gather: nothing of what is over stays in its memory."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from wfe import Engine, Recording, step, workflow
from wfe.authoring.registry import Registry
from wfe.clock import SystemClock
from wfe.model import ExecutionKey
from wfe.runtime.timers import Timers
from wfe.store.sqlite import SQLiteStore


def test_reminders_that_nobody_needs_any_more_are_few() -> None:
    """A workflow with a timeout of a day, run ten thousand times, and each time over at once."""

    async def main() -> None:
        woken: list[ExecutionKey] = []
        is_woken = asyncio.Event()

        def wake(key: ExecutionKey) -> None:
            woken.append(key)
            is_woken.set()

        timers = Timers(SystemClock(), wake)
        tomorrow = SystemClock().now() + timedelta(days=1)
        for number in range(100):
            timers.set(ExecutionKey("waits", f"t{number}"), tomorrow)
        for number in range(10_000):
            key = ExecutionKey("quick", f"t{number}")
            timers.set(key, tomorrow + timedelta(seconds=number))
            timers.set(key, None)
            timers.set(ExecutionKey("moves", "t1"), tomorrow + timedelta(seconds=number))
            assert len(timers._heap) < 2 * 100 + 200
        past = SystemClock().now() - timedelta(days=1)
        timers.set(ExecutionKey("waits", "t7"), past)
        await is_woken.wait()
        assert woken == [ExecutionKey("waits", "t7")]
        assert len(timers) == 100
        await timers.close()

    asyncio.run(main())


def test_looking_at_what_is_over_leaves_nobody_behind(tmp_path: Path) -> None:
    with Registry().scope() as registry:

        @step
        async def work() -> int:
            return 1

        @workflow("idempotent", idempotent=True)
        def idempotent() -> Any:
            return work()

    async def main() -> None:
        store = SQLiteStore(tmp_path / "wfe.db")
        async with Engine(store=store, registry=registry, recording=Recording.EVERY_STEP) as engine:
            for number in range(5):
                tx = f"t{number}"
                await engine.run(idempotent, transaction_id=tx)
                await engine.run(idempotent, transaction_id=tx)
                await engine.wait_for(idempotent, tx)
                await engine.take_up(idempotent, tx)
                await engine.get_running_transaction(idempotent, tx)
            assert not engine._audiences._audiences
            assert not engine._driver.lives

    asyncio.run(main())
