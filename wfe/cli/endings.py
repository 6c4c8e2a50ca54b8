"""Endings: what a finished execution came to, because of which step, and what can be done then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from wfe.cli import exit_codes, text, ways
from wfe.cli.exit_codes import ExitCode
from wfe.cli.failures import Failure
from wfe.cli.ways import Command, Way
from wfe.model import Action, ErrorRecord, Execution, ExecutionState, StepState

_ENDS = {
    ExitCode.ERROR: ("result_failed", "is done, but its result could not be computed"),
    ExitCode.REVERTED: ("reverted", "failed; all it had done was undone"),
    ExitCode.FAILED: ("failed", "failed, and not all could be undone"),
    ExitCode.TIMED_OUT: ("timed_out", "ran out of time; all it had done was undone"),
    ExitCode.CANCELLED: ("cancelled", "was cancelled; all it had done was undone"),
}


def failure_of(execution: Execution, command: Command) -> Failure | None:
    """A bad end, as what a command ends with that was about the execution. None where it is done, or
    unfinished."""
    from wfe.cli import report

    code = exit_codes.of_run(execution)
    if code not in _ENDS:
        return None
    key = str(execution.head.key)
    name, what = _ENDS[code]
    cause = next(iter(execution.errors()), None)
    undo = next(iter(execution.errors(Action.COMPENSATE)), None)
    told = [f"{key} {what}."]
    for record, kind in ((cause, "Step"), (undo, "The undo of step")):
        if record is not None:
            where = f"{kind} {record.action!r}: " if record.action else ""
            told.append(where + text.failure(record.name, record.message))
    worst = undo or cause
    return Failure(
        _joined(told),
        code=name,
        exit_code=code,
        hint=f"See: {command('executions', 'show', key)}",
        key=key,
        details=report.frames(worst) if worst is not None else "",
    )


def _joined(sentences: Sequence[str]) -> str:
    *others, last = sentences
    ended = [one if one.endswith((".", "!", "?")) else f"{one}." for one in others]
    return " ".join([*ended, last])


# --- in words ------------------------------------------------------------------------------------


def decisive_error(execution: Execution) -> ErrorRecord | None:
    """The error that it ended by: of the undo that failed, else of the step. None where all is well."""
    undo = execution.errors(Action.COMPENSATE)
    if execution.head.state is ExecutionState.DONE:
        return next((e for e in execution.errors() if e.action is None), None)
    return next(iter(undo or execution.errors()), None)


def sentences(execution: Execution, now: datetime) -> Iterator[str]:
    """What it came to, why, and what is left to do."""
    head = execution.head
    when = text.ago(head.ended_at, now)
    took = text.elapsed(text.seconds(head.started_at, head.ended_at))
    if head.state is ExecutionState.DONE:
        yield f"It is done. It ended {when}, after {took}."
        yield from _passed_over(execution)
    elif head.state is ExecutionState.REVERTED:
        yield f"{_because(execution, now)} All that it had done was undone; that ended {when}."
    else:
        yield f"{_because(execution, now)} It was to be undone, and that failed {when}."
        yield from _left_behind(execution)
    if head.parent_step_idempotency_key is not None:
        yield f"It was the child of {head.parent_step_idempotency_key}."


def _because(execution: Execution, now: datetime) -> str:
    head = execution.head
    if head.cancelled_at is not None:
        return f"It was cancelled {text.ago(head.cancelled_at, now)}."
    if head.timed_out:
        return f"It took longer than {text.elapsed(execution.flow.options.timeout)}, its limit."
    error = next(iter(execution.errors()), None)
    if error is None:
        return "It failed."
    tries = f" ({error.attempts} attempts)" if (error.attempts or 1) > 1 else ""
    said = text.failure(error.name, error.message).rstrip(".")
    origin = f" That came from {error.origin}." if error.origin is not None else ""
    return f"It failed at {error.action}{tries}: {said}.{origin}"


def _passed_over(execution: Execution) -> Iterator[str]:
    failed = _names(execution, StepState.FAILED, StepState.TIMEOUT)
    skipped = _names(execution, StepState.SKIPPED_FAILURE)
    if failed:
        yield f"{failed} failed, and the workflow went on without."
    if skipped:
        yield f"{skipped} was left out because of that."
    for error in execution.errors():
        if error.action is None:
            said = text.failure(error.name, error.message)
            yield f"Its result could not be computed: {said.rstrip('.')}."


def _left_behind(execution: Execution) -> Iterator[str]:
    for error in execution.errors(Action.COMPENSATE):
        said = text.failure(error.name, error.message).rstrip(".")
        yield f"The undo of {error.action} failed: {said}."
    left = [
        name
        for name, record in execution.steps.items()
        if record.undo and record.compensate is not StepState.REVERTED
    ]
    yield f"What {' and '.join(left)} did is still there: a person has to look at it."


def _names(execution: Execution, *states: StepState) -> str:
    names = [name for name in execution.flow.steps if execution.step(name).invoke in states]
    return ", ".join(names)


def ways_of(execution: Execution, command: Command) -> Iterator[Way]:
    """What can be done about it now."""
    key = execution.head.key
    if execution.head.state is ExecutionState.DONE:
        yield ways.result(command, key)
        yield ways.undo(command, key)
        return
    yield ways.see(command, key, "--errors", "--timeline")
    yield ways.run_again(command, key)
