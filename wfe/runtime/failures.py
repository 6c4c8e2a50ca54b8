"""Failures as they are stored, and as they are raised again to whoever asked for the execution."""

from __future__ import annotations

import random
import traceback
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wfe.errors import (
    ExecutionCancelled,
    StepFailed,
    TransactionStepTimeoutError,
    TransactionTimeoutError,
    WfeError,
)
from wfe.model import Action, ErrorRecord, Execution, ExecutionState
from wfe.store import codec

#: Frames of wfe itself say nothing about a user's mistake.
_OWN_FRAMES = str(Path(__file__).resolve().parent.parent)

_FAILING = frozenset(
    {
        ExecutionState.WAITING_TO_COMPENSATE,
        ExecutionState.COMPENSATING,
        ExecutionState.REVERTED,
        ExecutionState.FAILED,
    }
)


class StoredFailure(Exception):
    """A failure that is stored already, of another execution: it is taken over as it is."""

    def __init__(self, record: ErrorRecord) -> None:
        super().__init__(record.message)
        self.record = record


def record_of(error: BaseException, step: str | None, action: Action) -> ErrorRecord:
    """An exception as it is stored. Never raises, whatever the exception's own methods do."""
    if isinstance(error, StoredFailure):
        return replace(error.record, action=step, handler_type=action)
    return ErrorRecord(
        action=step,
        handler_type=action,
        name=type(error).__name__,
        message=_text(error),
        stack=_stack(error),
    )


def record_of_answer(error: Any, step: str, action: Action) -> ErrorRecord:
    """A failure that was reported from outside: an exception, a text, or any value, whose
    `message` is its text where it has one."""
    if isinstance(error, BaseException):
        return record_of(error, step, action)
    if isinstance(error, str):
        message = error
    elif isinstance(error, dict) and isinstance(error.get("message"), str):
        message = error["message"]
    else:
        message = codec.encode(error, what="error").decode()
    return ErrorRecord(action=step, handler_type=action, name=None, message=message)


def _text(error: BaseException) -> str:
    try:
        text = error.message if isinstance(error, WfeError) else str(error)
        return _storable(text)
    except Exception as second:
        return f"<its text could not be had: {type(second).__name__}>"


def _storable(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates are spelled out."""
    return text.encode(errors="backslashreplace").decode()


def _stack(error: BaseException) -> str | None:
    """The traceback without wfe's own frames; None where nothing else is left."""
    try:
        report = traceback.TracebackException.from_exception(error, compact=True)
        _drop_own_frames(report)
        return _storable("".join(report.format()))
    except Exception:
        return None


def _drop_own_frames(report: traceback.TracebackException) -> None:
    for part in (report, report.__cause__, report.__context__):
        if part is not None:
            kept = [f for f in part.stack if not f.filename.startswith(_OWN_FRAMES)]
            part.stack = traceback.StackSummary.from_list(kept)


def raised_by(execution: Execution, causes: dict[str, BaseException]) -> Exception | None:
    """What `run` raises for an execution as it stands; None where nothing is to be raised.

    A failure that the workflow passed over is no reason; a result that could not be computed is.
    """
    head = execution.head
    if head.state is ExecutionState.DONE:
        errors = [e for e in head.errors if e.action is None]
    elif head.state not in _FAILING:
        return None
    else:
        if head.cancelled_at is not None and head.state is not ExecutionState.FAILED:
            return ExecutionCancelled(head.workflow_id, head.transaction_id)
        errors = list(execution.errors(Action.INVOKE)) or list(head.errors)
    if not errors:
        return None
    return as_exception(execution, errors[0], causes)


def as_exception(
    execution: Execution, error: ErrorRecord, causes: dict[str, BaseException]
) -> Exception:
    """A stored error as an exception, with the original as its cause where it is at hand."""
    if error.name == "TransactionTimeoutError":
        return TransactionTimeoutError(error.message)
    if error.name == "TransactionStepTimeoutError":
        return TransactionStepTimeoutError(error.message)
    raised = StepFailed(
        workflow_id=execution.head.workflow_id,
        transaction_id=execution.head.transaction_id,
        step=error.action,
        handler_type=str(error.handler_type),
        name=error.name,
        text=error.message,
        stack=error.stack,
    )
    raised.__cause__ = causes.get(error.action or "")
    return raised


def chance() -> float:
    """What jitter is made of, in [0, 1)."""
    return random.random()
