from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduling.serving import World
from wfe import Recording
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    def open_store() -> CheckpointStore:
        if request.param == "memory":
            return MemoryStore()
        return SQLiteStore(tmp_path / "wfe.db", synchronous="normal")

    return World(open_store, Recording.EVERY_STEP)
