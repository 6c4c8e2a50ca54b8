"""Endings: what a finished execution has come to, in one word, and who is named to be told of it.

A state alone does not tell: one that is `reverted` has failed, or was cancelled, or ran out of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfe.model import ErrorRecord, Head

#: Ending → what a command ends with that was about the execution. `result_failed`: it is done, but its
#: result could not be computed.
CODES = {
    "done": 0,
    "result_failed": 1,
    "reverted": 10,
    "failed": 11,
    "timed_out": 12,
    "cancelled": 13,
}

#: What one may ask for by name; `failed` includes `result_failed`.
NAMES = ("done", "reverted", "failed", "timed_out", "cancelled")

#: Before the id of a workflow, where a command may stand.
WORKFLOW = "workflow:"

_TIMEOUTS = ("TransactionTimeoutError", "TransactionStepTimeoutError")


def ending_of(head: Head) -> str | None:
    """One of CODES; None where it is not finished.

    A failed undo outweighs what caused it; a cancel outweighs a timeout, that an ordinary failure.
    """
    errors = [error for error in head.errors if str(error.handler_type) == "invoke"]
    match str(head.state):
        case "done":
            return "result_failed" if any(e.action is None for e in errors) else "done"
        case "failed":
            return "failed"
        case "reverted" if head.cancelled_at is not None:
            return "cancelled"
        case "reverted":
            late = head.timed_out or (bool(errors) and errors[0].name in _TIMEOUTS)
            return "timed_out" if late else "reverted"
        case _:
            return None


def error_document(record: ErrorRecord) -> dict[str, Any]:
    """One failure as whoever is told of it gets it. `attempts` is there where the step failed for
    good, `origin` where the failure is a child's."""
    document: dict[str, Any] = {
        "action": record.action,
        "handler_type": str(record.handler_type),
        "error": {"name": record.name, "message": record.message, "stack": record.stack},
    }
    if record.attempts is not None:
        document["attempts"] = record.attempts
    if record.origin is not None:
        document["origin"] = record.origin
    return document


def chosen(value: Any) -> tuple[str, ...]:
    """The endings that somebody asks for: a list of NAMES, or a text of them with commas, or `all`.

    Raises:
        ValueError: it says something else, or nothing.
    """
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Iterable):
        raise ValueError(f"{value!r} is no list of {', '.join(NAMES)}, or all")
    found = [word.strip() if isinstance(word, str) else word for word in words]
    if found == ["all"]:
        return NAMES
    for word in found:
        if word not in NAMES:
            raise ValueError(f"{word!r} is none of {', '.join(NAMES)}, all")
    if not found:
        raise ValueError("it names nothing")
    return tuple(name for name in NAMES if name in found)


def target(value: Any) -> str | tuple[str, ...]:
    """Who is named: `workflow:ID`, or the words of a command, which may be in one text.

    Raises:
        ValueError: nobody.
    """
    if isinstance(value, str) and value.startswith(WORKFLOW):
        from wfe.model import check_name

        reason = check_name(value.removeprefix(WORKFLOW))
        if reason is not None:
            raise ValueError(f"{value!r} names no workflow: {reason}")
        return value
    words = _words(value)
    if not words or not words[0]:
        raise ValueError("the command is empty")
    if any("\0" in word for word in words):
        raise ValueError("a command cannot hold a NUL character")
    return words


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        import shlex

        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(f"{value!r} is no command: {str(error).lower()}") from None
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{value!r} is no command, list of its words, or workflow")
    return tuple(value)
