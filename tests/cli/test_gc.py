"""`wfe gc`: what was kept long enough goes, once somebody agrees; the dry run counts it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import Project
from tests.terminal import Terminal


@pytest.fixture(scope="module")
def made(shared: Project) -> Project:
    """order:a is done and has expired, order:b is done, publish:c waits."""
    for tx in ("a", "b"):
        shared.wfe("run", "order", "--tx", tx, "-p", "gift=true")
    shared.wfe("run", "publish", "--tx", "c", "-i", "1", "--until", "waiting")
    with closing(sqlite3.connect(shared.db)) as connection, connection:
        connection.execute(
            "UPDATE workflow_execution SET expires_at = 1 WHERE transaction_id = 'a'"
        )
    return shared


@pytest.fixture
def stored(project: Project, made: Project) -> Project:
    """All that is in `made`, to do with as one likes."""
    project.copy(made)
    return project


def keys(project: Project) -> list[str]:
    return sorted(project.wfe("executions", "list", "-o", "key").lines)


def test_what_has_expired_is_removed_and_all_else_stays(stored: Project) -> None:
    ended = stored.wfe("gc", "-y", "-o", "json")
    assert (ended.code, ended.document["executions"]) == (0, 1)
    assert keys(stored) == ["order:b", "publish:c"]


def test_the_dry_run_counts_what_would_go_and_removes_nothing(stored: Project) -> None:
    for flags, count in (([], 1), (["--older", "0s"], 2), (["--older", "1h"], 0)):
        ended = stored.wfe("gc", "--dry-run", *flags, "-o", "json")
        assert (ended.code, ended.document["executions"]) == (0, count)
        assert len(keys(stored)) == 3
        assert stored.wfe("gc", "--dry-run", *flags).lines[0] == f"executions\t{count}"
    assert stored.wfe("gc", "--older", "0s", "-y").lines[0] == "executions\t2"
    assert keys(stored) == ["publish:c"]


def test_without_a_terminal_it_asks_nobody_and_removes_nothing(stored: Project) -> None:
    for flags in ([], ["--older", "1d"]):
        ended = stored.wfe("gc", *flags, "-o", "json")
        assert ended.code == 2
        assert "-y" in ended.document["error"]["hint"]
    assert "remove 1 finished execution," in stored.wfe("gc").err
    assert len(keys(stored)) == 3


@pytest.mark.parametrize("older", ["soon", "-1d", "", "3"])
def test_an_age_that_is_none_is_refused(stored: Project, older: str) -> None:
    ended = stored.wfe("gc", f"--older={older}", "-y")
    assert ended.code == 2
    assert "Write 90d, 12h or 2026-11-30." in ended.err
    assert len(keys(stored)) == 3


def test_without_a_database_there_is_nothing_to_do(flows: Project) -> None:
    assert flows.wfe("gc", "-y").lines[0] == "executions\t0"
    assert flows.wfe("gc", "--dry-run").code == 0
    assert not flows.db.exists()


def test_a_locked_database_is_75_and_nothing_goes(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_BUSY_TIMEOUT", "0.05")
    with closing(sqlite3.connect(stored.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert stored.wfe("gc", "-y").code == 75
        assert stored.wfe("gc", "--dry-run").code == 0
    assert len(keys(stored)) == 3


def test_what_waits_longer_than_it_is_kept_survives_and_can_be_answered(project: Project) -> None:
    project.write(
        "workflows/brief.py",
        """
        from wfe import WorkflowResponse, step, workflow

        @step(async_=True)
        def ask() -> None:
            return None

        @workflow("brief", retention_time=0.001)
        def brief():
            return WorkflowResponse(ask())
        """,
    )
    project.wfe("run", "brief", "--tx", "t1", "--until", "waiting")
    assert project.wfe("gc", "-y").lines[0] == "executions\t0"
    assert project.wfe("step", "succeed", "t1", "--response", "5").out == "5\n"
    assert project.wfe("gc", "-y").lines[0] == "executions\t1"


def test_commands_that_run_workflows_remove_what_has_expired(stored: Project) -> None:
    with closing(sqlite3.connect(stored.db)) as connection:
        connection.execute("PRAGMA user_version = 0")
    ended = stored.wfe("run", "echo", "-i", "1", "--tx", "d")
    assert (ended.code, ended.out) == (0, "1\n")
    assert keys(stored) == ["echo:d", "order:b", "publish:c"]
    with closing(sqlite3.connect(stored.db)) as connection, connection:
        connection.execute("UPDATE workflow_execution SET expires_at = 1")
    stored.wfe("run", "echo", "-i", "1", "--tx", "e")
    assert "order:b" in keys(stored)  # it was done today


# --- on a terminal -------------------------------------------------------------------------------


@pytest.fixture
def asked(stored: Project) -> Iterator[Terminal]:
    child = Terminal("gc", "--older", "0s", folder=stored.root)
    child.expect_exact("This will remove 2 finished executions. Go on? [y/N] ")
    yield child
    child.close(force=True)


@pytest.mark.parametrize("answer", ["n", "", "what"])
def test_on_a_terminal_it_asks_and_takes_no_for_an_answer(
    stored: Project, asked: Terminal, answer: str
) -> None:
    asked.sendline(answer)
    asked.expect_exact("Nothing was done.")
    asked.expect(pexpect.EOF)
    asked.close()
    assert asked.exitstatus == 1
    assert len(keys(stored)) == 3


def test_on_a_terminal_yes_removes_it(stored: Project, asked: Terminal) -> None:
    asked.sendline("y")
    asked.expect_exact("Removed 2 finished executions.")
    asked.expect(pexpect.EOF)
    asked.close()
    assert asked.exitstatus == 0
    assert keys(stored) == ["publish:c"]
