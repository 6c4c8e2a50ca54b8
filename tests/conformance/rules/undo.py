"""Rules about undoing: children, failures, and what must have ended before."""

from __future__ import annotations

from itertools import pairwise

from ..case import Case
from ..matchers import ANY, Entry
from ..normal import Form
from .rule import rule


@rule(58)
def a_handler_ends_before_its_undo(case: Case) -> None:
    """A handler that was overtaken has ended before its step is undone."""
    for steps in case.expected["calls"]["steps"].values():
        for own in steps.values():
            for call, undo in pairwise(own):
                if undo["action"] == "compensate" and (call.until or undo.at) > undo.at:
                    call.until = undo.at - 0.5
                    case.changed = True


@rule(5)
def a_child_that_reverted_is_undone(case: Case) -> None:
    """A child that has undone itself counts as undone: the parent ends reverted."""
    undone = {
        (told.key, told.step)
        for told in case.told
        if told.event == "onCompensateStepFailure"
        for failure in told.raw["errors"]
        if "could not be found" in failure["message"]
    } - {(call.key, call.step) for call in case.calls}
    if not undone:
        return
    keys = {key for key, _ in undone}
    for key, view in case.views():
        for name, step in view["steps"].items():
            if (key, name) in undone and step["compensate"] == "failed/permanent_failure":
                case.put(step, "compensate", "reverted/ok")
                case.put(step, "attempts", 1)
                case.put(step, "failures", 0)
        states = {step["compensate"] for step in view["steps"].values()}
        if key in keys and "reverted/ok" in states and "flags" in view:
            case.put(view["flags"], "reverted_steps", True)
        if key in keys and view["state"] == "failed" and "failed/permanent_failure" not in states:
            for name in {"state", "flow_state"} & set(view):
                case.put(view, name, "reverted")
    broken = {
        told.key
        for told in case.told
        if told.event == "onCompensateStepFailure"
        and told.raw["errors"]
        and (told.key, told.step) not in undone
    }
    for key, events in case.event_lists():
        for name, own in list(events["steps"].items()):
            if (key, name) not in undone:
                continue
            case.put(events["steps"], name, _undone_at_once(own))
        for event in events["flow"]:
            if key in keys - broken and event.get("state") == "failed":
                case.put(event, "state", "reverted")
    for holder, name in case.error_lists():
        kept = [failure for failure in holder[name] if not _is_unknown_child(failure)]
        case.put(holder, name, kept)


def _undone_at_once(own: list[Entry]) -> list[Entry]:
    """A step's events with its failed undo, and any retries of it, as one that went well."""
    told: list[Entry] = []
    for event in own:
        if event["event"] != "compensate_step_failure":
            told.append(event)
        elif len(told) > 1 and told[-2]["event"] == "compensate_step_success":
            told.pop()
        else:
            told.append(Entry({"event": "compensate_step_success", "response": ANY}, event.at))
    return told


def _is_unknown_child(failure: Form) -> bool:
    return failure["handler_type"] == "compensate" and "could not be found" in str(
        failure["message"]
    )


@rule(67)
def a_failed_undo_is_never_ignored(case: Case) -> None:
    """An execution with a step that could not be undone ends failed."""
    for key, view in case.views():
        states = {step["compensate"] for step in view["steps"].values()}
        if view["state"] == "reverted" and "failed/permanent_failure" in states:
            for name in {"state", "flow_state"} & set(view):
                case.put(view, name, "failed")
            for each, events in case.event_lists():
                for event in events["flow"]:
                    if each == key and event.get("state") == "reverted":
                        case.put(event, "state", "failed")
