"""Rules for where an execution of ours takes another course than the recorded one.

The reference loses a step, does one twice, or hangs; what it would have done otherwise, nobody has
recorded. So each of these rules finds the moment and cuts the expectation off there: everything
before is compared, and afterwards what is promised of every execution (`compare.broken_promises`).
What we do instead is tested decision by decision in the project's other tests.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case, Told
from .rule import rule

#: Behaviours after which an async step waits for an answer, as the reference sees it.
_RETURNS_NOTHING = ("none", "wait")
_FAILS = ("raise", "raise_value", "raise_circular", "medusa_error", "permanent", "return_circular")


def _cancels(case: Case) -> Iterator[tuple[str, int, int]]:
    """Accepted cancels: execution, place, and how many events there were before."""
    for outcome in case.outcomes():
        if outcome.command["op"] == "cancel" and outcome.is_accepted:
            yield outcome.key, outcome.place, case.events_before(outcome.place)


def _turns(case: Case) -> Iterator[tuple[str, int, int]]:
    """Where executions begin to go backwards: execution, place, and the event that says so."""
    yield from _cancels(case)
    yield from ((told.key, told.place, told.at) for told in case.fatal())


@rule(3, 4, 6, 7, 41)
def pending_retries_are_dropped(case: Case) -> None:
    """An execution that turns back waits for no retry that was to come later."""
    for key, place, event in list(_turns(case)):
        shape = case.shape(key)
        for step in shape.steps.values():
            if (
                not step.options.get("retry_interval")
                and step.options.get("auto_retry") is not False
            ):
                continue
            last = case.last_told(key, step.name, event)
            if last and last.event == "onStepFailure" and not last.raw["errors"]:
                case.cut(key, place=place, event=event, undone=True)
                return
            for told in case.told[event:]:
                mine = (told.key, told.step, told.event) == (key, step.name, "onStepFailure")
                if mine and not told.raw["errors"]:
                    case.cut(key, place=told.place, event=told.at, undone=True)
                    return


@rule(8)
def a_step_may_fail_while_it_is_cancelled(case: Case) -> None:
    """A step in flight that fails after a cancel is undone like one that failed for good."""
    for key, place, _ in list(_cancels(case)):
        running = [
            c for c in case.calls if c.key == key and c.place <= place and c.action == "invoke"
        ]
        for call in running:
            failure = case.told_of(call, "onStepFailure")
            raises = any(name in call.behaviour for name in _FAILS)
            if raises and failure and failure.place > place:
                case.cut(key, place=place + 1, event=failure.at, undone=True)


@rule(9)
def nothing_times_out_while_it_is_undone(case: Case) -> None:
    """No timeout passes once an execution goes backwards."""
    undoing: set[str] = set()
    for told in case.told:
        if told.event == "onCompensateBegin":
            undoing.add(told.key)
        elif told.event in ("onFinish", "onBegin"):
            undoing.discard(told.key)
        elif told.event == "onTimeout" and told.key in undoing:
            case.cut(told.key, place=told.place, event=told.at, undone=True)
            return


@rule(10)
def a_timeout_can_be_passed_over(case: Case) -> None:
    """A timed out step that is to be passed over counts as settled."""
    for told in case.told:
        step = case.step(told.key, told.step)
        if told.event != "onStepFailure" or step is None or not step.options.get("async"):
            continue
        names = [error["name"] for error in told.raw["errors"]]
        passed = step.options.get("skip_on_permanent_failure") or (
            step.options.get("continue_on_permanent_failure")
            and not case.shape(told.key).after(step.name)
        )
        if "TransactionStepTimeoutError" in names and passed:
            case.cut(told.key, place=told.place, event=told.at + 1)
            return


def _answers_of_async_steps(case: Case, behaviours: tuple[str, ...], event: str) -> Iterator[Told]:
    """Where a call of an async step that did this was answered by that event."""
    for call in case.calls:
        is_such = call.definition.options.get("async") and call.action == "invoke"
        if is_such and any(call.behaviour.get(name) is not None for name in behaviours):
            told = case.told_of(call, event)
            if told is not None:
                yield told


@rule(11)
def an_async_step_may_skip(case: Case) -> None:
    """An async step that answers with skip does not wait."""
    for told in _answers_of_async_steps(case, ("skip",), "onStepAwaiting"):
        case.cut(told.key, place=told.place, event=told.at)
        return


@rule(54)
def an_async_step_may_answer_plainly(case: Case) -> None:
    """An async step that returns a plain value is done."""
    for told in _answers_of_async_steps(case, ("raw",), "onStepAwaiting"):
        case.cut(told.key, place=told.place, event=told.at)
        return


@rule(26)
def a_conditional_step_waits(case: Case) -> None:
    """An async step inside a `when` that returns nothing waits like any other."""
    for told in _answers_of_async_steps(case, _RETURNS_NOTHING, "onStepSuccess"):
        step = case.step(told.key, told.step)
        if step is not None and step.guards and "response" not in told.raw:
            case.cut(told.key, place=told.place, event=told.at)
            return


@rule(12, 35, 44)
def a_failed_attempt_is_parked(case: Case) -> None:
    """With `auto_retry` false a failed attempt waits for `retry_step`, or a new run."""
    for call in case.calls:
        if call.definition.options.get("auto_retry") is not False or call.action != "invoke":
            continue
        failing = any(name in call.behaviour for name in _FAILS)
        failed = case.told_of(call, "onStepFailure")
        if failing or failed:
            at = failed.at if failed else case.events_before(call.place)
            case.cut(call.key, place=call.place if failing else (failed or call).place, event=at)
            return


@rule(35)
def a_failure_from_outside_is_parked_too(case: Case) -> None:
    """With `auto_retry` false a failure that is reported from outside is not retried at once."""
    for outcome in case.outcomes():
        command = outcome.command
        step = case.step(outcome.key, outcome.step)
        if command["op"] != "set_step_failure" or not outcome.is_accepted or step is None:
            continue
        if step.options.get("auto_retry") is False and not command.get("force_permanent_failure"):
            case.cut(outcome.key, place=outcome.place, event=case.events_before(outcome.place))
            return


@rule(37)
def awaiting_retries_are_counted_as_retries(case: Case) -> None:
    """`max_awaiting_retries` 1 means invoked twice at most."""
    for call in case.calls:
        limit = call.definition.options.get("max_awaiting_retries")
        if limit is not None and call.attempt == limit and call.action == "invoke":
            told = case.told_of(call, "onStepAwaiting")
            if told is not None:
                case.cut(call.key, place=told.place, event=told.at + 1, outcome=False)
                return


@rule(13)
def an_undo_may_be_asked_again(case: Case) -> None:
    """`retry_interval_awaiting` holds for compensations too."""
    for call in case.calls:
        options = call.definition.options
        if call.action == "compensate" and options.get("compensate_async"):
            waits = any(name in call.behaviour for name in _RETURNS_NOTHING)
            told = case.told_of(call, "onStepAwaiting")
            if waits and told and options.get("retry_interval_awaiting"):
                case.cut(call.key, place=told.place, event=told.at + 1, outcome=False)
                return


@rule(38)
def the_place_in_a_group_never_matters(case: Case) -> None:
    """`skip_on_permanent_failure` skips later stages, whichever member of a group it is set on."""
    for told in case.told:
        step = case.step(told.key, told.step)
        if told.event != "onStepFailure" or step is None or not told.raw["errors"]:
            continue
        skip = step.options.get("skip_on_permanent_failure")
        if not skip:
            continue
        shape = case.shape(told.key)
        after = shape.after(step.name)
        end = shape.stage(skip) if isinstance(skip, str) else len(shape.steps)
        begun = {
            t.step for t in case.told[told.at :] if t.key == told.key and t.event == "onStepBegin"
        }
        not_skipped = any(later.name in begun for later in after if later.stage < end)
        not_run = any(later.name not in begun for later in after if later.stage == end)
        if not_skipped or (not_run and begun & {later.name for later in after}):
            case.cut(told.key, place=told.place, event=told.at + 1)
            return


@rule(39)
def a_cancel_waits_for_nobody(case: Case) -> None:
    """A cancel gives up waiting for answers and undoes at once."""
    timeouts = [
        (told.key, told.place, told.at)
        for told in case.told
        if told.event == "onTimeout" and len(case.family(told.key)) > 1
    ]
    for key, place, event in [*_cancels(case), *timeouts]:
        waiting = [
            step
            for each in case.family(key)
            for step in case.shape(each).steps
            if (last := case.last_told(each, step, event)) and last.event == "onStepAwaiting"
        ]
        if waiting:
            case.cut(key, place=place, event=event, undone=True)
            return


@rule(50)
def a_retried_step_can_be_answered(case: Case) -> None:
    """A step that awaits at its second attempt is not taken for one that failed."""
    for place, entry in enumerate(case.recorded["commands"]):
        for look in entry["stored"]:
            key = f"{look['workflow_id']}:{look['transaction_id']}"
            for name, step in (look["memory"] or {"steps": {}})["steps"].items():
                last = case.last_told(key, name, entry["events_after"])
                failed = step["invoke"] == "invoking/temp_failure"
                if failed and last and last.event == "onStepAwaiting":
                    told = _first_wait_after_a_failure(case, key, name)
                    case.cut(key, place=min(told.place, place), event=told.at)
                    return


def _first_wait_after_a_failure(case: Case, key: str, step: str) -> Told:
    own = [told for told in case.told if (told.key, told.step) == (key, step)]
    failure = next(told for told in own if told.event == "onStepFailure")
    return next(told for told in own if told.event == "onStepAwaiting" and told.at > failure.at)
