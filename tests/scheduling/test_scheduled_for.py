"""The moment of its tick stays with an execution: kept by the store, told to its steps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from tests.contract.support import changed, keep, new
from wfe import Engine, Registry, StepContext, StepKey, WorkflowResponse, step, workflow
from wfe.model import ExecutionKey, Recording
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore

TICK = datetime(2026, 11, 1, 3, 0, 0, 250_000, tzinfo=UTC)


async def kept(store: CheckpointStore) -> list[datetime | None]:
    """What the store says of an execution of a tick, and of another one."""
    await store.open()
    await keep(store, new("of-a-tick", scheduled_for=TICK))
    await keep(store, new("of-nobody"))
    loaded = [await store.load(ExecutionKey("order", tx)) for tx in ("of-a-tick", "of-nobody")]
    await store.close()
    return [execution.head.scheduled_for for execution in loaded if execution is not None]


def test_every_store_keeps_it(tmp_path: Path) -> None:
    for store in (MemoryStore(), SQLiteStore(tmp_path / "wfe.db", synchronous="normal")):
        assert asyncio.run(kept(store)) == [TICK, None]


@step(async_=True)
def ask() -> None: ...


@step
def report(ctx: StepContext, answer: object) -> str | None:
    return ctx.scheduled_for.isoformat() if ctx.scheduled_for else None


def test_steps_are_told_of_it_by_another_process_too(tmp_path: Path) -> None:
    with Registry().scope() as registry:

        @workflow("reporting")
        def reporting() -> WorkflowResponse[str | None]:
            return WorkflowResponse(report(ask()))

    def engine() -> Engine:
        store = SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
        return Engine(store=store, registry=registry, recording=Recording.EVERY_STEP)

    async def main() -> object:
        async with engine() as first:
            for transaction_id in ("of-a-tick", "of-nobody"):
                await first.run(reporting, transaction_id=transaction_id)
        store = SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
        await store.open()
        execution = await store.load(ExecutionKey("reporting", "of-a-tick"))
        assert execution is not None
        await store.commit(execution, changed(execution, scheduled_for=TICK))
        await store.close()
        async with engine() as second:
            answered = [
                await second.set_step_success(StepKey("reporting", transaction_id, "ask"), 1)
                for transaction_id in ("of-a-tick", "of-nobody")
            ]
        return [outcome.result for outcome in answered]

    assert asyncio.run(main()) == ["2026-11-01T03:00:00.250000+00:00", None]
