"""Copies: of one moment while others write, whole or not at all, and nobody else's to read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.support import fill, kept, locked, mode
from wfe.errors import StoreBusy, StoreUnusable, UsageError
from wfe.store.backup import back_up, copy_into, damage, known
from wfe.store.database import open_for_writing


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database of several hundred pages, t0 to t99."""
    file = tmp_path / "wfe.db"
    fill(file, *(f"t{number}" for number in range(100)))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE execution_payload SET input = ?", (f'"{"x" * 90_000}"',))
    return file


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


@pytest.fixture(params=[0o000, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def names(folder: Path) -> set[str]:
    """What is there, but for what SQLite keeps beside a database that is or was read."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))}


@pytest.mark.usefixtures("umask")
def test_a_copy_is_whole_private_and_stands_alone(file: Path, copy: Path) -> None:
    back_up(file, copy)
    assert kept(copy) == kept(file)
    assert damage(copy) == ""
    assert mode(copy) == 0o600
    assert not copy.with_name("copy.db-wal").exists()
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_copy_becomes_a_database_again(file: Path, copy: Path) -> None:
    back_up(file, copy)
    copy.replace(file)
    fill(file, "new")
    assert len(kept(file)) == 101


def test_what_others_commit_meanwhile_is_in_the_next_copy(file: Path, copy: Path) -> None:
    told: list[tuple[int, int]] = []

    def write(left: int, pages: int) -> None:
        fill(file, f"meanwhile-{len(told)}")
        told.append((left, pages))

    back_up(file, copy, on_progress=write)
    assert len(told) > 1
    assert told[-1][0] == 0
    assert kept(copy) == [f"t{number}" for number in range(100)]
    assert damage(copy) == ""
    assert len(kept(file)) == 100 + len(told)


def test_what_somebody_has_not_committed_is_not_in_it(file: Path, copy: Path) -> None:
    with locked(file) as other:
        other.execute("DELETE FROM execution_event")
        other.execute("DELETE FROM schema_version")
        back_up(file, copy)
    with closing(open_for_writing(copy)) as connection:
        assert connection.raw.execute("SELECT count(*) FROM schema_version").fetchone()[0] > 0


def test_what_is_there_is_not_replaced_unless_it_is_asked_for(file: Path, copy: Path) -> None:
    copy.write_text("notes")
    with pytest.raises(UsageError, match=r"copy\.db exists") as caught:
        back_up(file, copy)
    assert "--force" in caught.value.hint
    assert copy.read_text() == "notes"
    back_up(file, copy, replace=True)
    assert len(kept(copy)) == 100
    assert mode(copy) == 0o600


def test_the_database_is_never_its_own_copy(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(file)
    (tmp_path / "same.db").hardlink_to(file)
    for target in (file, tmp_path / "link.db", tmp_path / "same.db"):
        with pytest.raises(UsageError, match="is the database itself"):
            back_up(file, target, replace=True)
    assert len(kept(file)) == 100


def test_a_database_in_use_is_not_replaced(file: Path, copy: Path) -> None:
    fill(copy, "t1")
    with closing(sqlite3.connect(copy)) as reader:
        reader.execute("SELECT count(*) FROM workflow_execution").fetchone()
        fill(copy, "t2")  # into the log, which a copy would take for its own
        with pytest.raises(UsageError, match=r"has the log copy\.db-wal"):
            back_up(file, copy, replace=True)
    assert kept(copy) == ["t1", "t2"]


def test_where_no_file_can_be_is_refused(file: Path, tmp_path: Path) -> None:
    for target, reason in ((tmp_path, "is a folder"), (tmp_path / "a" / "b.db", "no folder")):
        with pytest.raises(UsageError, match=reason):
            back_up(file, target, replace=True)
    assert names(tmp_path) == {"wfe.db"}


def test_a_damaged_database_leaves_no_copy_and_the_one_that_was_there(
    file: Path, copy: Path
) -> None:
    back_up(file, copy)
    content = bytearray(file.read_bytes())
    content[40 * 4096 : 60 * 4096] = b"\xff" * (20 * 4096)
    file.write_bytes(content)
    with pytest.raises(StoreUnusable, match="is damaged"):
        back_up(file, copy, replace=True)
    assert len(kept(copy)) == 100
    assert names(copy.parent) == {"wfe.db", "copy.db"}


def test_a_text_is_no_database_to_copy(tmp_path: Path, copy: Path) -> None:
    (tmp_path / "notes").write_text("no database\n" * 100)
    with pytest.raises(StoreUnusable, match="is not a database"):
        back_up(tmp_path / "notes", copy)
    assert names(tmp_path) == {"notes"}


def test_an_exclusive_lock_is_not_waited_for_for_ever(file: Path, copy: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusy, match="locked"):
            back_up(file, copy, patience=0.1)
    assert names(copy.parent) == {"wfe.db"}
    back_up(file, copy)


def test_a_copy_that_is_given_up_leaves_nothing(file: Path, copy: Path) -> None:
    def interrupt(left: int, pages: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(file, copy, on_progress=interrupt)
    assert names(copy.parent) == {"wfe.db"}


def test_copies_that_lie_about_are_known_newest_first(file: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    found = [
        tmp_path / "wfe.db.backup-v1",
        tmp_path / "backups" / "wfe-20260101T000000Z.db",
        tmp_path / "wfe.db.backup-v2",
    ]
    for age, path in enumerate([*found, tmp_path / "wfe.db.backup-v3.part"]):
        path.touch()
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert known(file) == found


def test_any_other_database_can_be_copied(tmp_path: Path, copy: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE item (name)")
    copy.touch()
    copy_into(copy, file)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (0,)
