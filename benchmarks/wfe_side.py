"""wfe, measured from within its own process.

    python -m benchmarks.wfe_side SETTING FOLDER

SETTING is `none` (in memory, nothing written), `full` or `normal` (a SQLite file in FOLDER with that
durability, every step recorded, as the command line does). The engine is opened, and has run each workflow
once, before anything is timed; except for `recover`, whose time begins before the engine is opened.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar, cast

from benchmarks import cli, gauges, listing
from benchmarks.pipe import Figures, serve
from wfe import Engine, Recording, Registry, Workflow, parallel, step, workflow
from wfe.store.database import Synchronous, open_reader
from wfe.store.sqlite import SQLiteStore

_T = TypeVar("_T")

#: Whether steps end; in the process that is to be killed they do not.
ends = True

#: Tells the step that computes to end.
stop = threading.Event()

registry = Registry()

with registry.scope():

    @step
    async def work(value: Any) -> Any:
        if not ends:
            await asyncio.Event().wait()
        return {"id": value, "total": 12.5, "text": "the output of a step"}

    @step(async_=True)
    async def ask() -> Any:
        return None

    @step
    def compute(seconds: float) -> int:
        """A heavy step: Python that never waits."""
        until, rounds = perf_counter() + seconds, 0
        while perf_counter() < until and not stop.is_set():
            rounds += 1
        return rounds

    @workflow("awaiting", retention_time=3600)
    def awaiting(value: Any) -> Any:
        return ask()

    @workflow("heavy")
    def heavy(seconds: float) -> Any:
        return compute(seconds)


def sequence(length: int) -> Workflow[Any, Any]:
    """Steps one after the other."""

    @workflow(f"sequence-{length}")
    def body(value: Any) -> Any:
        for number in range(length):
            work.config(name=f"step-{number}")(value)

    return body


def side_by_side(width: int) -> Workflow[Any, Any]:
    """Steps in one stage."""

    @workflow(f"parallel-{width}")
    def body(value: Any) -> Any:
        return list(parallel([work.config(name=f"step-{n}")(value) for n in range(width)]))

    return body


@functools.cache
def flow(name: str) -> Workflow[Any, Any]:
    """`sequence-5` or `parallel-100`, composed when it is first asked for."""
    kind, _, size = name.partition("-")
    with registry.scope():
        return sequence(int(size)) if kind == "sequence" else side_by_side(int(size))


class Wfe:
    """An engine that is opened when it is first needed."""

    def __init__(self, setting: str, folder: Path) -> None:
        self._setting = setting
        self._folder = folder
        self._runner = asyncio.Runner()
        self._engine: Engine | None = None
        # Where nothing is written all is computing, and other programs are none of our business.
        self._clock = process_time if setting == "none" else perf_counter
        self._known: set[str] = set()
        self._questions: dict[str, Callable[[], object]] = {}

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(coroutine)

    def _made(self) -> Engine:
        if self._setting == "none":
            return Engine(registry=registry)
        store = SQLiteStore(self._folder / "wfe.db", synchronous=cast("Synchronous", self._setting))
        return Engine(store=store, registry=registry, recording=Recording.EVERY_STEP)

    async def _opened(self) -> Engine:
        if self._engine is None:
            self._engine = self._made()
            await self._engine.start()
        return self._engine

    async def _warm(self, name: str) -> Engine:
        """An open engine that has run this workflow."""
        engine = await self._opened()
        if name not in self._known:
            self._known.add(name)
            await engine.run(flow(name), 0)
        return engine

    # --- one after the other ---

    def each(self, name: str, count: int) -> Figures:
        """Seconds of one execution."""
        return gauges.pace(self._run(self._each(name, count)))

    def steps(self, counts: dict[str, int]) -> Figures:
        """Seconds of one step, in workflows of so many steps; the number of executions of each."""
        return {
            length: self._run(self._each(f"sequence-{length}", count)) / int(length)
            for length, count in counts.items()
        }

    async def _each(self, name: str, count: int) -> float:
        engine, body = await self._warm(name), flow(name)
        began = self._clock()
        for number in range(count):
            await engine.run(body, number)
        return (self._clock() - began) / count

    # --- many at once ---

    def together(self, count: int) -> Figures:
        """Seconds and memory for so many executions of 5 steps, started at once."""
        seconds = self._run(self._together(count))
        return {"seconds": seconds, "peak": gauges.peak() - gauges.empty()}

    async def _together(self, count: int) -> float:
        engine, body = await self._warm("sequence-5"), flow("sequence-5")
        began = self._clock()
        await asyncio.gather(*(engine.run(body, number) for number in range(count)))
        return self._clock() - began

    def beside(self, count: int) -> Figures:
        """The same, alone and while a `def` step computes without a pause."""
        return {
            "alone": self._run(self._beside(count, 0)),
            "busy": self._run(self._beside(count, 60)),
        }

    async def _beside(self, count: int, seconds: float) -> float:
        engine = await self._warm("sequence-5")
        stop.clear()
        busy = asyncio.create_task(engine.run(heavy, seconds)) if seconds else None
        await asyncio.sleep(0.05)
        taken = await self._together(count)
        stop.set()
        if busy is not None:
            await busy
        return taken

    # --- waiting ---

    def awaiting(self, count: int, within: float, idle: float, settle: float) -> Figures:
        """What executions cost that wait for an answer; `idle`: seconds of
        looking on, after `settle` seconds of quiet."""
        return self._run(self._awaiting(count, idle, settle))

    async def _awaiting(self, count: int, idle: float, settle: float) -> Figures:
        engine = await self._warm("sequence-5")
        before_all = await gauges.idle(asyncio.sleep, idle, settle)
        gc.collect()
        before = gauges.peak()
        began = perf_counter()
        for first in range(0, count, 100):
            await asyncio.gather(
                *(
                    engine.run(awaiting, number, transaction_id=f"t{number}")
                    for number in range(first, min(first + 100, count))
                )
            )
        begin = (perf_counter() - began) / count
        gc.collect()
        each = (gauges.peak() - before) / count
        later = await gauges.idle(asyncio.sleep, idle, settle)
        return {"waiting": count, "begin": begin, "each": each, "idle": later, "bare": before_all}

    # --- a crash ---

    def in_flight(self, count: int) -> Figures:
        """Begin so many executions whose first step does not end."""
        global ends
        ends = False
        self._run(self._in_flight(count))
        return {}

    async def _in_flight(self, count: int) -> None:
        engine = await self._opened()
        self._running = [
            asyncio.create_task(engine.run(flow("sequence-5"), number, transaction_id=f"t{number}"))
            for number in range(count)
        ]
        while True:
            found = await engine.list_executions(where={"status": "running"})
            if len(found) == count:
                return
            await asyncio.sleep(0.01)

    def recover(self, count: int) -> Figures:
        """Seconds until what a killed process has left is done; opening the engine is part of it."""
        return {"seconds": self._run(self._recover(count))}

    async def _recover(self, count: int) -> float:
        flow("sequence-5")
        began = perf_counter()
        engine = await self._opened()
        found = await engine.recover()
        assert len(found) == count, len(found)
        await asyncio.gather(
            *(engine.wait_for("sequence-5", key.transaction_id, until="finished") for key in found)
        )
        return perf_counter() - began

    # --- the command line ---

    def fill_for_commands(self, rows: int) -> Figures:
        (self._folder / "wfe.toml").write_text('db = "wfe.db"\n')
        asyncio.run(cli.fill(self._folder / "wfe.db"))
        return self.commands(rows)  # compiles what is not compiled, and fills the page cache

    def commands(self, rows: int) -> Figures:
        """Seconds of CPU of whole processes; see `cli`."""
        return {case.name: cli.cpu(case.command, self._folder) for case in cli.CASES}

    def fill_for_listing(self, rows: int) -> Figures:
        file = self._folder / "listing.db"
        listing.fill(file, rows)
        asked = listing.questions(open_reader(file), rows)
        self._questions = {question.name: question.ask for question in asked}
        return self.listing(rows)

    def listing(self, rows: int) -> Figures:
        """Seconds of each question among so many executions; see `listing`."""
        taken = {name: listing.seconds(ask) for name, ask in self._questions.items()}
        return {**taken, "slowest": max(taken.values())}


def main() -> None:
    setting, folder = sys.argv[1:]
    side = Wfe(setting, Path(folder))
    serve(
        {
            "each": side.each,
            "steps": side.steps,
            "together": side.together,
            "beside": side.beside,
            "awaiting": side.awaiting,
            "in_flight": side.in_flight,
            "recover": side.recover,
            "fill_for_commands": side.fill_for_commands,
            "commands": side.commands,
            "fill_for_listing": side.fill_for_listing,
            "listing": side.listing,
        }
    )


if __name__ == "__main__":
    main()
