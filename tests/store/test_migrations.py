"""Migrations: whole or not at all, backed up first, and never for a file of the future."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.store.support import fill, kept, mode
from wfe.errors import SchemaTooNew, StoreBusy
from wfe.store import tables
from wfe.store.connection import Connection
from wfe.store.database import open_for_writing, open_reader
from wfe.store.migrations import MIGRATIONS, Migration, migrate, schema_version

NOW = datetime(2026, 5, 1, tzinfo=UTC)

#: The newest that there is, and one that nobody has written yet.
NEWEST = MIGRATIONS[-1].version
NEXT = Migration(
    NEWEST + 1,
    "priorities",
    (
        "ALTER TABLE workflow_execution ADD COLUMN priority INTEGER NOT NULL DEFAULT 0",
        "UPDATE workflow_execution SET priority = 7",
    ),
)
BROKEN = NEXT._replace(statements=(*NEXT.statements, "UPDATE nowhere SET priority = 8"))


def opened(file: Path, *, busy_timeout: float = 5) -> Connection:
    return Connection(file, mode="mode=rw", busy_timeout=busy_timeout, pragmas={})


def upgrade(file: Path, *added: Migration) -> int:
    """Apply the migrations there are and those; the version that the file has then."""
    with closing(opened(file)) as connection:
        migrate(connection, now=NOW, migrations=(*MIGRATIONS, *added))
        return schema_version(connection)


def ask(file: Path, question: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(question).fetchall()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with one execution."""
    fill(tmp_path / "wfe.db", "t1")
    return tmp_path / "wfe.db"


def backups(file: Path) -> list[Path]:
    return sorted(file.parent.glob("*backup*"))


