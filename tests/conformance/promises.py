"""What holds for every execution of ours, whatever was recorded.

- Nothing fails in the background, every command returns, and no result is told of what is not done.
- Every attempt is made once.
- A stage begins when the ones before it have ended, and is undone when the ones after it have been.
- What is told as undone was undone: its handler was called, with what the step had left for it.
- An execution that ended agrees with its steps, and one that did not end waits for something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .compare import Mismatch
from .normal import FINAL_STATES, Record, event_name, left_behind
from .shape import Shape, shapes_of

Key = tuple[str, str]
Call = Mapping[str, Any]


def broken_promises(scenario: Mapping[str, Any], record: Record) -> Iterator[Mismatch]:
    """Every promise that our own record of a scenario breaks."""
    if record["background_errors"]:
        yield Mismatch("promise: no background errors", [], record["background_errors"])
    for index, entry in enumerate(record["commands"]):
        if "never_returned" in entry:
            yield Mismatch(f"promise: commands[{index}] returns", "an answer", "none")
        yield from _returned_agrees(f"commands[{index}]", entry.get("returned"))
    yield from _calls_agree(scenario, record)
    for event in record["events"]:
        if event_name(event["event"]) == "finish" and event["state"] != "done" and event["result"]:
            yield Mismatch("promise: finish has no result unless done", None, event)
    for each in record["final"]:
        yield from _stored_agrees(each, _is_cut_short(record))
        if len(each["rows"]) == 1:
            yield from _undo_agrees(scenario, record, each)


def _returned_agrees(name: str, returned: Any) -> Iterator[Mismatch]:
    if not isinstance(returned, Mapping):
        return
    for index, result in enumerate(returned.get("results", ())):
        yield from _returned_agrees(f"{name}.results[{index}]", result.get("returned"))
    flow = returned.get("flow")
    if returned.get("result") is not None and (not flow or flow["state"] != "done"):
        yield Mismatch(f"promise: {name} has no result unless done", None, returned["result"])
    if flow:
        yield from _end_agrees(name, flow)


# --- calls ---------------------------------------------------------------------------------------


def _calls_agree(scenario: Mapping[str, Any], record: Record) -> Iterator[Mismatch]:
    shapes = shapes_of(scenario)
    answered = _answered([scenario["workflows"], scenario["commands"]])
    restarts = sum(command["op"] == "restart" for command in scenario["commands"])
    runs = Counter(
        (event["workflow"], event["transaction_id"])
        for event in record["events"]
        if event_name(event["event"]) == "begin"
    )
    by_execution: dict[Key, list[Call]] = {}
    for call in sorted(record["calls"], key=_start):
        by_execution.setdefault((call["workflow"], call["transaction_id"]), []).append(call)
    for key, calls in by_execution.items():
        yield from _each_attempt_once(key, calls, max(runs[key], 1) + restarts)
        shape = shapes.get(key[0])
        if shape is not None:
            yield from _undone_in_reverse(key, calls, shape)
            if runs[key] == 1 and not restarts:
                yield from _stages_in_order(key, calls, shape, answered)


def _start(call: Call) -> int:
    return int(call["started"])


def _answered(plan: Any) -> set[str]:
    """Steps that are answered from outside, perhaps before their handler has ended."""
    if isinstance(plan, Mapping):
        own = {str(plan["step"])} if str(plan.get("op", "")).startswith("set_step") else set()
        return own.union(*map(_answered, plan.values()))
    return set().union(*map(_answered, plan)) if isinstance(plan, list) else set()


def _each_attempt_once(key: Key, calls: Sequence[Call], runs: int) -> Iterator[Mismatch]:
    attempts = Counter((call["step"], call["action"], call["attempt"]) for call in calls)
    for attempt, count in attempts.items():
        if count > runs:
            yield Mismatch(f"promise: {':'.join(key)} {attempt} is made once", runs, count)


def _stages_in_order(
    key: Key, calls: Sequence[Call], shape: Shape, answered: set[str]
) -> Iterator[Mismatch]:
    waited_for: list[Call] = []
    for call in calls:
        step = shape.steps.get(call["step"])
        if call["action"] != "invoke" or step is None:
            continue
        for other in waited_for:
            over = other["ended"] is not None and other["ended"] < call["started"]
            if shape.stage(other["step"]) < step.stage and not over:
                field = f"promise: stages of {':'.join(key)} follow each other"
                yield Mismatch(field, f"{other['step']} before {step.name}", "not so")
            elif shape.stage(other["step"]) > step.stage:
                field = f"promise: {':'.join(key)} never goes back to an earlier stage"
                yield Mismatch(field, f"{step.name} before {other['step']}", "not so")
        if not step.options.get("no_wait") and step.name not in answered:
            waited_for.append(call)


def _undone_in_reverse(key: Key, calls: Sequence[Call], shape: Shape) -> Iterator[Mismatch]:
    undone: list[Call] = []
    for call in calls:
        if call["action"] == "invoke":
            undone.clear()
            continue
        for other in undone:
            here, there = shape.stage(call["step"]), shape.stage(other["step"])
            over = other["ended"] is not None and other["ended"] < call["started"]
            if here > there or (here < there and not over and other["step"] != call["step"]):
                field = f"promise: {':'.join(key)} is undone in reverse"
                yield Mismatch(field, f"{call['step']} before {other['step']}", "not so")
        undone.append(call)


# --- states --------------------------------------------------------------------------------------

_SETTLED = frozenset({"done", "failed", "timeout", "skipped", "skipped_failure"})
_HAD_AN_EFFECT = frozenset({"done", "failed", "timeout"})


def _end_agrees(name: str, view: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Does a final state agree with the states of the steps?"""
    invoke = {step: each["invoke"].split("/")[0] for step, each in view["steps"].items()}
    undo = {step: each["compensate"].split("/")[0] for step, each in view["steps"].items()}
    match view["state"]:
        case "done":
            fits = all(state in _SETTLED for state in invoke.values())
            fits &= all(state == "dormant" for state in undo.values())
        case "reverted":
            fits = all(
                undo[step] == ("reverted" if state in _HAD_AN_EFFECT else "dormant")
                for step, state in invoke.items()
            )
        case "failed":
            fits = "failed" in undo.values()
        case _:
            fits = True
    if not fits:
        yield Mismatch(f"promise: {name} agrees with its steps", view["state"], view["steps"])


