"""What a command costs before it does anything: whole processes, against bare ones, in one run.

    python benchmarks/cli.py [--rounds 15]

- `wfe --help` against the help of a bare Typer program that formats it without Rich.
- `wfe executions list` in a pipe, on 1,000 rows, against the imports that it cannot do without.
- Commands that a person waits for, beside them: `show`, `why`, a list with `-q`.

Each round runs every command once, in turns; a ratio is the median of the rounds' ratios. CPU time of the
child (user and system), because other programs on the machine are none of our business.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wfe import Engine, Recording, Registry, step, workflow
from wfe.store.sqlite import SQLiteStore

ROWS = 1000

WFE = str(Path(sys.executable).with_name("wfe"))

#: The help of one command with an option and an argument, without Rich.
BARE_HELP = """
import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def hello(name: str, count: int = 1) -> None:
    "Say hello."


@app.command()
def goodbye(name: str) -> None:
    "Say goodbye."


app(["--help"])
"""

BARE_IMPORTS = "import typer, peewee, msgspec"


class Case(NamedTuple):
    name: str
    command: Sequence[str]
    floor: str
    #: At most so many times the floor; None: printed for information.
    target: float | None


FLOORS: Mapping[str, Sequence[str]] = {
    "bare Typer help": (sys.executable, "-c", BARE_HELP),
    "bare imports": (sys.executable, "-c", BARE_IMPORTS),
}

CASES = (
    Case("wfe --help", (WFE, "--help"), "bare Typer help", 1.5),
    Case("executions list", (WFE, "executions", "list"), "bare imports", 1.3),
    Case("executions list -q", (WFE, "executions", "list", "-q", "0042"), "bare imports", None),
    Case("executions show", (WFE, "executions", "show", "bench:t42"), "bare imports", None),
    Case("executions why", (WFE, "executions", "why", "bench:t42"), "bare imports", None),
)


async def fill(path: Path) -> None:
    """A database with so many executions."""
    with Registry().scope() as registry:

        @step
        async def work(value: Any) -> Any:
            return value

        @workflow("bench")
        def bench(value: Any) -> Any:
            return work(value)

    store = SQLiteStore(path, synchronous="normal")
    async with Engine(store=store, registry=registry, recording=Recording.EVERY_STEP) as engine:
        await asyncio.gather(*(engine.run(bench, n, transaction_id=f"t{n}") for n in range(ROWS)))


def cpu(command: Sequence[str], folder: Path) -> float:
    """Seconds of CPU that a process takes, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stderr.decode()
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wfe.toml").write_text('db = "wfe.db"\n')
        asyncio.run(fill(folder / "wfe.db"))
        measure(folder, rounds)


def measure(folder: Path, rounds: int) -> None:
    commands = {**FLOORS, **{case.name: case.command for case in CASES}}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        cpu(command, folder)  # compiles what is not compiled, and fills the page cache
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(cpu(command, folder))
    for name in FLOORS:
        print(f"{name:22}{statistics.median(times[name]) * 1e3:8.1f} ms")
    for case in CASES:
        pairs = zip(times[case.name], times[case.floor], strict=True)
        ratio = statistics.median(ours / floor for ours, floor in pairs)
        target = "" if case.target is None else f"  (target: at most {case.target})"
        took = statistics.median(times[case.name]) * 1e3
        print(f"{case.name:22}{took:8.1f} ms{ratio:6.2f} x {case.floor}{target}")


if __name__ == "__main__":
    main()
