"""Crash points of a real process, and dying at one of them.

They are numbered from 1 in the order in which a process reaches them, and named as those of
`wfe.testing.lives`, with two more places: inside a function and inside a transaction.

    before charge      the function of a step: not called
    in charge          called, its effect only half there
    after charge       its effect there, nothing recorded
    before ~charge     its undo; `(attempt 2)` follows where it is not the first
    before commit 1    the first transaction of this process: not begun
    in commit 1, 2     its second statement (COMMIT is the last) is about to be executed
    after commit 1     committed, and nobody told

Steps say where they are (`reach`). Transactions are found where all of them pass: at the cursors of
sqlite3, which is made to give its connections ours. So whatever the store comes to write, in whatever
thread, between BEGIN and COMMIT or alone, is surrounded by points without knowing of it.
"""

from __future__ import annotations

import functools
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

#: The first words of statements that change a file.
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP")


class Points:
    """The points of one process, which dies `at` one of them, by name or number; None: at none."""

    def __init__(self, at: str | int | None, die: Callable[[str], None]) -> None:
        self._at = at
        self._die = die
        self._lock = threading.RLock()
        self._commits = 0
        self._statements = 0
        #: Those that were reached, in order.
        self.reached: list[str] = []

    def reach(self, name: str) -> None:
        """Go on past a point, or die there."""
        with self._lock:
            self.reached.append(name)
            if self._at in (name, len(self.reached)):
                self._die(name)

    def execute(self, connection: sqlite3.Connection, sql: str, run: Callable[[], Any]) -> Any:
        """Run a statement between the points that belong to it."""
        word = sql.split(maxsplit=1)[0].upper()
        if word == "BEGIN":
            self._begin()
            return run()
        if word in ("SELECT", "ROLLBACK"):
            return run()
        if not connection.in_transaction:
            if word not in _WRITES and "journal_mode =" not in sql:
                return run()
            self._begin()  # a transaction of its own
        with self._lock:
            self._statements += 1
            self.reach(f"in commit {self._commits}, {self._statements}")
        outcome = run()
        if not connection.in_transaction:
            self.reach(f"after commit {self._commits}")
        return outcome

    def _begin(self) -> None:
        with self._lock:
            self._commits += 1
            self._statements = 0
            self.reach(f"before commit {self._commits}")


class _Here:
    """Of this process."""

    points: Points | None = None


def reach(name: str) -> None:
    """A point in a step's function. In a process without points it is none."""
    if _Here.points is not None:
        _Here.points.reach(name)


def install(points: Points) -> None:
    """Let this process die as `points` says. It has opened no database so far."""

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            run = super().execute
            return points.execute(self.connection, sql, lambda: run(sql, parameters))

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            cursor: sqlite3.Cursor = self.cursor().execute(sql, parameters)
            return cursor

    _Here.points = points
    connect = functools.partial(sqlite3.connect, factory=Connection)
    vars(sqlite3)["connect"] = connect