def test_a_new_file_gets_every_migration_and_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    open_for_writing(file).close()
    applied = ask(file, "SELECT version, name FROM schema_version ORDER BY version")
    assert applied == [(each.version, each.name) for each in MIGRATIONS]
    assert backups(file) == []


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    assert [each.version for each in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_a_due_migration_keeps_the_rows_and_is_recorded(file: Path) -> None:
    assert upgrade(file, NEXT) == NEXT.version
    assert ask(file, "SELECT transaction_id, priority FROM workflow_execution") == [("t1", 7)]
    moment = int(NOW.timestamp()) * 1_000_000
    recorded = ask(
        file, f"SELECT name, applied_at FROM schema_version WHERE version = {NEXT.version}"
    )
    assert recorded == [("priorities", moment)]


def test_a_file_with_rows_is_backed_up_first(file: Path) -> None:
    upgrade(file, NEXT)
    (backup,) = backups(file)
    assert backup.name == f"wfe.db.backup-v{NEWEST}"
    assert mode(backup) == 0o600
    assert kept(backup) == ["t1"]
    assert ask(backup, "SELECT max(version) FROM schema_version") == [(NEWEST,)]
    assert ask(backup, "PRAGMA integrity_check") == [("ok",)]


def test_a_backup_holds_what_only_the_log_holds(file: Path) -> None:
    with closing(opened(file)) as connection:
        schema_version(connection)  # as long as one reads, the log stays
        fill(file, "t2")
        assert file.with_name("wfe.db-wal").stat().st_size > 0
        upgrade(file, NEXT)
    assert kept(backups(file)[0]) == ["t1", "t2"]


def test_a_file_without_rows_is_not_backed_up(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    open_for_writing(file).close()
    upgrade(file, NEXT)
    assert backups(file) == []


def test_a_backup_can_be_put_back(file: Path) -> None:
    upgrade(file, NEXT)
    backups(file)[0].replace(file)
    with open_reader(file) as reader:
        assert [key.transaction_id for key in reader.keys(workflow_id="order")] == ["t1"]


def test_several_due_migrations_take_one_backup(file: Path) -> None:
    after = Migration(NEXT.version + 1, "more", ("CREATE TABLE more (x)",))
    assert upgrade(file, NEXT, after) == after.version
    assert [path.name for path in backups(file)] == [f"wfe.db.backup-v{NEWEST}"]


def test_nothing_is_done_twice(file: Path) -> None:
    upgrade(file, NEXT)
    backups(file)[0].unlink()
    assert upgrade(file, NEXT) == NEXT.version
    assert backups(file) == []


def test_a_migration_that_fails_leaves_the_file_as_it_was(file: Path) -> None:
    before = ask(file, "SELECT sql FROM sqlite_master ORDER BY name")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        upgrade(file, BROKEN)
    assert ask(file, "SELECT sql FROM sqlite_master ORDER BY name") == before
    assert ask(file, "SELECT max(version) FROM schema_version") == [(NEWEST,)]
    assert kept(file) == ["t1"]
    assert upgrade(file, NEXT) == NEXT.version


def test_what_an_interrupted_backup_left_is_replaced(file: Path) -> None:
    part = file.with_name(f"wfe.db.backup-v{NEWEST}.part")
    part.write_bytes(b"half")
    upgrade(file, NEXT)
    assert [path.name for path in backups(file)] == [f"wfe.db.backup-v{NEWEST}"]
    assert kept(backups(file)[0]) == ["t1"]


def test_a_backup_that_fails_stops_the_migration(file: Path) -> None:
    file.with_name(f"wfe.db.backup-v{NEWEST}").mkdir()
    (file.with_name(f"wfe.db.backup-v{NEWEST}") / "occupied").touch()
    with pytest.raises(OSError, match=f"backup-v{NEWEST}"):
        upgrade(file, NEXT)
    assert ask(file, "SELECT max(version) FROM schema_version") == [(NEWEST,)]


def test_a_newer_schema_is_refused_and_not_migrated(file: Path) -> None:
    upgrade(file, NEXT)
    backups(file)[0].unlink()
    before = file.read_bytes()
    with pytest.raises(SchemaTooNew, match=f"schema {NEXT.version}, this one knows {NEWEST}"):
        open_for_writing(file)
    assert file.read_bytes() == before
    assert backups(file) == []


def test_a_lock_that_stays_leaves_the_migration_for_another_time(file: Path) -> None:
    with closing(opened(file)) as other, closing(opened(file, busy_timeout=0.01)) as connection:
        with other.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
            migrate(connection, now=NOW, migrations=(*MIGRATIONS, NEXT))
        assert schema_version(connection) == NEWEST
    fresh = file.with_name("fresh.db")
    fresh.touch()
    with closing(sqlite3.connect(fresh, isolation_level=None)) as locker:
        locker.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusy):
            open_for_writing(fresh, busy_timeout=0.01)


def test_of_many_that_migrate_at_once_one_does(file: Path) -> None:
    barrier = threading.Barrier(4)
    versions: list[int] = []

    def run() -> None:
        barrier.wait()
        versions.append(upgrade(file, NEXT))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions == [NEXT.version] * 4
    assert ask(file, "SELECT version FROM schema_version ORDER BY version") == [
        (version,) for version in range(1, NEXT.version + 1)
    ]
    assert [path.name for path in backups(file)] == [f"wfe.db.backup-v{NEWEST}"]
    assert ask(backups(file)[0], "SELECT max(version) FROM schema_version") == [(NEWEST,)]


# --- the models ----------------------------------------------------------------------------------


def described(columns: Sequence[Any]) -> list[tuple[str, bool, bool]]:
    return [(name, bool(required), bool(key)) for _, name, _, required, _, key in columns]


@pytest.mark.parametrize("table", tables.ALL, ids=lambda table: table.__name__)
def test_the_migrations_make_what_the_models_name(
    tmp_path: Path, table: type[tables.Table]
) -> None:
    file = tmp_path / "wfe.db"
    open_for_writing(file).close()
    meta = table._meta
    made = described(ask(file, f"PRAGMA table_info({meta.table_name})"))
    keys = {field.column_name for field in meta.get_primary_keys()}  # type: ignore[no-untyped-call]  # stubs
    assert made == [
        (field.column_name, not field.null, field.column_name in keys)
        for field in meta.sorted_fields
    ]


def test_every_table_has_a_model(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    open_for_writing(file).close()
    made = ask(file, "SELECT name FROM sqlite_master WHERE type = 'table'")
    names = {name for (name,) in made if not name.startswith("sqlite_")}
    assert names == {table._meta.table_name for table in tables.ALL}
