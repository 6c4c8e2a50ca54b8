"""Losing power: what is on the disk is a part of what was written.

A process runs executions and dies; of each commit it says where the write-ahead log ended when it was
acknowledged, and what the database held. With `synchronous=FULL` a commit is acknowledged when its
part of the log is on the disk, so a loss of power leaves the log up to there, and any part of what
came after. With NORMAL the log is put on the disk only before pages of it are copied into the
database, so any part of it may be missing, in the middle as well.

The log is read as the file format says it: a header of 32 bytes, then frames of a header of 24 bytes
and a page each. Frames whose two salts are not those of the header are left over from before the log
was begun anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from tests.crash import ledger
from tests.crash.flows import FLOWS, REGISTRY
from tests.crash.forks import Fork, say
from tests.crash.points import Points, install
from wfe.model import Recording
from wfe.runtime.engine import Engine
from wfe.store import heartbeat
from wfe.store.sqlite import SQLiteStore

HEADER, FRAME_HEADER = 32, 24

_DEADLINE = 60.0

#: What is run.
_FLOWS = ("linear", "compensation", "awaiting")


class Writes(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Have a database written to by a process that dies."""

    db: str
    synchronous: Literal["full", "normal"]
    #: How often each flow is run.
    times: int
    #: After so many commits all of the log is copied into the database, and it begins anew; what it
    #: was until then is kept in `former`.
    restarts_after: int | None = None


class Acknowledged(msgspec.Struct, frozen=True):
    """A commit, when it had returned."""

    #: Where the log ended.
    log: int
    #: A digest of all that the database held.
    held: str
    #: The log has begun anew so often.
    generation: int
    #: `PRAGMA synchronous` of the connection that wrote it.
    synchronous: int


def former(db: str) -> Path:
    """A copy of the log as it was before it began anew."""
    return Path(f"{db}-former")


def perform(writes: Writes) -> list[Acknowledged]:
    fork = Fork(lambda pipe: _write(writes, pipe), deadline=_DEADLINE)
    text = b""
    while heard := fork.hear():
        text += heard
    assert os.WTERMSIG(fork.status()) == signal.SIGKILL
    return [msgspec.json.decode(line, type=Acknowledged) for line in text.splitlines()]


def held(connection: sqlite3.Connection) -> str:
    """A digest of all that a database holds."""
    digest = hashlib.sha256()
    for line in connection.iterdump():
        digest.update(line.encode())
    return digest.hexdigest()


class Frame(NamedTuple):
    begin: int
    end: int
    #: Of the page in the database, from 1.
    page: int


def page_size(log: bytes) -> int:
    return int.from_bytes(log[8:12], "big")


def frames(log: bytes) -> Iterator[Frame]:
    """The frames that are of the log's present generation."""
    size = FRAME_HEADER + page_size(log)
    for begin in range(HEADER, len(log) - size + 1, size):
        if log[begin + 8 : begin + 16] != log[16:24]:
            return
        yield Frame(begin, begin + size, int.from_bytes(log[begin : begin + 4], "big"))


def end_of(log: bytes) -> int:
    """Where its last frame ends."""
    return max((frame.end for frame in frames(log)), default=0)


# --- in the process that dies --------------------------------------------------------------------


def _write(writes: Writes, pipe: int) -> None:
    os.environ[ledger.VARIABLE] = os.devnull
    # One thread alone commits, or nobody could tell which commit an end of the log belongs to.
    vars(heartbeat)["RENEWAL"] = math.inf
    other = sqlite3.connect(writes.db, check_same_thread=False, isolation_level=None)
    install(_Observer(writes, other, pipe))
    asyncio.run(_run(writes))
    os.kill(os.getpid(), signal.SIGKILL)


class _Observer(Points):
    """Looks at the database after each commit, from another connection."""

    def __init__(self, writes: Writes, other: sqlite3.Connection, pipe: int) -> None:
        super().__init__(None, lambda point: None)
        self._writes = writes
        self._log = Path(f"{writes.db}-wal")
        self._other = other
        self._pipe = pipe
        self._count = 0
        self._generation = 0
        #: Of the statement of each thread: has it committed something?
        self._present = threading.local()

    def reach(self, name: str) -> None:
        super().reach(name)
        if name.startswith("after commit"):
            self._present.has_committed = True

    def execute(self, connection: sqlite3.Connection, sql: str, run: Callable[[], Any]) -> Any:
        self._present.has_committed = False
        outcome = super().execute(connection, sql, run)
        if self._present.has_committed:
            (synchronous,) = sqlite3.Cursor(connection).execute("PRAGMA synchronous").fetchone()
            self._note(synchronous)
        return outcome

    def _note(self, synchronous: int) -> None:
        self._count += 1
        done = Acknowledged(
            end_of(self._log.read_bytes()), held(self._other), self._generation, synchronous
        )
        say(self._pipe, msgspec.json.encode(done) + b"\n")
        if self._count == self._writes.restarts_after:
            former(self._writes.db).write_bytes(self._log.read_bytes())
            self._other.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            self._generation += 1


async def _run(writes: Writes) -> None:
    store = SQLiteStore(writes.db, synchronous=writes.synchronous)
    engine = Engine(store=store, registry=REGISTRY, recording=Recording.EVERY_STEP)
    await engine.start()  # and never closed: that would put the log into the database
    for flow in _FLOWS:
        for number in range(writes.times):
            await engine.run(
                FLOWS[flow].workflow,
                transaction_id=str(number),
                until="waiting",
                throw_on_error=False,
            )
