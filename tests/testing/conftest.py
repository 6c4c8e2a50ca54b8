from __future__ import annotations

from collections.abc import Iterator

import pytest

from wfe import Registry


@pytest.fixture(autouse=True)
def registry() -> Iterator[Registry]:
    """What a test defines is not there for the next one."""
    with Registry().scope() as own:
        yield own
