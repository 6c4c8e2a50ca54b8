"""What every ledger promises: the bullets of `wfe.store.ledger`, one claim after the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.support import NOW, SECOND, on_loop
from wfe.store import owners
from wfe.store.contract import CheckpointStore
from wfe.store.ledger import Claim, Fire, Registration, ScheduleRow, Settlement, Tick

MINUTE = timedelta(minutes=1)
NIGHTLY = Registration(
    name="nightly",
    workflow_id="backup",
    origin="workflow",
    source="/srv/backup.py",
    timing="0 3 * * * in UTC",
    definition=b'{"cron":"0 3 * * *"}',
)


@pytest.fixture
def owner() -> Iterator[str]:
    name = owners.claim()
    yield name
    owners.release(name)


@pytest.fixture
def other() -> Iterator[str]:
    name = owners.claim()
    yield name
    owners.release(name)


async def serve(store: CheckpointStore, owner: str, **changes: Any) -> ScheduleRow:
    """Register a schedule in the name of an owner that holds a lease."""
    if store.peers is not None:
        await store.peers.hold(owner)
    return await register(store, owner, NOW, **changes)


async def register(
    store: CheckpointStore, owner: str, now: datetime, **changes: Any
) -> ScheduleRow:
    (row,) = await store.ledger.register([replace(NIGHTLY, **changes)], owner=owner, now=now)
    return row


async def die(store: CheckpointStore, owner: str) -> None:
    owners.release(owner)
    if store.peers is not None:
        await store.peers.release(owner)


def claim(moment: datetime, owner: str | None, **fields: Any) -> Claim:
    return Claim(
        **{
            "schedule": "nightly",
            "scheduled_for": moment,
            "state": "due",
            "owner": owner,
            "transaction_id": f"sched-nightly-{moment.isoformat()}",
            "timing": NIGHTLY.timing,
            **fields,
        }
    )


async def fire(store: CheckpointStore, moment: datetime, owner: str, **fields: Any) -> Tick:
    """A tick that was claimed, and begun."""
    assert await store.ledger.claim([claim(moment, owner, **fields)], now=moment) == ["kept"]
    tick = store.ledger.ticks("nightly")[0]
    settled = Settlement(tick=tick, state="fired", execution_id="wf_exec_1", is_open=True)
    await store.ledger.settle([settled], now=moment)
    return tick


# --- schedules -----------------------------------------------------------------------------------


@on_loop
async def test_a_schedule_is_owed_nothing_from_before_it_was_first_served(
    store: CheckpointStore, owner: str
) -> None:
    row = await serve(store, owner)
    assert (row.anchor, row.accounted_until, row.fired, row.holder) == (NOW, NOW, 0, owner)
    assert row.definition == NIGHTLY.definition
    assert list(await store.ledger.known()) == list(store.ledger.schedules()) == [row]
    assert list(store.reader.ledger.schedules()) == [row]


@on_loop
async def test_serving_it_again_keeps_what_is_known(store: CheckpointStore, owner: str) -> None:
    await serve(store, owner)
    await fire(store, NOW + MINUTE, owner)
    row = await register(store, owner, NOW + 5 * MINUTE, definition=b"{}")
    assert (row.anchor, row.accounted_until, row.fired) == (NOW, NOW + MINUTE, 1)
    assert row.definition == b"{}"


@on_loop
async def test_another_timing_begins_anew(store: CheckpointStore, owner: str) -> None:
    await serve(store, owner)
    await fire(store, NOW + MINUTE, owner)
    later = NOW + 5 * MINUTE
    row = await register(store, owner, later, timing="@daily")
    assert (row.anchor, row.accounted_until, row.fired) == (later, later, 0)
    old = claim(later + MINUTE, owner)
    assert await store.ledger.claim([old], now=later + MINUTE) == ["superseded"]
    assert len(store.ledger.ticks("nightly")) == 1


@on_loop
async def test_the_holder_is_who_came_first_as_long_as_it_lives(
    store: CheckpointStore, owner: str, other: str
) -> None:
    await serve(store, owner)
    assert (await serve(store, other)).holder == owner
    await die(store, owner)
    assert store.ledger.schedules()[0].holder is None
    assert (await serve(store, other)).holder == other


@on_loop
async def test_what_is_claimed_is_owed_until_it_is_settled(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    assert store.ledger.owed() == store.reader.ledger.owed() == 0
    claims = [claim(NOW + MINUTE, owner), claim(NOW + 2 * MINUTE, None)]
    await store.ledger.claim(claims, now=NOW)
    assert store.ledger.owed() == store.reader.ledger.owed() == 2
    await fire(store, NOW + 3 * MINUTE, owner)
    assert store.reader.ledger.owed() == 2


@on_loop
async def test_a_schedule_that_is_forgotten_takes_its_ticks_along(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    await fire(store, NOW + MINUTE, owner)
    assert await store.ledger.forget("nightly")
    assert not await store.ledger.forget("nightly")
    assert (store.ledger.schedules(), store.ledger.ticks("nightly")) == ([], [])
    assert await store.ledger.unfinished("nightly") == []


# --- claims --------------------------------------------------------------------------------------


@on_loop
async def test_of_several_claims_of_a_tick_one_wins(
    store: CheckpointStore, owner: str, other: str
) -> None:
    await serve(store, owner)
    await serve(store, other)
    moment = NOW + MINUTE
    assert await store.ledger.claim([claim(moment, owner)], now=moment) == ["kept"]
    assert await store.ledger.claim([claim(moment, other)], now=moment) == ["taken"]
    missed = claim(moment, None, state="skipped", reason="missed")
    assert await store.ledger.claim([missed], now=moment) == ["taken"]
    (tick,) = store.reader.ledger.ticks("nightly")
    assert (tick.state, tick.owner) == ("due", owner)


@on_loop
async def test_claims_account_for_all_up_to_the_last(store: CheckpointStore, owner: str) -> None:
    await serve(store, owner)
    moments = [NOW + n * MINUTE for n in (1, 2, 3)]
    skipped = [claim(m, None, state="skipped", reason="missed") for m in moments[:2]]
    await store.ledger.claim([*skipped, claim(moments[2], owner)], now=moments[2])
    row = store.ledger.schedules()[0]
    assert (row.accounted_until, row.fired) == (moments[2], 1)
    ticks = store.ledger.ticks("nightly")
    assert [(t.scheduled_for, t.state) for t in ticks] == list(
        zip(reversed(moments), ("due", "skipped", "skipped"), strict=True)
    )
    assert [tick.scheduled_for for tick in store.ledger.ticks("nightly", limit=1)] == moments[2:]
    assert ticks[2].late_by == 120


@on_loop
async def test_no_more_are_kept_than_the_limit_says(store: CheckpointStore, owner: str) -> None:
    await serve(store, owner)
    claims = [claim(NOW + n * MINUTE, owner, limit=2) for n in (1, 2, 3)]
    assert await store.ledger.claim(claims, now=NOW) == ["kept", "kept", "exhausted"]
    assert len(store.ledger.ticks("nightly")) == 2


@on_loop
async def test_what_was_not_begun_counts_no_more(store: CheckpointStore, owner: str) -> None:
    await serve(store, owner)
    await store.ledger.claim([claim(NOW + MINUTE, owner, limit=1)], now=NOW)
    (tick,) = store.ledger.ticks("nightly")
    skipped = Settlement(tick=tick, state="skipped", reason="overlap")
    await store.ledger.settle([skipped, skipped], now=NOW)
    assert store.ledger.schedules()[0].fired == 0
    again = await store.ledger.claim([claim(NOW + 2 * MINUTE, owner, limit=1)], now=NOW)
    assert again == ["kept"]


@on_loop
async def test_ticks_of_a_pause_are_passed_over_whenever_they_are_claimed(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    assert await store.ledger.pause("nightly", now=NOW + MINUTE)
    assert await store.ledger.pause("nightly", now=NOW + 3 * MINUTE)
    assert store.ledger.schedules()[0].is_paused
    assert await store.ledger.resume("nightly", now=NOW + 3 * MINUTE)
    assert await store.ledger.resume("nightly", now=NOW + 9 * MINUTE)
    assert not store.ledger.schedules()[0].is_paused
    moments = [NOW, *(NOW + n * MINUTE for n in (1, 2, 3))]
    outcomes = await store.ledger.claim([claim(m, owner) for m in moments], now=NOW)
    assert outcomes == ["kept", "paused", "paused", "kept"]
    assert [t.reason for t in store.ledger.ticks("nightly")] == [None, "paused", "paused", None]
    assert not await store.ledger.pause("weekly", now=NOW)
    assert not await store.ledger.resume("weekly", now=NOW)


@on_loop
async def test_a_backfill_replaces_what_was_not_begun_and_counts_nothing(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    await fire(store, NOW + MINUTE, owner)
    passed_over = claim(NOW + 2 * MINUTE, None, state="skipped", reason="missed")
    await store.ledger.claim([passed_over], now=NOW)
    wanted = [claim(NOW + n * MINUTE, None, kind="backfill") for n in (-1, 1, 2)]
    assert await store.ledger.claim(wanted, now=NOW) == ["kept", "taken", "kept"]
    row = store.ledger.schedules()[0]
    assert (row.fired, row.accounted_until) == (1, NOW + 2 * MINUTE)
    assert [t.scheduled_for for t in await store.ledger.pending()] == [
        NOW - MINUTE,
        NOW + 2 * MINUTE,
    ]


@on_loop
async def test_an_unknown_schedule_has_no_ticks(store: CheckpointStore, owner: str) -> None:
    assert await store.ledger.claim([claim(NOW, owner)], now=NOW) == ["superseded"]


# --- whose they are ------------------------------------------------------------------------------


@on_loop
async def test_what_nobody_who_lives_has_claimed_is_taken_once(
    store: CheckpointStore, owner: str, other: str
) -> None:
    await serve(store, owner)
    await serve(store, other)
    moments = [NOW + n * MINUTE for n in (1, 2)]
    await store.ledger.claim([claim(moments[0], owner), claim(moments[1], None)], now=NOW)
    assert [t.scheduled_for for t in await store.ledger.pending()] == moments[1:]
    await die(store, owner)
    pending = await store.ledger.pending()
    assert [tick.scheduled_for for tick in pending] == moments
    taken = await store.ledger.take(pending, owner=other)
    assert [tick.owner for tick in taken] == [other, other]
    assert await store.ledger.take(pending, owner="somebody") == []
    assert await store.ledger.pending() == []


@on_loop
async def test_unfinished_are_what_goes_on_and_what_is_about_to_begin(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    tick = await fire(store, NOW + MINUTE, owner)
    await store.ledger.claim(
        [claim(NOW + n * MINUTE, o) for n, o in ((2, owner), (3, None))], now=NOW
    )
    found = await store.ledger.unfinished("nightly")
    assert [t.scheduled_for for t in found] == [NOW + MINUTE, NOW + 2 * MINUTE]
    await store.ledger.end([tick])
    assert len(await store.ledger.unfinished("nightly")) == 1
    await die(store, owner)
    assert await store.ledger.unfinished("nightly") == []


@on_loop
async def test_a_settled_tick_tells_what_it_came_to(store: CheckpointStore, owner: str) -> None:
    await serve(store, owner)
    await store.ledger.claim([claim(NOW + MINUTE, owner)], now=NOW)
    (tick,) = store.ledger.ticks("nightly")
    late = NOW + MINUTE + 2 * SECOND
    await store.ledger.settle(
        [Settlement(tick=tick, state="error", error="no such input")], now=late
    )
    (tick,) = store.ledger.ticks("nightly")
    assert (tick.state, tick.error, tick.owner, tick.late_by) == ("error", "no such input", None, 2)
    # A second word on it changes nothing.
    await store.ledger.settle([Settlement(tick=tick, state="fired")], now=late)
    assert store.ledger.ticks("nightly") == [tick]


@on_loop
async def test_a_sweep_leaves_what_goes_on_and_counts_on(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    first = await fire(store, NOW + MINUTE, owner)
    await fire(store, NOW + 2 * MINUTE, owner)
    await store.ledger.end([first])
    await store.ledger.claim([claim(NOW + 3 * MINUTE, owner)], now=NOW)
    assert await store.ledger.sweep(NOW + 10 * MINUTE) == 1
    assert len(store.ledger.ticks("nightly")) == 2
    assert store.ledger.schedules()[0].fired == 3


# --- fires ---------------------------------------------------------------------------------------


def fires(*minutes: int, by: str = "6.0.0") -> tuple[Fire, ...]:
    return tuple(Fire(NOW + minute * MINUTE, by) for minute in minutes)


async def account(store: CheckpointStore, *minutes: int, **fields: Any) -> None:
    """Claim ticks as they are passed over."""
    claims = [
        claim(NOW + minute * MINUTE, None, **{"state": "skipped", "reason": "missed", **fields})
        for minute in minutes
    ]
    await store.ledger.claim(claims, now=NOW)


@on_loop
async def test_a_new_schedule_begins_with_the_fires_that_it_is_given(
    store: CheckpointStore, owner: str
) -> None:
    row = await serve(store, owner, fires=fires(-3, -2, -1))
    assert row.fires == fires(-3, -2, -1)
    assert list(await store.ledger.known()) == list(store.reader.ledger.schedules()) == [row]


@on_loop
async def test_the_last_five_fires_are_kept_with_the_version_that_computed_them(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner, fires=fires(-3, -2, -1))
    await account(store, 1, 2, reckoned_by="7.0.0")
    await account(store, 3, reckoned_by="7.1.0")
    (row,) = await store.ledger.known()
    assert row.fires == (
        *fires(-2, -1),
        *fires(1, 2, by="7.0.0"),
        *fires(3, by="7.1.0"),
    )


@on_loop
async def test_a_fire_is_kept_once_and_what_is_no_fire_is_not(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner)
    await account(store, 1, 2, reckoned_by="6.0.0")
    await account(store, 1, reckoned_by="7.0.0")
    await account(store, 3, reckoned_by=None)
    await account(store, 4, reckoned_by="6.0.0", kind="backfill")
    await account(store, 5, reckoned_by="6.0.0", timing="@daily")
    (row,) = await store.ledger.known()
    assert row.fires == fires(1, 2)


@on_loop
async def test_registering_it_again_keeps_the_fires_of_the_same_definition_alone(
    store: CheckpointStore, owner: str
) -> None:
    await serve(store, owner, fires=fires(-1))
    assert (await register(store, owner, NOW)).fires == fires(-1)
    assert (await register(store, owner, NOW, fires=fires(-9))).fires == fires(-1)
    other = await register(store, owner, NOW, definition=b"{}", fires=fires(-9))
    assert other.fires == fires(-9)
    assert (await register(store, owner, NOW)).fires == ()
