"""What is left over in a database: rows that were of use to processes that are gone, or that have done
what they were there for. Whoever adds a table whose rows outlive their purpose adds them here.

- A signal that is settled, or whose execution is gone. It stays for a day, because its sender waits for
  the outcome, and a person may want to look.
- The lease of an owner that has gone without giving it up.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from wfe.store import signals
from wfe.store.connection import Connection
from wfe.store.moments import to_micros

_SIGNALS_KEPT = timedelta(days=1)

_OLD_SIGNALS = """
FROM signal WHERE sent_at <= :moment AND (
    settled_at <= :moment
    OR NOT EXISTS (SELECT 1 FROM workflow_execution e WHERE e.id = signal.execution_id)
)
"""


def count(connection: Connection, now: datetime) -> int:
    """How many rows `remove` would remove now."""
    question = f"SELECT count(*) {_OLD_SIGNALS}"
    (old,) = connection.raw.execute(question, _values(now)).fetchone()
    return int(old) + len(signals.gone(connection))


def remove(connection: Connection, now: datetime) -> int:
    """Remove them, in a transaction; says how many."""
    with connection.transaction():
        removed = connection.raw.execute(f"DELETE {_OLD_SIGNALS}", _values(now)).rowcount
        return removed + signals.clear_away(connection)


def _values(now: datetime) -> dict[str, int]:
    return {"moment": to_micros(now - _SIGNALS_KEPT)}
