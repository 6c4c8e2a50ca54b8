"""The comparer: a record equals itself, and no change of a compared field goes unseen."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from .archive import ARCHIVE, Scenario, carried, digest, read_folder
from .compare import comparable, differences
from .normal import FINAL_STATES, normal, rests

SCENARIOS = carried()


def form_of(scenario: Scenario, record: Any) -> Any:
    """What is compared of a record, without any rule."""
    rest = rests(scenario, scenario["recorded"])
    return comparable(normal(scenario, record, rest), scenario["match"])


def compared(scenario: Scenario, record: Any) -> list[Any]:
    """The differences of a record from the scenario's recording, without any rule."""
    expected = form_of(scenario, scenario["recorded"])
    return list(differences(expected, form_of(scenario, record)))


def test_every_recording_equals_itself() -> None:
    assert [s["name"] for s in SCENARIOS if compared(s, copy.deepcopy(s["recorded"]))] == []


Change = Callable[[], object]


def _replaced(holder: Any, key: Any, value: Any) -> Change:
    return partial(holder.__setitem__, key, value)


def _step_changes(steps: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    for name, step in steps.items():
        yield "step state", _replaced(step, "invoke", "timeout/temp_failure")
        yield "step undo", _replaced(step, "compensate", "failed/temp_failure")
        yield "attempts", _replaced(step, "attempts", step["attempts"] + 1)
        yield "failures", _replaced(step, "failures", step["failures"] + 1)
        yield "no step", _replaced(steps, name, None)


def _stored_changes(stored: list[Any]) -> Iterator[tuple[str, Change]]:
    for each in stored:
        if each["memory"] is not None:
            yield "memory", _replaced(each, "memory", None)
            yield "memory state", _replaced(each["memory"], "state", "failed")
            yield from _step_changes(each["memory"]["steps"])
        if each["rows"]:
            yield "one row less", each["rows"].pop
        for row in each["rows"]:
            for field in ("state", "flow_state", "retention_time", "payload"):
                yield f"row {field}", _replaced(row, field, "changed")
            yield "row error", partial(row["errors"].append, {"action": "x", "message": "y"})
            for step in row["invoke"]:
                yield "output", _replaced(row["invoke"], step, "changed")
            yield from _step_changes(row["steps"])


def _command_changes(entry: Any) -> Iterator[tuple[str, Change]]:
    if "thrown" in entry:
        yield "thrown", _replaced(entry["thrown"], "message", "another text")
        yield "returns", _replaced(entry, "never_returned", True)
    returned = entry.get("returned")
    if not isinstance(returned, dict):
        return
    for key in returned.get("acknowledgement") or ():
        yield f"acknowledgement {key}", _replaced(returned["acknowledgement"], key, "changed")
    if "settled" in returned:
        yield "settled", _replaced(returned, "settled", "changed")
        yield from _stored_changes(entry["stored"])
    if "result" in returned:
        yield "result", _replaced(returned, "result", "changed")
    for failure in returned.get("errors") or ():
        for field in ("action", "handler_type", "name", "message"):
            yield f"error {field}", _replaced(failure, field, "changed")
    flow = returned.get("flow")
    if flow and flow["state"] in FINAL_STATES:
        yield "flow state", _replaced(flow, "state", "compensating")
        for flag, value in flow["flags"].items():
            yield f"flag {flag}", _replaced(flow["flags"], flag, not value)
        yield from _step_changes(flow["steps"])


def _event_changes(events: list[Any]) -> Iterator[tuple[str, Change]]:
    for index, event in enumerate(events):
        if event["event"] == "onResume":
            continue
        yield "event lost", partial(events.pop, index)
        yield "event twice", partial(events.insert, index, event)
        if event["event"] == "onStepSuccess":
            yield "response", _replaced(event, "response", "changed")
        if event.get("step"):
            yield "event's step", _replaced(event, "step", "another")
        if event["event"] == "onFinish" and "state" in event:
            yield "finish", _replaced(event, "state", "compensating")


def _call_changes(calls: list[Any]) -> Iterator[tuple[str, Change]]:
    for index, call in enumerate(calls):
        yield "call lost", partial(calls.pop, index)
        yield "call's input", _replaced(call, "input", "changed")
        yield "attempt", _replaced(call, "attempt", call["attempt"] + 1)
        yield "another step called", _replaced(call, "step", "another")
        other = "invoke" if call["action"] == "compensate" else "compensate"
        yield "another side called", _replaced(call, "action", other)


def changes(scenario: Scenario, record: Any) -> list[tuple[str, Change]]:
    """Every small change of `record` that a comparison at the scenario's level must see."""
    found = list(_stored_changes(record["final"]))
    for entry in record["commands"]:
        found += _command_changes(entry)
    found += _call_changes(record["calls"])
    if scenario["match"] != "outcome":
        found += _event_changes(record["events"])
        for events in record["subscribers"].values():
            found += _event_changes(events)
    return found


@pytest.mark.parametrize("seed", range(50))
def test_a_changed_field_is_reported(seed: int) -> None:
    chance = random.Random(seed)
    scenario = chance.choice([s for s in SCENARIOS if s["match"] != "none"])
    expected = form_of(scenario, scenario["recorded"])
    for _ in range(8):
        record = copy.deepcopy(scenario["recorded"])
        what, change = chance.choice(changes(scenario, record))
        change()
        found = list(differences(expected, form_of(scenario, record)))
        assert found, f"{scenario['name']}: {what} went unseen"


def test_the_order_between_stages_is_compared() -> None:
    scenario = next(s for s in SCENARIOS if s["name"] == "basic-linear-five")
    record = copy.deepcopy(scenario["recorded"])
    first, second = record["calls"][0], record["calls"][1]
    for position in ("started", "ended"):
        first[position], second[position] = second[position], first[position]
    assert [each.field for each in compared(scenario, record)] == [
        "calls.stages.w:t[0]",
        "calls.stages.w:t[1]",
    ]


def test_null_and_absent_are_the_same() -> None:
    assert not list(differences({"a": None}, {}))


def test_true_is_not_one() -> None:
    assert list(differences({"a": True}, {"a": 1}))


def test_the_compressed_copy_has_not_fallen_behind() -> None:
    folder = ARCHIVE.parents[3] / "shared" / "conformance"
    if not folder.is_dir():
        pytest.skip("the recordings are not next to this repository")
    assert digest(read_folder(folder)) == digest(SCENARIOS)
