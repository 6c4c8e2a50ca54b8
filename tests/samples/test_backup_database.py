"""Backing up: a copy is whole, checked and private before it has a name; then the oldest go."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wfe import Engine
from wfe.model import Recording
from wfe.store.sqlite import SQLiteStore

from .support import module, run, sample, state

ROWS = 2000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A database of many pages, with a write-ahead log."""
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
        db.executemany("INSERT INTO item (name) VALUES (?)", [("x" * 50,)] * ROWS)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def count(file: Path) -> int:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM item").fetchone()[0])


def old_backups(folder: Path, *names: str) -> None:
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_backup_of_a_database_in_use_is_whole_private_and_alone(source: Path, folder: Path) -> None:
    with closing(sqlite3.connect(source)) as writer:
        writer.execute("INSERT INTO item (name) VALUES ('committed')")
        writer.commit()
        writer.execute("INSERT INTO item (name) VALUES ('not yet')")
        result = run(sample("backup-database"), {"source": str(source), "folder": str(folder)})
    assert state(result) == "done"
    backup = Path(result.result["backup"])
    assert re.fullmatch(r"wfe-\d{8}T\d{6}Z\.db", backup.name)
    assert names(folder) == {backup.name}
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert count(backup) == ROWS + 1


def test_backs_up_the_very_database_that_records_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_DB", str(tmp_path / "own.db"))

    async def main() -> Any:
        store = SQLiteStore(tmp_path / "own.db")
        async with Engine(store=store, recording=Recording.EVERY_STEP) as engine:
            return await engine.run(sample("backup-database"), {}, until="finished")

    backup = Path(asyncio.run(main()).result["backup"])
    assert backup.parent == tmp_path / "backups"
    with closing(sqlite3.connect(backup)) as db:
        assert db.execute("SELECT workflow_id, state FROM workflow_execution").fetchall() == [
            ("backup-database", "invoking")
        ]


def test_keeps_the_newest_backups_and_every_other_file(source: Path, folder: Path) -> None:
    old = [f"wfe-2001010{day}T000000Z.db" for day in range(1, 6)]
    old_backups(folder, *old, "notes.txt", "wfe-20010101.db")
    result = run(
        sample("backup-database"), {"source": str(source), "folder": str(folder), "keep": 3}
    )
    assert result.result["deleted"] == [old[2], old[1], old[0]]
    new = Path(result.result["backup"]).name
    assert names(folder) == {new, old[4], old[3], "notes.txt", "wfe-20010101.db"}


def test_the_new_backup_stays_even_where_others_have_later_dates(
    source: Path, folder: Path
) -> None:
    old_backups(folder, "wfe-99990101T000000Z.db", "wfe-99990102T000000Z.db")
    result = run(
        sample("backup-database"), {"source": str(source), "folder": str(folder), "keep": 1}
    )
    assert names(folder) == {Path(result.result["backup"]).name}


def test_an_old_backup_that_cannot_be_deleted_does_not_undo_the_new_one(
    source: Path, folder: Path
) -> None:
    (folder / "wfe-20010101T000000Z.db").mkdir(parents=True)
    result = run(
        sample("backup-database"), {"source": str(source), "folder": str(folder), "keep": 1}
    )
    assert state(result) == "done"
    assert count(Path(result.result["backup"])) == ROWS


def damage(source: Path) -> None:
    """Turn a page in the middle into noise."""
    with closing(sqlite3.connect(source)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(source.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    source.write_bytes(content)


@pytest.mark.parametrize("spoil", [damage, lambda file: file.write_text("no database" * 100)])
def test_a_damaged_source_leaves_no_file_and_deletes_none(
    source: Path, folder: Path, spoil: Any
) -> None:
    spoil(source)
    old_backups(folder, "wfe-20010101T000000Z.db")
    result = run(
        sample("backup-database"), {"source": str(source), "folder": str(folder), "keep": 1}
    )
    assert state(result) == "reverted"
    assert result.errors[0].name == "PermanentStepFailure"
    assert str(source) in result.errors[0].message
    assert names(folder) == {"wfe-20010101T000000Z.db"}


def test_a_folder_that_cannot_be_made_is_named(source: Path) -> None:
    result = run(sample("backup-database"), {"source": str(source), "folder": f"{source}/in"})
    assert state(result) == "reverted"
    assert f"{source}/in" in result.errors[0].message


@pytest.mark.parametrize(
    ("input", "complaint"),
    [({"keep": 0}, "keep must be at least 1"), ({"source": "/no/such.db"}, "/no/such.db")],
)
def test_refuses_what_it_cannot_do(
    source: Path, folder: Path, input: dict[str, Any], complaint: str
) -> None:
    request = {"source": str(source), "folder": str(folder), **input}
    result = run(sample("backup-database"), request)
    assert state(result) == "reverted"
    assert complaint in result.errors[0].message
    assert not folder.exists()


def test_undoing_a_backup_removes_its_file_alone(source: Path, folder: Path) -> None:
    old_backups(folder, "wfe-20010101T000000Z.db")
    request = {"source": str(source), "folder": str(folder)}
    result = run(sample("backup-database"), request, cancel=True)
    assert state(result) == "reverted"
    assert names(folder) == {"wfe-20010101T000000Z.db"}


def test_each_step_and_each_undo_may_run_twice(source: Path, folder: Path) -> None:
    backup = module("workflows.backup_database")
    plan = backup.Plan(str(source), f"{folder}/.part", f"{folder}/wfe-x.db", 1)
    for step in (backup.copy_database, backup.publish, backup.rotate):
        step(plan)
        step(plan)
    assert count(Path(plan.target)) == ROWS
    for undo in (backup.withdraw, backup.remove_partial):
        undo(plan)
        undo(plan)
    assert names(folder) == set()


def test_a_copy_that_has_vanished_is_not_reported_as_published(folder: Path) -> None:
    backup = module("workflows.backup_database")
    folder.mkdir()
    with pytest.raises(FileNotFoundError):
        backup.publish(backup.Plan("", f"{folder}/.part", f"{folder}/wfe-x.db", 1))
