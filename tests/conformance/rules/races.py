"""Rules for executions that take another course because of what happens at once, or at a restart.

They cut the expectation off as those of `courses` do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..case import Case
from ..matchers import ANY, OneOf
from .rule import rule


@rule(19, 21)
def every_attempt_runs_once(case: Case) -> None:
    """No attempt is made twice, and no two of a step at once."""
    runs = Counter(told.key for told in case.told if told.event == "onBegin")
    for call in case.calls:
        others = [
            c for c in case.calls if (c.key, c.step, c.action) == (call.key, call.step, call.action)
        ]
        before = [other for other in others if other.started < call.started]
        again = any(other.attempt == call.attempt for other in before)
        beside = any(other.ended is None or other.ended > call.started for other in before)
        if runs[call.key] == 1 and (again or beside):
            begin = case.told_of(call, "onStepBegin")
            place = begin.place if begin else call.place
            event = begin.at if begin else case.events_before(place)
            case.cut(call.key, place=place, event=event)
            return


@rule(22)
def a_step_at_work_is_not_retried(case: Case) -> None:
    """`retry_step` on a step that is being executed is refused."""
    for outcome in case.outcomes():
        command = outcome.command
        if command["op"] != "retry_step" or not outcome.is_accepted:
            continue
        last = case.last_told(outcome.key, str(outcome.step), case.events_before(outcome.place))
        if last and last.event == "onStepBegin":
            quiet = command.get("throw_on_error", True) is False
            case.replace(outcome, {"refused" if quiet else "thrown": "StepNotWaiting"})
            event = case.events_before(outcome.place)
            case.cut(outcome.key, place=outcome.place, event=event, outcome=False)
            return


@rule(23)
def nothing_runs_twice_at_once(case: Case) -> None:
    """A run with the id of a live execution starts nothing."""
    live: set[str] = set()
    for told in case.told:
        if told.event == "onBegin" and told.key in live:
            case.cut(told.key, place=told.place, event=told.at, outcome=False)
            return
        if told.event == "onBegin":
            live.add(told.key)
        elif told.event == "onFinish":
            live.discard(told.key)


@rule(16, 17, 24)
def a_restart_loses_nothing(case: Case) -> None:
    """After a restart an execution goes on where it was; deadlines are armed again."""
    for place, command in enumerate(case.scenario["commands"]):
        if command["op"] != "restart":
            continue
        for look in case.recorded["commands"][place - 1]["stored"]:
            key = f"{look['workflow_id']}:{look['transaction_id']}"
            if look["memory"] and _has_something_to_lose(case, key, place, look["memory"]):
                event = case.recorded["commands"][place]["events_after"]
                case.cut(key, place=place, event=event)
                _forget_ends(case, key, place)


def _forget_ends(case: Case, key: str, place: int) -> None:
    """Nobody sees how calls end whose process is gone."""
    for step, own in case.expected["calls"]["steps"].get(key, {}).items():
        began = {
            c.started for c in case.calls if (c.key, c.step) == (key, step) and c.place <= place
        }
        for call in own:
            if call.at in began:
                case.put(call, "ended", ANY)


def _has_something_to_lose(case: Case, key: str, place: int, memory: Mapping[str, Any]) -> bool:
    steps = case.shape(key).steps
    limits = ("timeout", "retry_interval", "retry_interval_awaiting")
    timed = any(step.options.get(limit) for step in steps.values() for limit in limits)
    last = {name: case.last_told(key, name, case.events_before(place)) for name in steps}
    at_work = any(told and told.event == "onStepBegin" for told in last.values())
    return timed or at_work or memory["state"] != "invoking"


@rule(15)
def names_hold_what_keys_can(case: Case) -> None:
    """Transaction ids may hold colons, step names dots."""
    for outcome in case.outcomes():
        workflow = str(outcome.command.get("workflow"))
        transaction = str(outcome.command.get("transaction_id"))
        dotted = any("." in name for name in getattr(case.shapes.get(workflow), "steps", {}))
        if outcome.command["op"] == "run" and (":" in transaction or dotted):
            place = outcome.place + (not dotted)
            case.cut(outcome.key, place=place, event=case.events_before(place))
            looks = [form.get("stored", {}) for form in case.expected["commands"]]
            for look in [*looks, case.expected["final"]]:
                for key in [key for key in look if outcome.key.startswith(f"{key}:")]:
                    del look[key]  # the reference, too, takes the id apart at its colon
            return


@rule(18)
def what_cannot_be_stored_is_a_failure(case: Case) -> None:
    """An output that JSON cannot hold is a permanent failure of its step."""
    for call in case.calls:
        if "return_circular" in call.behaviour and call.action == "invoke":
            case.cut(call.key, place=call.place, event=case.events_before(call.place))
            return


@rule(51)
def members_of_a_group_start_together(case: Case) -> None:
    """An async member of a stage runs next to the sync ones: the caller may find it done."""
    for call in case.calls:
        group = [
            c
            for c in case.calls
            if c.key == call.key and c.definition.stage == call.definition.stage
        ]
        sync = [c for c in group if not c.definition.options.get("async") and c.action == "invoke"]
        late = any(c.ended is not None and c.ended < call.started for c in sync)
        beside = call.sleeps <= sum(c.sleeps for c in sync) > 0
        if call.definition.options.get("async") and call.action == "invoke" and late and beside:
            for outcome in case.outcomes():
                if outcome.key == call.key and outcome.place == call.place:
                    case.replace(outcome, ANY)


@rule(25)
def a_race_has_either_end(case: Case) -> None:
    """Of a cancel or retry and another command given at once, one comes first; neither is half done."""
    for place, command in enumerate(case.scenario["commands"]):
        cancels = [
            each for each in command.get("ops", ()) if each["op"] in ("cancel", "retry_step")
        ]
        if not cancels:
            continue
        outcomes = [outcome for outcome in case.outcomes() if outcome.place == place]
        if len(cancels) < len(outcomes):
            case.cut(outcomes[0].key, place=place, event=case.events_before(place))
        for outcome in outcomes[1:]:
            if not outcome.is_accepted:
                case.put(outcome.form, "refused", OneOf(("NotAllowed", "TransactionFinished")))
