"""From a scenario and our record of it to a verdict: passed, failed, or deviating for a stated reason."""

from __future__ import annotations

import fnmatch
import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .case import Case
from .compare import Mismatch, comparable, differences
from .normal import Form, Record, normal, rests
from .promises import broken_promises
from .rules import apply_rules

DEVIATIONS = Path(__file__).parent / "deviations.toml"


@dataclass(frozen=True)
class Verdict:
    """What became of one scenario."""

    mismatches: Sequence[Mismatch]
    #: Names of the rules that changed what was expected.
    fired: Sequence[str]
    #: It differs, in fields that `deviations.toml` names.
    deviating: bool


@functools.cache
def deviations() -> Mapping[str, Mapping[str, Any]]:
    """The entries of `deviations.toml` by scenario."""
    entries = tomllib.loads(DEVIATIONS.read_text(encoding="utf-8")).get("deviation", [])
    return {entry["scenario"]: entry for entry in entries}


def expectation(scenario: Mapping[str, Any]) -> tuple[Form, list[str]]:
    """What we should do: the recording, rewritten by the rules; and which rules fired."""
    recorded = scenario["recorded"]
    case = Case(scenario, normal(scenario, recorded, rests(scenario, recorded)))
    fired = apply_rules(case)
    return case.expected, fired


def judge(scenario: Mapping[str, Any], ours: Record) -> Verdict:
    """Compare our record of a scenario with what we should do."""
    promises = list(broken_promises(scenario, ours))
    if scenario["match"] == "none":
        return Verdict(promises, (), deviating=False)
    expected, fired = expectation(scenario)
    form = normal(scenario, ours, rests(scenario, scenario["recorded"]))
    form["background_errors"] = ours["background_errors"]
    match = scenario["match"]
    found = list(differences(comparable(expected, match), comparable(form, match)))
    fields = deviations().get(scenario["name"], {}).get("fields", [])
    unexplained = [
        each for each in found if not any(fnmatch.fnmatchcase(each.field, f) for f in fields)
    ]
    return Verdict(unexplained + promises, fired, deviating=len(unexplained) < len(found))
