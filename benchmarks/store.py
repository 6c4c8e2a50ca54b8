"""What durable executions cost, against plain sqlite3 writing the same rows in the same commits.

    python benchmarks/store.py [--repeat 5] [--folder DIR]

- `alone`: one execution of 5 steps, each recorded; then another one.
- `together`: 1,000 of them started at once, whose commits form groups.
- `beside a busy thread`: 200 of them while a `def` step computes, against 200 without it.
- `recovery`: 1,000 executions in flight when their process is killed, taken up and driven to the end.

Raw is what a script would do: the rows that our engine has just written, in as many transactions, by
prepared statements, one row at a time. Both take turns, because a disk is not the same from one second
to the next; medians, in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sqlite3
import statistics
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from store_writer import raw_commit

from wfe import Engine, Recording, Registry, Workflow, step, workflow
from wfe.store.database import Synchronous
from wfe.store.sqlite import SQLiteStore
from wfe.store.writer import Outcome, Parcel, Writer

STEPS = 5
TOGETHER = 1000
BESIDE = 200

#: Whether steps end; in the process that is to be killed they do not.
ends = True


def _compose() -> tuple[Registry, Workflow[Any, Any], Workflow[Any, Any]]:
    with Registry().scope() as registry:

        @step
        async def work(value: Any) -> Any:
            if not ends:
                await asyncio.Event().wait()
            return {"id": value, "total": 12.5, "text": "the output of a step"}

        @step
        def compute(seconds: float) -> int:
            """A heavy step: Python that never waits."""
            until = perf_counter() + seconds
            rounds = 0
            while perf_counter() < until and not stop.is_set():
                rounds += 1
            return rounds

        @workflow("bench")
        def bench(value: Any) -> Any:
            for number in range(STEPS):
                work.config(name=f"step-{number}")(value)

        @workflow("heavy")
        def heavy(seconds: float) -> Any:
            return compute(seconds)

    return registry, bench, heavy


stop = threading.Event()
registry, bench, heavy = _compose()


class Recorded:
    """A database in a folder of its own, and the groups that were written into it."""

    def __init__(self, folder: Path, synchronous: Synchronous) -> None:
        self.path = Path(tempfile.mkdtemp(dir=folder)) / "wfe.db"
        self.synchronous = synchronous
        self.groups: list[Sequence[Parcel]] = []

    def engine(self) -> Engine:
        store = SQLiteStore(self.path, synchronous=self.synchronous)
        return Engine(store=store, registry=registry, recording=Recording.EVERY_STEP)

    async def run(self, count: int) -> float:
        """Seconds for so many executions at once; the groups are noted."""
        async with self.engine() as engine:
            await engine.run(bench, 0)  # takes out the lease, makes the row of the flow
            self._note()
            began = perf_counter()
            if count == 1:
                await engine.run(bench, 1)
            else:
                await asyncio.gather(*(engine.run(bench, number) for number in range(count)))
            taken = perf_counter() - began
            del Writer.write
            Writer.write = _write  # type: ignore[method-assign]  # the original again
        return taken

    def _note(self) -> None:
        groups = self.groups

        def noted(writer: Writer, group: Sequence[Parcel], *, wait: bool = True) -> list[Outcome]:
            groups.append(group)
            return _write(writer, group, wait=wait)

        Writer.write = noted  # type: ignore[method-assign,assignment]  # to see what the engine writes


_write = Writer.write


def raw(folder: Path, recorded: Recorded) -> float:
    """Seconds that plain sqlite3 takes for the same groups, in a fresh database."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "raw.db"
    asyncio.run(_make(path))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA synchronous = {recorded.synchronous}")
    connection.execute("PRAGMA foreign_keys = ON")
    for _, digest in {(p.definition[0], p.definition) for g in recorded.groups for p in g}:
        connection.execute("INSERT INTO definition VALUES (?, ?, ?, ?, ?)", digest)
    began = perf_counter()
    for group in recorded.groups:
        raw_commit(connection, group)
    taken = perf_counter() - began
    connection.close()
    return taken


