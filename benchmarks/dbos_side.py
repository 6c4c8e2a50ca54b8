"""DBOS on SQLite, measured from within its own process, by a Python that has it installed.

    python -m benchmarks.dbos_side SETTING FOLDER

SETTING `default`: as it is after `pip install dbos`, with the path of the file and nothing else set. That is
SQLite's own default, a rollback journal with `synchronous` FULL; up to 20 connections; any number of threads.
`full` and `normal`: tuned for SQLite, a write-ahead log with that `synchronous`, and a thread for each
connection (THREADS), which was as fast as any when 1, 2, 4, 8, 20 and no limit were tried.

What was done so that it is seen at its best:

- It is launched before anything is timed, the recovery of its launch excepted. It logs nothing, serves no
  admin port, exports no traces, talks to no conductor.
- Connections are made by `creator`, a parameter of SQLAlchemy's engine: DBOS keeps its own pool, its own
  transactions (IMMEDIATE) and its own busy timeout, all that changes are the two PRAGMAs.
- Steps one after the other are `def`, and called directly: `async def` goes to a thread for every write, and
  took from a tenth to a third longer.
- Many at once are `async def` in one event loop, under `asyncio.gather`, and awaited: `start_workflow` of `def`
  took as long or longer with that many threads; a queue, which is for a limit on how many run, took longer,
  because each execution is written once more and found by polling.
- Executions are recovered by `DBOS.launch()` itself; nobody polls for them while they run.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from dbos import DBOS, DBOSConfig

from benchmarks import gauges
from benchmarks.pipe import Figures, serve

_T = TypeVar("_T")

THREADS = 20

#: Whether steps end; in the process that is to be killed they do not.
ends = True

#: How many steps have begun and not ended, how many workflows are over, and how many wait.
begun = over = waiting = 0


@DBOS.step()
def work(value: Any) -> Any:
    return {"id": value, "total": 12.5, "text": "the output of a step"}


@DBOS.workflow()
def sequence(value: Any, length: int) -> None:
    for _ in range(length):
        work(value)


@DBOS.step()
async def work_async(value: Any) -> Any:
    global begun
    if not ends:
        begun += 1
        await asyncio.Event().wait()
    return {"id": value, "total": 12.5, "text": "the output of a step"}


@DBOS.workflow()
async def sequence_async(value: Any, length: int) -> None:
    global over
    for _ in range(length):
        await work_async(value)
    over += 1


@DBOS.workflow()
async def side_by_side(value: Any, width: int) -> None:
    await asyncio.gather(*(work_async(value) for _ in range(width)))


@DBOS.workflow()
async def wait(value: Any) -> Any:
    global waiting
    waiting += 1
    return await DBOS.recv_async("answer", timeout_seconds=3600)


class Dbos:
    """DBOS in a loop of its own, launched when it is first needed."""

    def __init__(self, setting: str, folder: Path) -> None:
        self._path = folder / "dbos.sqlite"
        self._loop = asyncio.new_event_loop()
        self._is_launched = False
        config: DBOSConfig = {
            "name": "bench",
            "system_database_url": f"sqlite:///{self._path}",
            "log_level": "CRITICAL",
        }
        if setting != "default":
            config["max_executor_threads"] = THREADS
            config["db_engine_kwargs"] = {"creator": lambda: self._connect(setting)}
        DBOS(config=config)

    def _connect(self, synchronous: str) -> sqlite3.Connection:
        # As SQLAlchemy makes one for a pool: whichever thread has it may use it.
        connection = sqlite3.connect(self._path, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        return connection

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return self._loop.run_until_complete(coroutine)

    def _launch(self) -> None:
        if not self._is_launched:
            DBOS.launch()
            self._is_launched = True

    def _opened(self) -> None:
        """Launched, and has run each kind of workflow once."""
        if not self._is_launched:
            self._launch()
            sequence(0, 5)
            self._run(sequence_async(0, 5))

    # --- one after the other ---

    def each(self, name: str, count: int) -> Figures:
        """Seconds of one execution."""
        self._opened()
        kind, _, size = name.partition("-")
        began = perf_counter()
        if kind == "sequence":
            for number in range(count):
                sequence(number, int(size))
        else:
            self._run(self._side_by_side(int(size), count))
        return gauges.pace((perf_counter() - began) / count)

    async def _side_by_side(self, width: int, count: int) -> None:
        for number in range(count):
            await side_by_side(number, width)

    def steps(self, counts: dict[str, int]) -> Figures:
        """Seconds of one step, in workflows of so many steps; the number of executions of each."""
        return {
            length: self.each(f"sequence-{length}", count)["seconds"] / int(length)
            for length, count in counts.items()
        }

    # --- many at once ---

    def together(self, count: int) -> Figures:
        """Seconds and memory for so many executions of 5 steps, started at once."""
        self._opened()
        seconds = self._run(self._together(count))
        return {"seconds": seconds, "peak": gauges.peak() - gauges.empty()}

    async def _together(self, count: int) -> float:
        began = perf_counter()
        await asyncio.gather(*(sequence_async(number, 5) for number in range(count)))
        return perf_counter() - began

    # --- waiting ---

    def awaiting(self, count: int, within: float, idle: float, settle: float) -> Figures:
        """What workflows cost that wait for a message; as many as have come so far in `within` seconds."""
        self._opened()
        return self._run(self._awaiting(count, within, idle, settle))

    async def _awaiting(self, count: int, within: float, idle: float, settle: float) -> Figures:
        before_all = await gauges.idle(asyncio.sleep, idle, settle)
        gc.collect()
        before = gauges.peak()
        began = perf_counter()
        for first in range(0, count, 100):
            last = min(first + 100, count)
            await asyncio.gather(
                *(DBOS.start_workflow_async(wait, number) for number in range(first, last))
            )
            while waiting < last:  # noqa: ASYNC110  # the workflow runs in DBOS's own way: it only counts
                await asyncio.sleep(0.001)
            if perf_counter() - began > within:
                break
        begin = (perf_counter() - began) / waiting
        gc.collect()
        each = (gauges.peak() - before) / waiting
        later = await gauges.idle(asyncio.sleep, idle, settle)
        return {"waiting": waiting, "begin": begin, "each": each, "idle": later, "bare": before_all}

    # --- a crash ---

    def in_flight(self, count: int) -> Figures:
        """Begin so many executions whose first step does not end."""
        global ends
        ends = False
        self._launch()
        self._run(self._in_flight(count))
        return {}

    async def _in_flight(self, count: int) -> None:
        for number in range(count):
            await DBOS.start_workflow_async(sequence_async, number, 5)
        while begun < count:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.01)

    def recover(self, count: int) -> Figures:
        """Seconds until what a killed process has left is done. The launch, which begins the recovery, is
        not in them; what it does meanwhile is a present."""
        self._launch()
        began = perf_counter()
        while over < count:
            time.sleep(0.01)
        with sqlite3.connect(self._path) as connection:
            while self._unfinished(connection):
                time.sleep(0.01)
        return {"seconds": perf_counter() - began}

    def _unfinished(self, connection: sqlite3.Connection) -> int:
        unfinished = "SELECT count(*) FROM workflow_status WHERE status <> 'SUCCESS'"
        found: int = connection.execute(unfinished).fetchone()[0]
        return found


def main() -> None:
    setting, folder = sys.argv[1:]
    side = Dbos(setting, Path(folder))
    serve(
        {
            "each": side.each,
            "steps": side.steps,
            "together": side.together,
            "awaiting": side.awaiting,
            "in_flight": side.in_flight,
            "recover": side.recover,
        }
    )


if __name__ == "__main__":
    main()
