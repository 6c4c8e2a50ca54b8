"""What a commit costs, against plain sqlite3 writing the same rows in as many transactions.

    python -m benchmarks.store_writer [--executions 1000] [--repeat 5] [--folder DIR]

`alone` is one execution after the other, each of 5 durable steps in 6 commits; `together` is many of
them in lock-step, whose commits form groups. `raw` is sqlite3 with prepared rows, one statement per
row, and no more; it has neither to make rows out of records nor to look for stale writers. Raw and
ours take turns, because a disk is not the same from one second to the next. Medians, in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from benchmarks import raw
from wfe.model import (
    Changes,
    EventKind,
    Execution,
    ExecutionState,
    Flow,
    Head,
    StepRecord,
    StepSpec,
    StepState,
    StepStatus,
    TimelineEvent,
)
from wfe.store.database import Synchronous
from wfe.store.sqlite import SQLiteStore
from wfe.store.writer import Packer, Parcel

STEPS = 5
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = [f"step-{number}" for number in range(STEPS)]
FLOW = Flow(
    workflow_id="bench",
    stages=tuple((name,) for name in NAMES),
    steps={name: StepSpec(name=name, stage=stage) for stage, name in enumerate(NAMES)},
    hash="shape",
)


# --- what is committed ---------------------------------------------------------------------------


def commits_of(number: int) -> list[tuple[Execution, Changes]]:
    """The 6 commits of one execution: each ends a step and begins the next."""
    now = NOW + timedelta(milliseconds=number)
    head = Head(
        execution_id=f"wf_exec_{number:026}",
        workflow_id="bench",
        transaction_id=f"order-{number}",
        run_id=f"{number:026}",
        definition=FLOW.hash,
        created_at=now,
        updated_at=now,
    )
    execution = Execution(FLOW, head, input=b'{"order":%d}' % number)
    commits = []
    for stage in range(STEPS + 1):
        changes = _changes(execution, stage, now + timedelta(microseconds=stage))
        base = Execution(
            FLOW, execution.head, input=execution.input, steps=execution.steps.values()
        )
        commits.append((base, changes))
        execution.take(changes)
    return commits


def _changes(execution: Execution, stage: int, now: datetime) -> Changes:
    steps: dict[str, StepRecord] = {}
    events = []
    if stage > 0:
        name = NAMES[stage - 1]
        steps[name] = replace(
            execution.step(name),
            invoke=StepState.DONE,
            invoke_status=StepStatus.OK,
            running=False,
            ended_at=now,
            output=b'{"id":%d,"total":12.5,"text":"the output of a step"}' % stage,
        )
        events.append(TimelineEvent(kind=EventKind.STEP_SUCCESS, time=now, step=name, attempt=1))
    if stage < STEPS:
        name = NAMES[stage]
        steps[name] = replace(
            execution.step(name),
            invoke=StepState.INVOKING,
            invoke_status=StepStatus.WAITING_RESPONSE,
            running=True,
            attempts=1,
            started_at=now,
            last_attempt_at=now,
        )
        events.append(TimelineEvent(kind=EventKind.STEP_BEGIN, time=now, step=name, attempt=1))
    is_last = stage == STEPS
    head = replace(
        execution.head,
        version=stage + 1,
        state=ExecutionState.DONE if is_last else ExecutionState.INVOKING,
        updated_at=now,
        ended_at=now if is_last else None,
        stage=stage,
        running=0 if is_last else 1,
    )
    result = b'{"ok":true}' if is_last else None
    return Changes(head=head, steps=steps, events=tuple(events), result=result)


def parcels_of(packer: Packer, commits: Sequence[tuple[Execution, Changes]]) -> list[Parcel]:
    first, *others = commits
    return [packer.insertion(*first), *(packer.update(*commit) for commit in others)]


# --- measuring -----------------------------------------------------------------------------------


class Bench:
    """A fresh database, and commits of executions that it has not seen."""

    def __init__(self, folder: Path, synchronous: Synchronous) -> None:
        self.store = SQLiteStore(folder / "bench.db", synchronous=synchronous)
        self._synchronous = synchronous
        self._numbers = 0

    async def open(self) -> None:
        await self.store.open()
        await self.store.insert(*self.take(1)[0][0])  # makes the row of the flow
        self.raw = sqlite3.connect(self.store.path, isolation_level=None)
        self.raw.execute(f"PRAGMA synchronous = {self._synchronous}")
        self.raw.execute("PRAGMA foreign_keys = ON")

    async def close(self) -> None:
        self.raw.close()
        await self.store.close()

    def take(self, count: int) -> list[list[tuple[Execution, Changes]]]:
        start = self._numbers
        self._numbers += count
        return [commits_of(number) for number in range(start, self._numbers)]

    async def alone(self, *, lone: bool) -> float:
        (commits,) = self.take(1)
        began = perf_counter()
        await self.store.insert(*commits[0], lone=lone)
        for commit in commits[1:]:
            await self.store.commit(*commit, lone=lone)
        return perf_counter() - began

    async def alone_raw(self) -> float:
        parcels = parcels_of(Packer(), self.take(1)[0])
        began = perf_counter()
        for parcel in parcels:
            raw.commit(self.raw, [parcel])
        return perf_counter() - began

    async def together(self, executions: int) -> float:
        first, *waves = zip(*self.take(executions), strict=True)
        began = perf_counter()
        await asyncio.gather(*(self.store.insert(*commit) for commit in first))
        for wave in waves:
            await asyncio.gather(*(self.store.commit(*commit) for commit in wave))
        return perf_counter() - began

    async def together_raw(self, executions: int) -> float:
        packer = Packer()
        waves = list(zip(*(parcels_of(packer, c) for c in self.take(executions)), strict=True))
        began = perf_counter()
        for wave in waves:
            raw.commit(self.raw, wave)
        return perf_counter() - began


async def measure(repeat: int, **timed: Callable[[], Awaitable[float]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeat):
        for name, run in timed.items():
            times[name].append(await run())
    return {name: statistics.median(values) * 1000 for name, values in times.items()}


async def report(folder: Path, synchronous: Synchronous, executions: int, repeat: int) -> None:
    bench = Bench(folder, synchronous)
    await bench.open()
    alone = await measure(
        repeat * 20,
        raw=bench.alone_raw,
        at_once=lambda: bench.alone(lone=True),
        thread=lambda: bench.alone(lone=False),
    )
    together = await measure(
        repeat,
        raw=lambda: bench.together_raw(executions),
        grouped=lambda: bench.together(executions),
    )
    await bench.close()
    for title, times in (
        (f"alone: {STEPS} steps, {STEPS + 1} commits", alone),
        (f"together: {executions:,} x {STEPS} steps", together),
    ):
        for name, milliseconds in times.items():
            ratio = milliseconds / times["raw"]
            print(f"{synchronous:7}{title:30}{name:9}{milliseconds:10.2f} ms{ratio:7.2f} x raw")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--executions", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    arguments = parser.parse_args()
    modes: tuple[Synchronous, ...] = ("full", "normal")
    for synchronous in modes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            asyncio.run(report(Path(folder), synchronous, arguments.executions, arguments.repeat))


if __name__ == "__main__":
    main()
