"""The soak: several processes run executions on one database, are killed at any moment, and start
again, until every execution has ended.

Each process has executions of its own to run and to wait for, several at a time; beside that it takes
up, again and again, whatever dead processes have left, and answers whatever waits for an answer, be it
its own or not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import select
import signal
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tests.crash import ledger
from tests.crash.flows import FLOWS, REGISTRY
from tests.crash.forks import Fork, say
from tests.crash.life import ToLedger, note, waiting
from tests.crash.recovery import UNFINISHED, recover
from wfe.errors import Refused, TransactionFinished
from wfe.model import Event, ExecutionKey, Recording
from wfe.runtime.engine import Engine
from wfe.store.sqlite import SQLiteStore
from wfe.testing.answers import give

#: What is run in turn.
MIX = (
    "linear",
    "threads",
    "parallel",
    "when",
    "retry",
    "retry-later",
    "compensation",
    "background",
    "no-wait",
    "sleep",
    "nested",
    "awaiting",
    "nested-async",
)

#: Executions that a process runs at a time.
_AT_ONCE = 8

#: Seconds from one look for what others have left to the next.
_PACE = 0.2


class Soak(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    db: str
    processes: int
    #: Of each process.
    executions: int
    #: How often a process is killed, and how many steps it gets to end before, at most.
    kills: int
    steps: int
    seed: int
    #: Seconds after which a process is stuck.
    deadline: float

    @property
    def ledger(self) -> Path:
        return Path(self.db).with_suffix(".ledger")


class Soaked(msgspec.Struct, frozen=True):
    #: The processes that were killed.
    killed: Sequence[int]
    #: Those that have not come to their end by themselves, though nobody killed them.
    stuck: Sequence[int]


def executions_of(soak: Soak, process: int) -> list[tuple[str, str]]:
    """Flows and transaction ids."""
    return [
        (MIX[(process + number) % len(MIX)], f"{process}-{number}")
        for number in range(soak.executions)
    ]


def perform(soak: Soak) -> Soaked:
    """Keep the processes running until all have come to their end."""
    chance = random.Random(soak.seed)
    killed: list[int] = []
    stuck: list[int] = []
    running: dict[int, _Worker] = {}

    def start(process: int, kills: int) -> None:
        fuse = chance.randrange(soak.steps) if kills else None
        worker = _Worker(soak, process, kills, fuse)
        running[worker.fork.pipe] = worker

    for process in range(soak.processes):
        start(process, soak.kills)
    while running:
        for pipe in select.select(list(running), [], [])[0]:
            worker = running[pipe]
            if worker.goes_on():
                continue
            del running[pipe]
            status = worker.fork.status()
            if worker.is_killed:
                killed.append(worker.fork.pid)
                start(worker.process, worker.kills - 1)
            elif status:
                stuck.append(worker.fork.pid)
    return Soaked(killed, stuck)


class _Worker:
    """A process, and the kills that it and its successors have before them."""

    def __init__(self, soak: Soak, process: int, kills: int, fuse: int | None) -> None:
        self.process = process
        self.kills = kills
        self.is_killed = False
        self._fuse = fuse
        self.fork = Fork(lambda pipe: _live(soak, process, pipe), deadline=soak.deadline + 30)

    def goes_on(self) -> bool:
        """It says that steps have ended, which may be its last word; False: it has ended."""
        heard = self.fork.hear()
        if self._fuse is not None and heard:
            self._fuse -= len(heard)
            if self._fuse < 0 and not self.is_killed:
                self.is_killed = True
                self.fork.kill()
        return bool(heard)


# --- in the processes ----------------------------------------------------------------------------


def _live(soak: Soak, process: int, pipe: int) -> None:
    os.environ[ledger.VARIABLE] = str(soak.ledger)
    logging.getLogger().addHandler(ToLedger(logging.WARNING))
    signal.alarm(round(soak.deadline) + 20)
    try:
        asyncio.run(_work(soak, process, pipe))
    except BaseException:
        ledger.write("log", traceback.format_exc())
        raise


async def _work(soak: Soak, process: int, pipe: int) -> None:
    def on_event(event: Event) -> None:
        if note(event):
            say(pipe, b".")

    store = SQLiteStore(soak.db, synchronous="normal", busy_timeout=soak.deadline)
    engine = Engine(store=store, registry=REGISTRY, recording=Recording.EVERY_STEP)
    for workflow_id in REGISTRY.ids():
        engine.subscribe(workflow_id, on_event)
    places = asyncio.Semaphore(_AT_ONCE)

    async def run(flow: str, transaction_id: str) -> None:
        async with places:
            workflow = FLOWS[flow].workflow
            known = await store.load(ExecutionKey(workflow.id, transaction_id))
            if known is None:
                await engine.run(
                    workflow,
                    FLOWS[flow].input,
                    transaction_id=transaction_id,
                    until="finished",
                    throw_on_error=False,
                )
            elif not known.head.is_final:
                await engine.wait_for(workflow, transaction_id, throw_on_error=False)

    async with engine:
        await recover(engine)
        running = asyncio.gather(*(run(*each) for each in executions_of(soak, process)))
        looking = asyncio.create_task(_look_after_others(engine, store))
        both: set[asyncio.Future[Any]] = {running, looking}
        await asyncio.wait(both, timeout=soak.deadline, return_when=asyncio.FIRST_COMPLETED)
        if looking.done():
            looking.result()  # only an error ends it
        looking.cancel()
        if not running.done():
            unfinished = await engine.list_executions(where={"state": UNFINISHED})
            raise TimeoutError(", ".join(f"{each.key} is {each.shown}" for each in unfinished))
        running.result()


async def _look_after_others(engine: Engine, store: SQLiteStore) -> None:
    while True:
        await asyncio.sleep(_PACE)
        await recover(engine)
        for key in waiting(store.reader):
            with suppress(Refused, TransactionFinished):  # somebody else was faster
                await give(engine, key, "yes", until="stored")
                ledger.write("answered", str(key))
