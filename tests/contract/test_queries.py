"""Queries mean the same in every store: filters, words, order, pages, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.contract.support import NOW, SECOND, keep, move, new, on_loop
from wfe.errors import UsageError
from wfe.model import ExecutionKey, ExecutionState
from wfe.store.contract import CheckpointStore, ExecutionSummary, Query, Reader
from wfe.store.database import open_reader
from wfe.store.memory import MemoryStore
from wfe.store.sqlite import SQLiteStore

DONE = ExecutionState.DONE
FAILED = ExecutionState.FAILED
INVOKING = ExecutionState.INVOKING


async def fill(store: CheckpointStore) -> None:
    """Six executions, called a to f by their transaction ids, begun one second after the other."""
    executions: dict[str, dict[str, Any]] = {
        "a": {"state": DONE, "retention_time": 5.0},
        "b_B": {"state": FAILED, "retention_time": 60.5},
        "c%": {"state": INVOKING, "running": 1},
        "d\\": {"state": INVOKING, "awaiting": 2, "workflow_id": "Import Straße"},
        "éÉ": {"state": INVOKING, "wake_at": NOW, "workflow_id": "import"},
        "fbB": {
            "state": ExecutionState.NOT_STARTED,
            "parent_step_idempotency_key": "order:a:charge:invoke",
        },
    }
    for number, (transaction_id, fields) in enumerate(executions.items()):
        execution = new(
            transaction_id,
            f"01RUN{number}",
            workflow_id=fields.pop("workflow_id", "order"),
            created_at=NOW + number * SECOND,
            updated_at=NOW + (10 - number) * SECOND,
        )
        await keep(store, execution, **fields)


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def reader(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    """The reader of a store that `fill` has filled."""
    if request.param == "memory":
        store = MemoryStore()
        on_loop(fill)(store=store)
        yield store.reader
        return
    file = tmp_path_factory.mktemp("queries") / "wfe.db"
    on_loop(fill)(store=SQLiteStore(file, synchronous="normal"))
    with open_reader(file) as reader:
        yield reader


def found(reader: Reader, query: Query) -> str:
    """The first letters of the transaction ids, in order."""
    return "".join(summary.transaction_id[0] for summary in reader.list(query))


def test_executions_are_counted_by_workflow_and_state(reader: Reader) -> None:
    assert reader.tally() == {
        ("order", DONE): 1,
        ("order", FAILED): 1,
        ("order", INVOKING): 1,
        ("order", ExecutionState.NOT_STARTED): 1,
        ("Import Straße", INVOKING): 1,
        ("import", INVOKING): 1,
    }


LATER = NOW + 3 * SECOND


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, "abcdéf"),
        ({"workflow_id": "order"}, "abcf"),
        ({"workflow_id": "ORDER"}, ""),
        ({"workflow_id": ["order", "import"]}, "abcéf"),
        ({"workflow_id": {"$in": ["import"]}}, "é"),
        ({"workflow_id": {"$in": []}}, ""),
        ({"workflow_id": {"$nin": []}}, "abcdéf"),
        ({"workflow_id": {"$nin": ["order", "import"]}}, "d"),
        ({"workflow_id": {"$ne": "order"}}, "dé"),
        ({"transaction_id": "c%"}, "c"),
        ({"run_id": "01RUN3"}, "d"),
        ({"execution_id": "wf_exec_order_a_01RUN0"}, "a"),
        ({"state": "done"}, "a"),
        ({"state": ExecutionState.DONE}, "a"),
        ({"state": ("done", "failed")}, "ab"),
        ({"state": {"$ne": "invoking"}}, "abf"),
        ({"state": {"$gt": "done", "$lt": "invoking"}}, "b"),
        ({"status": "running"}, "cf"),
        ({"status": "waiting"}, "d"),
        ({"status": "sleeping"}, "é"),
        ({"status": "done"}, "a"),
        ({"status": "unheard-of"}, ""),
        ({"status": ["done", "failed", "waiting"]}, "abd"),
        ({"status": {"$ne": "running"}}, "abdé"),
        ({"status": {"$nin": ["running", "done"]}}, "bdé"),
        ({"status": {"$like": "ing"}}, "cdéf"),
        ({"status": {"$gte": "sleeping"}}, "dé"),
        ({"created_at": NOW}, "a"),
        ({"created_at": {"$gte": LATER}}, "déf"),
        ({"created_at": {"$gt": LATER}}, "éf"),
        ({"created_at": {"$lt": LATER}}, "abc"),
        ({"created_at": {"$lte": LATER}}, "abcd"),
        ({"created_at": {"$gt": NOW, "$lte": LATER}}, "bcd"),
        ({"created_at": {"$gte": LATER.isoformat()}}, "déf"),
        ({"created_at": {"$gte": LATER.astimezone(timezone(timedelta(hours=5)))}}, "déf"),
        ({"created_at": {"$gte": datetime(1, 1, 1, tzinfo=UTC)}}, "abcdéf"),
        ({"updated_at": {"$lt": NOW + 7 * SECOND}}, "éf"),
        ({"created_at": None}, ""),
        ({"retention_time": None}, "cdéf"),
        ({"retention_time": {"$ne": None}}, "ab"),
        ({"retention_time": 5}, "a"),
        ({"retention_time": {"$ne": 5}}, "bcdéf"),
        ({"retention_time": {"$in": [5, None]}}, "acdéf"),
        ({"retention_time": {"$nin": [5]}}, "bcdéf"),
        ({"retention_time": {"$nin": [5, None]}}, "b"),
        ({"retention_time": {"$nin": [None]}}, "ab"),
        ({"retention_time": {"$gt": 5}}, "b"),
        ({"retention_time": {"$lte": 60.5}}, "ab"),
        ({"retention_time": {"$lt": 10**300}}, "ab"),
        ({"parent_step_idempotency_key": None}, "abcdé"),
        ({"parent_step_idempotency_key": {"$like": "charge"}}, "f"),
        ({"parent_step_idempotency_key": {"$ne": "x"}}, "abcdéf"),
        ({"workflow_id": "order", "state": "done"}, "a"),
        ({"$or": [{"state": "done"}, {"transaction_id": "c%"}]}, "ac"),
        ({"$or": [{"state": "done"}, {"workflow_id": "order"}], "state": "failed"}, "b"),
        ({"$or": []}, ""),
        ({"$and": []}, "abcdéf"),
        ({"$or": [{}]}, "abcdéf"),
        ({"$and": [{"workflow_id": "order"}, {"state": {"$ne": "done"}}]}, "bcf"),
        ({"$or": [{"$and": [{"state": "done"}, {"run_id": "no"}]}, {"$or": [{"state": "failed"}]}]}, "b"),
        ({"$or": [{"run_id": f"01RUN{n}"} for n in (*range(2000, 3000), 4)]}, "é"),
        ({"run_id": [f"01RUN{n}" for n in range(2, 5000)]}, "cdéf"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_where(reader: Reader, where: dict[str, Any], expected: str) -> None:
    query = Query(where=where, order_by=("created_at",))
    assert found(reader, query) == expected
    assert reader.count(query) == len(expected)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("bb", "f"),
        ("BB", "f"),
        ("b_b", "b"),
        ("_b", "b"),
        ("%b", "bf"),
        ("b%", "b"),
        ("B%B", "b"),
        ("f%b%", "f"),
        ("%b%b%b%", ""),
        ("%", "abcdéf"),
        ("%%", "abcdéf"),
        ("", "abcdéf"),
        (r"\%", "c"),
        (r"c\%", "c"),
        (r"%\%%", "c"),
        (r"%\\", "d"),
        (r"\\", "d"),
        ("\\", "d"),
        ("d\\", "d"),
        ("éé", "é"),
        ("É", "é"),
        ("é%é", "é"),
        ("É%É%É", ""),
        ("e", ""),
        ("a", "a"),
        ("*", ""),
        ("?", ""),
        ("[a]", ""),
    ],
)
def test_like(reader: Reader, pattern: str, expected: str) -> None:
    where = {"transaction_id": {"$like": pattern}}
    assert found(reader, Query(where=where, order_by=("created_at",))) == expected


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("", "abcdéf"),
        ("  ", "abcdéf"),
        ("ORDER", "abcf"),
        ("ord invok", "c"),
        ("invok ord", "c"),
        ("order order", "abcf"),
        ("01run3", "d"),
        ("import", "dé"),
        ("fail", "b"),
        ("_b", "b"),
        ("%", "c"),
        ("\\", "d"),
        ("é", "é"),
        ("É", "é"),
        ("STRASSE", ""),
        ("Straße", "d"),
        ("STRAßE", "d"),
        ("zzz", ""),
        ("wf_exec", ""),
        ("running", ""),
        ("state=done", ""),
        ("x" * 4000, ""),
    ],
    ids=lambda value: value[:20],
)
def test_words(reader: Reader, q: str, expected: str) -> None:
    query = Query(q=q, order_by=("created_at",))
    assert found(reader, query) == expected
    assert reader.count(query) == len(expected)


def test_words_and_filters_combine_with_and(reader: Reader) -> None:
    assert found(reader, Query(q="order", where={"state": "failed"})) == "b"
    assert found(reader, Query(q="import", where={"state": "failed"})) == ""


@pytest.mark.parametrize(
    ("order_by", "expected"),
    [
        (("-created_at",), "fédcba"),
        (("created_at",), "abcdéf"),
        ((), "déabcf"),
        (("-execution_id",), "fcbaéd"),
        (("updated_at",), "fédcba"),
        (("workflow_id", "transaction_id"), "déabcf"),
        (("workflow_id", "-transaction_id"), "défcba"),
        (("state", "created_at"), "abcdéf"),
        (("state", "-created_at"), "abédcf"),
        (("status", "created_at"), "abcféd"),
        (("retention_time", "created_at"), "cdéfab"),
        (("-retention_time", "created_at"), "bacdéf"),
        (("-parent_step_idempotency_key", "transaction_id"), "fabcdé"),
        (("workflow_id",), "déabcf"),
        (("-workflow_id",), "fcbaéd"),
    ],
)
def test_order(reader: Reader, order_by: tuple[str, ...], expected: str) -> None:
    assert found(reader, Query(order_by=order_by)) == expected


def test_newest_first_is_the_order_without_an_order(reader: Reader) -> None:
    assert found(reader, Query()) == "fédcba"


@on_loop
async def test_pages_hold_every_execution_once_even_where_all_began_together(
    store: CheckpointStore,
) -> None:
    for number in range(25):
        await keep(store, new(f"t{number * 7 % 25}"))
    everything = [summary.execution_id for summary in store.reader.list(Query())]
    pages = [
        summary.execution_id
        for offset in range(0, 30, 4)
        for summary in store.reader.list(Query(limit=4, offset=offset))
    ]
    assert pages == everything
    assert len(set(pages)) == 25
    assert store.reader.count(Query(limit=4, offset=8)) == 25
    assert store.reader.list(Query(limit=0)) == []
    assert len(store.reader.list(Query(offset=20))) == 5


@on_loop
async def test_a_summary_shows_the_row_as_it_was_last_committed(store: CheckpointStore) -> None:
    execution = await keep(
        store, new(retention_time=1.5, parent_step_idempotency_key="a:b:c:invoke"), running=1
    )
    await move(store, execution, awaiting=2, running=0, wake_at=LATER, updated_at=LATER)
    (summary,) = store.reader.list(Query())
    assert summary == ExecutionSummary(
        execution_id=execution.head.execution_id,
        workflow_id="order",
        transaction_id="t1",
        run_id="r1",
        state=INVOKING,
        created_at=NOW,
        updated_at=LATER,
        wake_at=LATER,
        retention_time=1.5,
        parent_step_idempotency_key="a:b:c:invoke",
        awaiting=2,
    )
    assert summary.status == "waiting"
    assert summary.key == ExecutionKey("order", "t1")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query(where={"workflow": "x"}), "no field 'workflow'. Did you mean workflow_id?"),
        (Query(where={"q": "x"}), "no field 'q'"),
        (Query(where={"$not": []}), r"no field '\$not'"),
        (Query(order_by=("-age",)), "no field 'age'"),
        (Query(where={"$or": [{"nothing": 1}]}), "no field 'nothing'"),
        (Query(where={"$or": {"state": "done"}}), r"\$or takes a list"),
        (Query(where={"$and": ["done"]}), r"\$and takes a list"),
        (Query(where={"state": {"$regex": "x"}}), r"unknown operator '\$regex'. There are: \$ne"),
        (Query(where={"state": {}}), "condition of state is empty"),
        (Query(where={"state": {"$in": "done"}}), "take a list"),
        (Query(where={"state": {"$gt": None}}), "takes a value"),
        (Query(where={"state": 5}), "state is a text"),
        (Query(where={"state": {"$like": 5}}), "state is a text"),
        (Query(where={"state": ["done", 1]}), "state is a text"),
        (Query(where={"created_at": {"$like": "2026"}}), "looks into texts"),
        (Query(where={"retention_time": {"$like": "5"}}), "looks into texts"),
        (Query(where={"created_at": "yesterday"}), "created_at is a moment"),
        (Query(where={"created_at": "2026-01-01T00:00:00"}), "created_at is a moment"),
        (Query(where={"created_at": 5}), "created_at is a moment"),
        (Query(where={"retention_time": "5"}), "retention_time is a number"),
        (Query(where={"retention_time": True}), "retention_time is a number"),
        (Query(where={"retention_time": float("nan")}), "retention_time is a number"),
        (Query(where={"retention_time": 10**400}), "retention_time is a number"),
        (Query(where={"run_id": "\udcff"}), "no text"),
        (Query(q="\udcff"), "no text"),
        (Query(q="x" * 4001), "at most 4000"),
        (Query(where={"run_id": ["x"] * 10_001}), "at most 10000"),
        (Query(limit=-1), "at least 0"),
        (Query(offset=-1), "at least 0"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_means_nothing_is_an_error_that_says_what_there_is(
    reader: Reader, query: Query, message: str
) -> None:
    for question in (reader.list, reader.count):
        with pytest.raises(UsageError, match=message):
            question(query)


def test_keys_needs_a_part_to_look_for(reader: Reader) -> None:
    with pytest.raises(UsageError, match="Give a workflow id"):
        reader.keys()
