"""Schedules and their ticks as rows of a SQLite file. Those functions that write are called in a
transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace
from peewee import SQL, fn

from wfe.store import signals
from wfe.store.connection import Connection
from wfe.store.ledger import (
    Claim,
    Claimed,
    Fire,
    Registration,
    ScheduleRow,
    Settlement,
    Tick,
    counts,
    fires_after,
    registered,
    row_of,
    verdict,
)
from wfe.store.moments import from_micros, from_micros_or_none, to_micros, to_micros_or_none
from wfe.store.tables import Schedule, ScheduleTick, columns

_SCHEDULE = [getattr(Schedule, name) for name in columns(Schedule)]
_TICK = [getattr(ScheduleTick, name) for name in columns(ScheduleTick)]

#: Never by REPLACE, which would delete the row first, and its ticks with it.
_REGISTER = f"""
INSERT INTO schedule ({", ".join(columns(Schedule))})
VALUES ({", ".join("?" * len(_SCHEDULE))})
ON CONFLICT (name) DO UPDATE SET
{", ".join(f"{name} = excluded.{name}" for name in columns(Schedule)[1:])}
"""
_PUT = f"""
INSERT OR REPLACE INTO schedule_tick ({", ".join(columns(ScheduleTick))})
VALUES ({", ".join("?" * len(_TICK))})
"""
_FIND = f"SELECT {', '.join(columns(Schedule))} FROM schedule WHERE name = ?"
_STATE = "SELECT state FROM schedule_tick WHERE schedule = ? AND scheduled_for = ?"
_ACCOUNT = """
UPDATE schedule SET fired = fired + ?, accounted_until = max(accounted_until, ?), fires = ?
WHERE name = ?
"""
_COUNT = "UPDATE schedule SET fired = fired + ? WHERE name = ?"
_TAKE = """
UPDATE schedule_tick SET owner = ?
WHERE schedule = ? AND scheduled_for = ? AND state = 'due' AND owner IS ?
"""
_SETTLE = """
UPDATE schedule_tick
SET state = ?, reason = ?, execution_id = ?, error = ?, is_open = ?, owner = NULL, decided_at = ?
WHERE schedule = ? AND scheduled_for = ? AND state = 'due'
"""
_END = "UPDATE schedule_tick SET is_open = 0 WHERE schedule = ? AND scheduled_for = ?"
_SWEEP = "DELETE FROM schedule_tick WHERE decided_at < ? AND state <> 'due' AND NOT is_open"


# --- reading -------------------------------------------------------------------------------------


def schedules(connection: Connection) -> list[ScheduleRow]:
    """All schedules, by name."""
    living = signals.holding(connection)
    query = Schedule.select(*_SCHEDULE).order_by(Schedule.name)
    return [_schedule(found, living) for found in connection.run(query)]


def ticks(connection: Connection, name: str, limit: int | None) -> list[Tick]:
    """The ticks of a schedule, the latest moment first."""
    query = _select(ScheduleTick.schedule == name).order_by(ScheduleTick.scheduled_for.desc())
    return [_tick(found) for found in connection.run(query.limit(limit))]


def owed(connection: Connection) -> int:
    """How many ticks are to be begun, whoever has claimed them."""
    query = ScheduleTick.select(fn.count()).where(SQL("state = 'due'"))
    return int(connection.run(query).fetchone()[0])


def pending(connection: Connection) -> list[Tick]:
    """What is to be begun, and nobody who lives has claimed; the earliest first."""
    due = _due(connection)
    living = signals.holding(connection) if due else ()
    return [tick for tick in due if tick.owner not in living]


def unfinished(connection: Connection, name: str) -> list[Tick]:
    """What goes on, and what somebody who lives has claimed; the earliest first."""
    due = _due(connection, ScheduleTick.schedule == name)
    living = signals.holding(connection) if due else ()
    going_on = connection.run(_select(ScheduleTick.schedule == name, SQL("is_open")))
    found = [_tick(row) for row in going_on] + [tick for tick in due if tick.owner in living]
    return sorted(found, key=lambda tick: tick.scheduled_for)


def _find(connection: Connection, name: str) -> ScheduleRow | None:
    """Without its holder."""
    found = connection.raw.execute(_FIND, (name,)).fetchone()
    return None if found is None else _schedule(found, ())


def _due(connection: Connection, *conditions: Any) -> list[Tick]:
    # The literal, because SQLite uses the partial index only where the text is the same.
    query = _select(SQL("state = 'due'"), *conditions)
    ordered = query.order_by(ScheduleTick.scheduled_for, ScheduleTick.schedule)
    return [_tick(found) for found in connection.run(ordered)]


def _select(*conditions: Any) -> Any:
    return ScheduleTick.select(*_TICK).where(*conditions)


def _schedule(row: Any, living: Collection[str]) -> ScheduleRow:
    name, workflow_id, origin, source, timing, definition, *rest = row
    anchor, accounted_until, fired, paused_at, resumed_at, holder, fires = rest
    return ScheduleRow(
        name=name,
        workflow_id=workflow_id,
        origin=origin,
        source=source,
        timing=timing,
        definition=definition.encode(),
        anchor=from_micros(anchor),
        accounted_until=from_micros(accounted_until),
        fired=fired,
        paused_at=from_micros_or_none(paused_at),
        resumed_at=from_micros_or_none(resumed_at),
        holder=holder if holder in living else None,
        fires=tuple(Fire(from_micros(at), by) for at, by in json.loads(fires)),
    )


def _tick(row: Any) -> Tick:
    schedule, scheduled_for, kind, state, reason, transaction_id, *rest = row
    execution_id, error, owner, is_open, decided_at = rest
    return Tick(
        schedule=schedule,
        scheduled_for=from_micros(scheduled_for),
        kind=kind,
        state=state,
        reason=reason,
        transaction_id=transaction_id,
        execution_id=execution_id,
        error=error,
        owner=owner,
        is_open=bool(is_open),
        decided_at=from_micros(decided_at),
    )


# --- writing -------------------------------------------------------------------------------------


def register(
    connection: Connection, registrations: Sequence[Registration], owner: str, now: datetime
) -> list[ScheduleRow]:
    """See `Ledger.register`."""
    known = {row.name: row for row in schedules(connection)}
    rows = [registered(each, known.get(each.name), owner, now) for each in registrations]
    connection.raw.executemany(_REGISTER, [_schedule_values(row) for row in rows])
    return rows


def claim(connection: Connection, claims: Sequence[Claim], now: datetime) -> list[Claimed]:
    """See `Ledger.claim`."""
    known: dict[str, ScheduleRow | None] = {}
    outcomes: list[Claimed] = []
    for each in claims:
        if each.schedule not in known:
            known[each.schedule] = _find(connection, each.schedule)
        row = known[each.schedule]
        key = (each.schedule, to_micros(each.scheduled_for))
        state = connection.raw.execute(_STATE, key).fetchone()
        found = verdict(row, each, None if state is None else state[0])
        outcomes.append(found)
        if row is None or found == "superseded":
            continue
        added = 0
        if found in ("kept", "paused"):
            tick = row_of(each, found, now)
            connection.raw.execute(_PUT, _values(tick))
            added = int(counts(tick))
        if each.kind == "tick":
            row = replace(row, fired=row.fired + added, fires=fires_after(row, each))
            known[each.schedule] = row
            account = (added, key[1], _fires_text(row), each.schedule)
            connection.raw.execute(_ACCOUNT, account)
    return outcomes


def take(connection: Connection, ticks: Sequence[Tick], owner: str) -> list[Tick]:
    """See `Ledger.take`."""
    return [
        replace(tick, owner=owner)
        for tick in ticks
        if connection.raw.execute(_TAKE, (owner, *_key(tick), tick.owner)).rowcount
    ]


def settle(connection: Connection, settlements: Sequence[Settlement], now: datetime) -> None:
    """See `Ledger.settle`."""
    for given in settlements:
        values = (
            given.state,
            given.reason,
            given.execution_id,
            given.error,
            int(given.is_open),
            to_micros(now),
        )
        settled = connection.raw.execute(_SETTLE, (*values, *_key(given.tick))).rowcount
        less = counts(replace(given.tick, state=given.state)) - counts(given.tick)
        if settled and less:
            connection.raw.execute(_COUNT, (less, given.tick.schedule))


def end(connection: Connection, ticks: Sequence[Tick]) -> None:
    """See `Ledger.end`."""
    connection.raw.executemany(_END, [_key(tick) for tick in ticks])


def pause(connection: Connection, name: str, now: datetime | None) -> bool:
    """Pause a schedule at `now`, unless it is paused; False where there is none."""
    row = _find(connection, name)
    if row is not None and not row.is_paused:
        paused = Schedule.update(paused_at=now, resumed_at=None)
        connection.run(paused.where(Schedule.name == name))
    return row is not None


def resume(connection: Connection, name: str, now: datetime) -> bool:
    """End its pause, where there is one; False where there is no such schedule."""
    row = _find(connection, name)
    if row is not None and row.is_paused:
        connection.run(Schedule.update(resumed_at=now).where(Schedule.name == name))
    return row is not None


def forget(connection: Connection, name: str) -> bool:
    """See `Ledger.forget`. The ticks go with their schedule."""
    return connection.run(Schedule.delete().where(Schedule.name == name)).rowcount > 0


def sweep(connection: Connection, before: datetime) -> int:
    """See `Ledger.sweep`."""
    return connection.raw.execute(_SWEEP, (to_micros(before),)).rowcount


def _key(tick: Tick) -> tuple[str, int]:
    return tick.schedule, to_micros(tick.scheduled_for)


def _schedule_values(row: ScheduleRow) -> tuple[Any, ...]:
    return (
        row.name,
        row.workflow_id,
        row.origin,
        row.source,
        row.timing,
        row.definition.decode(),
        to_micros(row.anchor),
        to_micros(row.accounted_until),
        row.fired,
        to_micros_or_none(row.paused_at),
        to_micros_or_none(row.resumed_at),
        row.holder,
        _fires_text(row),
    )


def _fires_text(row: ScheduleRow) -> str:
    return json.dumps([[to_micros(fire.at), fire.by] for fire in row.fires])


def _values(tick: Tick) -> tuple[Any, ...]:
    return (
        *_key(tick),
        tick.kind,
        tick.state,
        tick.reason,
        tick.transaction_id,
        tick.execution_id,
        tick.error,
        tick.owner,
        int(tick.is_open),
        to_micros(tick.decided_at),
    )
