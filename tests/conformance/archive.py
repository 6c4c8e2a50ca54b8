"""Scenarios, from folders of JSON files or from the compressed copy that the project carries.

A scenario is plain data: workflows, commands, and what the reference engine did (`recorded`). The
copy is one line of JSON per scenario, in order of file names, so that the same folder always makes
the same bytes; measured durations (`timing`) are left out of it.

    python -m tests.conformance.archive FOLDER      makes the copy anew from a folder
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Scenario = dict[str, Any]

#: The compressed copy.
ARCHIVE = Path(__file__).parent / "recordings.jsonl.xz"


def read_folder(folder: Path) -> Iterator[Scenario]:
    """The scenarios below `folder` (files that hold `commands` and `recorded`), by file name."""
    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict) and "commands" in data and "recorded" in data:
            yield data


def read_archive(path: Path = ARCHIVE) -> Iterator[Scenario]:
    """The scenarios of the compressed copy."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


@functools.cache
def carried() -> Sequence[Scenario]:
    """Those of the copy that the project carries, for whoever changes nothing in them."""
    return tuple(read_archive())


def canonical(scenarios: Iterable[Scenario]) -> Iterator[str]:
    """One line per scenario. The order of keys is kept: it is part of a workflow's data."""
    for scenario in scenarios:
        kept = {key: value for key, value in scenario.items() if key != "timing"}
        yield json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n"


def digest(scenarios: Iterable[Scenario]) -> str:
    """Identifies a set of scenarios, whatever it was read from."""
    total = hashlib.sha256()
    for line in canonical(scenarios):
        total.update(line.encode())
    return total.hexdigest()


def pack(folder: Path, path: Path = ARCHIVE) -> int:
    """Make the compressed copy of `folder`; says how many scenarios it holds."""
    lines = list(canonical(read_folder(folder)))
    path.write_bytes(lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
    return len(lines)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.conformance.archive FOLDER", file=sys.stderr)
        return 2
    print(f"{pack(Path(arguments[0]))} scenarios in {ARCHIVE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
