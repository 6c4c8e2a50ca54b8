from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import databases


@pytest.fixture(scope="module", autouse=True)
def _databases() -> Iterator[None]:
    """Made, as those of users are; those of other tests are copied."""
    with databases.are_made():
        yield


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """On a disk, as the databases of users are; that of other tests is in memory."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()
