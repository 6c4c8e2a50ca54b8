"""Rules about ids: which names are refused, and what a second run of an id does."""

from __future__ import annotations

from typing import Any

from ..case import Case
from ..matchers import ANY, Entry, OneOf
from ..normal import stored, without_ids
from .rule import rule


@rule(46)
def another_input_is_a_conflict(case: Case) -> None:
    """An id that is taken by an execution with another input is refused."""
    inputs: dict[str, Any] = {}
    for outcome in case.outcomes():
        command, key = outcome.command, outcome.key
        if command["op"] != "run" or "transaction_id" not in command:
            continue
        is_live = case.is_live(key, outcome.place)
        is_taken = key in inputs and (is_live or case.shape(key).options.get("idempotent"))
        if is_taken and "input" in command and command["input"] != inputs[key]:
            case.refuse(outcome, "IdempotencyConflict")
            if not is_live:
                _nothing_happened(case, key, outcome.place)
        elif not is_taken:
            inputs[key] = command.get("input")


@rule(46)
def idempotent_rows_stay(case: Case) -> None:
    """The finished row of an idempotent execution is kept for good, and answers later commands."""
    for key in {told.key for told in case.told}:
        shape = case.shape(key)
        if not shape.options.get("idempotent") or shape.options.get("retention_time"):
            continue
        end = next((t for t in case.told if t.key == key and t.event == "onFinish"), None)
        finish = case.finish(key, end.place) if end else None
        if end is None or finish is None:
            continue
        runs = [o for o in case.outcomes() if o.key == key and o.command["op"] == "run"]
        again = [run for run in runs if run.place > end.place and run.is_accepted]
        if again:
            _nothing_happened(case, key, again[0].place, finish=finish)
        _commands_find_it(case, key, end.place, str(finish["state"]))
        unknown = dict.fromkeys(("retention_time", "steps", "payload", "errors", "outputs"), ANY)
        row = {"state": finish["state"], "flow_state": finish["state"], "run": "ULID", **unknown}
        for look in case.looks(end.place):
            if look.get(key) is None:
                case.put(look, key, {"memory": None, "rows": [dict(row)]})


def _commands_find_it(case: Case, key: str, end: int, state: str) -> None:
    """Commands that the reference refuses because the row is gone are answered by it."""
    for outcome in case.outcomes():
        form = outcome.form
        refused = form.get("refused", form.get("thrown")) if isinstance(form, dict) else None
        if outcome.key != key or outcome.place <= end or refused != "TransactionNotFound":
            continue
        match outcome.command["op"]:
            case "cancel" if state == "done":
                case.cut(key, place=outcome.place, event=case.events_before(outcome.place))
            case "cancel":
                case.refuse(outcome, "TransactionFinished")
            case "get_running_transaction":
                case.put(outcome.holder, outcome.index, ANY)
            case _:
                case.refuse(outcome, OneOf(("StepNotWaiting", "WrongAction")))


@rule(66)
def a_reverted_execution_is_finished(case: Case) -> None:
    """Cancelling an idempotent execution that ended reverted or failed is refused."""
    for outcome in case.outcomes():
        if outcome.command["op"] != "cancel":
            continue
        finish = case.finish(outcome.key, outcome.place - 1)
        shape = case.shape(outcome.key)
        if finish and shape.options.get("idempotent") and finish["state"] != "done":
            if outcome.is_accepted:
                _nothing_happened(case, outcome.key, outcome.place)
            case.refuse(outcome, "TransactionFinished")


def _nothing_happened(case: Case, key: str, place: int, finish: Entry | None = None) -> None:
    """From that command on nothing more is told, called or changed of an execution; only its end
    may be told once more."""
    entry = case.recorded["commands"][place - 1]
    event = entry["events_after"]
    told = case.expected["events"]["everything"].get(key)
    if told:
        flow = [each for each in told["flow"] if each.at < event]
        case.put(told, "flow", flow + ([Entry(finish, event)] if finish else []))
        for name, own in told["steps"].items():
            case.put(told["steps"], name, [each for each in own if each.at < event])
    later = [call["started"] for call in case.recorded["calls"][entry["calls_after"] :]]
    first_call = min(later, default=float("inf"))
    steps = case.expected["calls"]["steps"].get(key, {})
    for name, own in steps.items():
        case.put(steps, name, [call for call in own if call.at < first_call])
    before = stored(without_ids(entry["stored"])).get(key)
    for look in case.looks(place):
        case.put(look, key, before)


# --- names ---------------------------------------------------------------------------------------


@rule(15, 38)
def a_name_that_cannot_be_is_refused(case: Case) -> None:
    """Colons in names, and steps to skip to that do not exist, are errors when composing."""
    for spec, form in zip(case.scenario["workflows"], case.expected["workflows"], strict=True):
        if form["refused"] or not _is_refused(case, spec["id"]):
            continue
        case.put(form, "refused", True)
        case.put(form, "stored", False)
        for outcome in case.outcomes():
            if outcome.command.get("workflow") == spec["id"]:
                case.replace(outcome, {"thrown": "WorkflowNotFound"})
        calls = [case.expected["calls"]["steps"], case.expected["calls"]["stages"]]
        for holder in [*case.looks(), *case.expected["events"].values(), *calls]:
            for key in [key for key in holder if f"{key}:".startswith(f"{spec['id']}:")]:
                del holder[key]


def _is_refused(case: Case, workflow: str) -> bool:
    """Is this definition one that we refuse, and the reference does not?"""
    steps = case.shapes[workflow].steps
    skips = [step.options.get("skip_on_permanent_failure") for step in steps.values()]
    unknown = any(isinstance(skip, str) and skip not in steps for skip in skips)
    return unknown or any(":" in name for name in (workflow, *steps))


@rule(48)
def a_schedule_that_cannot_fire_is_refused(case: Case) -> None:
    """An expression that cannot be read, or none at all, is an error when composing."""
    for spec, form in zip(case.scenario["workflows"], case.expected["workflows"], strict=True):
        # The reference says so where nobody hears it.
        if "schedule" in spec.get("options", {}) and case.recorded["background_errors"]:
            case.put(form, "refused", True)
            case.put(form, "stored", False)


@rule(59)
def a_group_of_one_is_fine(case: Case) -> None:
    """A parallel group of one is a stage like any other."""
    for spec, form in zip(case.scenario["workflows"], case.expected["workflows"], strict=True):
        alone = any(len(node.get("parallel", ())) == 1 for node in spec["body"])
        if alone and form["refused"]:
            case.put(form, "refused", False)
            case.put(form, "stored", ANY)
            for outcome in case.outcomes():
                if outcome.command.get("workflow") == spec["id"]:
                    case.cut(outcome.key, place=outcome.place, event=0)
                    case.put(case.expected["events"]["everything"], outcome.key, ANY)
