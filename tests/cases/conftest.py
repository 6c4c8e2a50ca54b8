from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import Project, project_in


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        yield made
