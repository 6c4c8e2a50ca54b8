"""What is said on stderr may be lost; nothing else changes because of that."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forking import forking
from tests.project import Project

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe whose reader is gone."""
    reads, writes = os.pipe()
    os.close(reads)
    yield writes
    os.close(writes)


@pytest.fixture
def full() -> Iterator[int]:
    """A file on a device that has no room left."""
    opened = os.open("/dev/full", os.O_WRONLY)
    yield opened
    os.close(opened)


def with_stderr(stderr: int, *arguments: str) -> tuple[int, str]:
    """The exit code, and what is on stdout."""
    words = [forking().wfe, *arguments]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)
    return done.returncode, done.stdout


def test_a_step_may_print_though_nobody_reads_it_any_more(flows: Project, unread: int) -> None:
    assert with_stderr(unread, "run", "echo", "-i", "[1]") == (0, "[1]\n")


def test_what_an_execution_came_to_counts_though_nobody_reads_why(
    flows: Project, unread: int
) -> None:
    code, out = with_stderr(
        unread, "run", "order", "-p", "fail=charge", "-p", "gift=false", "-o", "json"
    )
    assert code == 10
    assert json.loads(out)["error"]["code"] == "reverted"


@needs_full
def test_an_error_keeps_its_code_though_there_is_no_room_to_tell_it(
    flows: Project, full: int
) -> None:
    assert with_stderr(full, "executions", "show", "nope") == (3, "")
