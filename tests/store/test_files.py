"""The file: who may read it, what may stand in its place, and what a reader leaves alone."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import wfe
from tests.contract.support import changed, keep, new, on_loop, parts_of
from tests.store.support import fill, kept, mode, open_folder, ordinary_user
from wfe.errors import SchemaTooNew, StoreUnusable
from wfe.model import ExecutionKey, ExecutionState
from wfe.store.contract import Query
from wfe.store.database import Synchronous, open_for_reading, open_for_writing, open_reader
from wfe.store.sqlite import SQLiteStore

ROOT = Path(wfe.__file__).parent.parent
KEY = ExecutionKey("order", "t1")


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


# --- permissions ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("umask")
def test_what_is_made_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    file = tmp_path / ".wfe" / "wfe.db"

    @on_loop
    async def use(store: SQLiteStore) -> None:
        await keep(store, new())
        assert {path.name: mode(path) for path in file.parent.iterdir()} == {
            "wfe.db": 0o600,
            "wfe.db-wal": 0o600,
            "wfe.db-shm": 0o600,
        }
        assert mode(file.parent) == 0o700

    use(store=SQLiteStore(file))
    assert mode(file) == 0o600


def test_what_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    file = tmp_path / "wfe.db"
    file.touch()
    file.chmod(0o640)
    fill(file, "t1")
    assert mode(file) == 0o640
    assert mode(tmp_path) == 0o755


def test_a_closed_store_leaves_one_file(tmp_path: Path) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        await keep(store, new())
        assert store.reader.count(Query()) == 1

    use(store=SQLiteStore(tmp_path / "wfe.db"))
    assert [path.name for path in tmp_path.iterdir()] == ["wfe.db"]


@pytest.mark.parametrize("name", ["a b.db", "é?#%41&x=1.db", "a;b'\".db", ":memory:"])
def test_any_name_is_a_file_name(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name, "t1")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with open_reader(tmp_path / name) as reader:
        assert reader.count(Query()) == 1


def test_a_link_leads_to_one_database(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "wfe.db"
    link.symlink_to(tmp_path / "real" / "wfe.db")

    @on_loop
    async def use(store: SQLiteStore) -> None:
        await keep(store, new())

    use(store=SQLiteStore(link))
    assert kept(tmp_path / "real" / "wfe.db") == ["t1"]
    with open_reader(link) as reader:
        assert reader.count(Query()) == 1


# --- what stands in its place --------------------------------------------------------------------


def test_a_missing_folder_above_the_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=f"no folder {tmp_path / 'a'} to keep the database"):
        open_for_writing(tmp_path / "a" / "b" / "wfe.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    for opening in (open_for_writing, open_for_reading):
        with pytest.raises(StoreUnusable, match="is a folder, not a database"):
            opening(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wfe").write_text("notes")
    for opening in (open_for_writing, open_for_reading):
        with pytest.raises(StoreUnusable):
            opening(tmp_path / "wfe" / "wfe.db")


@pytest.mark.parametrize("content", [b"a text\n" * 200, b"x", b"SQLite format 3\x00" + b"?" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    for opening in (open_for_writing, open_for_reading):
        with pytest.raises(StoreUnusable, match="is not a database") as caught:
            opening(file)
        assert caught.value.hint
    assert file.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "app.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER)")
        connection.commit()
    before = file.read_bytes()
    for opening in (open_for_writing, open_for_reading):
        with pytest.raises(StoreUnusable, match="database of another program"):
            opening(file)
    assert file.read_bytes() == before


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    file.touch()
    with pytest.raises(StoreUnusable, match="is empty"):
        open_for_reading(file)
    fill(file, "t1")
    assert kept(file) == ["t1"]


def test_a_damaged_database_is_named_as_such(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    fill(file, *(f"t{number}" for number in range(200)))
    damaged = bytearray(file.read_bytes())
    damaged[4096:] = b"\x55" * (len(damaged) - 4096)
    file.write_bytes(damaged)
    with pytest.raises(StoreUnusable, match=r"damaged|used") as caught:
        open_reader(file).list(Query())
    assert str(file) in str(caught.value)


def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "wfe.db")
    execution = new()
    with pytest.raises(StoreUnusable, match="is not open"):
        asyncio.run(store.load(KEY))
    with pytest.raises(StoreUnusable, match="is not open"):
        asyncio.run(store.insert(execution, changed(execution)))
    assert list(tmp_path.iterdir()) == []


def test_a_durability_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'full' or 'normal', not 'off'"):
        SQLiteStore(tmp_path / "wfe.db", synchronous="off")  # type: ignore[arg-type]  # the claim


@pytest.mark.parametrize(("synchronous", "level"), [("full", 2), ("normal", 1)])
def test_the_durability_is_what_was_asked_for(
    tmp_path: Path, synchronous: Synchronous, level: int
) -> None:
    with closing(open_for_writing(tmp_path / "wfe.db", synchronous=synchronous)) as connection:
        assert connection.pragma("synchronous") == level
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("foreign_keys") == 1


# --- deleted while open --------------------------------------------------------------------------


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_database_deleted_while_open_is_noticed_by_the_next_commit(
    tmp_path: Path, lone: bool, replaced: bool
) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        execution = await keep(store, new())
        store.path.unlink()
        if replaced:
            store.path.write_bytes(b"")
        with pytest.raises(StoreUnusable, match="deleted or replaced while it was in use"):
            await store.commit(execution, changed(execution), lone=lone)
        with pytest.raises(StoreUnusable, match="deleted or replaced"):
            await store.delete(KEY, "r1")

    use(store=SQLiteStore(tmp_path / "wfe.db"))


# --- read-only -----------------------------------------------------------------------------------


def test_a_read_only_file_is_read_and_not_opened_for_writing() -> None:
    with open_folder() as folder:
        fill(folder / "wfe.db", "t1")
        (folder / "wfe.db").chmod(0o444)
        with ordinary_user():
            with pytest.raises(StoreUnusable, match="is read-only"):
                open_for_writing(folder / "wfe.db")
            with open_reader(folder / "wfe.db") as reader:
                assert reader.count(Query()) == 1


def test_a_read_only_folder_is_read_and_not_written_to() -> None:
    with open_folder() as folder:
        fill(folder / "wfe.db", "t1")
        (folder / "wfe.db").chmod(0o666)
        folder.chmod(0o555)
        with ordinary_user():
            with pytest.raises(StoreUnusable, match="is read-only"):
                open_for_writing(folder / "wfe.db")
            with pytest.raises(StoreUnusable, match="may not be read and written"):
                open_for_writing(folder / "other.db")
            with open_reader(folder / "wfe.db") as reader:
                assert reader.load(KEY) is not None
        assert [path.name for path in folder.iterdir()] == ["wfe.db"]


def test_commits_that_cannot_be_read_in_a_read_only_folder_are_not_passed_over() -> None:
    with open_folder() as folder:
        _copy_of_a_crash(folder / "wfe.db")
        folder.chmod(0o555)
        with ordinary_user(), pytest.raises(StoreUnusable, match=r"newest commits .* wfe\.db-wal"):
            open_reader(folder / "wfe.db")


def _copy_of_a_crash(file: Path) -> None:
    """A database and its -wal, without -shm, as they were while it was open."""
    source = file.with_name("source.db")
    fill(source, "t1")
    with closing(open_for_writing(source)):
        fill(source, "t2")
        for suffix in ("", "-wal"):
            copy = file.with_name(f"{file.name}{suffix}")
            copy.write_bytes(source.with_name(f"{source.name}{suffix}").read_bytes())
            copy.chmod(0o444)


def test_a_file_that_may_not_be_read_says_so() -> None:
    with open_folder() as folder:
        fill(folder / "wfe.db", "t1")
        (folder / "wfe.db").chmod(0o000)
        with ordinary_user():
            for opening in (open_for_writing, open_for_reading):
                with pytest.raises(StoreUnusable, match=r"read-only|may not be read"):
                    opening(folder / "wfe.db")


# --- readers -------------------------------------------------------------------------------------


def test_a_reader_makes_nothing_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="There is no database") as caught:
        open_reader(tmp_path / "a" / "wfe.db")
    assert "wfe run" in caught.value.hint
    with pytest.raises(StoreUnusable, match="There is no database"):
        open_reader(tmp_path / "wfe.db")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    fill(tmp_path / "wfe.db", "t1")
    connection = open_for_reading(tmp_path / "wfe.db")
    with closing(connection), pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.raw.execute("DELETE FROM workflow_execution")


def test_a_reader_sees_each_commit_while_the_store_is_open(tmp_path: Path) -> None:
    @on_loop
    async def use(store: SQLiteStore) -> None:
        with open_reader(store.path) as reader:
            execution = await keep(store, new())
            assert parts_of(reader.load(KEY)) == parts_of(execution)
            changes = changed(execution, state=ExecutionState.DONE)
            await store.commit(execution, changes)
            assert [summary.state for summary in reader.list(Query())] == [ExecutionState.DONE]

    use(store=SQLiteStore(tmp_path / "wfe.db"))


def test_a_question_half_answered_keeps_no_old_state(tmp_path: Path) -> None:
    fill(tmp_path / "wfe.db", *(f"t{number}" for number in range(50)))
    with open_reader(tmp_path / "wfe.db") as reader:
        assert len(reader.keys(workflow_id="order", limit=3)) == 3
        fill(tmp_path / "wfe.db", "new")
        assert reader.count(Query()) == 51


def test_a_newer_schema_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    fill(file, "t1")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO schema_version VALUES (99, 'of the future', 0)")
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
    before = file.read_bytes()
    for opening in (open_for_writing, open_for_reading):
        with pytest.raises(SchemaTooNew, match="written by a newer wfe \\(schema 99"):
            opening(file)
    assert file.read_bytes() == before
    assert list(tmp_path.glob("*backup*")) == []


def test_reading_imports_neither_asyncio_nor_the_engine(tmp_path: Path) -> None:
    fill(tmp_path / "wfe.db", "t1")
    program = f"""
