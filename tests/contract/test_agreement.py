"""Memory and SQLite answer alike: records of any content, and any course of events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.contract.support import NOW, SECOND, errors, events, heads, new, parts_of, steps, values
from wfe.errors import SkipExecutionError, UsageError
from wfe.model import Changes, Execution, ExecutionKey, ExecutionState, Head
from wfe.store.contract import QUERY_FIELDS, CheckpointStore, Query
from wfe.store.memory import MemoryStore
from wfe.store.queries.conditions import Condition
from wfe.store.queries.typed import conditions
from wfe.store.sqlite import SQLiteStore

#: Each example goes through a file.
FEW = max(settings().max_examples // 5, 1)


class Pair:
    """A store of each kind, asked the same things."""

    def __init__(self, runner: asyncio.Runner, file: Path) -> None:
        self._runner = runner
        self.memory = MemoryStore()
        self.sqlite = SQLiteStore(file, synchronous="normal")
        self.run(self.sqlite.open())

    def run(self, question: Awaitable[Any]) -> Any:
        async def ask() -> Any:
            return await question

        return self._runner.run(ask())

    def empty(self) -> None:
        for summary in self.sqlite.reader.list(Query()):
            self.run(self.sqlite.delete(summary.key, summary.run_id))
        self.memory = MemoryStore()

    @property
    def stores(self) -> tuple[CheckpointStore, CheckpointStore]:
        return self.memory, self.sqlite


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with asyncio.Runner() as runner:
        pair = Pair(runner, tmp_path_factory.mktemp("agreement") / "wfe.db")
        yield pair
        pair.run(pair.sqlite.close())


# --- any content ---------------------------------------------------------------------------------

STEP_NAMES = ("reserve", "charge", "send")


@st.composite
def changes_of_any_content(draw: st.DrawFn, base: Head) -> Changes:
    head = draw(
        heads(
            execution_id=st.just(base.execution_id),
            workflow_id=st.just(base.workflow_id),
            transaction_id=st.just(base.transaction_id),
            run_id=st.just(base.run_id),
            version=st.just(base.version + 1),
        )
    )
    names = draw(st.lists(st.sampled_from(STEP_NAMES), unique=True))
    return Changes(
        head=head,
        steps={name: draw(steps(name, STEP_NAMES.index(name))) for name in names},
        events=tuple(draw(st.lists(events, max_size=3))),
        result=draw(st.none() | values),
    )


@given(st.data())
@settings(max_examples=FEW, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_loaded_equals_what_was_committed(pair: Pair, data: st.DataObject) -> None:
    pair.empty()
    names = data.draw(heads())
    begun = Execution(new().flow, names, input=data.draw(st.none() | values))
    told: list[Any] = []
    for store in pair.stores:
        execution = Execution(begun.flow, begun.head, input=begun.input)
        if store is pair.memory:
            courses = [data.draw(changes_of_any_content(execution.head))]
            courses.append(data.draw(changes_of_any_content(courses[0].head)))
        first, second = courses
        assert pair.run(store.insert(execution, first))
        execution.take(first)
        told = [*first.events]
        try:
            pair.run(store.commit(execution, second))
        except SkipExecutionError:
            assert first.head.is_final
        else:
            execution.take(second)
            told += second.events
        assert parts_of(pair.run(store.load(execution.head.key))) == parts_of(execution)
        assert list(store.reader.timeline(execution.head.execution_id)) == told
    assert list(pair.memory.reader.steps_waiting()) == list(pair.sqlite.reader.steps_waiting())
    assert pair.memory.reader.list(Query()) == pair.sqlite.reader.list(Query())


# --- any course of events ------------------------------------------------------------------------

KEYS = [ExecutionKey(w, t) for w in ("order", "Order%") for t in ("t1", "T_1", "é")]
RUNS = ("r1", "R2", "r_3")

_moments = st.integers(0, 5).map(lambda seconds: NOW + seconds * SECOND)
_fields = st.fixed_dictionaries(
    {
        "state": st.sampled_from(ExecutionState),
        "updated_at": _moments,
        "ended_at": st.none() | _moments,
        "wake_at": st.none() | _moments,
        "retention_time": st.sampled_from([None, 0.0, 1.5, 4.0]),
        "running": st.integers(0, 1),
        "awaiting": st.integers(0, 2),
        "held": st.integers(0, 1),
        "parked": st.integers(0, 1),
        "idempotent": st.booleans(),
        "errors": st.lists(errors, max_size=1).map(tuple),
    }
)
_steps = st.lists(st.sampled_from(STEP_NAMES), unique=True).flatmap(
    lambda chosen: st.tuples(*(steps(name, STEP_NAMES.index(name)) for name in chosen))
)
_keys = st.sampled_from(KEYS)
_runs = st.sampled_from(RUNS)
_texts = st.sampled_from(
    ["order", "Order%", "t1", "T_1", "é", "É", "r", "_", "%", "", "done", "invoking", "waiting"]
)
_operands: dict[str, st.SearchStrategy[Any]] = {
    "created_at": _moments,
    "updated_at": _moments,
    "retention_time": st.sampled_from([0, 1.5, 4]),
}


@st.composite
def _conditions(draw: st.DrawFn) -> dict[str, Any]:
    field = draw(st.sampled_from(QUERY_FIELDS))
    operand = _operands.get(field, _texts)
    several = st.lists(st.none() | operand, max_size=3)
    operators = {
        **dict.fromkeys(("$gt", "$gte", "$lt", "$lte", "$like"), operand),
        "$ne": st.none() | operand,
        "$in": several,
        "$nin": several,
    }
    operator = draw(st.sampled_from(sorted(operators)))
    plain = st.none() | operand | several
    compared = operators[operator].map(lambda value: {operator: value})
    return {field: draw(plain | compared)}


_wheres = st.recursive(
    _conditions(),
    lambda inner: st.builds(
        lambda name, parts: {name: parts},
        st.sampled_from(["$and", "$or"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=4,
)
_SEARCHED = (
    *("workflow", "transaction", "run", "state", "status", "created", "updated", "age"),
    *("attempts", "error", "step.reserve", "step.nope", "input", "input.total"),
    *("output", "output.reserve", "output.reserve.a", "output.0"),
)
_VALUES = (
    *("order", "t1", "r1,R2", "done", "failed,done", "running", "interrupted", "waiting"),
    *("0", "1", "5", "5.0", "null", "true", "a", "é", "%", "2026-03-01", "1s", "-1"),
)

#: What a person may type; some of it means nothing, and is left out.
_typed = st.one_of(
    st.tuples(
        st.sampled_from(_SEARCHED),
        st.sampled_from(["=", "!=", "~", ">", ">=", "<", "<="]),
        st.sampled_from(_VALUES),
    ).map("".join),
    _texts.map(lambda text: f"'{text}'"),
)


def _meaning(words: list[str]) -> tuple[Condition, ...]:
    found: list[Condition] = []
    for word in words:
        with contextlib.suppress(UsageError):
            found += conditions(word, NOW + 3 * SECOND)
    return tuple(found)


_queries = st.builds(
    Query,
    q=st.lists(_texts, max_size=2).map(" ".join),
    where=_wheres | st.just({}),
    conditions=st.lists(_typed, max_size=2).map(_meaning),
    order_by=st.lists(
        st.tuples(st.sampled_from(["", "-"]), st.sampled_from(QUERY_FIELDS)).map("".join),
        max_size=2,
    ),
    limit=st.none() | st.integers(0, 4),
    offset=st.integers(0, 2),
)
_events = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), _keys, _runs, _fields, _steps, _moments),
        st.tuples(st.just("commit"), _keys, st.none() | _runs, _fields, _steps, st.booleans()),
        st.tuples(st.just("delete"), _keys, _runs),
        st.tuples(st.just("children"), _keys),
        st.tuples(st.just("expire"), _moments),
    ),
    max_size=12,
)


async def _happens(store: CheckpointStore, event: Any) -> Any:
    """One event; what came of it."""
    match event:
        case ("insert", key, run_id, fields, touched, moment):
            execution = new(
                key.transaction_id, run_id, workflow_id=key.workflow_id, created_at=moment
            )
            head = replace(execution.head, version=1, root=str(KEYS[0]), **fields)
            return await store.insert(execution, Changes(head=head, steps=_by_name(touched)))
        case ("commit", key, run_id, fields, touched, is_stale):
            kept = await store.load(key, run_id)
            if kept is None:
                return "nothing"
            version = kept.head.version
            head = replace(kept.head, version=version + 1, **fields)
            if is_stale:
                kept.head = replace(kept.head, version=version - 1)
            try:
                await store.commit(kept, Changes(head=head, steps=_by_name(touched)))
            except SkipExecutionError:
                return "refused"
            return "kept"
        case ("delete", key, run_id):
            return await store.delete(key, run_id)
        case ("children", key):
            return await store.delete_children(key)
        case ("expire", moment):
            return await store.delete_expired(moment)


def _by_name(touched: Any) -> dict[str, Any]:
    return {step.name: step for step in touched}


def _answer(store: CheckpointStore, query: Query) -> Any:
    try:
        return list(store.reader.list(query)), store.reader.count(query)
    except UsageError as error:
        return str(error)


@given(_events, st.lists(_queries, max_size=4), _moments)
@settings(max_examples=FEW, suppress_health_check=[HealthCheck.too_slow])
def test_both_stores_go_the_same_way(
    pair: Pair, course: list[Any], queries: list[Query], now: Any
) -> None:
    pair.empty()
    memory, sqlite = pair.stores
    for event in course:
        assert pair.run(_happens(memory, event)) == pair.run(_happens(sqlite, event))
    for key in KEYS:
        for run_id in (None, *RUNS):
            loaded = [parts_of(pair.run(store.load(key, run_id))) for store in pair.stores]
            assert loaded[0] == loaded[1]
        found = [
            [
                store.reader.keys(transaction_id=key.transaction_id),
                store.reader.keys(workflow_id=key.workflow_id, limit=2),
                store.reader.keys(workflow_id=key.workflow_id, run_id_prefix="r"),
            ]
            for store in pair.stores
        ]
        assert found[0] == found[1]
    assert memory.reader.steps_waiting(limit=3) == sqlite.reader.steps_waiting(limit=3)
    due = [pair.run(store.due(now)) for store in pair.stores]
    assert due[0] == due[1]
    ids = [summary.execution_id for summary in memory.reader.list(Query())]
    assert memory.reader.step_counts(ids) == sqlite.reader.step_counts(ids)
    for query in (Query(), *queries):
        assert _answer(memory, query) == _answer(sqlite, query)
