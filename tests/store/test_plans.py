"""Questions go through indexes: with a million rows, a missing one is a missing product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import NOW
from wfe.model import ExecutionKey
from wfe.store import sweep
from wfe.store.connection import Connection
from wfe.store.contract import Query
from wfe.store.database import open_for_writing
from wfe.store.queries.pages import behind
from wfe.store.queries.typed import states
from wfe.store.reader import SQLiteReader
from wfe.store.writer import Writer

#: What a list shows where nothing else is asked for.
ROOTS: dict[str, Any] = {"parent_step_idempotency_key": None}


#: How SQLite counts a whole table, and what is deleted of it.
ALL = "SCAN workflow_execution USING COVERING INDEX sqlite_autoindex_workflow_execution_1"
DELETED = "SEARCH t1 USING COVERING INDEX workflow_execution_deleted (deleted_at>?)"


class Planned:
    """Collects how SQLite goes about each query that is run."""

    def __init__(self, connection: Connection) -> None:
        self.reader = SQLiteReader(connection)
        self.writer = Writer(connection, busy_timeout=5)
        self.connection = connection
        self._texts: list[str] = []
        connection.raw.set_trace_callback(self._texts.append)

    def plan(self) -> str:
        texts = [text for text in self._texts if text.startswith(("SELECT", "DELETE", "\nSELECT"))]
        self._texts.clear()
        return "\n".join(
            step
            for text in texts
            for *_, step in self.connection.raw.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
        )


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planned]:
    file: Path = tmp_path_factory.mktemp("plans") / "wfe.db"
    with closing(open_for_writing(file)) as connection:
        yield Planned(connection)


@pytest.mark.parametrize(
    ("where", "index"),
    [
        ({}, "workflow_execution_newest"),
        ({"state": "failed"}, "workflow_execution_state (state=?)"),
        ({"workflow_id": "order"}, "workflow_execution_workflow (workflow_id=?)"),
        ({"created_at": {"$gte": NOW}}, "workflow_execution_newest (created_at>?)"),
        ({"status": "waiting"}, "workflow_execution_open"),
        ({"status": "running"}, "workflow_execution_open"),
        ({"status": "sleeping"}, "workflow_execution_open"),
        (ROOTS, "workflow_execution_newest"),
        (ROOTS | {"state": "failed"}, "workflow_execution_state (state=?)"),
        (ROOTS | {"created_at": {"$gte": NOW}}, "workflow_execution_newest (created_at>?)"),
        (ROOTS | {"shown": "waiting"}, "workflow_execution_open"),
        (ROOTS | {"shown": ["interrupted"]}, "workflow_execution_open"),
    ],
    ids=str,
)
def test_lists_come_in_order_out_of_an_index(
    planned: Planned, where: dict[str, Any], index: str
) -> None:
    planned.reader.list(Query(where=where, limit=50))
    plan = planned.plan()
    assert index in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize(
    ("where", "entries"),
    [
        ({}, [ALL, DELETED]),
        (ROOTS, [ALL, DELETED, "SCAN t1 USING INDEX workflow_execution_children"]),
        (
            ROOTS | {"state": ["failed", "done"]},
            [
                *(ALL, DELETED, "SCAN t1 USING INDEX workflow_execution_children"),
                "SEARCH t1 USING INDEX workflow_execution_state (state=?)",
            ],
        ),
        (ROOTS | {"state": "failed"}, ["SEARCH t1 USING INDEX workflow_execution_state (state=?)"]),
        (
            {"workflow_id": "x"},
            ["SEARCH t1 USING INDEX workflow_execution_workflow (workflow_id=?)"],
        ),
    ],
    ids=str,
)
def test_counts_are_those_of_entries_in_an_index(
    planned: Planned, where: dict[str, Any], entries: list[str]
) -> None:
    planned.reader.count(Query(where=where))
    assert [step for step in planned.plan().split("\n") if "INDEX" in step] == entries


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (ROOTS, "workflow_execution_newest (created_at<?)"),
        ({}, "workflow_execution_newest (created_at<?)"),
        ({"state": "failed"}, "workflow_execution_state (state=? AND created_at<?)"),
        ({"workflow_id": "x"}, "workflow_execution_workflow (workflow_id=? AND created_at<?)"),
    ],
    ids=str,
)
def test_a_page_begins_where_the_last_one_ended(
    planned: Planned, where: dict[str, Any], index: str
) -> None:
    planned.reader.list(Query(where=where, conditions=(behind("1.x"),), limit=50))
    plan = planned.plan()
    assert index in plan
    assert "TEMP B-TREE" not in plan


def test_of_several_states_a_page_each_is_read(planned: Planned) -> None:
    planned.reader.list(Query(where=ROOTS, conditions=(states("done,failed,waiting"),), limit=50))
    *pages, sorting = [
        line for line in planned.plan().split("\n") if "USING INDEX" in line or "TEMP" in line
    ]
    assert set(pages) == {
        "SEARCH t1 USING INDEX workflow_execution_state (state=?)",
        "SCAN t1 USING INDEX workflow_execution_open",
    }
    assert sorting == "USE TEMP B-TREE FOR ORDER BY"  # of the pages


def test_what_has_a_word_is_looked_up(planned: Planned) -> None:
    for question in (planned.reader.list, planned.reader.count):
        question(Query(where=ROOTS, q="nothing", limit=50))
        assert "SEARCH t1 USING INTEGER PRIMARY KEY (rowid=?)" in planned.plan()


@pytest.mark.parametrize("field", ["transaction_id", "run_id", "execution_id"])
def test_ids_are_looked_up(planned: Planned, field: str) -> None:
    planned.reader.list(Query(where={field: "x"}))
    assert "SEARCH t1 USING INDEX" in planned.plan()


def test_all_other_questions_are_looked_up(planned: Planned) -> None:
    key = ExecutionKey("order", "t1")
    planned.reader.load(key)
    planned.reader.load(key, "r1")
    planned.reader.timeline("wf_exec_1")
    planned.reader.keys(transaction_id="t1")
    planned.reader.keys(workflow_id="order")
    planned.reader.keys(run_id_prefix="01A")
    planned.writer.delete(key, "r1")
    planned.writer.delete_children(key)
    assert "SCAN" not in planned.plan()


def test_what_waits_is_found_without_what_does_not(planned: Planned) -> None:
    planned.reader.steps_waiting(limit=10)
    plan = planned.plan()
    assert "SCAN t2 USING INDEX execution_step_awaiting" in plan
    assert "TEMP B-TREE" not in plan
    planned.reader.due(NOW, 10)
    assert "SEARCH workflow_execution USING INDEX workflow_execution_wake" in planned.plan()
    sweep.doomed(planned.connection, sweep.Due(NOW))
    assert "SEARCH r USING INDEX workflow_execution_expiry" in planned.plan()
