"""What a scenario's values come to when one of them is another than recorded.

Where a decision gives a step another output, those after it receive other inputs, a step that echoes
puts out something else, and so on to the result. `revalue` carries such a change through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .case import Case
from .functions import function, pick
from .matchers import ANY


class Values:
    """The values of one execution, as they are expected now."""

    def __init__(self, case: Case, key: str) -> None:
        self.shape = case.shape(key)
        self.body = next(
            each["body"] for each in case.scenario["workflows"] if each["id"] == self.shape.workflow
        )
        runs = (o.command for o in case.outcomes() if o.command["op"] == "run" and o.key == key)
        self.input = next((command.get("input") for command in runs), None)
        self.outputs: dict[str, Any] = {}
        told = case.expected["events"]["everything"].get(key) or {"steps": {}}
        for name, events in told["steps"].items():
            done = [event["response"] for event in events if event["event"] == "step_success"]
            if done and self.shape.steps[name].options.get("save_response") is not False:
                self.outputs[name] = done[-1]

    def resolve(self, template: Any) -> Any:
        """`template` with values in place of `{"$ref": …}`; absent ones are left out."""
        if isinstance(template, dict):
            if set(template) == {"$ref"}:
                return self._reference(template["$ref"])
            resolved = {key: self.resolve(item) for key, item in template.items()}
            return {key: item for key, item in resolved.items() if item is not None}
        if isinstance(template, list):
            return [self.resolve(item) for item in template]
        return template

    def _reference(self, path: str) -> Any:
        first, _, rest = path.partition(".")
        if first == "input":
            return pick(self.input, rest) if rest else self.input
        name = max(
            (n for n in self._names(first) if f"{rest}.".startswith(f"{n}.")), key=len, default=""
        )
        inner = rest[len(name) + 1 :]
        value = self._value(first, name)
        return pick(value, inner) if inner else value

    def _names(self, first: str) -> Iterator[str]:
        if first == "transforms":
            return (node["transform"] for node in _nodes(self.body) if "transform" in node)
        if first == "hooks":
            return (node["hook"] for node in _nodes(self.body) if "hook" in node)
        return iter(self.shape.steps)

    def _value(self, first: str, name: str) -> Any:
        if first == "hooks":
            return self.outputs.get(f"get-{name}-result")
        if first == "transforms":
            node = next(n for n in _nodes(self.body) if n.get("transform") == name)
            return function(node["fn"])(self.resolve(node["of"]))
        return self.outputs.get(name)


def _nodes(body: Any) -> Iterator[Mapping[str, Any]]:
    for node in body:
        yield node
        yield from _nodes(node.get("then") or node.get("parallel") or ())


def revalue(case: Case, key: str, step: str, output: Any) -> None:
    """Expect this output of a step, and what follows from it."""
    values = Values(case, key)
    values.outputs[step] = output
    _put_output(case, key, step, output)
    later = values.shape.after(step)
    for call in [c for c in case.calls if c.key == key and c.action == "invoke"]:
        if call.definition not in later or "input" not in call.definition.node:
            continue
        received = values.resolve(call.definition.node["input"])
        for entry in case.expected["calls"]["steps"][key][call.step]:
            if entry["action"] == "invoke":
                case.put(entry, "input", received)
        if "echo" in call.behaviour:
            values.outputs[call.step] = received
            _put_output(case, key, call.step, received)
    returns = next(
        w.get("returns") for w in case.scenario["workflows"] if w["id"] == values.shape.workflow
    )
    put_result(case, key, values.resolve(returns))


def _put_output(case: Case, key: str, step: str, output: Any) -> None:
    for each, events in case.event_lists():
        if each == key:
            for event in events["steps"].get(step, ()):
                if event["event"] == "step_success":
                    case.put(event, "response", output)
    for _, row in case.rows(key):
        if row["outputs"] is not ANY and row["steps"][step]["invoke"] == "done/ok":
            case.put(row["outputs"], step, output)


def put_result(case: Case, key: str, result: Any) -> None:
    """Expect this result wherever the execution is done."""
    for outcome in case.outcomes():
        form = outcome.form
        flow = form.get("flow") if isinstance(form, dict) else None
        if outcome.key == key and isinstance(flow, dict) and flow["state"] == "done":
            case.put(form, "result", result)
    for each, events in case.event_lists():
        if each == key:
            for event in events["flow"]:
                if event.get("state") == "done":
                    case.put(event, "result", result)
