"""From a record (recorded, or ours) to the form that is compared.

Both are brought into the same form by the same function, so that comparing is plain equality. What
the two languages cannot have in common is left out here, and only here: the interleaving of siblings
of one stage, looks taken while work goes on in the background, generated ids, texts of refusals.

    workflows   per definition: was it refused, is it stored
    commands    per command: its outcome; after a `settle` what memory and table hold
    events      what subscribers saw, per list and execution: flow events, each step's own, stages
    calls       per execution: each step's own sequence of calls, and the order of stages
    final       what memory and table hold at the very end

`ANY` in the expected form stands for what is not compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .matchers import ANY, Entry, Open
from .shape import Shape, shapes_of

Record = Mapping[str, Any]
Form = dict[str, Any]


FINAL_STATES = frozenset({"done", "reverted", "failed"})

#: The reference's texts of refusals, and what ours are called.
_REFUSALS = (
    (
        r"Transaction .* could not be found|.* already finished|TransactionId ID is",
        "TransactionNotFound",
    ),
    (r"Action not found", "StepNotFound"),
    (r"Incorrect action type", "WrongAction"),
    (r"Cannot (set step success|set step failure|retry step) when status is", "StepNotWaiting"),
    (r"Workflow with id .* not found|Workflow ID is required", "WorkflowNotFound"),
    (r"Cannot revert", "NotAllowed"),
    (r"Transaction already (started|finished)", "Stale"),
)

#: Raised whatever `throw_on_error` says: the call itself is wrong.
ALWAYS_THROWN = frozenset({"WorkflowNotFound", "MalformedKey"})


#: It begins with plain text, and so is searched for several times faster than with the boundary first.
_IDS = re.compile(r"ULID(?<=\bULID)\d+\b")
#: The execution of a tick is named by the tick; there, it gets a generated id like any other.
_TICKS = re.compile(r"sched-(?<=\bsched-)[^\"]*-\d{8}T\d{6}\.\d{3}Z")


def without_ids(value: Any) -> Any:
    """A copy without what differs from run to run: every generated id reads `ULID`."""
    text = msgspec.json.encode(value).decode()
    return msgspec.json.decode(_TICKS.sub("auto-ULID", _IDS.sub("ULID", text)))


def event_name(name: str) -> str:
    """`onStepBegin` → `step_begin`; ours stay as they are."""
    if not name.startswith("on"):
        return name
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[2:]).lower()


def unwrap(stored: Any) -> Any:
    """The output of a step, out of any of the three wrappings in which the table holds it."""
    if isinstance(stored, dict):
        if set(stored) == {"output", "compensateInput"}:
            return stored["output"]
        if set(stored) == {"output"}:
            inner = stored["output"]
            wrapped = isinstance(inner, dict) and "compensateInput" in inner
            return (
                inner.get("output")
                if wrapped and set(inner) <= {"output", "compensateInput"}
                else inner
            )
    return stored


def left_behind(stored: Any) -> Any:
    """What a step left for its undo, out of any of the wrappings; one that was answered its answer."""
    if isinstance(stored, dict):
        inner = stored.get("output")
        if isinstance(inner, dict) and "compensateInput" in inner:
            return inner["compensateInput"]
        if "compensateInput" in stored:
            return stored["compensateInput"]
    return unwrap(stored)


def undone(response: Any) -> Any:
    """What an undo returned; nothing is `{}` in the recordings, a skip its name."""
    returned = unwrap(response)
    return None if returned in ({}, {"name": "SkipStepResponse"}) else returned


def error(raw: Mapping[str, Any]) -> Form:
    """One failure: where, which side, and what it said.

    The texts of timeouts are ours. A text that was no error has no name (what a scenario throws that
    is none is an `Exception` of ours), and the reference quotes it.
    """
    form = {key: raw.get(key) for key in ("action", "handler_type", "name", "message")}
    if form["action"] is None:
        form["handler_type"] = None
    if form["name"] in ("TransactionTimeoutError", "TransactionStepTimeoutError"):
        form["message"] = None
    if form["name"] in (None, "Exception"):
        form |= {"name": None, "message": unquoted(form["message"])}
    return form


def unquoted(text: str | None) -> str | None:
    """A text out of its JSON form; any other text as it is."""
    if text is None or not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def errors(raw: Iterable[Mapping[str, Any]]) -> list[Form]:
    """Failures as a set: the order of siblings' failures is chance."""
    return in_order(error(each) for each in raw)


def in_order(failures: Iterable[Form]) -> list[Form]:
    """Failures in an order of their own, so that equal sets are equal lists."""
    return sorted(failures, key=lambda failure: json.dumps(failure, sort_keys=True))


