"""A life: what one process of a play does, from its fork to its end or to its crash point.

It begins the flow, or takes up what an earlier process has left of it; or it answers what waits, as
`wfe step succeed` does. It tells the fork server over a pipe how it ended; one that dies does so in
its last breath.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sqlite3
import traceback
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import msgspec

from tests.crash import ledger
from tests.crash.flows import CANCEL, ENDS, FLOWS, REGISTRY
from tests.crash.forks import say
from tests.crash.points import Points, install
from tests.crash.recovery import UNFINISHED, recover
from wfe.errors import Refused, TransactionFinished
from wfe.model import Event, EventKind, ExecutionKey, Recording, StepKey, StepKind
from wfe.runtime.engine import Engine
from wfe.store.contract import Query, Reader
from wfe.store.sqlite import SQLiteStore
from wfe.testing.answers import accepted, give
from wfe.testing.families import family

TRANSACTION_ID = "test"

#: Seconds after which a process that has not ended is given up.
DEADLINE = 20.0

#: What a process says when it waits for an answer, and stays.
WAITS = b"waits\n"

Role = Literal["drive", "answer"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do."""

    flow: str
    role: Role
    db: Path
    #: The crash point, by name or number; None: it lives on.
    at: str | int | None = None
    #: The size in bytes that its write-ahead log cannot grow beyond: it dies where it would, in the
    #: middle of a commit.
    log: int | None = None


class Report(msgspec.Struct, kw_only=True):
    """How a process ended."""

    role: Role
    pid: int
    #: The crash point at which it died; None: it did not.
    died: str | None = None
    points: Sequence[str] = ()
    #: The idempotency keys of steps that the store had as ended when it began.
    ended_before: Sequence[str] = ()
    #: The execution's; None: there is none.
    state: str | None = None
    #: The keys of steps that wait for an answer.
    waiting: Sequence[str] = ()
    #: The keys of steps for which its answer was accepted.
    answered: Sequence[str] = ()
    #: What went wrong that should not have.
    trouble: str = ""
    #: Bytes of the write-ahead log when all was done.
    log: int = 0


def live(order: Order, pipe: int) -> None:
    """Carry out an order, in a process that was forked for it."""
    os.environ[ledger.VARIABLE] = str(order.db.with_suffix(".ledger"))
    logging.getLogger().addHandler(ToLedger(logging.WARNING))
    life = _Life(order, pipe)
    life.report.ended_before = _ended(order.db)
    install(life.points)
    try:
        asyncio.run(life.work())
    except BaseException:
        life.report.trouble = traceback.format_exc()
    life.say_farewell()


