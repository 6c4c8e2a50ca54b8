"""Rules about errors: told as they are, and once."""

from __future__ import annotations

import json

from ..case import Case
from ..matchers import ANY
from ..normal import Form, error, in_order
from .rule import rule


@rule(31, 32)
def a_childs_error_is_told_as_it_is(case: Case) -> None:
    """A parent gets its child's errors themselves, not as one text of JSON."""
    for holder, name in case.error_lists():
        case.put(holder, name, in_order(map(_childs, holder[name])))
        if any(failure["message"] == "Unknown error" for failure in holder[name]):
            case.put(holder, name, ANY)


def _childs(failure: Form) -> Form:
    if not str(failure["message"]).startswith('[{"action"'):
        return failure
    inner = json.loads(failure["message"])[0]["error"]
    return error({**failure, "name": inner.get("name"), "message": inner.get("message")})


@rule(33, 60)
def a_timeout_is_told_once(case: Case) -> None:
    """A step's timeout is one error and one failure; what it does later is only in the timeline."""
    for holder, name in case.error_lists():
        late = {failure["action"] for failure in holder[name] if _is_timeout(failure)}
        kept: list[Form] = []
        for failure in holder[name]:
            other = failure["handler_type"] != "invoke" or failure["action"] not in late
            if (_is_timeout(failure) or other) and failure not in kept:
                kept.append(failure)
        case.put(holder, name, kept)
    for _, name, steps in case.step_events():
        told: list[Form] = []
        overdue = False
        for event in steps[name]:
            overdue &= event["event"] != "step_begin"
            if not overdue:
                told.append(event)
            if event["event"] == "step_failure" and event["errors"] is not ANY:
                overdue = any(map(_is_timeout, event["errors"]))
        case.put(steps, name, told)


def _is_timeout(failure: Form) -> bool:
    return (failure.get("name") or "").endswith("TimeoutError")


@rule(61)
def a_result_that_cannot_be_computed_is_an_error(case: Case) -> None:
    """The error of the result is one of the execution's errors like any other."""
    for outcome in case.outcomes():
        form = outcome.form
        flow = form.get("flow") if isinstance(form, dict) else None
        if (
            isinstance(flow, dict)
            and flow["state"] == "done"
            and isinstance(form.get("errors"), list)
        ):
            own = [failure for failure in form["errors"] if failure["action"] is None]
            if own and isinstance(form.get("all_errors"), list):
                case.put(form, "all_errors", in_order([*form["all_errors"], *own]))
    for key, row in case.rows():
        finish = case.finish(key, len(case.recorded["commands"]))
        if finish is not None and finish.get("state") == row["state"] == "done":
            own = [failure for failure in finish["errors"] if failure["action"] is None]
            if own and isinstance(row["errors"], list):
                case.put(row, "errors", in_order([*row["errors"], *own]))


@rule(63)
def a_cancelled_execution_says_so(case: Case) -> None:
    """What a cancelled execution raises is ExecutionCancelled."""
    for outcome in case.outcomes():
        thrown = outcome.form.get("thrown") if isinstance(outcome.form, dict) else None
        if isinstance(thrown, dict) and thrown["message"] == "Unknown error":
            case.put(outcome.form, "thrown", ANY)
