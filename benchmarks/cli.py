"""What a command costs before it does anything: whole processes, and bare ones beside them.

- `wfe --help` against the help of a bare Typer program that formats it without Rich.
- `wfe executions list` in a pipe, on 1,000 rows, against the imports that it cannot do without.
- Commands that a person waits for, beside them: `show`, `why`, a list with `-q`.

`python -m benchmarks commands` runs them in turns. CPU time of the child (user and system), because other
programs on the machine are none of our business.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
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
    #: One of FLOORS.
    floor: str


FLOORS: Mapping[str, Sequence[str]] = {
    "bare Typer help": (sys.executable, "-c", BARE_HELP),
    "bare imports": (sys.executable, "-c", BARE_IMPORTS),
}

CASES = (
    Case("wfe --help", (WFE, "--help"), "bare Typer help"),
    Case("executions list", (WFE, "executions", "list"), "bare imports"),
    Case("executions list -q", (WFE, "executions", "list", "-q", "0042"), "bare imports"),
    Case("executions show", (WFE, "executions", "show", "bench:t42"), "bare imports"),
    Case("executions why", (WFE, "executions", "why", "bench:t42"), "bare imports"),
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
