"""Signals and leases as rows: what processes that share a database tell each other through it.

A signal is settled once: in the commit of its effect, or, refused, by itself; either way only while it
is pending. Every function takes a connection; those that write are called in a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from peewee import SQL

from wfe.clock import SystemClock
from wfe.model import ExecutionKey
from wfe.store import owners, rows
from wfe.store.connection import Connection
from wfe.store.contract import Settled, Signal
from wfe.store.moments import from_micros, to_micros
from wfe.store.owners import Lease
from wfe.store.statements import Statement
from wfe.store.tables import Owner, WorkflowExecution
from wfe.store.tables import Signal as Row

_COLUMNS = (
    Row.id,
    Row.execution_id,
    Row.kind,
    Row.payload,
    Row.step,
    Row.action,
    Row.sender,
    Row.sent_at,
    WorkflowExecution.workflow_id,
    WorkflowExecution.transaction_id,
)

_SETTLE = Statement(
    "UPDATE signal SET state = v.column2, outcome = v.column3, settled_at = v.column4 FROM (",
    4,
    ") AS v WHERE signal.id = v.column1 AND signal.state = 'pending'",
)


# --- signals -------------------------------------------------------------------------------------


def send(connection: Connection, signal: Signal) -> int:
    """Its number."""
    values = {
        "execution_id": signal.execution_id,
        "kind": signal.kind,
        "payload": signal.payload.decode(),
        "step": signal.step,
        "action": signal.action,
        "sender": signal.sender,
        "sent_at": signal.sent_at,
        "state": "pending",
    }
    return int(connection.run(Row.insert(values)).lastrowid or 0)


def settle(connection: Connection, settled: Iterable[Settled], now: datetime) -> None:
    values: list[object] = []
    for each in settled:
        state = "applied" if each.refusal is None else "refused"
        values += (each.signal, state, rows.text(each.refusal), to_micros(now))
    _SETTLE.run(connection.raw, values)


def pending_of(connection: Connection, execution_id: str) -> Sequence[Signal]:
    """What nobody has looked at yet, in the order in which it was sent."""
    return _pending(connection, Row.execution_id == execution_id)


def pending_for(connection: Connection, owner: str) -> Sequence[Signal]:
    """The same for all executions that `owner` has in hand."""
    return _pending(connection, WorkflowExecution.owner == owner)


def _pending(connection: Connection, condition: Any) -> Sequence[Signal]:
    execution = WorkflowExecution
    query = (
        Row.select(*_COLUMNS)
        .join(execution, on=(execution.id == Row.execution_id))
        # The literal, because SQLite uses the partial index only where the text is the same.
        .where(SQL("t1.state = 'pending'"), condition)
        .order_by(Row.id)
    )
    return [_signal(found) for found in connection.run(query)]


def outcome(connection: Connection, number: int) -> Settled | None:
    """None: it is pending. One that is gone, with its execution, was applied."""
    query = Row.select(Row.state, Row.outcome).where(Row.id == number)
    found = connection.run(query).fetchone()
    if found is not None and found[0] == "pending":
        return None
    refusal = None if found is None else found[1]
    return Settled(number, rows.json_of(refusal))


def _signal(row: rows.Row) -> Signal:
    number, execution_id, kind, payload, step, action, sender, sent_at, *key = row
    return Signal(
        id=number,
        execution_id=execution_id,
        key=ExecutionKey(*key),
        kind=kind,
        payload=payload.encode(),
        step=step,
        action=action,
        sender=sender,
        sent_at=from_micros(sent_at),
    )


# --- leases --------------------------------------------------------------------------------------


def renew(connection: Connection, holding: Iterable[str]) -> None:
    """Prolong these leases, or take them out. A lease that somebody has cleared away comes back."""
    now = SystemClock().now()
    lease = owners.lease(now)
    values = [
        {
            "id": owner,
            "since": now,
            "expires_at": from_micros(lease.expires_at),
            "beats_until": lease.beats_until,
        }
        for owner in holding
    ]
    if values:
        renewed = [Owner.expires_at, Owner.beats_until]
        query = Owner.insert_many(values)
        connection.run(query.on_conflict(conflict_target=[Owner.id], preserve=renewed))


def give_up(connection: Connection, owner: str) -> None:
    """From now on, whatever is in its name is in nobody's hand."""
    connection.run(Owner.delete().where(Owner.id == owner))


def holding(connection: Connection) -> list[str]:
    """The owners that live and hold their leases."""
    return [owner for owner, lease, _ in _leases(connection) if owners.holds(owner, lease)]


def clear_away(connection: Connection) -> int:
    """Remove the leases of owners that are gone; says how many."""
    lost = gone(connection)
    for owner in lost:
        give_up(connection, owner)
    return len(lost)


def gone(connection: Connection) -> list[str]:
    """Owners that are gone without having given up their leases, the oldest first."""
    leases = sorted(_leases(connection), key=itemgetter(2))
    return [owner for owner, lease, _ in leases if not owners.holds(owner, lease)]


def _leases(connection: Connection) -> list[tuple[str, Lease, int]]:
    """Owner, lease, and since when it holds it."""
    columns = Owner.id, Owner.expires_at, Owner.beats_until, Owner.since
    known = connection.run(Owner.select(*columns))
    return [(owner, Lease(*lease), since) for owner, *lease, since in known.fetchall()]
