"""Rules that need what all others have made: who was told, and in which order stages went."""

from __future__ import annotations

from collections.abc import Callable

from ..case import Case
from ..matchers import ANY, Entry
from ..normal import Form, event_list
from .rule import rule


@rule(43)
def handlers_see_everything(case: Case) -> None:
    """Handlers given to a command are told everything until the end."""
    entries = case.recorded["commands"]
    told: Form = {"flow": [], "steps": {}, "stages": []}
    for outcome in case.outcomes():
        everything = case.expected["events"]["everything"].get(outcome.key)
        if not outcome.command.get("events") or not everything:
            continue
        since = entries[outcome.place - 1]["events_after"] if outcome.place else 0
        told["flow"] += [
            Entry({"event": e["event"]}, e.at) for e in everything["flow"] if e.at >= since
        ]
        for name, own in everything["steps"].items():
            told["steps"].setdefault(name, []).extend(e for e in own if e.at >= since)
    for own in [told["flow"], *told["steps"].values()]:
        own.sort(key=lambda event: event.at)
    if told["flow"]:
        case.put(case.expected["events"], "handlers", {"*": told})


@rule(42)
def subscribers_are_independent(case: Case) -> None:
    """Subscribers without an id do not replace each other; any can be removed by its function."""
    commands = case.scenario["commands"]
    anonymous = [each for each in commands if each["op"] == "subscribe" and each.get("anonymous")]
    if len(anonymous) < 2 and not any(each.get("by_function") for each in commands):
        return
    for place, command in enumerate(commands):
        if command["op"] != "subscribe":
            continue
        ends = (
            later
            for later, each in enumerate(commands)
            if later > place and each["op"] == "unsubscribe" and each["id"] == command["id"]
        )
        first = case.recorded["commands"][place]["events_after"]
        last = case.recorded["commands"][next(ends, len(commands) - 1)]["events_after"]
        raw = [
            told.raw
            for told in case.told[first:last]
            if told.raw["workflow"] == command["workflow"]
            and command.get("transaction_id") in (None, told.raw["transaction_id"])
        ]
        case.put(
            case.expected["events"], f"subscriber {command['id']}", event_list(raw, case.shapes)
        )


def _in_reverse(labels: list[str], is_undo: Callable[[str], bool]) -> list[str]:
    """`labels` with each run of undone stages in strictly descending order."""
    ordered: list[str] = []
    run: set[str] = set()
    for label in [*labels, ""]:
        if is_undo(label):
            run.add(label)
            continue
        ordered += sorted(run, key=lambda each: -int(each.rstrip("~")))
        run.clear()
        ordered.append(label)
    return ordered[:-1]


@rule(1, 2)
def undone_stage_by_stage(case: Case) -> None:
    """A stage is undone when every later stage has been, its members together."""
    case.restage()
    stages = case.expected["calls"]["stages"]
    for key, labels in stages.items():
        if labels is not ANY:
            case.put(stages, key, _in_reverse(labels, lambda label: label.endswith("~")))
    for _, events in case.event_lists():
        if events["stages"] is not ANY:
            marked, undoing = [], False
            for label in events["stages"]:
                undoing = label == "compensate_begin" or (undoing and label.isdigit())
                marked.append(f"{label}~" if undoing and label.isdigit() else label)
            ordered = _in_reverse(marked, lambda label: label.endswith("~"))
            case.put(events, "stages", [label.rstrip("~") for label in ordered])
