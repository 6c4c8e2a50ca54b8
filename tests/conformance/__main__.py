"""Plays scenarios and compares them with their recordings.

python -m tests.conformance [--store memory|sqlite] [--only GLOB] [--rules] DIR…
    one line per mismatch, then `N passed, M failed, K deviating`; exit 1 where one failed
python -m tests.conformance --dump OUT DIR…
    our record of every scenario as OUT/<name>.json

Without DIR the project's own copy of the recordings is played.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .archive import Scenario, read_archive, read_folder
from .compare import Mismatch
from .player import StoreKind, play
from .rules import RULES
from .verdict import Verdict, judge


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--store", choices=("memory", "sqlite"), default="memory")
    parser.add_argument("--only", default="*", metavar="GLOB", help="names of scenarios")
    parser.add_argument("--rules", action="store_true", help="say how often each rule fired")
    parser.add_argument("--dump", type=Path, metavar="OUT", help="write our records instead")
    return parser.parse_args(given)


def _scenarios(folders: list[Path], only: str) -> Iterator[Scenario]:
    everything = (
        (each for folder in folders for each in read_folder(folder)) if folders else read_archive()
    )
    return (each for each in everything if fnmatch.fnmatch(each["name"], only))


def _verdict(scenario: Scenario, store: StoreKind) -> Verdict:
    """Play and judge; a scenario that cannot be played has failed, the others go on."""
    try:
        return judge(scenario, play(scenario, store))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        return Verdict([Mismatch("played", "to its end", what)], (), deviating=False)


def _dump(scenario: Scenario, ours: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(ours, ensure_ascii=False, indent=1)
    (folder / f"{scenario['name']}.json").write_text(text + "\n", encoding="utf-8")


def _print_totals(verdicts: list[Verdict], rules: bool) -> None:
    if rules:
        fired = Counter(name for verdict in verdicts for name in verdict.fired)
        for rule in RULES:
            print(f"{fired[rule.name]:4} {rule.name}: {rule.summary}")
    failed = sum(bool(verdict.mismatches) for verdict in verdicts)
    deviating = sum(verdict.deviating and not verdict.mismatches for verdict in verdicts)
    print(f"{len(verdicts) - failed - deviating} passed, {failed} failed, {deviating} deviating")


def main(given: list[str]) -> int:
    arguments = _arguments(given)
    verdicts = []
    for scenario in _scenarios(arguments.folders, arguments.only):
        if arguments.dump:
            _dump(scenario, play(scenario, arguments.store), arguments.dump)
            continue
        verdict = _verdict(scenario, arguments.store)
        verdicts.append(verdict)
        for mismatch in verdict.mismatches:
            print(f"{scenario['name']}  {mismatch}")
    if arguments.dump:
        return 0
    _print_totals(verdicts, arguments.rules)
    return 1 if any(verdict.mismatches for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
