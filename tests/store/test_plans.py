"""Questions go through indexes: with a million rows, a missing one is a missing product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import NOW
from wfe.model import ExecutionKey
from wfe.store.connection import Connection
from wfe.store.contract import Query
from wfe.store.database import open_for_writing
from wfe.store.reader import SQLiteReader
from wfe.store.writer import Writer


class Planned:
    """Collects how SQLite goes about each query that is run."""

    def __init__(self, connection: Connection) -> None:
        self.reader = SQLiteReader(connection)
        self.writer = Writer(connection, busy_timeout=5)
        self._connection = connection
        self._texts: list[str] = []
        connection.raw.set_trace_callback(self._texts.append)

    def plan(self) -> str:
        texts = [text for text in self._texts if text.startswith(("SELECT", "DELETE", "\nSELECT"))]
        self._texts.clear()
        return "\n".join(
            step
            for text in texts
            for *_, step in self._connection.raw.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
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
        ({"status": "waiting"}, "workflow_execution_awaiting"),
        ({"status": "running"}, "workflow_execution_open"),
        ({"status": "sleeping"}, "workflow_execution_open"),
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
    planned.writer.delete_expired(NOW, 10)
    assert "SEARCH workflow_execution USING INDEX workflow_execution_expiry" in planned.plan()
