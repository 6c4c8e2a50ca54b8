"""`wfe init`: what it makes is used as it is by somebody who has never seen it, and nothing is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import WFE, Project

#: Kept from run to run, because the types of what wfe imports take most of the time.
CACHE = Path(__file__).parents[2] / ".mypy_cache" / "init"
MADE = [".gitignore", "README.md", "workflows/backup.py", "workflows/test_backup.py"]


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command line of the README, with the tools of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def begun(project: Project) -> Path:
    assert project.wfe("init", "jobs").code == 0
    return project.root / "jobs"


def test_it_makes_a_workflow_its_test_and_a_readme(begun: Path) -> None:
    assert files_in(begun) == MADE


def test_every_command_of_its_readme_works(begun: Path) -> None:
    lines = re.findall(r"^    (\S.*)$", (begun / "README.md").read_text(), re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        ended = run(begun, line.replace("pytest", "pytest -q -p no:randomly -p no:cacheprovider"))
        expected = 10 if "folder=empty" in line else 0
        assert ended.returncode == expected, f"{line}\n{ended.stdout}{ended.stderr}"
    assert [p.name for p in (begun / "backups").iterdir()] != []


def test_its_code_is_typed_formatted_and_has_nothing_for_the_lint(begun: Path) -> None:
    for command in (
        f"mypy --strict --cache-dir={CACHE} workflows",
        "ruff check --isolated --select E,F,I,UP,B workflows",
        "ruff format --isolated --check workflows",
        f"{WFE} workflows check --strict",
    ):
        ended = run(begun, command)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"


def test_what_is_there_is_never_overwritten(project: Project) -> None:
    project.write("jobs/workflows/backup.py", "mine")
    ended = project.wfe("init", "jobs", "-o", "json")
    assert ended.code == 2
    assert "jobs/workflows/backup.py" in ended.document["error"]["message"]
    assert files_in(project.root / "jobs") == ["workflows/backup.py"]
    assert (project.root / "jobs/workflows/backup.py").read_text() == "mine"


def test_without_a_folder_the_current_one_is_meant(project: Project) -> None:
    ended = project.wfe("init")
    assert ended.lines == ["README.md", ".gitignore", "workflows/backup.py", MADE[-1]]
    assert ended.err == "Run it with: wfe run backup -p folder=workflows\n"
    assert files_in(project.root) == MADE


@pytest.mark.parametrize(("folder", "code"), [("", 2), ("file", 2), ("file/inner", 1)])
def test_where_no_folder_can_be_nothing_is_made(project: Project, folder: str, code: int) -> None:
    project.write("file", "")
    ended = project.wfe("init", folder)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    assert files_in(project.root) == ["file"]
