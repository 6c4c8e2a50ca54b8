"""Words are found by the kept ids exactly where a look at every row finds them, whatever happened to the
rows before."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.support import NOW
from tests.store.support import fill, open_folder, ordinary_user
from wfe.model import ExecutionState
from wfe.store.connection import Connection
from wfe.store.contract import Query
from wfe.store.database import open_for_writing, open_reader
from wfe.store.migrations import MIGRATIONS, migrate
from wfe.store.queries import blocks
from wfe.store.queries.blocks_schema import SHIFT
from wfe.store.queries.conditions import All, Word, containing
from wfe.store.reader import SQLiteReader

#: Each example goes through a file.
FEW = max(settings().max_examples // 2, 1)

SIZE = 1 << SHIFT

#: Where blocks begin and end, and what is far away.
EDGES = tuple(
    serial
    for edge in (0, SIZE, 2 * SIZE, 7 * SIZE, 1000 * SIZE)
    for serial in (edge - 2, edge - 1, edge, edge + 1, edge + 100)
    if serial > 0
)

#: Short texts that have much in common, and what is hard about ids: characters that mean something to
#: SQLite, that end lines, or whose case is not one character of the other case.
IDS = st.lists(
    st.sampled_from(
        [
            *("a", "A", "b", "0", "00", "3ff", "%", "_", "\\", "'", '"', " ", ":", "-", "\n", "\x1f"),
            *("é", "É", "e\u0301", "ß", "SS", "\u017f", "\u212a", "k", "İ", "i", "\u0131", "ﬁ", "Σ", "ς"),
            *("😀", "fail"),
        ]
    ),
    min_size=1,
    max_size=4,
).map("".join)  # fmt: skip

STATES = st.sampled_from(ExecutionState).map(str)

ROWS = st.fixed_dictionaries(
    {
        "serial": st.none() | st.sampled_from(EDGES),
        "workflow_id": IDS,
        "transaction_id": IDS,
        "run_id": IDS,
        "state": STATES,
        "deleted_at": st.sampled_from([None, None, None, 1]),
        "expires_at": st.sampled_from([None, 5]),
    }
)

SERIALS = st.sampled_from(EDGES)

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), ROWS),
        st.tuples(st.just("insert"), ROWS),
        st.tuples(st.just("many"), st.lists(ROWS, min_size=2, max_size=4)),
        st.tuples(st.just("delete"), SERIALS, SERIALS),
        st.tuples(st.just("sweep")),
        st.tuples(st.just("newest")),
        st.tuples(st.just("state"), SERIALS, STATES),
        st.tuples(st.just("ids"), SERIALS, IDS, IDS, IDS),
        st.tuples(st.just("move"), SERIALS, SERIALS),
        st.tuples(st.just("all")),
    ),
    max_size=14,
)


class File:
    """A database that is changed as any program with SQLite may change it."""

    def __init__(self, path: Path) -> None:
        self.connection = open_for_writing(path, synchronous="normal").raw
        self.connection.execute("INSERT INTO definition VALUES ('flow', '', '', '{}', 0)")
        self.reader = SQLiteReader(open_for_writing(path, synchronous="normal"))

    def close(self) -> None:
        self.reader.close()
        self.connection.close()

    def happens(self, event: Sequence[Any]) -> None:
        try:
            self._happens(*event)
        except sqlite3.IntegrityError:
            assert not self.connection.in_transaction  # a serial is taken

    def _happens(self, kind: str, *given: Any) -> None:
        ask = self.connection.execute
        match kind:
            case "insert":
                self.insert([given[0]])
            case "many":
                self.insert(given[0])
            case "delete":
                ask("DELETE FROM workflow_execution WHERE serial BETWEEN ? AND ?", sorted(given))
            case "sweep":
                ask("DELETE FROM workflow_execution WHERE expires_at <= 5")
            case "newest":
                newest = "(SELECT max(serial) FROM workflow_execution)"
                ask(f"DELETE FROM workflow_execution WHERE serial = {newest}")
            case "state":
                ask("UPDATE workflow_execution SET state = ?2 WHERE serial = ?1", given)
            case "ids":
                names = "workflow_id = ?2, transaction_id = ?3, run_id = ?4"
                ask(f"UPDATE workflow_execution SET {names} WHERE serial = ?1", given)
            case "move":
                ask("UPDATE workflow_execution SET serial = ?2 WHERE serial = ?1", given)
            case "all":
                ask("DELETE FROM workflow_execution")

    def insert(self, rows: Sequence[dict[str, Any]]) -> None:
        insert(self.connection, rows)

    def rows(self) -> list[Any]:
        return self.connection.execute(
            "SELECT id, workflow_id, transaction_id, state, run_id, serial FROM workflow_execution"
            " WHERE deleted_at IS NULL ORDER BY created_at DESC"
        ).fetchall()

    def blocks(self) -> dict[int, bytes]:
        return dict(self.connection.execute("SELECT block, ids FROM search_block"))


_numbers = count(1)


def insert(connection: sqlite3.Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of what is given, and as much else as the table wants; in one statement."""
    complete = [row | _rest(next(_numbers)) for row in rows]
    columns = list(complete[0])
    places = f"({', '.join('?' * len(complete[0]))})"
    connection.execute(
        f"INSERT INTO workflow_execution ({', '.join(columns)}) VALUES {', '.join([places] * len(rows))}"
        " ON CONFLICT DO NOTHING",
        [row[column] for row in complete for column in columns],
    )


