"""Every recorded scenario, played on our engine: equal, but for what was decided otherwise."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from .archive import Scenario, carried
from .player import play
from .rules import RULES
from .verdict import DEVIATIONS, expectation, judge

SCENARIOS = carried()
#: SQLite is slower: every so many-th scenario stands for all.
SAMPLE = SCENARIOS[::12]


def name(scenario: Scenario) -> str:
    return str(scenario["name"])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_does_as_recorded_in_memory(scenario: Scenario) -> None:
    assert [str(each) for each in judge(scenario, play(scenario)).mismatches] == []


@pytest.mark.parametrize("scenario", SAMPLE, ids=name)
def test_does_as_recorded_on_sqlite(scenario: Scenario, tmp_path: Path) -> None:
    played = play(scenario, "sqlite", tmp_path)
    assert [str(each) for each in judge(scenario, played).mismatches] == []


def test_every_rule_is_needed() -> None:
    compared = [scenario for scenario in SCENARIOS if scenario["match"] != "none"]
    fired = Counter(rule for scenario in compared for rule in expectation(scenario)[1])
    assert [rule.name for rule in RULES if not fired[rule.name]] == []


def test_deviations_are_few_needed_and_give_a_reason() -> None:
    entries = tomllib.loads(DEVIATIONS.read_text(encoding="utf-8")).get("deviation", [])
    assert len(entries) < 40
    by_name = {scenario["name"]: scenario for scenario in SCENARIOS}
    for entry in entries:
        assert entry["decision"]
        assert entry["why"]
        scenario = by_name[entry["scenario"]]
        assert judge(scenario, play(scenario)).deviating, entry["scenario"]
