"""wfe, the floor below it and DBOS, in one run: `make bench`.

    python -m benchmarks [WORKLOAD ...] [--dbos PYTHON] [--quick] [--rounds N] [--out FILE] [--keep]

Every side is a process of its own. In each round all of them are asked in turns for one measurement, so that
a machine whose speed drifts hurts all alike; figures are medians over rounds, ratios are medians of the
rounds' ratios. A side that has used up its time for a workload (`--budget`, in seconds) is asked no more; each
is asked once at least. What runs is told on stderr; the table goes to stdout, and all rounds to `--out`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import table
from benchmarks.pipe import Broken, Figures, Side
from benchmarks.plan import WORKLOADS, Workload
from benchmarks.results import LATEST, Results

_NAMES = [workload.name for workload in WORKLOADS]


class Bench:
    """One run."""

    def __init__(self, options: argparse.Namespace, results: Results, folder: Path) -> None:
        self._options = options
        self._results = results
        self._folder = folder

    def run(self, workload: Workload) -> None:
        """All rounds of a workload."""
        rounds = 1 if self._options.quick else self._options.rounds or workload.rounds
        self._results.begin(workload.name, asked=dict(workload.arguments), rounds=rounds)
        with ExitStack() as stack:
            left: dict[str, Asked] = {}
            for name, command in self._sides(workload):
                try:
                    left[name] = Asked(workload, name, command, stack, self._options.quick)
                except Broken as error:
                    self._results.note_broken(workload.name, name, str(error))
            for number in range(rounds):
                for name, asked in list(left.items()):
                    self._tell(f"{workload.name} {number + 1}/{rounds} {name}")
                    if not self._measure(workload, name, asked):
                        del left[name]

    def _measure(self, workload: Workload, name: str, asked: Asked) -> bool:
        """Once; whether there is to be another round."""
        began = perf_counter()
        try:
            self._results.note(workload.name, name, asked.once())
        except Broken as error:
            self._results.note_broken(workload.name, name, str(error))
            return False
        asked.used += perf_counter() - began
        return asked.used < float(self._options.budget)

    def _sides(self, workload: Workload) -> Iterator[tuple[str, Command]]:
        for side, settings in (
            ("floor", workload.floor),
            ("wfe", workload.kept),
            ("dbos", workload.dbos if self._options.dbos else ()),
        ):
            python = self._options.dbos if side == "dbos" else sys.executable
            for setting in settings:
                if self._options.quick and setting == "normal" and len(settings) > 1:
                    continue  # as "full"
                yield f"{side} {setting}", Command(python, side, setting, self._folder)

    def _tell(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class Command:
    """How the process of a side is started."""

    def __init__(self, python: str, side: str, setting: str, folder: Path) -> None:
        self._base = (python, "-m", f"benchmarks.{side}_side", setting)
        self._folder = folder
        self.kept = setting

    def folder(self) -> str:
        """A new one, for the files of a process and of whoever follows it."""
        return tempfile.mkdtemp(dir=self._folder)

    def start(self, folder: str) -> Side:
        return Side((*self._base, folder))


class Asked:
    """A side and a workload: asked again and again. `used`: seconds that it took.

    Making one raises Broken where the side cannot be prepared.
    """

    def __init__(
        self, workload: Workload, name: str, command: Command, stack: ExitStack, quick: bool
    ) -> None:
        self._workload = workload
        self._command = command
        self._arguments = workload.asked(command.kept, quick=quick)
        self._lasting = (
            None if workload.alone else stack.enter_context(command.start(command.folder()))
        )
        self.used = 0.0
        if self._lasting is not None and workload.prepare is not None:
            self._lasting.ask(workload.prepare, **self._arguments)

    def once(self) -> Figures:
        """Raises: Broken."""
        if self._lasting is not None:
            return self._lasting.ask(self._workload.measure, **self._arguments)
        folder = self._command.folder()
        if self._workload.crashes:
            with self._command.start(folder) as killed:
                killed.ask("in_flight", **self._arguments)
        with self._command.start(folder) as side:
            return side.ask(self._workload.measure, **self._arguments)


# --- what it was measured on ---------------------------------------------------------------------


def about(dbos: str | None) -> Mapping[str, Any]:
    """Raises: CalledProcessError, OSError: there is no DBOS."""
    versions = [
        f"wfe {version('wfe')}",
        *([f"DBOS {_version_of_dbos(dbos)}"] if dbos else []),
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
    ]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores ({_processor()})",
        "system": f"{platform.system()} {platform.release()}",
        "load": os.getloadavg()[0],
        "versions": ", ".join(versions),
    }


def _version_of_dbos(python: str) -> str:
    ask = "from importlib.metadata import version; print(version('dbos'))"
    told = subprocess.run([python, "-c", ask], capture_output=True, check=True, text=True)
    return told.stdout.strip()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().split("\n") if info.exists() else []
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


# --- the command ---------------------------------------------------------------------------------


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(_NAMES))
    parser.add_argument("--dbos", metavar="PYTHON", help="a Python that has DBOS; none: without it")
    parser.add_argument("--quick", action="store_true", help="small and once: does it run at all?")
    parser.add_argument("--rounds", type=int, help="instead of those of each workload")
    parser.add_argument("--budget", type=float, default=20, help="seconds of a side for a workload")
    parser.add_argument("--out", type=Path, default=LATEST, help="the JSON that is written")
    parser.add_argument("--keep", action="store_true", help="keep other workloads that are in it")
    parser.add_argument("--note", help="what a reader of the table should know, one sentence")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    options = parser.parse_args()
    if unknown := set(options.workloads) - set(_NAMES):
        parser.error(f"there is no workload {', '.join(unknown)}; there is {', '.join(_NAMES)}")
    if options.dbos is not None:
        # Not resolved: the link in an environment is what leads to its packages.
        options.dbos = str(Path(options.dbos).absolute())
    return options


def main() -> None:
    options = _options()
    try:
        found = about(options.dbos)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"There is no DBOS in {options.dbos}: make bench sets one up.")
    results = Results.read(options.out) if options.keep else Results({}, {})
    results.about.update(found, note=options.note)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(options, results, Path(folder))
        for workload in WORKLOADS:
            if workload.name in (options.workloads or _NAMES):
                bench.run(workload)
    results.write(options.out)
    print(table.comparison(results), table.targets(results), table.broken(results), sep="\n")


if __name__ == "__main__":
    main()
