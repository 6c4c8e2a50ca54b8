"""The sweep: what is finished is forgotten when its time is over, and what is left over with it.

An execution goes when it is finished and its retention time has passed; or, where a moment is named,
when it is finished and ended before that moment, however long it was to be kept. An unfinished one
never goes. One that is a step of another is kept as long as that one: undoing the step means to cancel
it. If it has no retention time of its own and is not idempotent, it goes together with that one.

What goes is listed first, then deleted in small portions, so that others can write in between, and each
is looked at again then. Whoever counts and whoever deletes goes by the same list.

The moment of the last sweep is in the file, in minutes since 1970, as its `user_version`: a number that
SQLite keeps for the program, and that costs no table.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from wfe.errors import WfeError
from wfe.store import leftovers, trouble
from wfe.store.connection import Connection
from wfe.store.database import BUSY_TIMEOUT, Synchronous, open_for_reading, open_for_writing
from wfe.store.moments import from_micros, to_micros
from wfe.store.tables import FINISHED

logger = logging.getLogger("wfe")

#: Executions that are deleted in one transaction.
_PORTION = 500

#: How often other commands sweep on the side, how much they delete at most (the next one goes on), and
#: for how many seconds they wait for a lock.
_EVERY = timedelta(days=1)
_ON_THE_SIDE = 500
_SIDE_PATIENCE = 0.1

_MINUTE = 60_000_000


class Swept(NamedTuple):
    """How much a sweep removed, or would remove."""

    executions: int
    #: Rows of other tables that nobody needs any more.
    leftovers: int


class Due(NamedTuple):
    """Which finished executions are to go."""

    moment: datetime
    #: They ended by that moment. Else: their retention time had passed by then.
    by_age: bool = False

    def condition(self, alias: str) -> str:
        column = "ended_at" if self.by_age else "expires_at"
        return f"{alias}.{column} <= :moment AND +{alias}.{FINISHED} AND {alias}.deleted_at IS NULL"

    @property
    def values(self) -> dict[str, int]:
        return {"moment": to_micros(self.moment)}


def would_go(path: Path, due: Due, *, now: datetime, busy_timeout: float = BUSY_TIMEOUT) -> Swept:
    """What `sweep` would remove now. Changes nothing.

    Raises:
        StoreError: the database cannot be read.
    """
    with (
        trouble.translated(path),
        closing(open_for_reading(path, busy_timeout=busy_timeout)) as connection,
    ):
        return Swept(len(doomed(connection, due)), leftovers.count(connection, now))


def sweep(
    path: Path,
    due: Due,
    *,
    now: datetime,
    synchronous: Synchronous = "full",
    busy_timeout: float = BUSY_TIMEOUT,
    on_progress: Callable[[int, int], None] | None = None,
) -> Swept:
    """Remove all that is due. `on_progress` is told how many executions are gone, of how many.

    Raises:
        StoreError: the database cannot be written. What has been removed until then is gone.
    """
    with (
        trouble.translated(path),
        closing(
            open_for_writing(path, synchronous=synchronous, busy_timeout=busy_timeout)
        ) as connection,
    ):
        going = doomed(connection, due)
        gone = _delete(connection, due, going, on_progress)
        swept = Swept(gone, leftovers.remove(connection, now))
        if not due.by_age:
            with connection.transaction():
                _note(connection, now)
        return swept


def sweep_on_the_side(
    path: Path, *, now: datetime, synchronous: Synchronous = "full"
) -> Swept | None:
    """Remove a part of what has expired, once a day; None where it was done already.

    Raises nothing: a sweep that fails is logged, and left to another time.
    """
    if not path.exists():
        return None
    try:
        with (
            trouble.translated(path),
            closing(
                open_for_writing(path, synchronous=synchronous, busy_timeout=_SIDE_PATIENCE)
            ) as connection,
        ):
            return _sweep_in_turn(connection, now)
    except WfeError as error:
        logger.debug("Nothing was swept: %s", error)
        return None


def _sweep_in_turn(connection: Connection, now: datetime) -> Swept | None:
    if not is_due(connection, now):
        return None
    with connection.transaction():
        if not is_due(connection, now):
            return None  # another process has just begun
        _note(connection, now)
    due = Due(now)
    going = doomed(connection, due)
    gone = _delete(connection, due, going[:_ON_THE_SIDE], None)
    if len(going) > _ON_THE_SIDE:
        with connection.transaction():
            _note(connection, None)
    return Swept(gone, leftovers.remove(connection, now))


# --- which ---------------------------------------------------------------------------------------


def doomed(connection: Connection, due: Due) -> list[int]:
    """The serials of what is to go, in an order in which it may: a child before its parent."""
    root = f"r.root IS NULL AND {due.condition('r')}"
    going = {
        serial
        for (serial,) in connection.raw.execute(
            f"SELECT serial FROM workflow_execution r WHERE {root}", due.values
        )
    }
    for serial, parent, is_due in connection.raw.execute(_children(due, root), due.values):
        # A parent has the lower serial: it has been decided on before.
        if parent in going or (parent is None and is_due):
            going.add(serial)
    return sorted(going, reverse=True)


def _children(due: Due, root: str) -> str:
    """Children that may go: serial, serial of the run that each is a step of, and whether it is due
    itself; else it has no retention time, and its root is due."""
    return f"""
    SELECT c.serial,
        (SELECT p.serial FROM workflow_execution p
         WHERE p.run_id = json_extract(c.execution, '$.parent_run_id') AND p.deleted_at IS NULL
           AND instr(c.parent_step_idempotency_key,
                     p.workflow_id || ':' || p.transaction_id || ':') = 1),
        ({due.condition("c")})
    FROM workflow_execution c
    WHERE c.serial IN (
        SELECT d.serial FROM workflow_execution d
        WHERE d.root IS NOT NULL AND {due.condition("d")}
        UNION
        SELECT k.serial FROM workflow_execution r
        JOIN workflow_execution k ON k.root = r.workflow_id || ':' || r.transaction_id
        WHERE {root} AND k.expires_at IS NULL AND k.{FINISHED} AND k.deleted_at IS NULL
          AND json_extract(k.execution, '$.idempotent') IS NULL
    )
    ORDER BY c.serial
    """


# --- away ----------------------------------------------------------------------------------------


def _delete(
    connection: Connection,
    due: Due,
    serials: Sequence[int],
    on_progress: Callable[[int, int], None] | None,
) -> int:
    """How many were still to go when their turn came."""
    gone = 0
    for portion in portions(serials):
        with connection.transaction():
            gone += delete_portion(connection, due, portion)
        if on_progress is not None:
            on_progress(gone, len(serials))
    return gone


def portions(serials: Sequence[int]) -> Iterator[Sequence[int]]:
    """What is deleted in one transaction each."""
    return (serials[start : start + _PORTION] for start in range(0, len(serials), _PORTION))


def delete_portion(connection: Connection, due: Due, portion: Sequence[int]) -> int:
    """In a transaction: delete those of `doomed` that are still to go; says how many."""
    text = f"""
    DELETE FROM workflow_execution AS e
    WHERE serial IN (SELECT value FROM json_each(:serials)) AND e.{FINISHED}
      AND ({due.condition("e")} OR e.root IS NOT NULL)
    """
    values = {**due.values, "serials": json.dumps(portion)}
    return connection.raw.execute(text, values).rowcount


# --- when ----------------------------------------------------------------------------------------


def last_sweep(connection: Connection) -> datetime | None:
    """When expired executions were last removed, to the minute; None: never, or not all of them."""
    minutes = connection.pragma("user_version")
    return from_micros(minutes * _MINUTE) if minutes > 0 else None


def is_due(connection: Connection, now: datetime) -> bool:
    """Has a day passed since the last sweep?"""
    last = last_sweep(connection)
    # A clock that was set back is no reason to wait.
    return last is None or abs(now - last) >= _EVERY


def _note(connection: Connection, now: datetime | None) -> None:
    """In a transaction: say when the last sweep was; None: it is to go on."""
    minutes = 0 if now is None else to_micros(now) // _MINUTE
    connection.raw.execute(f"PRAGMA user_version = {minutes}")
