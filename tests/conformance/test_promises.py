"""Promises are not empty: the recordings break them where the reference has the defect."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .archive import Scenario, carried
from .promises import broken_promises

SCENARIOS = {scenario["name"]: scenario for scenario in carried()}


def broken(scenario: Scenario, record: Any) -> list[str]:
    return [each.field for each in broken_promises(scenario, record)]


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("more-parallel-tail-compensation-order", "promise: w:t is undone in reverse"),
        ("more-interval-sibling-fails", "promise: w:t agrees with its steps"),
        ("more-stepto-last-continue", "promise: w:t does not hang"),
        ("more-comp-await-restart", "promise: w:t can be gone on with"),
        ("more-run-again-during-parallel", "promise: w:t ('a', 'invoke', 2) is made once"),
        ("more-retry-step-running-sync", "promise: stages of w:t follow each other"),
        ("nowait-fails", "promise: w:t never goes back to an earlier stage"),
        ("cancel-background-fails", "promise: no background errors"),
        ("async-success-then-later-fails", "promise: the undo of a gets what it left"),
        ("async-background-three", "promise: commands[0] has no result unless done"),
        ("wfto-sync-last-step", "promise: finish has no result unless done"),
    ],
)
def test_the_reference_breaks(name: str, promise: str) -> None:
    found = broken(SCENARIOS[name], SCENARIOS[name]["recorded"])
    assert any(each.startswith(promise) for each in found), found


def test_a_plain_execution_breaks_none() -> None:
    scenario = SCENARIOS["comp-linear-order"]
    assert broken(scenario, scenario["recorded"]) == []


def test_an_undo_that_was_not_called_is_noticed() -> None:
    scenario = SCENARIOS["comp-stored-rows"]
    record = copy.deepcopy(scenario["recorded"])
    record["calls"] = [call for call in record["calls"] if call["action"] == "invoke"]
    assert any("undoes" in each for each in broken(scenario, record))


def test_a_stage_that_begins_too_early_is_noticed() -> None:
    scenario = SCENARIOS["basic-linear-five"]
    record = copy.deepcopy(scenario["recorded"])
    record["calls"][0]["ended"] = record["calls"][-1]["ended"] + 1
    assert any("follow each other" in each for each in broken(scenario, record))
