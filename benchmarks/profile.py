"""Where the time of wfe goes, by room: `python -m benchmarks.profile [five | together]`.

Two workloads under Python's own profiler: 5 steps that are not kept, and 1,000 executions of 5 steps at
once in a file (`synchronous` NORMAL), as the thread of the event loop sees them. The profiler makes calls
dearer than they are, so the shares are of use, the seconds are not; calls are counted exactly.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import wfe
from wfe import Engine, Workflow, step, workflow
from wfe.model import Recording
from wfe.store.sqlite import SQLiteStore

_HOME = Path(wfe.__file__).parent


@step
async def same(value: Any) -> Any:
    return value


@workflow("five")
def five(value: Any) -> Any:
    for number in range(5):
        value = same.config(name=f"step-{number}")(value)
    return value


async def _one_by_one(engine: Engine, work: Workflow[Any, Any]) -> int:
    for number in range(1000):
        await engine.run(work, number)
    return 1000


async def _together(engine: Engine, work: Workflow[Any, Any]) -> int:
    await asyncio.gather(*(engine.run(work, number) for number in range(1000)))
    return 1000


async def _profiled(
    engine: Engine, run: Callable[[Engine, Workflow[Any, Any]], Awaitable[int]]
) -> tuple[pstats.Stats, int]:
    async with engine:
        await _one_by_one(engine, five)
        profile = cProfile.Profile()
        profile.enable()
        count = await run(engine, five)
        profile.disable()
    return pstats.Stats(profile), count


def _room(file: str, function: str) -> str:
    """What a function belongs to: a room of wfe, a library, the interpreter."""
    path = Path(file)
    if path.is_relative_to(_HOME):
        inside = path.relative_to(_HOME)
        return f"wfe/{inside.parts[0]}" if len(inside.parts) > 1 else f"wfe/{inside}"
    if "asyncio" in path.parts or "_asyncio" in function or "selectors" in path.name:
        return "asyncio"
    if "epoll" in function:
        return "asyncio"
    for library in ("ulid", "msgspec", "sqlite3", "peewee"):
        if library in path.name or library in path.parts or library in function:
            return library
    return "the rest of Python"


def _show(title: str, stats: pstats.Stats, runs: int) -> None:
    calls: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    found: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = stats.stats  # type: ignore[attr-defined]  # stubs
    for (file, _, function), (_, count, own, _, _) in found.items():
        room = _room(file, function)
        calls[room] += count
        seconds[room] = seconds.get(room, 0.0) + own
    total = sum(seconds.values())
    print(f"| {title} | calls per execution | share of the time |")
    print("|---|---:|---:|")
    for room, own in sorted(seconds.items(), key=lambda each: -each[1]):
        print(f"| {room} | {calls[room] / runs:,.1f} | {own / total:.0%} |")
    print(f"| all | {calls.total() / runs:,.1f} | |\n")


async def main() -> None:
    wanted = sys.argv[1:] or ["five", "together"]
    if "five" in wanted:
        _show("5 steps, not kept", *await _profiled(Engine(), _one_by_one))
    if "together" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            store = SQLiteStore(Path(folder) / "wfe.db", synchronous="normal")
            _show(
                "1,000 at once, in a file",
                *await _profiled(Engine(store=store, recording=Recording.EVERY_STEP), _together),
            )


if __name__ == "__main__":
    asyncio.run(main())
