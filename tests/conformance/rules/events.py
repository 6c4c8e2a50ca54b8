"""Rules about events: what subscribers are told, and what not."""

from __future__ import annotations

from ..case import Case, told_before, workflow_of
from ..matchers import ANY, Entry
from .rule import rule


@rule(43)
def a_skipped_step_says_so(case: Case) -> None:
    """A step that ends skipped emits `step_skipped`."""
    for key, name, steps in case.step_events():
        own = steps[name]
        calls = [
            c for c in case.calls if c.step == name and key in ("*", c.key) and c.action == "invoke"
        ]
        begins = sum(event["event"] == "step_begin" for event in own)
        step = case.step(key if key != "*" else next(iter(case.shapes)) + ":", name)
        passed_over = step is not None and step.guards > 0 and len(calls) < begins
        if not passed_over and not any("skip" in call.behaviour for call in calls):
            continue
        told: list[Entry] = []
        for event, after in zip(own, [*own[1:], None], strict=True):
            told.append(event)
            if event["event"] == "step_begin" and (after is None or after["event"] == "step_begin"):
                told.append(Entry({"event": "step_skipped"}, event.at))
        case.put(steps, name, told)


@rule(65)
def a_late_return_tells_nothing(case: Case) -> None:
    """After an accepted answer the step's own return emits nothing."""
    for _, name, steps in case.step_events():
        kept, over = [], False
        for event in steps[name]:
            if event["event"] in ("step_begin", "compensate_step_success"):
                over = False
            if not over:
                kept.append(event)
            over |= event["event"] == "step_success"
        case.put(steps, name, kept)


@rule(19)
def an_end_is_told_once(case: Case) -> None:
    """An execution finishes once; only a run of its id may be told so again."""
    runs = {(o.key, o.place) for o in case.outcomes() if o.command["op"] == "run"}
    for key, events in case.event_lists():
        flow: list[Entry] = []
        for event in events["flow"]:
            again = event["event"] == "finish" and flow and flow[-1]["event"] == "finish"
            place = next((told.place for told in case.told if told.at == event.at), None)
            if not again or key == "*" or (key, place) in runs:
                flow.append(event)
        case.put(events, "flow", flow)


@rule(55)
def children_emit_like_any(case: Case) -> None:
    """Children emit what any execution emits, also where the reference tells nothing."""
    children = {step.child for shape in case.shapes.values() for step in shape.steps.values()}
    everything = case.expected["events"]["everything"]
    for key, calls in case.expected["calls"]["steps"].items():
        if workflow_of(key) not in children:
            continue
        undone = any(call["action"] == "compensate" for own in calls.values() for call in own)
        if key not in everything:
            case.put(everything, key, ANY)
        elif undone and not any(e["event"] == "compensate_begin" for e in everything[key]["flow"]):
            case.put(everything, key, told_before(everything[key], len(case.told)))
