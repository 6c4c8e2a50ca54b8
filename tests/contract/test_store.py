"""What every store promises: the bullets of `wfe.store.contract`, one claim after the other."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.support import (
    MICROSECOND,
    NOW,
    SECOND,
    begun,
    changed,
    keep,
    move,
    new,
    on_loop,
    parts_of,
    told,
)
from wfe.errors import SkipExecutionError
from wfe.model import (
    Action,
    ErrorRecord,
    EventKind,
    Execution,
    ExecutionKey,
    ExecutionState,
    StepState,
    StepStatus,
)
from wfe.store.contract import CheckpointStore, Query, WaitingStep

DONE = ExecutionState.DONE
REVERTED = ExecutionState.REVERTED
FAILED = ExecutionState.FAILED
INVOKING = ExecutionState.INVOKING
UNDOING = ExecutionState.WAITING_TO_COMPENSATE

KEY = ExecutionKey("order", "t1")


# --- a commit is whole ---------------------------------------------------------------------------


@on_loop
async def test_a_commit_shows_head_steps_timeline_and_result_together(
    store: CheckpointStore,
) -> None:
    execution = await keep(store, new(), events=(told(),))
    step = begun(invoke=StepState.DONE, running=False, output=b'{"ok":[1,2.5,"\xc3\xa9"]}')
    ended = told(EventKind.STEP_SUCCESS, step="reserve", action=Action.INVOKE, attempt=1)
    finish = told(EventKind.FINISH, detail="done")
    await move(
        store, execution, step, events=(ended, finish), result=b"[true]", state=DONE, ended_at=NOW
    )
    assert parts_of(await store.load(KEY)) == parts_of(execution)
    assert list(store.reader.timeline(execution.head.execution_id)) == [told(), ended, finish]


@on_loop
async def test_a_commit_leaves_steps_alone_that_it_does_not_name(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    await move(store, execution, begun("reserve", output=b"1"))
    await move(store, execution, begun("charge", stage=1), begun("send", stage=2))
    await move(store, execution, begun("charge", stage=1, attempts=2))
    loaded = await store.load(KEY)
    assert loaded is not None
    assert loaded.steps == execution.steps
    assert loaded.steps["reserve"].output == b"1"


@on_loop
async def test_insert_keeps_steps_that_were_touched_before(store: CheckpointStore) -> None:
    execution = new()
    execution.take(changed(execution, begun("reserve")))
    changes = changed(execution, begun("charge", stage=1), state=INVOKING)
    assert await store.insert(execution, changes)
    execution.take(changes)
    assert parts_of(await store.load(KEY)) == parts_of(execution)


@on_loop
async def test_a_result_stays_when_the_run_is_taken_back(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    await move(store, execution, state=DONE, result=b'"shipped"')
    await move(store, execution, state=UNDOING)
    assert parts_of(await store.load(KEY)) == parts_of(execution)
    assert execution.result == b'"shipped"'


# --- a commit names the version it was computed from ---------------------------------------------


@on_loop
async def test_a_stale_commit_is_refused_and_writes_nothing(store: CheckpointStore) -> None:
    execution = await keep(store, new(), events=(told(),))
    stale = await store.load(KEY)
    assert stale is not None
    await move(store, execution, begun(output=b"1"))
    late = changed(
        stale,
        begun(output=b"2"),
        begun("charge", stage=1),
        events=(told(EventKind.STEP_BEGIN),),
        state=DONE,
        result=b"3",
    )
    with pytest.raises(SkipExecutionError):
        await store.commit(stale, late)
    assert parts_of(await store.load(KEY)) == parts_of(execution)
    assert list(store.reader.timeline(execution.head.execution_id)) == [told()]


@on_loop
async def test_of_two_commits_from_one_version_one_wins(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    first, second = changed(execution, running=1), changed(execution, running=2)
    outcomes = await asyncio.gather(
        store.commit(execution, first), store.commit(execution, second), return_exceptions=True
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], SkipExecutionError)
    loaded = await store.load(KEY)
    assert loaded is not None
    assert loaded.head.running == 1


@on_loop
async def test_a_commit_to_a_run_that_is_gone_is_refused(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    assert await store.delete(KEY, "r1")
    with pytest.raises(SkipExecutionError):
        await store.commit(execution, changed(execution))
    assert await store.load(KEY) is None


@on_loop
async def test_a_stale_commit_does_not_harm_those_beside_it(store: CheckpointStore) -> None:
    executions = [await keep(store, new(f"t{number}")) for number in range(30)]
    for execution in executions[::7]:
        await store.commit(execution, changed(execution, running=7))
    outcomes = await asyncio.gather(
        *(store.commit(execution, changed(execution, running=1)) for execution in executions),
        return_exceptions=True,
    )
    for number, (execution, outcome) in enumerate(zip(executions, outcomes, strict=True)):
        loaded = await store.load(execution.head.key)
        assert loaded is not None
        if number % 7 == 0:
            assert isinstance(outcome, SkipExecutionError)
            assert loaded.head.running == 7
        else:
            assert outcome is None
            assert loaded.head.running == 1


@pytest.mark.parametrize("lone", [True, False])
@on_loop
async def test_a_lone_commit_promises_the_same(store: CheckpointStore, lone: bool) -> None:
    execution = new()
    changes = changed(execution, state=INVOKING)
    assert await store.insert(execution, changes, lone=lone)
    assert not await store.insert(execution, changes, lone=lone)
    execution.take(changes)
    changes = changed(execution, begun())
    await store.commit(execution, changes, lone=lone)
    with pytest.raises(SkipExecutionError):
        await store.commit(execution, changes, lone=lone)
    execution.take(changes)
    assert parts_of(await store.load(KEY)) == parts_of(execution)


# --- final is final ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "after"),
    [(state, after) for state in (REVERTED, FAILED) for after in (INVOKING, UNDOING, DONE, state)]
    + [(DONE, DONE)],
)
@on_loop
async def test_a_final_run_is_not_rewritten(
    store: CheckpointStore, state: ExecutionState, after: ExecutionState
) -> None:
    execution = await keep(store, new())
    await move(store, execution, state=state, ended_at=NOW)
    with pytest.raises(SkipExecutionError):
        await store.commit(execution, changed(execution, begun(), state=after))
    assert parts_of(await store.load(KEY)) == parts_of(execution)


@on_loop
async def test_a_done_run_with_nothing_to_undo_is_taken_back_in_one_commit(
    store: CheckpointStore,
) -> None:
    execution = await keep(store, new())
    await move(store, execution, state=DONE, ended_at=NOW)
    await move(store, execution, state=REVERTED, ended_at=NOW + SECOND)
    assert parts_of(await store.load(KEY)) == parts_of(execution)


@on_loop
async def test_a_cancel_takes_a_done_run_back_in_the_same_run(store: CheckpointStore) -> None:
    execution = await keep(store, new(retention_time=60.0))
    await move(store, execution, state=DONE, ended_at=NOW)
    await move(store, execution, state=UNDOING, ended_at=None, cancelled_at=NOW)
    assert parts_of(await store.load(KEY)) == parts_of(execution)
    assert await store.delete_expired(NOW + 3600 * SECOND) == 0
    again = new(run_id="r2")
    assert not await store.insert(again, changed(again))
    await move(store, execution, state=REVERTED, ended_at=NOW)
    assert await store.insert(again, changed(again))


@on_loop
async def test_a_done_run_is_not_taken_back_under_a_newer_unfinished_one(
    store: CheckpointStore,
) -> None:
    old = await keep(store, new(run_id="r1"))
    await move(store, old, state=DONE)
    newer = await keep(store, new(run_id="r2"))
    with pytest.raises(SkipExecutionError):
        await store.commit(old, changed(old, state=UNDOING))
    assert parts_of(await store.load(KEY, "r1")) == parts_of(old)
    await move(store, newer, state=FAILED)
    await move(store, old, state=UNDOING)


# --- of one key, one unfinished run --------------------------------------------------------------


@on_loop
async def test_an_unfinished_run_keeps_its_key(store: CheckpointStore) -> None:
    execution = await keep(store, new(run_id="r1"))
    second = new(run_id="r2", input=b"2")
    assert not await store.insert(second, changed(second, begun(), events=(told(),)))
    assert await store.load(KEY, "r2") is None
    assert parts_of(await store.load(KEY)) == parts_of(execution)
    assert list(store.reader.timeline(second.head.execution_id)) == []


@on_loop
async def test_a_finished_run_is_followed_by_another(store: CheckpointStore) -> None:
    first = await keep(store, new(run_id="r1"))
    await move(store, first, state=REVERTED)
    second = await keep(store, new(run_id="r2"))
    assert parts_of(await store.load(KEY)) == parts_of(second)
    assert parts_of(await store.load(KEY, "r1")) == parts_of(first)
    assert store.reader.count(Query(where={"transaction_id": "t1"})) == 2


@on_loop
async def test_the_same_run_is_kept_once_even_when_it_is_final(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    await move(store, execution, state=DONE)
    again = new()
    assert not await store.insert(again, changed(again, state=INVOKING))
    other_id = Execution(again.flow, replace(again.head, execution_id="wf_exec_other"))
    assert not await store.insert(other_id, changed(other_id))
    assert store.reader.count(Query()) == 1


@on_loop
async def test_a_run_that_is_final_from_the_start_obeys_the_same_rule(
    store: CheckpointStore,
) -> None:
    await keep(store, new(run_id="r1"))
    second = new(run_id="r2")
    assert not await store.insert(second, changed(second, state=DONE))
    third = await keep(store, new("t2"), state=DONE)
    assert parts_of(await store.load(third.head.key)) == parts_of(third)


@on_loop
async def test_of_two_inserts_at_once_one_wins(store: CheckpointStore) -> None:
    first, second = new(run_id="r1"), new(run_id="r2")
    outcomes = await asyncio.gather(
        store.insert(first, changed(first)), store.insert(second, changed(second))
    )
    assert list(outcomes) == [True, False]
    loaded = await store.load(KEY)
    assert loaded is not None
    assert loaded.head.run_id == "r1"


@on_loop
async def test_a_taken_key_does_not_harm_inserts_beside_it(store: CheckpointStore) -> None:
    await keep(store, new("t3"))
    executions = [new(f"t{number}", "other") for number in range(6)]
    outcomes = await asyncio.gather(*(store.insert(e, changed(e)) for e in executions))
    assert outcomes == [True, True, True, False, True, True]


@on_loop
async def test_the_newest_run_is_the_last_one_kept_whatever_the_clock_says(
    store: CheckpointStore,
) -> None:
    first = await keep(store, new(run_id="r1", created_at=NOW))
    await move(store, first, state=FAILED)
    second = await keep(store, new(run_id="r2", created_at=NOW - 3600 * SECOND))
    assert parts_of(await store.load(KEY)) == parts_of(second)


@on_loop
async def test_keys_differ_in_every_character(store: CheckpointStore) -> None:
    ids = ["t1", "T1", "a:b", ":", "é", "e\u0301", "[/b]", "%", "_", "*", "t1 ", "-t", "x" * 1000]
    for transaction_id in ids:
        await keep(store, new(transaction_id))
    for transaction_id in ids:
        loaded = await store.load(ExecutionKey("order", transaction_id))
        assert loaded is not None
        assert loaded.head.transaction_id == transaction_id
    assert store.reader.count(Query()) == len(ids)


# --- what is loaded ------------------------------------------------------------------------------


@on_loop
async def test_what_was_never_kept_is_not_there(store: CheckpointStore) -> None:
    await keep(store, new())
    assert await store.load(ExecutionKey("order", "t2")) is None
    assert await store.load(ExecutionKey("other", "t1")) is None
    assert await store.load(KEY, "r2") is None


@on_loop
async def test_moments_come_back_in_utc_to_the_microsecond(store: CheckpointStore) -> None:
    moment = datetime(2026, 7, 1, 14, 30, 59, 999_999, tzinfo=timezone(timedelta(hours=2)))
    in_utc = moment.astimezone(UTC)
    execution = await keep(store, new(created_at=in_utc), wake_at=in_utc, times_out_at=in_utc)
    await move(store, execution, begun(started_at=in_utc, retry_at=in_utc, last_attempt_at=in_utc))
    loaded = await store.load(KEY)
    assert loaded is not None
    step = loaded.steps["reserve"]
    for field in (
        *(loaded.head.created_at, loaded.head.wake_at, loaded.head.times_out_at),
        *(step.started_at, step.retry_at, step.last_attempt_at),
    ):
        assert field == moment
        assert field is not None
        assert field.utcoffset() == timedelta(0)
        assert field.microsecond == 999_999


@on_loop
async def test_an_execution_that_was_loaded_is_the_callers_own(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    loaded = await store.load(KEY)
    assert loaded is not None
    loaded.take(changed(loaded, begun(), state=DONE))
    assert parts_of(await store.load(KEY)) == parts_of(execution)


@on_loop
async def test_what_is_committed_later_does_not_change_what_was_loaded(
    store: CheckpointStore,
) -> None:
    execution = await keep(store, new())
    loaded = await store.load(KEY)
    before = parts_of(loaded)
    await move(store, execution, begun())
    assert parts_of(loaded) == before


@on_loop
async def test_active_steps_come_in_the_order_in_which_they_began(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    await move(store, execution, begun("send", stage=2), begun("charge", stage=1))
    await move(store, execution, begun("reserve", started_at=NOW - SECOND))
    loaded = await store.load(KEY)
    assert loaded is not None
    assert set(loaded.active) == {"reserve", "charge", "send"}
    again = await keep(store, new("t2"))
    for seconds, name in enumerate(("send", "reserve", "charge")):
        await move(store, again, begun(name, started_at=NOW + seconds * SECOND))
    loaded = await store.load(again.head.key)
    assert loaded is not None
    assert list(loaded.active) == ["send", "reserve", "charge"]


@on_loop
async def test_a_changed_definition_is_kept_with_the_commit_that_uses_it(
    store: CheckpointStore,
) -> None:
    execution = await keep(store, new())
    other = await keep(store, new("t2"))
    flow = replace(execution.flow, options=replace(execution.flow.options, timeout=9.5))
    changes = changed(execution, running=1)
    await store.commit(Execution(flow, execution.head), changes)
    loaded = await store.load(KEY)
    assert loaded is not None
    assert loaded.flow == flow
    assert parts_of(await store.load(other.head.key)) == parts_of(other)


@on_loop
async def test_large_values_come_back_whole(store: CheckpointStore) -> None:
    large = b'"' + b"x" * 5_000_000 + b'"'
    execution = await keep(store, new(input=large))
    await move(store, execution, begun(output=large[:100_000] + b'"'), result=large)
    assert parts_of(await store.load(KEY)) == parts_of(execution)


@on_loop
async def test_values_too_large_for_one_row_come_back_whole(store: CheckpointStore) -> None:
    large = b'"' + b"x" * 8_500_000 + b'"'
    execution = await keep(store, new())
    await move(store, execution, begun(output=large), begun("charge", stage=1, output=large))
    assert parts_of(await store.load(KEY)) == parts_of(execution)


@on_loop
async def test_a_flow_of_thousands_of_steps_comes_back_whole(store: CheckpointStore) -> None:
    names = [f"step-{number}" for number in range(3000)]
    execution = await keep(store, new())
    await move(store, execution, *(begun(name, output=b"1") for name in names))
    assert parts_of(await store.load(KEY)) == parts_of(execution)


# --- due -----------------------------------------------------------------------------------------


@on_loop
async def test_due_lists_what_is_overdue_the_longest_first(store: CheckpointStore) -> None:
    for number, seconds in enumerate((3, 1, 2, 5, 4)):
        await keep(store, new(f"t{number}"), wake_at=NOW + seconds * SECOND)
    await keep(store, new("never"))
    due = await store.due(NOW + 4 * SECOND)
    assert [key.transaction_id for key in due] == ["t1", "t2", "t0", "t4"]
    assert list(await store.due(NOW + 4 * SECOND, limit=2)) == list(due[:2])
    assert list(await store.due(NOW + 4 * SECOND)) == list(due)


@on_loop
async def test_a_deadline_has_come_at_its_very_microsecond(store: CheckpointStore) -> None:
    await keep(store, new(), wake_at=NOW)
    assert list(await store.due(NOW - MICROSECOND)) == []
    assert list(await store.due(NOW)) == [KEY]


@on_loop
async def test_due_follows_each_commit(store: CheckpointStore) -> None:
    execution = await keep(store, new(), wake_at=NOW)
    await move(store, execution, wake_at=NOW + 10 * SECOND)
    assert list(await store.due(NOW + 9 * SECOND)) == []
    await move(store, execution, wake_at=NOW + 5 * SECOND)
    assert list(await store.due(NOW + 9 * SECOND)) == [KEY]
    await move(store, execution, wake_at=None)
    assert list(await store.due(NOW + 99 * SECOND)) == []


@on_loop
async def test_what_is_finished_or_gone_is_not_due(store: CheckpointStore) -> None:
    finished = await keep(store, new("t1"), wake_at=NOW)
    await keep(store, new("t2"), wake_at=NOW)
    await move(store, finished, state=DONE)  # its wake_at stays as it was
    await store.delete(ExecutionKey("order", "t2"), "r1")
    assert list(await store.due(NOW)) == []


# --- forgetting ----------------------------------------------------------------------------------


@on_loop
async def test_delete_forgets_a_run_with_all_that_belongs_to_it(store: CheckpointStore) -> None:
    execution = await keep(store, new(), events=(told(),), awaiting=1, wake_at=NOW)
    await move(store, execution, begun(awaiting=True))
    assert await store.delete(KEY, "r1")
    assert await store.load(KEY) is None
    assert list(store.reader.timeline(execution.head.execution_id)) == []
    assert list(store.reader.steps_waiting()) == []
    assert list(store.reader.keys(transaction_id="t1")) == []
    assert store.reader.count(Query()) == 0
    again = await keep(store, new())
    assert parts_of(await store.load(KEY)) == parts_of(again)
    assert again.steps == {}


@on_loop
async def test_delete_leaves_other_runs_and_says_what_was_there(store: CheckpointStore) -> None:
    first = await keep(store, new(run_id="r1"))
    await move(store, first, state=DONE)
    await keep(store, new(run_id="r2"))
    assert not await store.delete(KEY, "r3")
    assert not await store.delete(ExecutionKey("order", "t2"), "r1")
    assert await store.delete(KEY, "r2")
    assert not await store.delete(KEY, "r2")
    assert parts_of(await store.load(KEY)) == parts_of(first)


@on_loop
async def test_a_run_expires_its_retention_time_after_its_end(store: CheckpointStore) -> None:
    execution = await keep(store, new(retention_time=60.0))
    await move(store, execution, state=DONE, ended_at=NOW, updated_at=NOW + SECOND)
    assert await store.delete_expired(NOW + 60 * SECOND - MICROSECOND) == 0
    assert await store.delete_expired(NOW + 60 * SECOND) == 1
    assert await store.delete_expired(NOW + 60 * SECOND) == 0
    assert await store.load(KEY) is None


@on_loop
async def test_the_unfinished_and_those_without_a_retention_time_never_expire(
    store: CheckpointStore,
) -> None:
    await keep(store, new("running", retention_time=1.0), ended_at=NOW)
    kept = await keep(store, new("kept"))
    await move(store, kept, state=FAILED, ended_at=NOW)
    long = await keep(store, new("long", retention_time=1e300))
    await move(store, long, state=FAILED, ended_at=NOW)
    for state in (DONE, REVERTED, FAILED):
        execution = await keep(store, new(state, retention_time=0.0))
        await move(store, execution, state=state, ended_at=NOW)
    assert await store.delete_expired(NOW + 10**6 * SECOND) == 3
    left = store.reader.list(Query(order_by=("transaction_id",)))
    assert [summary.transaction_id for summary in left] == ["kept", "long", "running"]


@on_loop
async def test_thousands_expire_at_once(store: CheckpointStore) -> None:
    executions = [new(f"t{number}", retention_time=1.0) for number in range(1201)]
    await asyncio.gather(
        *(store.insert(e, changed(e, state=DONE, ended_at=NOW)) for e in executions)
    )
    assert await store.delete_expired(NOW + SECOND) == 1201
    assert store.reader.count(Query()) == 0


@on_loop
async def test_children_go_when_their_root_does(store: CheckpointStore) -> None:
    root = await keep(store, new("root"))
    for name, fields in {
        "child": {"root": "order:root"},
        "kept": {"root": "order:root", "idempotent": True},
        "stranger": {"root": "order:other"},
    }.items():
        child = await keep(store, new(name, **fields))  # type: ignore[arg-type]  # fields of a head
        await move(store, child, begun(), state=DONE)
    await keep(store, new("busy", root="order:root"))
    assert await store.delete_children(root.head.key) == 1
    assert await store.delete_children(root.head.key) == 0
    left = store.reader.list(Query(order_by=("transaction_id",)))
    assert [s.transaction_id for s in left] == ["busy", "kept", "root", "stranger"]


# --- waiting steps, timeline, keys ---------------------------------------------------------------


@on_loop
async def test_steps_waiting_are_told_with_their_present_side_oldest_first(
    store: CheckpointStore,
) -> None:
    first = await keep(store, new("t1"), awaiting=1)
    await move(store, first, begun("charge", stage=1, awaiting=True, last_attempt_at=NOW + SECOND))
    second = await keep(store, new("t2"), awaiting=2)
    undoing = begun(
        "reserve",
        awaiting=True,
        invoke=StepState.DONE,
        invoke_status=StepStatus.OK,
        compensate=StepState.COMPENSATING,
        compensate_status=StepStatus.WAITING_RESPONSE,
        attempts=3,
    )
    await move(store, second, undoing, begun("send"), begun("charge", awaiting=True))
    waiting = list(store.reader.steps_waiting())
    assert [(step.transaction_id, step.step) for step in waiting] == [
        ("t2", "charge"),
        ("t2", "reserve"),
        ("t1", "charge"),
    ]
    assert waiting[1] == WaitingStep(
        workflow_id="order",
        transaction_id="t2",
        run_id="r1",
        step="reserve",
        action=Action.COMPENSATE,
        state=StepState.COMPENSATING,
        status=StepStatus.WAITING_RESPONSE,
        attempts=3,
        since=NOW,
    )
    assert list(store.reader.steps_waiting(limit=2)) == waiting[:2]
    await move(store, first, state=FAILED)
    assert [step.transaction_id for step in store.reader.steps_waiting()] == ["t2", "t2"]


@on_loop
async def test_the_timeline_keeps_every_field_in_order(store: CheckpointStore) -> None:
    error = ErrorRecord(
        action="charge", handler_type=Action.INVOKE, name="E", message="m\n\x00é", stack="s"
    )
    failed = told(
        EventKind.STEP_FAILURE, step="charge", action=Action.INVOKE, attempt=2, error=error
    )
    timeout = told(EventKind.TIMEOUT, detail="workflow")
    execution = await keep(store, new(), events=(told(), failed))
    await move(store, execution, events=())
    await move(store, execution, events=(timeout, failed, timeout))
    events = store.reader.timeline(execution.head.execution_id)
    assert list(events) == [told(), failed, timeout, failed, timeout]
    for after in (1, 4, 5, 9):
        rest = store.reader.timeline(execution.head.execution_id, after=after)
        assert list(rest) == list(events)[after:]
    assert list(store.reader.timeline("wf_exec_none")) == []


@on_loop
async def test_keys_are_found_by_exact_parts_newest_first(store: CheckpointStore) -> None:
    for number, (workflow_id, transaction_id, run_id) in enumerate(
        [("a", "t1", "01AB"), ("b", "t1", "01AC"), ("a", "t2", "02AB"), ("a", "t1", "01AD")]
    ):
        execution = new(
            transaction_id, run_id, workflow_id=workflow_id, created_at=NOW + number * SECOND
        )
        await keep(store, execution, state=DONE)
    reader = store.reader
    a1, b1, a2 = ExecutionKey("a", "t1"), ExecutionKey("b", "t1"), ExecutionKey("a", "t2")
    assert list(reader.keys(transaction_id="t1")) == [a1, b1]
    assert list(reader.keys(workflow_id="a")) == [a1, a2]
    assert list(reader.keys(workflow_id="a", transaction_id="t2")) == [a2]
    assert list(reader.keys(run_id_prefix="01A")) == [a1, b1]
    assert list(reader.keys(run_id_prefix="01AC")) == [b1]
    assert list(reader.keys(run_id_prefix="01A", workflow_id="b")) == [b1]
    assert list(reader.keys(run_id_prefix="01a")) == []
    assert list(reader.keys(run_id_prefix="01A_")) == []
    assert list(reader.keys(transaction_id="T1")) == []
    assert list(reader.keys(workflow_id="a", limit=1)) == [a1]


# --- opening, and other processes ----------------------------------------------------------------


@on_loop
async def test_open_and_close_may_be_called_again(store: CheckpointStore) -> None:
    await store.open()
    execution = await keep(store, new())
    assert parts_of(await store.load(KEY)) == parts_of(execution)
    await store.close()
    await store.close()


def test_a_store_may_be_used_by_one_loop_after_the_other(store: CheckpointStore) -> None:
    @on_loop
    async def use(store: CheckpointStore, number: int) -> None:
        await keep(store, new(f"t{number}"))
        assert store.reader.count(Query()) == number + 1

    for number in range(3):
        use(store=store, number=number)


@on_loop
async def test_the_reader_loads_what_the_store_loads(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    await move(store, execution, begun())
    assert parts_of(store.reader.load(KEY)) == parts_of(execution)
    assert parts_of(store.reader.load(KEY, "r1")) == parts_of(execution)
    assert store.reader.load(KEY, "r2") is None


@on_loop
async def test_a_child_is_kept_as_long_as_the_run_it_is_a_step_of(store: CheckpointStore) -> None:
    ended = {"state": ExecutionState.DONE, "ended_at": NOW}
    root = await keep(store, new(retention_time=10), **ended)
    of_root: dict[str, Any] = {
        "root": "order:t1",
        "parent_step_idempotency_key": "order:t1:reserve:invoke",
        "parent_run_id": root.head.run_id,
    }
    await keep(store, new("c1", workflow_id="child", retention_time=1, **of_root), **ended)
    await keep(store, new("c2", workflow_id="child", **of_root), **ended)
    assert await store.delete_expired(NOW + 5 * SECOND) == 0
    assert await store.delete_expired(NOW + 11 * SECOND) == 3
    assert store.reader.count(Query()) == 0


@on_loop
async def test_a_child_with_time_of_its_own_may_outlive_its_parent(store: CheckpointStore) -> None:
    ended = {"state": ExecutionState.DONE, "ended_at": NOW}
    root = await keep(store, new(retention_time=1), **ended)
    of_root: dict[str, Any] = {
        "root": "order:t1",
        "parent_step_idempotency_key": "order:t1:reserve:invoke",
        "parent_run_id": root.head.run_id,
    }
    await keep(store, new("c1", workflow_id="child", retention_time=9, **of_root), **ended)
    assert await store.delete_expired(NOW + 5 * SECOND) == 1
    assert await store.delete_expired(NOW + 10 * SECOND) == 1


@on_loop
async def test_a_parent_whose_child_has_ended_unheard_could_go_on(store: CheckpointStore) -> None:
    parent = await keep(store, new(), awaiting=1)
    await move(store, parent, begun(running=False, awaiting=True))
    child = new(
        "c1",
        workflow_id="child",
        root="order:t1",
        parent_step_idempotency_key="order:t1:reserve:invoke",
        parent_run_id="r1",
    )
    await keep(store, child, awaiting=1)
    assert await store.interrupted(NOW) == []
    await move(store, child, state=ExecutionState.DONE, ended_at=NOW, awaiting=0)
    assert await store.interrupted(NOW) == [KEY]
