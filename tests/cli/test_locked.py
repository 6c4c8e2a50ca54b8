"""Whatever command there is: a database that somebody holds locked ends it with a sentence, and with
nothing written (case P2; the commands are those of the examples in `--help`)."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.project import Project
from wfe.cli.app import whole
from wfe.cli.exit_codes import ExitCode

#: These go on until they are interrupted, whatever the database is like.
ENDLESS = {("serve",), ("schedule",)}


def commands(command: object, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command that does something."""
    for name, inner in getattr(command, "commands", {}).items():
        if getattr(inner, "commands", None):
            yield from commands(inner, *path, name)
        else:
            yield (*path, name)


def examples(project: Project) -> Iterator[list[str]]:
    for words in commands(whole()):
        if words in ENDLESS:
            continue
        found = [
            shlex.split(line)[1:]
            for line in project.wfe(*words, "--help").lines
            if line.startswith("  wfe ")
        ]
        yield from found or [list(words)]


@pytest.fixture
def stored(flows: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """order:order-0042 is done; publish:c waits. Nobody waits long for a lock."""
    flows.wfe("run", "order", "--tx", "order-0042", "-p", "gift=true")
    flows.wfe("run", "publish", "--tx", "c", "-i", "1", "--until", "waiting")
    monkeypatch.setenv("WFE_BUSY_TIMEOUT", "0.02")
    return flows


def rows(project: Project) -> list[str]:
    with closing(sqlite3.connect(project.db)) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("to_readers_too", [False, True])
def test_every_command_ends_with_a_code_of_its_own_and_writes_nothing(
    stored: Project, to_readers_too: bool
) -> None:
    before = rows(stored)
    tried = list(examples(stored))
    assert len(tried) > 15
    with closing(sqlite3.connect(stored.db, isolation_level=None)) as other:
        if to_readers_too:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        for words in tried:
            ended = stored.wfe(*words)
            assert ended.code in set(ExitCode), (words, ended)
            assert "internal" not in ended.err, (words, ended)
            assert "Traceback" not in ended.err, (words, ended)
        # What needs the database, and finds what it asks for, says that it is busy.
        if to_readers_too:
            assert stored.wfe("executions", "show", "publish:c").code == ExitCode.BUSY
        assert stored.wfe("run", "echo", "-i", "1").code == ExitCode.BUSY
        assert stored.execute("step", "succeed", "publish:c").code == ExitCode.BUSY
    assert rows(stored) == before