import sys
from wfe.store.contract import Query
from wfe.store.database import open_reader
with open_reader({str(tmp_path / "wfe.db")!r}) as reader:
    assert reader.list(Query())
loaded = {{"asyncio", "concurrent.futures", "croniter", "rich", "typer", "wfe.engine"}}
sys.exit(", ".join(loaded & set(sys.modules)) or 0)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


# --- other processes -----------------------------------------------------------------------------


def test_what_was_accepted_survives_the_death_of_the_process(tmp_path: Path) -> None:
    program = f"""
import asyncio, os
from tests.contract.support import begun, changed, keep, new
from wfe.store.sqlite import SQLiteStore
async def main():
    store = SQLiteStore({str(tmp_path / "wfe.db")!r})
    await store.open()
    execution = await keep(store, new())
    await store.commit(execution, changed(execution, begun()), lone=True)
    os._exit(9)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", program], check=False, env=environment)
    assert ended.returncode == 9
    with open_reader(tmp_path / "wfe.db") as reader:
        execution = reader.load(KEY)
    assert execution is not None
    assert execution.head.version == 2
    assert list(execution.steps) == ["reserve"]


def test_two_stores_of_one_file_keep_one_unfinished_run_of_a_key(tmp_path: Path) -> None:
    async def main() -> None:
        stores = [SQLiteStore(tmp_path / "wfe.db") for _ in range(2)]
        await asyncio.gather(*(store.open() for store in stores))
        executions = [new(run_id=run_id) for run_id in ("r1", "r2")]
        outcomes = await asyncio.gather(
            *(
                store.insert(execution, changed(execution))
                for store, execution in zip(stores, executions, strict=True)
            )
        )
        assert sorted(outcomes) == [False, True]
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(main())
