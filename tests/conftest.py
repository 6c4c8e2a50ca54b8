"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import databases
from tests.forking import UNTIL_THE_END

settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


#: Linux has a file system in memory here.
MEMORY = Path("/dev/shm")
#: What pytest reads where the folders of its fixtures are to be.
TEMPORARY = "PYTEST_DEBUG_TEMPROOT"
#: Bytes that have to be free there. A run needs a few megabytes at a time, as the folder of a test that
#: has passed is removed.
ROOM = 500_000_000


def pytest_configure() -> None:
    """Tests make thousands of databases, and most of the time a commit takes is waiting for the disk. So
    `tmp_path` is in memory, where there is such a place and nobody has named another one; `tests/store`
    stays on a disk."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault(TEMPORARY, str(MEMORY))


@pytest.fixture(scope="session", autouse=True)
def _what_runs_until_the_end() -> Iterator[None]:
    with UNTIL_THE_END:
        yield


@pytest.fixture(scope="session", autouse=True)
def _databases() -> Iterator[None]:
    with databases.are_copied():
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each process goes through one part, so that what the tests of a module share is made once, and at
    the end takes from the part of another, so that nobody is left alone with much."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]  # it has no types

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are processors: many tests wait, for another process, a terminal or a disk."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (os.cpu_count() or 1) + 1


def pytest_plugin_registered(plugin: Any) -> None:
    """Have a worker of pytest-xdist tell nothing of a set-up or tear-down that went well: nobody looks
    at that, and three messages for a test are dearer than most tests."""
    if type(plugin).__name__ != "WorkerInteractor":
        return
    send = plugin.sendevent

    def send_less(name: str, **details: Any) -> None:
        report = details.get("data", {})
        if name != "testreport" or report["when"] == "call" or report["outcome"] != "passed":
            send(name, **details)

    plugin.sendevent = send_less


def pytest_collection_finish() -> None:
    """What has been collected lasts to the end: looking through it for garbage again and again is
    dear, and so is copying it for each process that is forked."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how often what was done, where tests count it: kills, plays, losses of power."""
    figures: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        if report.when == "call":
            for what, count in report.user_properties:
                figures[what] += count
    if figures:
        told = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in figures.items())
        terminalreporter.line(f"done on the way: {told}")
