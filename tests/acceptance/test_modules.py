"""Modules as people lay them out, run from another folder (case P11); and lists in a narrow pipe (case
P5)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.forking import forking
from tests.project import WFE, Project

STEP = """
from wfe import WorkflowResponse, step, workflow

@step
def work() -> object:
    return {value}

@workflow("{name}")
def flow():
    return WorkflowResponse(work())
"""


def run(project: Project, elsewhere: Path, target: str, *, wfe: str = WFE) -> object:
    """The result of a workflow, named by its file."""
    file, _, name = target.partition(":")
    ended = subprocess.run(
        [wfe, "run", f"{project.root / file}:{name}", "--db", str(project.root / "wfe.db")],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_modules_find_what_belongs_to_them_whatever_the_current_folder(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    project.write("jobs/helpers.py", "NAME = 'sibling'")
    sibling = STEP.format(name="sibling", value="helpers.NAME")
    project.write("jobs/a.py", f"import helpers\n{sibling}")
    project.write("shop/__init__.py", "NAME = 'package'")
    relative = STEP.format(name="relative", value="NAME")
    project.write("shop/flows.py", f"from . import NAME\n{relative}")
    standard = STEP.format(name="standard", value="hasattr(queue, 'SimpleQueue')")
    project.write("jobs/queue.py", f"import queue\n{standard}")
    forked = forking().wfe
    assert run(project, elsewhere, "jobs/a.py:sibling", wfe=forked) == "sibling"
    assert run(project, elsewhere, "shop/flows.py:relative", wfe=forked) == "package"
    assert run(project, elsewhere, "jobs/queue.py:standard") is True


def test_a_step_may_use_worker_processes(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.write(
        "jobs/pool.py",
        """
        import multiprocessing

        from wfe import WorkflowResponse, step, workflow


        def double(number: int) -> int:
            return 2 * number


        @step
        def work() -> list[int]:
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                return pool.map(double, [1, 2, 3])


        @workflow("pool")
        def pooled():
            return WorkflowResponse(work())
        """,
    )
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert run(project, elsewhere, "jobs/pool.py:pool") == [2, 4, 6]


def test_keys_of_80_characters_are_whole_in_a_pipe_of_40_columns(project: Project) -> None:
    project.write("workflows/one.py", STEP.format(name="one", value="1"))
    ids = [f"{number:04}-{'x' * 71}" for number in range(3)]
    for tx in ids:
        assert project.execute("run", "one", "--tx", tx).code == 0
    for words in (["executions", "list"], ["executions", "list", "-o", "wide"]):
        ended = subprocess.run(
            f"COLUMNS=40 {forking().wfe} {' '.join(words)} | cat",
            shell=True,
            cwd=project.root,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        lines = ended.stdout.splitlines()
        assert [line.split("\t")[0] for line in lines] == [f"one:{tx}" for tx in reversed(ids)]
    for words in (["executions", "list"], ["step", "list"], ["workflows", "list"], ["config"]):
        json.loads(project.execute(*words, "-o", "json", COLUMNS="40").out)
