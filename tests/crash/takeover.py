"""Takeovers: two processes that take up the same dead execution at the same instant.

One process begins all executions and dies in the middle of their steps. Two others then take them up,
one after the other. Both stand at a pipe and are let go at once; every second time both stand at the
beginning of the transaction that would make the execution theirs, too, and are let go again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tests.crash import ledger
from tests.crash.flows import REGISTRY
from tests.crash.forks import Fork, say
from tests.crash.life import ToLedger
from tests.crash.points import Points, install
from tests.crash.recovery import take_up
from wfe.model import ExecutionKey, Recording
from wfe.runtime.engine import Engine
from wfe.store.sqlite import SQLiteStore

#: Seconds after which a process is stuck.
_DEADLINE = 60.0

#: What a taker is told, and what it says.
_GO, _MEET, _HERE = b".", b"!", b"here\n"


class Takeovers(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    db: str
    executions: int

    @property
    def ledger(self) -> Path:
        return Path(self.db).with_suffix(".ledger")


class Taken(msgspec.Struct, frozen=True):
    """What one of the two was told when it took up an execution."""

    pid: int
    #: Why it was refused; empty where it was accepted.
    refusal: str
    #: What the execution came to.
    state: str
    #: Both had it in hand before either could write.
    met: bool


def perform(takeovers: Takeovers) -> list[tuple[Taken, Taken]]:
    """What both were told, by execution."""
    dying = Fork(lambda pipe: _begin_and_die(takeovers), deadline=_DEADLINE)
    while dying.hear():
        pass
    dying.status()
    left, right = _Taker(takeovers), _Taker(takeovers)
    taken = []
    for number in range(takeovers.executions):
        how = _MEET if number % 2 else _GO
        left.go(how)
        right.go(how)
        # Who has been refused without a write does not come to the meeting.
        at_meeting = [taker for taker in (left, right) if taker.is_at_meeting()]
        for taker in at_meeting:
            taker.go(_GO)
        taken.append((left.taken(), right.taken()))
    for taker in (left, right):
        taker.end()
    return taken


class _Taker:
    """One of the two, as its parent sees it."""

    def __init__(self, takeovers: Takeovers) -> None:
        waiting, self._barrier = os.pipe()

        def life(pipe: int) -> None:
            os.close(self._barrier)
            _prepare(takeovers)
            meeting = _Meeting(waiting, pipe)
            install(meeting)
            asyncio.run(_take(takeovers, meeting, pipe))

        self._fork = Fork(life, deadline=_DEADLINE)
        os.close(waiting)
        self._text = b""

    def go(self, how: bytes) -> None:
        os.write(self._barrier, how)

    def is_at_meeting(self) -> bool:
        """When it says something: is it that it has come to the meeting?"""
        self._hear()
        if self._text.startswith(_HERE):
            self._text = self._text.removeprefix(_HERE)
            return True
        return False

    def taken(self) -> Taken:
        self._hear()
        line, _, self._text = self._text.partition(b"\n")
        return msgspec.json.decode(line, type=Taken)

    def _hear(self) -> None:
        while b"\n" not in self._text:
            heard = self._fork.hear()
            assert heard, "a process that took executions up has ended"
            self._text += heard

    def end(self) -> None:
        os.close(self._barrier)
        assert self._fork.status() == 0


# --- in the processes ----------------------------------------------------------------------------


def keys_of(takeovers: Takeovers) -> Sequence[ExecutionKey]:
    return [ExecutionKey("held", str(number)) for number in range(takeovers.executions)]


def _prepare(takeovers: Takeovers) -> None:
    os.environ[ledger.VARIABLE] = str(takeovers.ledger)
    logging.getLogger().addHandler(ToLedger(logging.WARNING))


def _engine(takeovers: Takeovers, on_hold: Callable[[], None] | None = None) -> Engine:
    return Engine(
        store=SQLiteStore(takeovers.db, synchronous="normal", busy_timeout=_DEADLINE),
        registry=REGISTRY,
        recording=Recording.EVERY_STEP,
        resources={"held": on_hold},
    )


def _begin_and_die(takeovers: Takeovers) -> None:
    _prepare(takeovers)
    asyncio.run(_begin(takeovers))
    raise AssertionError("it did not die")


async def _begin(takeovers: Takeovers) -> None:
    held = 0

    def on_hold() -> None:
        nonlocal held
        held += 1
        if held == takeovers.executions:
            os.kill(os.getpid(), signal.SIGKILL)

    async with _engine(takeovers, on_hold) as engine:
        for key in keys_of(takeovers):
            await engine.run(key.workflow_id, transaction_id=key.transaction_id, until="stored")
        await asyncio.sleep(_DEADLINE)


class _Meeting(Points):
    """Where a taker waits for the other one: before it begins, and before it writes."""

    def __init__(self, barrier: int, pipe: int) -> None:
        super().__init__(None, lambda point: None)
        self._barrier = barrier
        self._pipe = pipe
        self._is_due = False
        self.has_met = False

    def wait(self) -> None:
        self._is_due = os.read(self._barrier, 1) == _MEET
        self.has_met = False

    def reach(self, name: str) -> None:
        if self._is_due and name.startswith("before commit"):
            say(self._pipe, _HERE)
            self.wait()
            self.has_met = True


async def _take(takeovers: Takeovers, meeting: _Meeting, pipe: int) -> None:
    async with _engine(takeovers) as engine:
        for key in keys_of(takeovers):
            meeting.wait()
            result = await take_up(engine, key)
            reason = result.acknowledgement.reason
            refusal = "" if reason is None else type(reason).__name__
            result = await engine.wait_for(
                key.workflow_id, key.transaction_id, throw_on_error=False
            )
            assert result.execution is not None
            state = str(result.execution.head.state)
            taken = Taken(os.getpid(), refusal, state, meeting.has_met)
            say(pipe, msgspec.json.encode(taken) + b"\n")
