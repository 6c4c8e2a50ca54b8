"""What a person types finds the same in every store: fields, words, and pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.support import NOW, SECOND, changed, keep, new, on_loop
from wfe.errors import UsageError
from wfe.model import Action, ErrorRecord, ExecutionState, StepRecord, StepState, StepStatus
from wfe.store import owners
from wfe.store.contract import CheckpointStore, Query, Reader
from wfe.store.memory import MemoryStore
from wfe.store.queries.conditions import Condition
from wfe.store.queries.pages import behind, place
from wfe.store.queries.typed import conditions, states
from wfe.store.sqlite import SQLiteStore

DONE, FAILED = ExecutionState.DONE, ExecutionState.FAILED
INVOKING = ExecutionState.INVOKING
HOUR = timedelta(hours=1)

#: When the questions are asked.
LATER = NOW + 10 * HOUR


def error(name: str | None, message: str, step: str = "charge", attempts: int = 1) -> ErrorRecord:
    return ErrorRecord(
        action=step, handler_type=Action.INVOKE, name=name, message=message, attempts=attempts
    )


def step(name: str, invoke: StepState, **fields: Any) -> StepRecord:
    stage = ("reserve", "charge", "send").index(name)
    return StepRecord(name=name, stage=stage, invoke=invoke, **fields)


RESET = error("ConnectionError", "connection reset by peer", attempts=4)

#: By the first letter of the transaction id, one hour after the other. The steps, the input, the result.
EXECUTIONS: dict[str, tuple[dict[str, Any], list[StepRecord], bytes, bytes | None]] = {
    "a": (
        {"state": DONE},
        [step("reserve", StepState.DONE, attempts=1, output=b'{"id":"R-1","places":[1,2]}')],
        b'{"customer":{"id":42,"name":"Ann","a.b":true},"items":["x",{"sku":"S1"}],"note":null}',
        b'{"total":12.50,"paid":true}',
    ),
    "b": (
        {"state": FAILED, "errors": (RESET, error(None, "no truck", "send", attempts=1))},
        [
            step(
                "reserve",
                StepState.DONE,
                compensate=StepState.REVERTED,
                attempts=1,
                output=b'"R-2"',
            ),
            step("charge", StepState.FAILED, compensate=StepState.FAILED, attempts=1, error=RESET),
        ],
        b'{"customer":{"id":"42","name":"BOB"},"date":"2026-02-03"}',
        None,
    ),
    "c": (
        {"state": INVOKING, "awaiting": 1},
        [
            step(
                "reserve",
                StepState.INVOKING,
                invoke_status=StepStatus.WAITING_RESPONSE,
                awaiting=True,
                attempts=2,
            )
        ],
        b'{"customer":7}',
        None,
    ),
    "d": (
        {"state": INVOKING, "wake_at": LATER + 10_000 * HOUR},
        [
            step(
                "charge",
                StepState.INVOKING,
                invoke_status=StepStatus.TEMP_FAILURE,
                attempts=3,
                error=error("TimeoutError", "took 5 s"),
            ),
            step("send", StepState.INVOKING, sleeping=True, attempts=1),
        ],
        b"12345678901234567890123",
        None,
    ),
    "e": ({"state": INVOKING, "running": 1}, [step("send", StepState.INVOKING, running=True)], b"[]", None),
    "f": ({"state": INVOKING, "running": 1, "workflow_id": "Import"}, [], b'"text"', None),
}  # fmt: skip


async def fill(store: CheckpointStore) -> None:
    me = owners.claim()
    await store.open()
    if store.peers is not None:
        await store.peers.hold(me)
    for number, (name, (fields, steps, given, result)) in enumerate(EXECUTIONS.items()):
        moment = NOW + number * HOUR
        fields = dict(fields)
        execution = new(
            f"{name}-000{number}",
            f"01RUN{number}",
            workflow_id=fields.pop("workflow_id", "order"),
            input=given,
            created_at=moment,
            updated_at=moment + SECOND,
        )
        owner = me if name == "e" else None
        changes = changed(execution, *steps, result=result, owner=owner, **fields)
        assert await store.insert(execution, changes)


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def reader(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    """The reader of a store that `fill` has filled, which is still open."""
    with asyncio.Runner() as runner:
        file = tmp_path_factory.mktemp("search") / "wfe.db"
        is_memory = request.param == "memory"
        store = MemoryStore() if is_memory else SQLiteStore(file, synchronous="normal")
        runner.run(fill(store))
        yield store.reader
        runner.run(store.close())


@pytest.fixture
def in_london(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is London's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/London")
        time.tzset()
        yield
    time.tzset()


def found(reader: Reader, text: str, **more: Any) -> str:
    """The first letters of the transaction ids, in order."""
    query = Query(conditions=conditions(text, LATER), order_by=("created_at",), **more)
    letters = "".join(summary.transaction_id[0] for summary in reader.list(query))
    assert reader.count(query) == len(letters)
    return letters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "abcdef"),
        ("ORDER 0002", "c"),
        ("order import", ""),
        ("'000' done", "a"),
        ("workflow=order", "abcde"),
        ("workflow=ORDER", ""),
        ("workflow=Import,order", "abcdef"),
        ("workflow!=order", "f"),
        ("workflow~IMP", "f"),
        ("workflow~imp,ORD", "abcdef"),
        ("workflow<a", "f"),
        ("transaction=a-0000", "a"),
        ("transaction>=c-0002 transaction<e", "cd"),
        ("transaction~A-0", "a"),
        ("run=01RUN3,01RUN4", "de"),
        ("run~run3", "d"),
        ("run!=01RUN3", "abcef"),
        ("state=done", "a"),
        ("state!=invoking,done", "b"),
        ("state~NVOK", "cdef"),
        ("status=waiting", "c"),
        ("status=sleeping", "d"),
        ("status=running", "e"),
        ("status=interrupted", "f"),
        ("status!=interrupted,done", "bcde"),
        ("status~interr", "f"),
        ("status=failed,waiting", "bc"),
    ],
)
def test_ids_and_states(reader: Reader, text: str, expected: str) -> None:
    assert found(reader, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("created>7h", "ef"),
        ("created>'7h ago'", "ef"),
        ("created>=7h", "def"),
        ("created<7h", "abc"),
        ("created<=7h", "abcd"),
        (f"created>{NOW.isoformat()}", "bcdef"),
        ("created=2026-03-01", "abcdef"),
        ("created=2026-03-02", ""),
        ("created=2026-03-01T13:00", "b"),
        ("created!=2026-03-02", "abcdef"),
        ("created=2026-03-01T13Z", "b"),
        ("created=2026-03-01T13:00Z,2026-03-01T14:00Z", "bc"),
        ("created=2026-03-01T14:00:00Z", "c"),
        ("created=2026-03-01T14:00:01Z", ""),
        ("created=2026-03-01T14:00:00.123Z", "c"),
        ("created=2026-03-01T14:00:00.123456+00:00", "c"),
        ("created=2026-03-01T14:00:00.124Z", ""),
        ("created!=2026-03-01T13Z,2026-03-01T14Z", "adef"),
        ("updated=2026-03-01T14:00:01Z", "c"),
        ("age>7h", "abc"),
        ("age>=7h", "abcd"),
        ("age<7h", "ef"),
        ("age<=7h", "def"),
        ("age<5h30m", "f"),
    ],
)
@pytest.mark.usefixtures("in_london")
def test_times(reader: Reader, text: str, expected: str) -> None:
    assert found(reader, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("attempts>3", "b"),
        ("attempts=4", "b"),
        ("attempts>=2", "bcd"),
        ("attempts=0", "ef"),
        ("attempts!=0,1", "bcd"),
        ("error~reset", "b"),
        ('error~"CONNECTION RESET"', "b"),
        ("error~'error: connection'", "b"),
        ("error=ConnectionError", "b"),
        ("error=connectionerror", ""),
        ('error="connection reset by peer"', "b"),
        ('error="no truck"', "b"),
        ("error~truck,took", "bd"),
        ("error='TimeoutError: took 5 s'", "d"),
        ("error!=TimeoutError", "abcef"),
        ("error~", "bd"),
        ("step.reserve=done", "ab"),
        ("step.reserve=reverted", "b"),
        ("step.charge=failed", "b"),
        ("step.reserve=waiting", "c"),
        ("step.reserve=invoking", "c"),
        ("step.charge=retrying", "d"),
        ("step.send=sleeping", "d"),
        ("step.send=running", "e"),
        ("step.send~ing", "de"),
        ("step.send!=running", "abcdf"),
        ("step.send=running,sleeping", "de"),
        ("step.nope=done", ""),
        ("step.nope!=done", "abcdef"),
    ],
)
def test_failures_and_steps(reader: Reader, text: str, expected: str) -> None:
    assert found(reader, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input.customer.id=42", "ab"),
        ("input.customer.id=42.0", "a"),
        ("input.customer.id=4.2e1", "a"),
        ("input.customer.id=43", ""),
        ("input.customer.id>41", "ab"),
        ("input.customer.id<41", ""),
        ("input.customer.id!=42", "cdef"),
        ("input.customer.name=Ann", "a"),
        ("input.customer.name=ann", ""),
        ("input.customer.name~B,x", "b"),
        ("input.customer.name<B", "a"),
        ("input.customer=7", "c"),
        ("input.customer~ann", "a"),
        ('input.customer."a.b"=true', "a"),
        ("input.customer.a.b=true", ""),
        ("input.items.0=x", "a"),
        ("input.items.1.sku=S1", "a"),
        ("input.items.2=x", ""),
        ("input.items.x=x", ""),
        ("input.note=null", "a"),
        ("input.note!=null", "bcdef"),
        ("input.date>2026", "b"),
        ("input.date>2026-02-03", ""),
        ("input.date>=2026-02-03", "b"),
        ("input=text", "f"),
        ("input=[]", "e"),
        ("input~TEX", "f"),
        ("input=12345678901234567890123", "d"),
        ("input=12345678901234567890124", ""),
        ("input>1", "df"),
        ("input.customer.id>x", ""),
        ("output.total=12.5", "a"),
        ("output.total>12 output.total<13", "a"),
        ("output.paid=true", "a"),
        ("output.reserve.id=R-1", "a"),
        ("output.reserve=R-2", "b"),
        ("output.reserve~r-", "ab"),
        ("output.reserve.places.1=2", "a"),
        ("output.charge=1", ""),
        ("output~R-1", "a"),
        ("output~paid", "a"),
        ("output!=x", "abcdef"),
        ("output.reserve!=R-2", "acdef"),
    ],
)
def test_values(reader: Reader, text: str, expected: str) -> None:
    assert found(reader, text) == expected


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("done", "a"),
        ("failed,waiting", "bc"),
        ("invoking", "cdef"),
        ("invoking,waiting,done", "acdef"),
        ("interrupted, sleeping", "df"),
        ("reverted", ""),
    ],
)
def test_one_of_several_states(reader: Reader, listed: str, expected: str) -> None:
    for limit in (None, 1, 2, 10):
        query = Query(conditions=(states(listed),), order_by=("created_at",), limit=limit)
        letters = "".join(summary.transaction_id[0] for summary in reader.list(query))
        assert letters == expected[:limit]
        assert reader.count(query) == len(expected)


def test_all_parts_of_a_question_combine_with_and(reader: Reader) -> None:
    assert found(reader, "order", where={"state": "invoking"}, q="000") == "cde"
    assert found(reader, "attempts>1 step.reserve=waiting order 000") == "c"


def test_the_steps_of_executions_are_counted(reader: Reader) -> None:
    ids = {s.transaction_id[0]: s.execution_id for s in reader.list(Query())}
    counts = reader.step_counts([*ids.values(), "nothing"])
    assert {letter: counts[each] for letter, each in ids.items()} == {
        "a": (1, 3),
        "b": (2, 3),
        "c": (0, 3),
        "d": (0, 3),
        "e": (0, 3),
        "f": (0, 3),
    }
    assert len(counts) == 6
    assert reader.step_counts([]) == {}


# --- pages ---------------------------------------------------------------------------------------


@on_loop
async def test_pages_go_on_where_the_last_one_ended_whatever_came_or_went(
    store: CheckpointStore,
) -> None:
    for number in range(12):  # two at each moment
        await keep(store, new(f"t{number:02}", created_at=NOW + number // 2 * SECOND))
    everything = [each.transaction_id for each in store.reader.list(Query())]
    seen: list[str] = []
    after: tuple[Condition, ...] = ()
    for turn in range(4):
        page = store.reader.list(Query(conditions=after, limit=3))
        seen += [each.transaction_id for each in page]
        after = (behind(place(page[-1])),)
        await keep(store, new(f"newer{turn}", created_at=NOW + (20 + turn) * SECOND))
        await store.delete(page[-1].key, page[-1].run_id)
    assert seen == everything
    assert store.reader.list(Query(conditions=after, limit=3)) == []


@pytest.mark.parametrize("text", ["", "x", "1", "1.", ".x", "1x.y", "9" * 18 + ".x", "1.\udcff"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        behind(text)
