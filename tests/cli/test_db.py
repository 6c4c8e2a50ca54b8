"""`wfe db`: what the file is like, whether it is whole, and copies of it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.project import Project
from tests.store.support import kept, locked, mode
from wfe.store.facts import NEWEST


@pytest.fixture(scope="module")
def made(shared: Project) -> Project:
    """order:a is done, publish:b waits."""
    shared.wfe("run", "order", "--tx", "a", "-p", "gift=true")
    shared.wfe("run", "publish", "--tx", "b", "-i", "1", "--until", "waiting")
    return shared


@pytest.fixture
def stored(project: Project, made: Project) -> Project:
    """All that is in `made`, to do with as one likes."""
    project.copy(made)
    return project


def spoil(project: Project, statement: str) -> None:
    with closing(sqlite3.connect(project.db)) as connection, connection:
        connection.execute(statement)


def make_older(project: Project) -> None:
    """Give the file the schema of the first version, as one that nobody has migrated yet."""
    import lzma

    archive = Path(__file__).parents[1] / "store" / "databases" / "v1.db.xz"
    project.db.write_bytes(lzma.decompress(archive.read_bytes()))


def damage(project: Project) -> bytes:
    with closing(sqlite3.connect(project.db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = project.db.read_bytes()[:-8192]
    project.db.write_bytes(content)
    return content


# --- info ----------------------------------------------------------------------------------------


def test_info_tells_what_the_file_is_like(stored: Project) -> None:
    document = stored.wfe("db", "info", "-o", "json").document
    assert document["path"] == str(stored.db)
    assert document["size"] == stored.db.stat().st_size
    assert document["schema"] == document["newest_schema"] == NEWEST
    assert document["sqlite"] == sqlite3.sqlite_version
    assert (document["journal_mode"], document["synchronous"]) == ("wal", "full")
    assert (document["executions"], document["states"]) == (2, {"done": 1, "invoking": 1})
    assert document["oldest"] < document["newest"]
    assert document["retention"] == 30 * 86_400
    lines = dict(line.split("\t") for line in stored.wfe("db", "info").lines)
    assert list(lines) == list(document)
    assert lines["executions"] == "2"


def test_info_for_people_fits_a_narrow_terminal(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ended = stored.wfe("db", "info", "--color", "always")
    assert ended.code == 0
    assert "2 executions" in ended.out
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in ended.lines[1:]]
    assert max(map(len, plain)) <= 60
    (swept,) = [number for number, line in enumerate(plain) if line.startswith("  retention  ")]
    assert re.match(r"  (\S+ +| {11})\S", plain[swept + 1])


def test_info_says_what_could_be_done(stored: Project) -> None:
    assert stored.wfe("db", "info").err == ""
    spoil(stored, "CREATE TABLE filler (x)")
    spoil(stored, "INSERT INTO filler VALUES (zeroblob(20000000))")
    spoil(stored, "DROP TABLE filler")
    assert "wfe db compact" in stored.wfe("db", "info").err
    make_older(stored)
    assert "wfe db migrate" in stored.wfe("db", "info").err


def test_without_a_database_each_command_says_so_and_makes_none(flows: Project) -> None:
    for words in (["info"], ["check"], ["migrate"], ["backup", "x.db"], ["compact"]):
        ended = flows.wfe("db", *words, "-o", "json")
        assert (ended.code, ended.document["error"]["code"]) == (1, "store_unusable")
        assert "There is no database" in ended.document["error"]["message"]
    assert not flows.db.exists()


# --- check ---------------------------------------------------------------------------------------


def test_check_of_what_is_whole_is_0_and_a_line_for_each_check(stored: Project) -> None:
    ended = stored.wfe("db", "check")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split("\t") for line in ended.lines]
    assert {line[0] for line in lines} == {"ok"}
    document = stored.wfe("db", "check", "-o", "json").document
    assert document["ok"] is True
    assert [check["name"] for check in document["checks"]] == [line[1] for line in lines]


def test_check_of_what_is_wrong_is_1_and_says_what_and_where(stored: Project) -> None:
    spoil(stored, "UPDATE workflow_execution SET running = 2 WHERE transaction_id = 'a'")
    stored.db.chmod(0o644)
    ended = stored.wfe("db", "check")
    assert ended.code == 1
    assert "2 findings" in ended.err
    found = [line.split("\t")[1:] for line in ended.lines if line.startswith("finding")]
    assert [line[0] for line in found] == ["permissions", "counters"]
    assert found[0][-1] == f"chmod 600 {stored.db}"
    assert found[1][2] == "order:a"
    document = stored.wfe("db", "check", "-o", "json").document
    assert (document["ok"], document["error"]["code"]) == (False, "findings")
    counters = next(each for each in document["checks"] if each["name"] == "counters")
    assert (counters["ok"], counters["found"]) == (False, 1)
    assert counters["findings"][0]["key"] == "order:a"
    people = stored.wfe("db", "check", "--color", "always").out
    assert "Mend it with: chmod 600" in people
    assert "order:a run" in people


def test_check_of_an_older_schema_says_what_was_not_checked(stored: Project) -> None:
    make_older(stored)
    ended = stored.wfe("db", "check")
    assert ended.code == 0
    assert "What is in it was not checked." in ended.err
    assert "wfe db migrate" in ended.err


def test_check_of_a_damaged_file_says_how_far_it_can_be_read(stored: Project) -> None:
    content = damage(stored)
    ended = stored.wfe("db", "check")
    assert ended.code == 1
    assert f"The database {stored.db} is damaged." in ended.err
    readable = [line.split("\t") for line in ended.lines if line.startswith("readable")]
    assert ["readable", "schema_version", str(NEWEST), "all of them"] in readable
    document = stored.wfe("db", "check", "-o", "json").document
    assert document["error"]["code"] == "damaged"
    assert {"table": "schema_version", "rows": NEWEST, "is_whole": True} in document["readable"]
    assert "What can be read of it" in stored.wfe("db", "check", "--color", "always").out
    assert stored.db.read_bytes() == content


def test_check_of_a_damaged_file_names_the_newest_copy(stored: Project) -> None:
    copy = stored.db.with_name("wfe.db.backup-v1")
    stored.wfe("db", "backup", str(copy))
    damage(stored)
    assert stored.wfe("db", "check").err.rstrip().endswith(f"in its place: {copy}")


# --- migrate -------------------------------------------------------------------------------------


def test_migrate_says_from_where_to_where_and_where_the_copy_is(stored: Project) -> None:
    make_older(stored)
    document = stored.wfe("db", "migrate", "-o", "json").document
    backup = stored.db.with_name("wfe.db.backup-v1")
    assert document == {
        "ok": True,
        "path": str(stored.db),
        "before": 1,
        "after": NEWEST,
        "backup": str(backup),
    }
    assert mode(backup) == 0o600
    again = stored.wfe("db", "migrate", "-o", "json").document
    assert (again["before"], again["after"], again["backup"]) == (NEWEST, NEWEST, None)


def test_commands_that_read_an_older_schema_name_the_command(stored: Project) -> None:
    make_older(stored)
    ended = stored.wfe("executions", "list", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (1, "schema_too_old")
    assert ended.document["error"]["hint"] == "Bring it up to date with: wfe db migrate"
    assert stored.wfe("db", "migrate").code == 0
    assert len(stored.wfe("executions", "list").lines) > 20


# --- backup --------------------------------------------------------------------------------------


def test_backup_is_a_private_copy_that_can_be_read_like_the_database(stored: Project) -> None:
    ended = stored.wfe("db", "backup", "copy.db", "-o", "json")
    copy = stored.root / "copy.db"
    assert ended.document == {
        "ok": True,
        "path": str(stored.db),
        "backup": str(copy),
        "size": copy.stat().st_size,
    }
    assert mode(copy) == 0o600
    listed = [stored.wfe("executions", "list", *db).out for db in ((), ("--db", "copy.db"))]
    assert listed[0] == listed[1] != ""
    assert stored.wfe("db", "check", "--db", "copy.db").code == 0


def test_backup_replaces_nothing_unless_it_is_told_to(stored: Project) -> None:
    (stored.root / "copy.db").write_text("notes")
    ended = stored.wfe("db", "backup", "copy.db")
    assert ended.code == 2
    assert "--force" in ended.err
    assert (stored.root / "copy.db").read_text() == "notes"
    assert stored.wfe("db", "backup", "copy.db", "--force").code == 0
    assert kept(stored.root / "copy.db") == ["a", "b"]


def test_backup_works_while_others_write(stored: Project) -> None:
    with locked(stored.db):
        assert stored.wfe("db", "backup", "copy.db").code == 0
    assert kept(stored.root / "copy.db") == ["a", "b"]


@pytest.mark.parametrize("file", ["", ".", "no/where/copy.db", ".wfe/wfe.db"])
def test_backup_to_where_no_copy_can_be_is_refused(stored: Project, file: str) -> None:
    ended = stored.wfe("db", "backup", file, "--force", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")
    assert kept(stored.db) == ["a", "b"]


def test_backup_of_an_older_schema_is_of_that_schema(stored: Project) -> None:
    make_older(stored)
    assert stored.wfe("db", "backup", "copy.db").code == 0
    document = stored.wfe("db", "info", "--db", "copy.db", "-o", "json").document
    assert (document["schema"], document["executions"]) == (1, 36)


# --- compact -------------------------------------------------------------------------------------


def test_compact_gives_back_what_is_free(stored: Project) -> None:
    spoil(stored, "CREATE TABLE filler (x)")
    spoil(stored, "INSERT INTO filler VALUES (zeroblob(1000000))")
    spoil(stored, "DROP TABLE filler")
    document = stored.wfe("db", "compact", "-o", "json").document
    assert document["before"] - document["after"] > 1_000_000
    assert stored.wfe("db", "info", "-o", "json").document["free"] == 0
    assert kept(stored.db) == ["a", "b"]


def test_compact_of_a_locked_file_is_75_and_changes_nothing(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_BUSY_TIMEOUT", "0.05")
    with locked(stored.db):
        assert stored.wfe("db", "compact").code == 75
    assert kept(stored.db) == ["a", "b"]
