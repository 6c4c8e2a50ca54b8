"""What every store promises of notices: the bullets of `wfe.store.notices`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.contract.support import NOW, SECOND, changed, keep, move, new, on_loop, told
from wfe.errors import SkipExecutionError
from wfe.model import Action, ErrorRecord, EventKind, Execution, ExecutionState, TimelineEvent
from wfe.store import owners
from wfe.store.contract import CheckpointStore
from wfe.store.notices import Notice

TOLD = TimelineEvent(kind=EventKind.NOTICE, time=NOW, detail="mail")


@pytest.fixture
def owner() -> Iterator[str]:
    name = owners.claim()
    yield name
    owners.release(name)


async def ended(
    store: CheckpointStore, transaction_id: str = "t1", *, owes: bool = True
) -> Execution:
    """An execution whose end is to be told."""
    execution = await keep(store, new(transaction_id), events=(told(),))
    finish = told(EventKind.FINISH, detail="failed")
    changes = changed(execution, events=(finish,), state=ExecutionState.FAILED, updated_at=NOW)
    changes = replace(changes, owes_notice=owes)
    await store.commit(execution, changes)
    execution.take(changes)
    return execution


async def hold(store: CheckpointStore, owner: str) -> None:
    if store.peers is not None:
        await store.peers.hold(owner)


async def only(store: CheckpointStore) -> Notice:
    (notice,) = await store.notices.owed()
    return notice


def kinds(store: CheckpointStore, execution: Execution) -> list[str]:
    return [str(e.kind) for e in store.reader.timeline(execution.head.execution_id)]


@on_loop
async def test_it_is_owed_from_the_commit_that_ends_the_execution(store: CheckpointStore) -> None:
    execution = await ended(store)
    head = execution.head
    assert await only(store) == Notice(
        execution_id=head.execution_id,
        key=head.key,
        run_id=head.run_id,
        version=head.version,
        owed_since=NOW,
    )


@on_loop
async def test_nothing_is_owed_where_the_changes_do_not_say_so(store: CheckpointStore) -> None:
    await ended(store, owes=False)
    assert list(await store.notices.owed()) == []


@on_loop
async def test_a_run_that_ends_as_it_begins_owes_one_too(store: CheckpointStore) -> None:
    execution = new()
    changes = replace(changed(execution, state=ExecutionState.DONE), owes_notice=True)
    assert await store.insert(execution, changes)
    assert (await only(store)).version == changes.head.version


@on_loop
async def test_a_commit_that_is_refused_owes_nothing(store: CheckpointStore) -> None:
    execution = await keep(store, new())
    stale = Execution(execution.flow, replace(execution.head, version=7))
    changes = replace(changed(stale, state=ExecutionState.FAILED), owes_notice=True)
    with pytest.raises(SkipExecutionError):
        await store.commit(stale, changes)
    assert list(await store.notices.owed()) == []


@on_loop
async def test_the_oldest_comes_first_and_no_more_than_asked_for(store: CheckpointStore) -> None:
    for number in range(3):
        await ended(store, f"t{number}")
    found = await store.notices.owed(limit=2)
    assert [each.key.transaction_id for each in found] == ["t0", "t1"]


@on_loop
async def test_one_has_it_as_long_as_it_lives(store: CheckpointStore, owner: str) -> None:
    await ended(store)
    notice = await only(store)
    await hold(store, owner)
    assert await store.notices.take(notice, owner=owner)
    assert list(await store.notices.owed()) == []
    assert not await store.notices.take(notice, owner="another")


@on_loop
async def test_what_somebody_had_who_is_gone_is_taken_again(
    store: CheckpointStore, owner: str
) -> None:
    await ended(store)
    await hold(store, owner)
    await store.notices.take(await only(store), owner=owner)
    owners.release(owner)
    again = await only(store)
    assert again.owner == owner
    other = owners.claim()
    await hold(store, other)
    assert await store.notices.take(again, owner=other)
    assert not await store.notices.take(again, owner=other)
    owners.release(other)


@on_loop
async def test_settling_it_writes_down_what_became_of_it(store: CheckpointStore) -> None:
    execution = await ended(store)
    notice = await only(store)
    error = ErrorRecord(action=None, handler_type=Action.INVOKE, name="NoticeFailed", message="no")
    await store.notices.settle(notice, replace(TOLD, error=error))
    assert list(await store.notices.owed()) == []
    entry = store.reader.timeline(execution.head.execution_id)[-1]
    assert entry == replace(TOLD, error=error)
    assert kinds(store, execution) == ["begin", "finish", "notice"]
    kept = await store.load(execution.head.key)
    assert kept is not None
    assert kept.head == execution.head


@on_loop
async def test_several_entries_stand_in_order_and_before_what_comes_later(
    store: CheckpointStore,
) -> None:
    execution = await keep(store, new(), events=(told(),))
    changes = changed(execution, state=ExecutionState.DONE, events=(told(EventKind.FINISH),))
    await store.commit(execution, replace(changes, owes_notice=True))
    execution.take(changes)
    notice = await only(store)
    await store.notices.settle(notice, TOLD)
    await store.notices.settle(notice, replace(TOLD, detail="again"))
    back = told(EventKind.COMPENSATE_BEGIN)
    await move(store, execution, state=ExecutionState.COMPENSATING, events=(back,))
    assert kinds(store, execution) == ["begin", "finish", "notice", "notice", "compensate_begin"]


@on_loop
async def test_one_that_is_settled_without_a_word_leaves_no_entry(store: CheckpointStore) -> None:
    execution = await ended(store)
    await store.notices.settle(await only(store), None)
    assert list(await store.notices.owed()) == []
    assert kinds(store, execution) == ["begin", "finish"]


@on_loop
async def test_the_last_end_is_the_one_that_is_owed(store: CheckpointStore, owner: str) -> None:
    execution = await keep(store, new())
    changes = changed(execution, state=ExecutionState.DONE)
    await store.commit(execution, replace(changes, owes_notice=True))
    execution.take(changes)
    first = await only(store)
    await hold(store, owner)
    await store.notices.take(first, owner=owner)
    await move(store, execution, state=ExecutionState.COMPENSATING)
    changes = changed(execution, state=ExecutionState.REVERTED, updated_at=NOW + SECOND)
    await store.commit(execution, replace(changes, owes_notice=True))
    await store.notices.settle(first, TOLD)
    last = await only(store)
    assert (last.version, last.owed_since) == (changes.head.version, NOW + SECOND)


@on_loop
async def test_it_goes_with_its_execution(store: CheckpointStore) -> None:
    execution = await ended(store)
    notice = await only(store)
    await store.delete(execution.head.key, execution.head.run_id)
    assert list(await store.notices.owed()) == []
    await store.notices.settle(notice, TOLD)
    assert list(store.reader.timeline(execution.head.execution_id)) == []


@on_loop
async def test_it_goes_with_what_is_swept(store: CheckpointStore) -> None:
    execution = await keep(store, new(), retention_time=1.0)
    changes = changed(execution, state=ExecutionState.FAILED, ended_at=NOW, updated_at=NOW)
    await store.commit(execution, replace(changes, owes_notice=True))
    assert await store.delete_expired(NOW + 2 * SECOND) == 1
    assert list(await store.notices.owed()) == []
