"""What the engine costs in memory, against plain asyncio in the same run.

    python benchmarks/engine.py

Each pair is measured in turns, so that a machine whose speed drifts hurts both alike; the ratio is the
median of the pairs. CPU time, not wall time: another program on the machine is none of our business.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from wfe import Engine, Workflow, parallel, step, workflow

ROUNDS = 15

Work = Callable[[], Awaitable[Any]]


@step
async def same(value: Any) -> Any:
    return value


@step(async_=True)
async def ask() -> Any:
    return None


def sequence(length: int) -> Workflow[Any, Any]:
    """`length` steps one after the other; not stored."""

    @workflow(f"sequence-{length}")
    def body(value: Any) -> Any:
        for number in range(length):
            value = same.config(name=f"step-{number}")(value)
        return value

    return body


def side_by_side(width: int) -> Workflow[Any, Any]:
    """`width` steps in one stage; not stored."""

    @workflow(f"parallel-{width}")
    def body(value: Any) -> Any:
        return list(parallel([same.config(name=f"step-{n}")(value) for n in range(width)]))

    return body


@workflow("awaiting", retention_time=3600)
def awaiting(value: Any) -> Any:
    return ask()


async def plain(value: Any) -> Any:
    return value


async def plain_sequence(length: int) -> None:
    """The floor: one task per step, one after the other."""
    for _ in range(length):
        await asyncio.create_task(plain(1))


async def cpu(work: Work, times: int) -> float:
    """CPU seconds of one call."""
    begin = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - begin) / times


async def compare(ours: Work, floor: Work, times: int) -> tuple[float, float, float]:
    """Median CPU seconds of both, and the median of the ratios."""
    pairs = [(await cpu(ours, times), await cpu(floor, times)) for _ in range(ROUNDS)]
    own, other = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return statistics.median(own), statistics.median(other), ratio


def show(rows: Sequence[tuple[str, str, str, str, str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


async def speed(engine: Engine) -> None:
    five, ten, thousand = sequence(5), sequence(10), sequence(1000)
    hundred = side_by_side(100)
    rows = [("what", "wfe", "floor", "ratio", "at most")]

    ours, floor, ratio = await compare(
        lambda: engine.run(five, 1), lambda: plain_sequence(5), times=60
    )
    rows.append(("5 steps, not stored", us(ours), us(floor), f"{ratio:.2f}", "4"))

    long, short, ratio = await compare(
        lambda: engine.run(thousand, 1), lambda: many(engine, ten, 100), times=1
    )
    rows.append(
        ("a step of 1,000 / of 10", us(long / 1000), us(short / 1000), f"{ratio:.2f}", "1.2")
    )

    ours, floor, ratio = await compare(
        lambda: engine.run(hundred, 1),
        lambda: asyncio.gather(*(plain(1) for _ in range(100))),
        times=5,
    )
    rows.append(("100 steps in parallel", us(ours), us(floor), f"{ratio:.2f}", "3"))
    show(rows)


async def many(engine: Engine, flow: Workflow[Any, Any], times: int) -> None:
    for _ in range(times):
        await engine.run(flow, 1)


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


async def waiting(engine: Engine, count: int) -> None:
    """Executions that wait for an answer: what they cost while nothing happens."""
    gc.collect()
    before = peak()
    begin = time.process_time()
    for number in range(count):
        await engine.run(awaiting, number, transaction_id=f"t{number}")
    spent = time.process_time() - begin
    gc.collect()
    each = (peak() - before) / count
    tasks = len(asyncio.all_tasks()) - 1
    begin = time.process_time()
    await asyncio.sleep(2)
    idle = (time.process_time() - begin) / 2
    print(
        f"{count:,} awaiting: {each / 1024:.1f} KiB each, begun in {us(spent / count)} each, "
        f"{tasks} tasks, idle CPU {idle:.2%}"
    )


def peak() -> int:
    """Bytes of memory that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main() -> None:
    async with Engine() as engine:
        await speed(engine)
        await waiting(engine, 10_000)


if __name__ == "__main__":
    asyncio.run(main())