def refusal(thrown: Mapping[str, Any]) -> str | None:
    """The kind of a refusal; None where `thrown` is an error of the user's own code."""
    if "kind" in thrown:
        return str(thrown["kind"])
    for pattern, kind in _REFUSALS:
        if re.match(pattern, thrown.get("message") or ""):
            return kind
    return None


# --- commands ------------------------------------------------------------------------------------


def _flow(raw: Mapping[str, Any] | None) -> Any:
    if not raw:
        return None
    return {"state": raw["state"], "flags": dict(raw["flags"]), "steps": raw["steps"]}


def _outcome(command: Mapping[str, Any], entry: Mapping[str, Any], at_rest: bool) -> Form:
    """How a command ended. Where its execution goes on in the background, its flow is not compared."""
    if "never_returned" in entry:
        return {"never_returned": True}
    if thrown := entry.get("thrown"):
        kind = refusal(thrown)
        if kind is None:
            return {"thrown": {key: error(thrown)[key] for key in ("name", "message")}}
        return {"refused" if _is_quiet(command, thrown, kind) else "thrown": kind}
    returned = entry.get("returned") or {}
    if command["op"] == "settle":
        return {"settled": returned["settled"]}
    if command["op"] == "concurrent":
        results = zip(command["ops"], returned["results"], strict=True)
        return {"results": [_outcome(each, result, at_rest) for each, result in results]}
    if command["op"] == "list_executions":
        return {"rows": [dict(row) for row in returned["rows"]]}
    if not isinstance(returned, dict) or "flow" not in returned:
        return {}
    flow = _flow(returned["flow"])
    settled = at_rest or flow is None or flow["state"] in FINAL_STATES
    form: Form = {"flow": flow if settled else ANY}
    form["all_errors"] = errors(returned.get("all_errors") or ()) if settled else ANY
    for key in ("acknowledgement", "result", "payload"):
        if key in returned:
            form[key] = returned[key]
    if "errors" in returned:
        form["errors"] = errors(returned["errors"])
    if "invoke" in returned:
        form["outputs"] = {step: unwrap(stored) for step, stored in returned["invoke"].items()}
    return form


def _is_quiet(command: Mapping[str, Any], thrown: Mapping[str, Any], kind: str) -> bool:
    """Is it the acknowledgement that tells a refusal? The reference throws whatever it was asked."""
    if "kind" in thrown:
        return bool(thrown.get("quiet"))
    return command.get("throw_on_error", True) is False and kind not in ALWAYS_THROWN


def _at_rest(commands: Sequence[Any], entries: Sequence[Any], index: int) -> bool:
    """True where nothing happened between this command's return and the settle right after it."""
    if index + 1 >= len(commands) or commands[index + 1]["op"] != "settle":
        return commands[index]["op"] == "get_running_transaction" and index > 0
    now, then = entries[index], entries[index + 1]
    return all(now[key] == then[key] for key in ("calls_after", "events_after", "stored"))


def _commands(scenario: Mapping[str, Any], record: Record, rest: Sequence[bool]) -> list[Form]:
    spawned = {each["id"]: each["do"] for each in scenario["commands"] if each["op"] == "spawn"}
    forms = []
    for command, entry, at_rest in zip(scenario["commands"], record["commands"], rest, strict=True):
        played = spawned[command["id"]] if command["op"] == "join" else command
        form = {"op": command["op"], **_outcome(played, entry, at_rest)}
        if command["op"] == "settle":
            form["stored"] = stored(entry["stored"])
        forms.append(form)
    return forms


def rests(scenario: Mapping[str, Any], recorded: Record) -> list[bool]:
    """Per command of the recording: was the look taken at its return taken at rest."""
    commands, entries = scenario["commands"], recorded["commands"]
    return [_at_rest(commands, entries, index) for index in range(len(commands))]


# --- what is kept --------------------------------------------------------------------------------


def _row(raw: Mapping[str, Any]) -> Form:
    form = {
        key: raw.get(key)
        for key in ("run", "state", "retention_time", "flow_state", "steps", "payload")
    }
    form["errors"] = errors(raw.get("errors") or ())
    form["outputs"] = {step: unwrap(value) for step, value in (raw.get("invoke") or {}).items()}
    return form


def stored(raw: Iterable[Mapping[str, Any]]) -> Form:
    """Per execution: the unfinished checkpoint (None: there is none), and its rows, oldest first."""
    return {
        f"{each['workflow_id']}:{each['transaction_id']}": {
            "memory": each["memory"],
            "rows": [_row(row) for row in each["rows"]],
        }
        for each in raw
    }


