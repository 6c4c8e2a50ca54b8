"""Fixtures for pytest, which finds them by itself wherever wfe is installed.

Nothing of the engine is loaded before a fixture is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from wfe.authoring.registry import Registry
    from wfe.store.contract import CheckpointStore
    from wfe.testing.engine import VirtualEngine


@pytest.fixture
def wfe_store() -> CheckpointStore:
    """Where the executions of `engine` are kept: in memory, unless a test overrides this fixture."""
    from wfe.store.memory import MemoryStore

    return MemoryStore()


@pytest.fixture
def wfe_resources() -> Mapping[str, Any]:
    """What `ctx.resolve` finds in the steps of `engine`: nothing, unless a test overrides this
    fixture. `@resource` factories are found beside."""
    return {}


@pytest.fixture
def wfe_registry() -> Iterator[Registry]:
    """A registry of its own for workflows that a test defines: they are gone after it."""
    from wfe.authoring.registry import Registry

    with Registry().scope() as own:
        yield own


@pytest.fixture
def engine(wfe_store: CheckpointStore, wfe_resources: Mapping[str, Any]) -> Iterator[VirtualEngine]:
    """An engine on virtual time: see `wfe.testing.VirtualEngine`."""
    from wfe.testing.engine import VirtualEngine

    with VirtualEngine(store=wfe_store, resources=wfe_resources) as engine:
        yield engine
