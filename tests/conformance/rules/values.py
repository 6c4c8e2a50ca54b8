"""Rules about values: what reaches a step, what comes of it, and the result."""

from __future__ import annotations

from typing import Any

from ..case import Case
from ..evaluate import Values, put_result, revalue
from ..matchers import ANY
from ..normal import Form
from .rule import rule


@rule(27)
def nothing_is_null(case: Case) -> None:
    """A step that returns nothing has output None, not a marker of the engine's."""

    def clean(holder: Any) -> None:
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            if holder[key] == {"$leaked_marker": True}:
                case.put(holder, key, None)
            elif isinstance(holder[key], (dict, list)):
                clean(holder[key])

    clean(case.expected)


@rule(28)
def falsy_inputs_arrive(case: Case) -> None:
    """0, "" and False reach the step as they are."""
    for call in case.calls:
        given = call.definition.node.get("input")
        if given not in (0, "", False) or isinstance(given, float):
            continue
        for entry in case.expected["calls"]["steps"][call.key][call.step]:
            if entry["action"] == "invoke":
                case.put(entry, "input", given)
        if "echo" in call.behaviour:
            revalue(case, call.key, call.step, given)


@rule(54)
def a_hook_may_answer_plainly(case: Case) -> None:
    """What a hook's handler returns is the hook's result, a plain value too."""
    for call in case.calls:
        node = call.definition.node
        plain = call.behaviour.get("raw")
        if (
            "hook" in node
            and node.get("get_result")
            and plain is not None
            and call.action == "invoke"
        ):
            name = f"get-{call.step}-result"
            told = case.expected["events"]["everything"].get(call.key)
            if told is None or told is ANY or name in told["steps"]:
                revalue(case, call.key, name, plain)


@rule(36)
def a_failed_step_has_no_output(case: Case) -> None:
    """What a failed step hands over is its compensation's, not its output."""
    for key, row in list(case.rows()):
        if row["steps"] is ANY or row["outputs"] is ANY:
            continue
        for name in list(row["outputs"]):
            if (
                row["steps"][name]["invoke"].startswith("failed/")
                and row["outputs"][name] is not None
            ):
                case.put(row["outputs"], name, None)
                step = case.step(key, name)
                if step and step.options.get("continue_on_permanent_failure"):
                    revalue(case, key, name, None)


@rule(57, 64)
def no_wait_holds_wherever_it_stands(case: Case) -> None:
    """The next stage does not wait for a `no_wait` step; its output is kept."""
    for key, events in list(case.event_lists()):
        shape = case.shape(key)
        if not any(s.options.get("no_wait") for s in shape.steps.values()):
            continue
        case.put(events, "stages", ANY)
        case.expected["calls"]["stages"][key] = ANY
        values = Values(case, key)
        for _, row in case.rows(key):
            for name, step in row["steps"].items():
                if step["invoke"] == "done/ok":
                    case.put(row["outputs"], name, values.outputs.get(name))
        returns = next(
            w.get("returns") for w in case.scenario["workflows"] if w["id"] == shape.workflow
        )
        put_result(case, key, values.resolve(returns))


@rule(53)
def no_result_unless_done(case: Case) -> None:
    """The result is None, and nothing is wrong with it, unless the execution is done."""
    for outcome in case.outcomes():
        form = outcome.form
        if not isinstance(form, dict) or "flow" not in form:
            continue
        if form["flow"] is ANY or form["flow"] is None or form["flow"]["state"] != "done":
            if (form.get("result") is not None and form["flow"] is not ANY) or (
                form["flow"] is ANY and not _is_returned_done(form)
            ):
                case.put(form, "result", None)
            if isinstance(form.get("errors"), list) and not _is_returned_done(form):
                case.put(form, "errors", [e for e in form["errors"] if e["action"] is not None])
    for _, events in case.event_lists():
        for event in events["flow"]:
            if event["event"] == "finish" and event.get("state") not in (None, "done"):
                case.put(event, "result", None)
                case.put(event, "errors", [e for e in event["errors"] if e["action"] is not None])


def _is_returned_done(form: Form) -> bool:
    acknowledgement = form.get("acknowledgement") or {}
    return bool(acknowledgement.get("has_finished")) and not acknowledgement.get("has_failed")


@rule(40, 52)
def an_answer_is_what_its_undo_receives(case: Case) -> None:
    """The undo of a step answered from outside receives the answer, or its `compensate_with`."""
    for outcome in case.outcomes():
        command = outcome.command
        accepted = command["op"] == "set_step_success" and outcome.is_accepted
        step = case.step(outcome.key, outcome.step)
        if not accepted or step is None or command.get("action", "invoke") != "invoke":
            continue
        answer = command.get("compensate_with", command.get("response"))
        if step.options.get("save_response") is False:
            answer = None
        undo = next(
            (
                call
                for call in case.calls
                if (call.key, call.step, call.action) == (outcome.key, step.name, "compensate")
                and call.place >= outcome.place
            ),
            None,
        )
        if undo is None:
            continue
        entries = case.expected["calls"]["steps"][outcome.key][step.name]
        for entry in entries if isinstance(entries, list) else ():
            if entry["action"] == "compensate" and entry.at >= undo.started:
                case.put(entry, "input", answer)
