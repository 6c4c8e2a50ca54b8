"""Rules about commands: what they return, and what they are refused with."""

from __future__ import annotations

from typing import Any

from ..case import Case, Outcome
from ..matchers import ANY, Entry, OneOf
from ..normal import FINAL_STATES, Form
from .rule import rule


@rule(29, 30, 31)
def what_went_well_is_returned(case: Case) -> None:
    """An ignored failure, or a half-done result's, is in `errors`, never thrown; and nothing is
    where `throw_on_error` is false."""
    for outcome in case.outcomes():
        form, command = outcome.form, outcome.command
        if not isinstance(form, dict) or not isinstance(form.get("thrown"), dict):
            continue
        finish = case.finish(outcome.key, outcome.place)
        state = finish["state"] if finish else None
        of_steps = all(e["action"] is not None for e in finish["errors"]) if finish else True
        ignored = state == "done" and of_steps
        undone = command["op"] == "cancel" and state == "reverted"
        half_done = state is None and not _has_turned(case, outcome)
        quiet = command.get("throw_on_error", True) is False
        if quiet or ignored or undone or half_done:
            case.replace(outcome, _returned(outcome, finish))


def _has_turned(case: Case, outcome: Outcome) -> bool:
    """Had the execution begun to go backwards at the command's return?"""
    return any(t.key == outcome.key and t.place <= outcome.place for t in case.fatal())


def _returned(outcome: Outcome, finish: Entry | None) -> Form:
    """What a command returns of an execution that ended so; None: it has not."""
    form: Form = {"flow": ANY, "all_errors": ANY, "errors": ANY, "result": None}
    if finish is not None:
        form["errors"] = finish["errors"]
        form["result"] = finish["result"] if finish["state"] == "done" else None
    if outcome.command["op"] in ("run", "cancel"):
        workflow, transaction = outcome.key.split(":", 1)
        is_cancel = outcome.command["op"] == "cancel"
        failures = ("failed",) if is_cancel else ("failed", "reverted")
        form["acknowledgement"] = {
            "workflow_id": workflow,
            "transaction_id": transaction,
            "has_finished": finish is not None,
            "has_failed": finish is not None and finish["state"] in failures,
            "exists": True if is_cancel else None,
        }
    return form


@rule(23)
def a_second_run_attaches(case: Case) -> None:
    """A run with the id of a live execution returns what the first one returns."""
    runs = [outcome for outcome in case.outcomes() if outcome.command["op"] == "run"]
    joins = {run.key: run for run in runs if _op(case, run) == "join"}
    spawns = {
        Outcome(each["do"], place, {}, None, {}).key: place
        for place, each in enumerate(case.scenario["commands"])
        if each["op"] == "spawn"
    }
    for run in runs:
        join = joins.get(run.key)
        if join and spawns.get(run.key, join.place) < run.place < join.place:
            case.replace(run, {k: v for k, v in join.form.items() if k != "op"})
        elif isinstance(run.form, dict) and run.form.get("refused") == "Stale":
            twin = next(o for o in runs if o.key == run.key and o.place == run.place)
            case.replace(run, dict(twin.form))


def _op(case: Case, outcome: Outcome) -> str:
    return str(case.scenario["commands"][outcome.place]["op"])


@rule(25)
def the_first_answer_wins(case: Case) -> None:
    """Of two answers for one step the second is refused, and says the step's state."""
    taken: set[tuple[int, str, str | None]] = set()
    for outcome in case.outcomes():
        command = outcome.command
        is_answer = command["op"] in ("set_step_success", "set_step_failure")
        if not is_answer or _op(case, outcome) != "concurrent":
            continue
        which = (outcome.place, outcome.key, outcome.step)
        if which in taken and outcome.is_accepted:
            case.refuse(outcome, "StepNotWaiting")
        taken.add(which)


@rule(34)
def a_call_tells_the_state_at_its_return(case: Case) -> None:
    """What a call returns is what the execution has come to by then."""
    for outcome in case.outcomes():
        form, finish = outcome.form, case.finish(outcome.key, outcome.place)
        told = form.get("acknowledgement") if isinstance(form, dict) else None
        if finish is None or not told or _op(case, outcome) != "join" or told["has_finished"]:
            continue
        begins = [t.at for t in case.told if t.key == outcome.key and t.event == "onBegin"]
        if begins and begins[-1] < finish.at:
            case.put(form, "flow", ANY)
            case.put(form, "result", finish["result"] if finish["state"] == "done" else None)
            case.put(told, "has_finished", True)
            case.put(told, "has_failed", finish["state"] != "done")


@rule(34)
def concurrent_calls_tell_what_came_of_all(case: Case) -> None:
    """Commands given at once may each return when all of them have been acted on."""
    for outcome in case.outcomes():
        flow = outcome.form.get("flow") if isinstance(outcome.form, dict) else None
        unfinished = isinstance(flow, dict) and flow["state"] not in FINAL_STATES
        if _op(case, outcome) == "concurrent" and unfinished:
            case.put(outcome.holder, outcome.index, ANY)


@rule(56)
def finished_is_not_unknown(case: Case) -> None:
    """A finished execution that is kept says that it is finished; not kept, it may."""
    for outcome in case.outcomes():
        for verb in ("refused", "thrown"):
            form = outcome.form
            if not isinstance(form, dict) or form.get(verb) != "TransactionNotFound":
                continue
            if case.finish(outcome.key, outcome.place):
                kinds = ["TransactionFinished"]
                if not _is_kept(case, outcome.key, outcome.place):
                    kinds.append("TransactionNotFound")
                case.put(form, verb, OneOf(tuple(kinds)))


def _is_kept(case: Case, key: str, place: int) -> bool:
    looks = case.recorded["commands"][place]["stored"]
    return any(f"{e['workflow_id']}:{e['transaction_id']}" == key and e["rows"] for e in looks)


@rule(62)
def an_empty_search_is_no_filter(case: Case) -> None:
    """`q=""` lists everything."""
    for outcome in case.outcomes():
        if outcome.command["op"] == "list_executions" and outcome.command["filters"].get("q") == "":
            looks = case.recorded["commands"][outcome.place]["stored"]
            rows = [{**look, **row} for look in looks for row in look["rows"]]
            fields = ("workflow_id", "transaction_id", "state", "retention_time")
            oldest_first = sorted(rows, key=_run)
            case.put(outcome.form, "rows", [{f: row[f] for f in fields} for row in oldest_first])


def _run(row: Form) -> Any:
    return row["run"]
