"""A list that is kept up to date on a real terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import Project
from tests.terminal import Terminal

from .screen import screen_after

ECHO = """
from wfe import WorkflowResponse, step, workflow


@step
def echo(value):
    return value


@workflow("echo")
def echo_back(value):
    return WorkflowResponse(echo(value))
"""

LONG = "x" * 90


@pytest.fixture
def watching(project: Project) -> Iterator[Callable[..., Any]]:
    """Begins to watch the list of a project with one workflow."""
    project.write("workflows/echo.py", ECHO)
    children: list[Any] = []

    def begin(*flags: str, columns: int = 60) -> Any:
        words = ("executions", "list", "--watch", *flags)
        children.append(Terminal(*words, folder=project.root, lines=8, columns=columns))
        return children[-1]

    yield begin
    for child in children:
        child.close(force=True)


def test_what_begins_is_shown_and_stays_on_the_screen_at_the_end(
    project: Project, watching: Callable[..., Any]
) -> None:
    child = watching()
    child.expect_exact("there is no database")
    for tx in ("first", LONG):
        assert project.execute("run", "echo", "-i", "1", "--tx", tx).code == 0
        child.expect_exact(f"echo:{tx}")
    child.sendintr()
    child.expect_exact("\x1b[?1049l")  # the terminal is as it was before
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    lines = screen_after(child.before)
    assert re.match(r"STATUS +AGE +KEY$", lines[0])
    assert [line.split()[-1] for line in lines[1:3]] == [f"echo:{LONG}", "echo:first"]


def test_only_what_fits_is_shown(project: Project, watching: Callable[..., Any]) -> None:
    for number in range(9):
        assert project.execute("run", "echo", "-i", "1", "--tx", f"t{number}").code == 0
    child = watching("-q", "transaction~t", columns=100)
    child.expect_exact("\x1b[H\x1b[J")
    child.expect_exact("\x1b[H\x1b[J")  # the second picture begins: the first is whole
    shown = [line.split()[-1] for line in screen_after(child.before)]
    assert shown == ["KEY", *(f"echo:t{number}" for number in range(8, 1, -1))]
