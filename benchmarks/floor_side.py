"""What nothing can be faster than, measured from within its own process.

    python -m benchmarks.floor_side SETTING FOLDER

SETTING `none`: plain asyncio, one task per step. `full` and `normal`: plain sqlite3 with that durability,
writing in as many transactions the very rows that wfe has just written for the same work; wfe runs in this
process for that, untimed, and what it hands to its writer is noted. A bare Typer program for the commands.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, cast

from benchmarks import cli, gauges, raw
from benchmarks.pipe import Figures, serve
from benchmarks.wfe_side import flow, registry
from wfe import Engine, Recording
from wfe.store.database import Synchronous, open_for_writing
from wfe.store.sqlite import SQLiteStore
from wfe.store.writer import Outcome, Parcel, Writer


class Asyncio:
    """Coroutines that return a value, and nothing else."""

    def each(self, name: str, count: int) -> Figures:
        return gauges.pace(asyncio.run(self._each(name, count)))

    def steps(self, counts: dict[str, int]) -> Figures:
        return {
            length: asyncio.run(self._each(f"sequence-{length}", count)) / int(length)
            for length, count in counts.items()
        }

    async def _each(self, name: str, count: int) -> float:
        kind, _, size = name.partition("-")
        run = _sequence if kind == "sequence" else _side_by_side
        await run(int(size))
        began = process_time()
        for _ in range(count):
            await run(int(size))
        return (process_time() - began) / count


async def _plain(value: Any) -> Any:
    return {"id": value, "total": 12.5, "text": "the output of a step"}


async def _sequence(length: int) -> None:
    for _ in range(length):
        await asyncio.create_task(_plain(1))


async def _side_by_side(width: int) -> None:
    await asyncio.gather(*(_plain(1) for _ in range(width)))


class Sqlite:
    """sqlite3, prepared statements, and the rows of wfe."""

    def __init__(self, synchronous: Synchronous, folder: Path) -> None:
        self._synchronous = synchronous
        self._folder = folder

    def each(self, name: str, count: int) -> Figures:
        return gauges.pace(self._written(asyncio.run(self._noted(name, count))) / count)

    def steps(self, counts: dict[str, int]) -> Figures:
        return {
            length: self.each(f"sequence-{length}", count)["seconds"] / int(length)
            for length, count in counts.items()
        }

    def together(self, count: int) -> Figures:
        groups = asyncio.run(self._noted("sequence-5", count, together=True))
        return {"seconds": self._written(groups)}

    async def _noted(
        self, name: str, count: int, *, together: bool = False
    ) -> list[Sequence[Parcel]]:
        """What wfe commits for so many executions: the groups, one for each transaction."""
        store = SQLiteStore(self._file(), synchronous=self._synchronous)
        async with Engine(store=store, registry=registry, recording=Recording.EVERY_STEP) as engine:
            body = flow(name)
            await engine.run(body, 0)  # takes out the lease, makes the row of the flow
            with Noting() as groups:
                if together:
                    await asyncio.gather(*(engine.run(body, number) for number in range(count)))
                else:
                    for number in range(count):
                        await engine.run(body, number)
        return groups

    def _written(self, groups: list[Sequence[Parcel]]) -> float:
        """Seconds for these transactions, in a database of their own."""
        path = self._file()
        open_for_writing(path, synchronous="full").close()  # makes the tables
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
            for definition in {p.definition for group in groups for p in group}:
                connection.execute("INSERT INTO definition VALUES (?, ?, ?, ?, ?)", definition)
            began = perf_counter()
            for group in groups:
                raw.commit(connection, group)
            return perf_counter() - began

    def _file(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder)) / "floor.db"


class Noting:
    """While the block lasts, what writers are given is noted."""

    def __enter__(self) -> list[Sequence[Parcel]]:
        groups: list[Sequence[Parcel]] = []
        self._write = write = Writer.write

        def noted(writer: Writer, group: Sequence[Parcel], *, wait: bool = True) -> list[Outcome]:
            groups.append(group)
            return write(writer, group, wait=wait)

        Writer.write = noted  # type: ignore[method-assign,assignment]  # to see what is written
        return groups

    def __exit__(self, *_: object) -> None:
        Writer.write = self._write  # type: ignore[method-assign]  # the original again


def commands(rows: int) -> Figures:
    """Seconds of CPU of the bare program that each command is held against."""
    return {case.name: cli.cpu(cli.FLOORS[case.floor], Path.cwd()) for case in cli.CASES}


def main() -> None:
    setting, folder = sys.argv[1:]
    if setting == "none":
        plain = Asyncio()
        serve(
            {
                "each": plain.each,
                "steps": plain.steps,
                "fill_for_commands": commands,
                "commands": commands,
            }
        )
    else:
        side = Sqlite(cast("Synchronous", setting), Path(folder))
        serve({"each": side.each, "steps": side.steps, "together": side.together})


if __name__ == "__main__":
    main()