async def _make(path: Path) -> None:
    store = SQLiteStore(path)
    await store.open()
    await store.close()


def compare(folder: Path, synchronous: Synchronous, count: int, repeat: int) -> None:
    ours, plain, ratios, commits = [], [], [], 0
    for _ in range(repeat):
        recorded = Recorded(folder, synchronous)
        ours.append(asyncio.run(recorded.run(count)))
        plain.append(raw(folder, recorded))
        ratios.append(ours[-1] / plain[-1])
        commits = len(recorded.groups)
    what = "alone" if count == 1 else f"{count:,} together"
    print(
        f"{synchronous:7}{what:22}{commits:4} commits{statistics.median(ours) * 1e3:10.2f} ms"
        f"{statistics.median(plain) * 1e3:10.2f} ms raw{statistics.median(ratios):7.2f} x"
    )


# --- beside a thread that computes ---------------------------------------------------------------


async def _beside(recorded: Recorded, seconds: float) -> float:
    async with recorded.engine() as engine:
        stop.clear()
        busy = asyncio.create_task(engine.run(heavy, seconds)) if seconds else None
        await asyncio.sleep(0.05)
        began = perf_counter()
        await asyncio.gather(*(engine.run(bench, number) for number in range(BESIDE)))
        taken = perf_counter() - began
        stop.set()
        if busy is not None:
            await busy
    return taken


def beside(folder: Path, repeat: int) -> None:
    alone, busy = [], []
    for _ in range(repeat):
        alone.append(asyncio.run(_beside(Recorded(folder, "full"), 0)))
        busy.append(asyncio.run(_beside(Recorded(folder, "full"), 60)))
    ratio = statistics.median(b / a for a, b in zip(alone, busy, strict=True))
    print(
        f"full   {BESIDE} beside a busy thread        {statistics.median(busy) * 1e3:10.2f} ms"
        f"{statistics.median(alone) * 1e3:10.2f} ms without{ratio:7.2f} x"
    )


# --- recovery ------------------------------------------------------------------------------------


def recovery(folder: Path, repeat: int) -> None:
    times = []
    for _ in range(repeat):
        recorded = Recorded(folder, "full")
        _kill_in_flight(recorded)
        times.append(asyncio.run(_recovered(recorded)))
    print(f"full   recovery of {TOGETHER:,} in flight{statistics.median(times) * 1e3:18.2f} ms")


def _kill_in_flight(recorded: Recorded) -> None:
    """A process with so many executions in the middle of a step, killed there."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        asyncio.run(_in_flight(recorded, writer))
        os._exit(0)
    os.read(reader, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)


async def _in_flight(recorded: Recorded, writer: int) -> None:
    global ends
    ends = False
    async with recorded.engine() as engine:
        running = [
            asyncio.create_task(engine.run(bench, number, transaction_id=f"t{number}"))
            for number in range(TOGETHER)
        ]
        while True:
            await asyncio.sleep(0.01)
            found = await engine.list_executions(where={"status": "running"})
            if len(found) == TOGETHER:
                os.write(writer, b"x")
                await asyncio.wait(running)


async def _recovered(recorded: Recorded) -> float:
    began = perf_counter()
    async with recorded.engine() as engine:
        found = await engine.recover()
        assert len(found) == TOGETHER, len(found)
        await asyncio.gather(
            *(engine.wait_for("bench", key.transaction_id, until="finished") for key in found)
        )
    return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        modes: tuple[Synchronous, ...] = ("full", "normal")
        for synchronous in modes:
            compare(folder, synchronous, 1, arguments.repeat * 5)
            compare(folder, synchronous, TOGETHER, arguments.repeat)
        beside(folder, arguments.repeat)
        recovery(folder, arguments.repeat)


if __name__ == "__main__":
    main()
