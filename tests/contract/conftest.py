"""Every store that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    """A store of each kind, empty and not open yet."""
    if request.param == "memory":
        return MemoryStore()
    return SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