def _rest(number: int) -> dict[str, Any]:
    return {
        "id": f"wf_exec_{number}",
        "version": 1,
        "definition": "",
        "flow": "flow",
        "recording": "every-step",
        "created_at": number,
        "updated_at": 0,
        "running": 0,
        "awaiting": 0,
        "execution": "{}",
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[File]:
    with closing(File(tmp_path_factory.mktemp("search") / "wfe.db")) as made:
        yield made


def seen(rows: Sequence[Any], text: str) -> list[str]:
    """The ids of the rows that have `text` in one of four columns, looked at one by one."""
    pattern = containing(text)
    return [row[0] for row in rows if any(map(pattern.matches, row[1:5]))]


@given(EVENTS, st.lists(IDS, min_size=1, max_size=4), st.sampled_from([0, 1, 3, 10_000]))
@settings(
    max_examples=FEW,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_words_are_found_wherever_they_are(
    file: File, course: list[Any], words: list[str], most: int
) -> None:
    file.happens(["all"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MOST", most)
        for event in course:
            file.happens(event)
        rows = file.rows()
        assert file.reader.count(Query()) == len(rows)
        done = Query(where={"state": ["done", "failed"]})
        assert file.reader.count(done) == sum(row[3] in ("done", "failed") for row in rows)
        for text in words:
            conditions = (Word(containing(text)),)
            found = file.reader.list(Query(conditions=conditions))
            assert [each.execution_id for each in found] == seen(rows, text)
            assert file.reader.count(Query(conditions=conditions)) == len(found)
        every = tuple(Word(containing(text)) for text in words)
        expected = [set(seen(rows, text)) for text in words]
        found = file.reader.list(Query(conditions=every))
        assert {each.execution_id for each in found} == set.intersection(*expected)


@given(EVENTS)
@settings(max_examples=FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_block_that_is_there_has_a_line_for_each_row_and_none_is_kept_for_nothing(
    file: File, course: list[Any]
) -> None:
    file.happens(["all"])
    for event in course:
        file.happens(event)
        blocks = file.blocks()
        rows = file.connection.execute(
            "SELECT serial, transaction_id, run_id FROM workflow_execution"
        ).fetchall()
        assert set(blocks) <= {serial >> SHIFT for serial, *_ in rows}
        for serial, transaction_id, run_id in rows:
            if serial >> SHIFT in blocks:
                lines = blocks[serial >> SHIFT].split(b"\n")
                (line,) = [each for each in lines if each.startswith(b"%03x" % (serial % SIZE))]
                kept = line[3:].replace(b"\v", b"\n").decode()
                assert kept in (_small(transaction_id), _small(f"{transaction_id}\x1f{run_id}"))
                assert _small(run_id) in kept


def _small(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)


def row(transaction_id: str, serial: int | None = None) -> dict[str, Any]:
    return {
        "serial": serial,
        "workflow_id": "order",
        "transaction_id": transaction_id,
        "run_id": "r1",
        "state": "done",
    }


def test_a_block_comes_with_the_first_row_behind_it(file: File) -> None:
    file.happens(["all"])
    file.insert([row("first", SIZE - 1)])
    assert file.blocks() == {}
    file.insert([row("second")])
    assert file.blocks() == {0: b"ffffirst\x1fr1"}


def test_a_number_that_is_given_again_finds_its_new_row(file: File) -> None:
    file.happens(["all"])
    file.insert([row("old", SIZE - 1), row("next", SIZE)])
    file.connection.execute("DELETE FROM workflow_execution")
    file.insert([row("new", SIZE - 1)])
    assert [each.transaction_id for each in file.reader.list(Query(q="new"))] == ["new"]
    assert file.reader.list(Query(q="old")) == []


def test_what_is_gone_takes_no_room(file: File) -> None:
    file.happens(["all"])
    for block in range(5):
        file.insert([row(f"t{block}", block * SIZE + 1), row(f"u{block}", (block + 1) * SIZE)])
    assert set(file.blocks()) == {0, 1, 2, 3, 4}
    file.connection.execute("DELETE FROM workflow_execution WHERE serial < ?", (3 * SIZE,))
    assert set(file.blocks()) == {3, 4}


def test_a_common_word_leaves_the_list_in_its_own_order(file: File) -> None:
    file.happens(["all"])
    file.insert([row(f"t{number}") for number in range(20)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MOST", 10)
        assert candidates(file, "t") is None
        assert candidates(file, "t19") is not None
        assert candidates(file, "order") is None
        assert candidates(file, "done") is None
    assert [each.transaction_id for each in file.reader.list(Query(q="t", limit=2))] == [
        "t19",
        "t18",
    ]


def candidates(file: File, text: str) -> str | None:
    return blocks.candidates(file.connection, All((Word(containing(text)),)))


def test_too_many_workflows_are_not_looked_through_one_by_one(file: File) -> None:
    file.happens(["all"])
    file.insert([row(f"t{number}") | {"workflow_id": f"w{number}"} for number in range(5)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MOST_WORKFLOWS", 3)
        assert [each.workflow_id for each in file.reader.list(Query(q="w4"))] == ["w4"]
        assert [each.workflow_id for each in file.reader.list(Query(q="t4"))] == ["w4"]


def test_a_file_that_was_made_before_gets_its_blocks_with_the_migration(tmp_path: Path) -> None:
    search = next(each for each in MIGRATIONS if each.name == "search")
    path = tmp_path / "wfe.db"
    path.touch()
    with closing(Connection(path, mode="mode=rw", busy_timeout=5, pragmas={})) as connection:
        migrate(connection, now=NOW, migrations=MIGRATIONS[: search.version - 1])
        connection.raw.execute("INSERT INTO definition VALUES ('flow', '', '', '{}', 0)")
        insert(connection.raw, [row("a", 5), row("b", SIZE), row("c", 9 * SIZE)])
        migrate(connection, now=NOW)
        blocks = connection.raw.execute("SELECT block, ids FROM search_block").fetchall()
    assert blocks == [(0, b"005a\x1fr1"), (1, b"000b\x1fr1")]


def test_a_file_that_cannot_be_written_is_searched_as_well() -> None:
    with open_folder() as folder:
        path = folder / "wfe.db"
        with ordinary_user():
            fill(path, "needle", "hay")
        path.chmod(0o444)
        folder.chmod(0o555)
        with ordinary_user(), open_reader(path) as reader:
            assert [each.transaction_id for each in reader.list(Query(q="NEEDLE"))] == ["needle"]
