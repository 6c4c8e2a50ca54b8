"""Each decision is tested on both stores; `async def` tests run in virtual time."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from tests.decisions.support import World
from wfe import Recording
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.testing import VirtualLoop


@pytest.fixture
def recording() -> Recording:
    """When executions are written down; a module may have its own."""
    return Recording.REFERENCE


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path, recording: Recording) -> World:
    def open_store() -> CheckpointStore:
        if request.param == "memory":
            return MemoryStore()
        from wfe.store.sqlite import SQLiteStore

        return SQLiteStore(tmp_path / "wfe.db", synchronous="normal")

    return World(open_store, recording)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests in their world."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    world = pyfuncitem.funcargs["world"]
    assert isinstance(world, World)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience=1.0)) as runner:
        runner.run(world.play(lambda: test(**arguments)))
    return True
