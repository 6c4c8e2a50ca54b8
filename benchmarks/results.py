"""What was measured, round by round, and what follows from it. Kept as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.pipe import ROOT, Figures
from benchmarks.plan import Key, Target

LATEST = ROOT / "benchmarks" / "results" / "latest.json"


class Results:
    """Rounds of figures, with what they were measured on and by."""

    def __init__(self, about: Mapping[str, Any], workloads: Mapping[str, Any]) -> None:
        self.about = dict(about)
        self._workloads: dict[str, Any] = dict(workloads)

    @classmethod
    def read(cls, file: Path = LATEST) -> Results:
        kept = json.loads(file.read_text())
        return cls(kept["about"], kept["workloads"])

    def write(self, file: Path = LATEST) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = {"about": self.about, "workloads": self._workloads}
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")

    def begin(self, workload: str, **about: Any) -> None:
        """Forget what is known of it."""
        self._workloads[workload] = {"about": about, "figures": {}, "broken": {}}

    def note(self, workload: str, side: str, figures: Figures) -> None:
        """One round of one side."""
        known = self._workloads[workload]["figures"]
        for figure, value in figures.items():
            known.setdefault(figure, {}).setdefault(side, []).append(value)

    def note_broken(self, workload: str, side: str, reason: str) -> None:
        self._workloads[workload]["broken"][side] = reason

    # --- what follows ---

    def names(self) -> Iterable[str]:
        return self._workloads

    def figures(self, workload: str) -> Iterable[str]:
        found: Iterable[str] = self._workloads[workload]["figures"]
        return found

    def broken(self) -> Mapping[tuple[str, str], str]:
        """(workload, side) → why there is nothing."""
        return {
            (workload, side): reason
            for workload, known in self._workloads.items()
            for side, reason in known["broken"].items()
        }

    def rounds(self, key: Key) -> list[float]:
        workload, figure, side = key
        known = self._workloads.get(workload, {"figures": {}})["figures"]
        found: list[float] = known.get(figure, {}).get(side, [])
        return found

    def median(self, key: Key) -> float | None:
        found = self.rounds(key)
        return statistics.median(found) if found else None

    def ratio(self, above: Key, below: Key) -> float | None:
        """The median of the ratios of the rounds in which there are both."""
        pairs = [
            one / other
            for one, other in zip(self.rounds(above), self.rounds(below), strict=False)
            if other
        ]
        return statistics.median(pairs) if pairs else None

    def reached(self, target: Target) -> float | None:
        if target.of is None:
            return self.median(target.figure)
        return self.ratio(target.figure, target.of)