def _undo_agrees(
    scenario: Mapping[str, Any], record: Record, stored: Mapping[str, Any]
) -> Iterator[Mismatch]:
    """Were exactly those undos called that the one row of an execution tells of?"""
    key = (stored["workflow_id"], stored["transaction_id"])
    shape = shapes_of(scenario).get(key[0])
    [row] = stored["rows"]
    for name, step in row["steps"].items() if shape else ():
        if shape is None or not shape.steps[name].node.get("compensate"):
            continue
        calls = [
            call
            for call in record["calls"]
            if (call["workflow"], call["transaction_id"], call["step"]) == (*key, name)
            and call["action"] == "compensate"
        ]
        begun = step["compensate"].split("/")[0] in ("compensating", "reverted", "failed")
        if begun is not bool(calls):
            yield Mismatch(f"promise: {':'.join(key)} undoes {name}", step["compensate"], calls)
        left = left_behind(row["invoke"].get(name))
        for call in calls if step["invoke"] == "done/ok" else ():
            if call["input"] != left:
                yield Mismatch(
                    f"promise: the undo of {name} gets what it left", left, call["input"]
                )


def _is_cut_short(record: Record) -> bool:
    """Did the scenario end while work was under way?"""
    last = record["commands"][-1] if record["commands"] else {}
    return last.get("returned") == {"settled": "max"} or last.get("op") in ("sleep", "shutdown")


def _stored_agrees(stored: Mapping[str, Any], cut_short: bool) -> Iterator[Mismatch]:
    name = f"{stored['workflow_id']}:{stored['transaction_id']}"
    for row in stored["rows"]:
        yield from _end_agrees(name, row)
    memory = stored["memory"]
    if memory is None:
        for row in stored["rows"]:
            if row["state"] not in FINAL_STATES:
                yield Mismatch(f"promise: {name} can be gone on with", "a checkpoint", row["state"])
        return
    statuses = {
        step[side].split("/")[1]
        for step in memory["steps"].values()
        for side in ("invoke", "compensate")
    }
    if not cut_short and not statuses & {"waiting_response", "temp_failure"}:
        yield Mismatch(f"promise: {name} does not hang", "a step that waits", memory)
