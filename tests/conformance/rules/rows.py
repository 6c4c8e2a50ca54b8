"""Rules about what the table holds."""

from __future__ import annotations

import re

from ..case import Case
from ..matchers import ANY, StartsWith
from ..normal import Form
from .rule import rule


@rule(20)
def an_async_undo_is_stored(case: Case) -> None:
    """`compensate_async` makes a workflow stored."""
    for spec, form in zip(case.scenario["workflows"], case.expected["workflows"], strict=True):
        steps = case.shapes[spec["id"]].steps.values()
        if not form["refused"] and any(step.options.get("compensate_async") for step in steps):
            case.put(form, "stored", True)


@rule(47)
def a_childs_rows_go_with_its_roots(case: Case) -> None:
    """A child is kept as long as its root is; an idempotent one for good."""
    for root, children in case.roots().items():
        for child in children:
            for look in case.looks():
                is_kept = isinstance(look.get(root), dict) and look[root]["rows"]
                own = look.get(child)
                if own is None and is_kept:
                    case.put(look, child, ANY)
                elif isinstance(own, dict) and not is_kept and not _stays(case, child, own):
                    case.put(look, child, None)


def _stays(case: Case, child: str, stored: Form) -> bool:
    return stored["memory"] is not None or bool(case.shape(child).options.get("idempotent"))


@rule(47)
def a_kept_child_can_be_undone(case: Case) -> None:
    """Cancelling a root undoes a child that the reference could not find any more."""
    for told in case.told:
        failures = told.raw.get("errors", ()) if told.event == "onCompensateStepFailure" else ()
        for failure in failures:
            unknown = re.fullmatch(r"Transaction (.+) could not be found\.", failure["message"])
            step = case.step(told.key, told.step)
            if unknown and step is not None:
                _may_be_undone(case, f"{step.child}:{unknown[1]}")


def _may_be_undone(case: Case, child: str) -> None:
    calls = case.expected["calls"]
    own = calls["steps"].get(child, {})
    if own and all(call["action"] == "invoke" for each in own.values() for call in each):
        case.late.append((calls["stages"], child, ANY))
        case.changed = True
        for step, each in own.items():
            case.late.append((own, step, StartsWith(each)))


@rule(45)
def a_row_is_in_the_state_of_its_execution(case: Case) -> None:
    """The row's state is the execution's; what it shows of steps may be older."""
    for _, stored in case.stores():
        memory = stored["memory"]
        if not memory or not stored["rows"]:
            continue
        row = stored["rows"][-1]
        case.put(row, "state", memory["state"])
        case.put(row, "flow_state", memory["state"])
        if row["steps"] != memory["steps"]:
            for name in ("steps", "outputs", "errors"):
                case.put(row, name, ANY)
