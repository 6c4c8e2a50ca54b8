"""Every sample and every workflow of this project is run by a test."""

from __future__ import annotations

from pathlib import Path

from wfe.clock import SystemClock
from wfe.lint.check import look_through

from .support import FOLDERS, ROOT, catalog


def test_every_file_has_a_test_that_runs_its_workflows() -> None:
    """`test_NAME.py` beside this file, which names each workflow of `NAME.py` to `sample(…)`."""
    missing = []
    for workflow_id in catalog().registry.ids():
        source = Path(sample_file := catalog().find(workflow_id).source[0])
        tests = Path(__file__).with_name(f"test_{source.stem}.py")
        if not tests.exists() or f'sample("{workflow_id}")' not in tests.read_text():
            missing.append(f"{sample_file}: {workflow_id}")
    assert missing == []


def test_every_file_defines_a_workflow() -> None:
    """What is no workflow begins with `_`, so that it is not loaded as one."""
    files = {file for name in FOLDERS for file in (ROOT / name).glob("**/[!_]*.py")}
    sources = {Path(catalog().find(name).source[0]) for name in catalog().registry.ids()}
    assert files == sources


def test_nothing_is_to_be_said_about_any_of_them() -> None:
    """What people copy is as `wfe workflows check` wants it."""
    assert look_through(catalog(), SystemClock().now()) == []
