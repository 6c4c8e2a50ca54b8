"""What is carried over is kept, by every store."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.support import on_loop
from tests.engine.play import START, Play, execution_of, flow
from wfe.engine.redefinition import carried_over
from wfe.model import Changes
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    if request.param == "memory":
        return MemoryStore()
    return SQLiteStore(tmp_path / "wfe.db", synchronous="normal")


@on_loop
async def test_a_commit_keeps_the_flow_the_names_and_the_definition(
    store: CheckpointStore,
) -> None:
    waits = {"async_": True}
    first = replace(flow("a", "b", "c", options={"b": waits, "c": waits}), hash="first")
    play = Play(first)
    play.succeed("a")
    play.wait("b")
    assert await store.insert(
        execution_of(first), Changes(head=play.execution.head, steps=play.execution.steps)
    )
    second = replace(flow("z", "y", "d", options={"y": waits}), hash="second")

    stored = await store.load(play.execution.head.key)
    assert stored is not None
    over = carried_over(stored, second, START, renames={"a": "z", "b": "y"})
    assert over.changes is not None
    await store.commit(over.execution, over.changes)
    over.execution.take(over.changes)

    loaded = await store.load(play.execution.head.key)
    assert loaded is not None
    assert (loaded.flow, loaded.head) == (second, over.execution.head)
    assert loaded.head.definition == "second"
    assert loaded.steps == over.execution.steps
    assert [waiting.step for waiting in store.reader.steps_waiting()] == ["y"]
    timeline = store.reader.timeline(loaded.head.execution_id)
    assert [entry.detail for entry in timeline[-3:]] == [
        "the workflow has changed meanwhile",
        "a is called z from here on",
        "b is called y from here on, and its key is w:t:y:invoke",
    ]
    assert carried_over(loaded, second, START).execution is loaded