class _Life:
    def __init__(self, order: Order, pipe: int) -> None:
        self._order = order
        self._pipe = pipe
        self._flow = FLOWS[order.flow]
        self._workflow = self._flow.workflow
        self.report = Report(role=order.role, pid=os.getpid())
        self.points = Points(order.at, self._die)

    def _die(self, point: str) -> None:
        self.report.died = point
        self.say_farewell()
        os.kill(os.getpid(), signal.SIGKILL)

    def say_farewell(self) -> None:
        self.report.points = self.points.reached
        say(self._pipe, msgspec.json.encode(self.report))

    # --- what it does ---

    async def work(self) -> None:
        self._begun, self._go_on, self._awaiting = (asyncio.Event() for _ in range(3))
        self._store = SQLiteStore(self._order.db, synchronous="normal")
        self._engine = Engine(
            store=self._store,
            registry=REGISTRY,
            recording=Recording.EVERY_STEP,
            resources={"go-on": self._go_on},
        )
        for each in family(self._workflow):
            self._engine.subscribe(each, self._on_event)
        await self._engine.start()
        self._limit_log()
        async with asyncio.timeout(DEADLINE):
            await (self._answer() if self._order.role == "answer" else self._drive())
        execution = await self._store.load(self._key)
        self.report.state = None if execution is None else str(execution.head.state)
        self.report.waiting = [str(key) for key in self._waiting()]
        self.report.log = _log_size(self._order.db)
        await self._engine.shutdown()

    @property
    def _key(self) -> ExecutionKey:
        return ExecutionKey(self._workflow.id, TRANSACTION_ID)

    def _limit_log(self) -> None:
        if self._order.log is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python would have it be an OSError
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._order.log, resource.RLIM_INFINITY))

    def _on_event(self, event: Event) -> None:
        note(event)
        if event.kind is EventKind.STEP_BEGIN and event.step == self._flow.cancelled_in:
            self._begun.set()
        if event.kind is EventKind.STEP_AWAITING:
            self._awaiting.set()
        if event.kind is EventKind.STEP_SUCCESS and event.step == self._flow.works_until:
            self._go_on.set()

    async def _drive(self) -> None:
        """Begin, or go on with what there is, to the end or as far as it goes without an answer."""
        if await self._store.load(self._key) is not None:
            await recover(self._engine)
        else:
            result = await self._engine.run(
                self._workflow, self._flow.input, transaction_id=TRANSACTION_ID, until="stored"
            )
            accepted(result)
        if f"{self._key}:{self._flow.works_until}:invoke" in self.report.ended_before:
            self._go_on.set()
        if self._flow.cancelled_in:
            await self._cancel()
        await self._settle()
        if self._flow.stays and self._waiting():
            say(self._pipe, WAITS)
            await self._finish()

    async def _finish(self) -> None:
        await self._engine.wait_for(self._workflow, TRANSACTION_ID, throw_on_error=False)

    async def _settle(self) -> None:
        """Wait until it has ended, or only an answer is missing."""
        ending = asyncio.ensure_future(self._finish())
        while not (ending.done() or self._rests()):
            awaiting = asyncio.ensure_future(self._awaiting.wait())
            await asyncio.wait({ending, awaiting}, return_when=asyncio.FIRST_COMPLETED)
            awaiting.cancel()
            self._awaiting.clear()
        ending.cancel()

    def _rests(self) -> bool:
        """An answer is missing, and nothing is at work that does not wait for it as well. (A parent
        waits for its child, too.)"""
        if not self._waiting() or self._flow.works_until is not None:
            return bool(self._waiting())
        runs = self._reader.list(Query(where={"state": UNFINISHED}))
        return not any(run.running for run in runs)

    async def _cancel(self) -> None:
        """Cancel it while its step is at work, unless that is done."""
        ending = asyncio.ensure_future(self._finish())
        begun = asyncio.ensure_future(self._begun.wait())
        await asyncio.wait({ending, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        execution = await self._store.load(self._key)
        assert execution is not None
        if execution.head.cancelled_at is None:
            await self._call_off()
        self._go_on.set()
        await ending

    async def _answer(self) -> None:
        """Answer what waits, and go on from there as far as that is this process's business."""
        for key in self._waiting():
            answer = self._flow.answers[key.step]
            try:
                if answer is CANCEL:
                    await self._call_off()
                else:
                    await give(self._engine, key, answer, until="stored")
            except (Refused, TransactionFinished):
                continue  # somebody who died before he could say so has answered it
            self.report.answered = [*self.report.answered, str(key)]
            await self._settle()

    async def _call_off(self) -> None:
        result = await self._engine.cancel(
            self._workflow, TRANSACTION_ID, until="stored", throw_on_error=False
        )
        accepted(result)

    @property
    def _reader(self) -> Reader:
        return self._store.reader

    def _waiting(self) -> list[StepKey]:
        return waiting(self._reader)


def _log_size(db: Path) -> int:
    return db.with_name(f"{db.name}-wal").stat().st_size


_ENDED = f"""
    SELECT workflow_id || ':' || transaction_id || ':' || step || ':' || action
    FROM execution_event JOIN workflow_execution ON id = execution_id
    WHERE kind IN ({", ".join(f"'{kind}'" for kind in sorted(ENDS))})
"""


def _ended(db: Path) -> list[str]:
    """The keys of steps, and of undos, that a database has as ended."""
    if not db.exists():
        return []
    with closing(sqlite3.connect(f"{db.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return [key for (key,) in connection.execute(_ENDED)]
        except sqlite3.OperationalError:
            return []  # it is only half made


# --- what processes of other tests do, too -------------------------------------------------------


def note(event: Event) -> bool:
    """Write down that this process was told of the end of a step; False: it was something else."""
    if event.kind not in ENDS or event.step is None or event.action is None:
        return False
    key = StepKey(event.workflow_id, event.transaction_id, event.step, event.action)
    ledger.write("told", str(key), event.attempt or 0)
    return True


def waiting(reader: Reader) -> list[StepKey]:
    """The steps that wait for an answer from outside, and not for a child."""
    return [
        StepKey(step.workflow_id, step.transaction_id, step.step, step.action)
        for step in reader.steps_waiting()
        if _kind(step.workflow_id, step.step) is not StepKind.WORKFLOW
    ]


def _kind(workflow_id: str, step: str) -> StepKind:
    return REGISTRY.get(workflow_id).flow.steps[step].kind


class ToLedger(logging.Handler):
    """What the engine logs is trouble, and outlives the process."""

    def emit(self, record: logging.LogRecord) -> None:
        ledger.write("log", self.format(record))