# --- what happened -------------------------------------------------------------------------------


def _collapsed(labels: Iterable[str]) -> list[str]:
    """`labels` without immediate repetitions: what of one stage happens together is one."""
    seen: list[str] = []
    for label in labels:
        if not seen or seen[-1] != label:
            seen.append(label)
    return seen


def _event(raw: Mapping[str, Any]) -> Form:
    form: Form = {"event": event_name(raw["event"])}
    if form["event"] in ("step_success", "compensate_step_success"):
        form["response"] = raw.get("response")
        if form["event"] == "compensate_step_success":
            form["response"] = undone(raw.get("response"))
    if form["event"] in ("step_failure", "compensate_step_failure"):
        # The reference names the error only where no attempt is left.
        unnamed = [Open({"action": raw.get("step")})]
        form["errors"] = errors(raw["errors"]) if raw.get("errors") else unnamed
    if form["event"] == "finish" and "state" in raw:
        form |= {
            "state": raw["state"],
            "result": raw.get("result"),
            "errors": errors(raw.get("errors") or ()),
        }
    return form


def event_list(raw: Iterable[Mapping[str, Any]], shapes: Mapping[str, Shape]) -> Form:
    """One subscriber's events, per execution. Handlers of a command are not told which it is."""
    lists: Form = {}
    for at, each in enumerate(raw):
        event = Entry(_event(each), at)
        if event["event"] == "resume":
            continue
        step = each.get("step") if event["event"] != "timeout" else None
        key = f"{each['workflow']}:{each['transaction_id']}" if each.get("workflow") else "*"
        form = lists.setdefault(key, {"flow": [], "steps": {}})
        own = form["flow"] if step is None else form["steps"].setdefault(step, [])
        own.append(event)
    for key, form in lists.items():
        form["stages"] = stages_of_events(key, form, shapes)
    return lists


def stages_of_events(key: str, form: Form, shapes: Mapping[str, Shape]) -> list[str]:
    """In which order the stages, and the execution as a whole, were told about."""
    moments = [(event.at, event["event"]) for event in form["flow"]]
    for step, events in form["steps"].items():
        moments += [(event.at, str(_stage(key, step, shapes))) for event in events]
    return _collapsed(label for _, label in sorted(moments, key=_moment))


def _stage(key: str, step: str, shapes: Mapping[str, Shape]) -> int:
    workflow = key.partition(":")[0]
    owners = [shapes[workflow]] if workflow in shapes else shapes.values()
    return max((shape.stage(step) for shape in owners), default=-1)


def _moment(labelled: tuple[float, str]) -> float:
    return labelled[0]


def _calls(raw: Sequence[Mapping[str, Any]]) -> Form:
    """Every handler's calls, per execution and step."""
    calls: Form = {}
    for call in raw:
        key = f"{call['workflow']}:{call['transaction_id']}"
        form = {name: call.get(name) for name in ("action", "attempt", "input")}
        form["ended"] = call.get("ended") is not None
        entry = Entry(form, call["started"], call.get("ended"))
        calls.setdefault(key, {}).setdefault(call["step"], []).append(entry)
    return calls


def stages_of_calls(key: str, calls: Form, shapes: Mapping[str, Shape]) -> list[str]:
    """In which order the stages' calls began and ended."""
    moments = []
    for step, entries in calls.items():
        for call in entries:
            label = f"{_stage(key, step, shapes)}{'~' if call['action'] == 'compensate' else ''}"
            moments += [(at, label) for at in (call.at, call.until) if at is not None]
    return _collapsed(label for _, label in sorted(moments, key=_moment))


# --- the whole -----------------------------------------------------------------------------------


def normal(scenario: Mapping[str, Any], record: Record, rest: Sequence[bool]) -> Form:
    """The form of a record that is compared. `rest` comes from the recording (`rests`)."""
    shapes = shapes_of(scenario)
    record = without_ids(record)
    calls = _calls(record["calls"])
    return {
        "workflows": [
            {"refused": each.get("error") is not None, "stored": bool(each.get("stored"))}
            for each in record["workflows"]
        ],
        "commands": _commands(scenario, record, rest),
        "events": {
            "everything": event_list(record["events"], shapes),
            "handlers": event_list(record["handler_events"], shapes),
            **{
                f"subscriber {name}": event_list(events, shapes)
                for name, events in record["subscribers"].items()
            },
        },
        "calls": {
            "steps": calls,
            "stages": {key: stages_of_calls(key, each, shapes) for key, each in calls.items()},
        },
        "final": stored(record["final"]),
        "background_errors": [],
    }
