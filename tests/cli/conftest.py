from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import Project, project_in

from .flows import FLOWS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The workflows of `flows.py` in a project for all tests of a module that only read it."""
    with (
        pytest.MonkeyPatch.context() as patch,
        project_in(tmp_path_factory.mktemp("shared"), patch) as made,
    ):
        made.write("workflows/flows.py", FLOWS)
        yield made


@pytest.fixture
def flows(project: Project) -> Project:
    """A project with the workflows of `flows.py`."""
    project.write("workflows/flows.py", FLOWS)
    return project
