"""Signals: a command for an execution that another process has in hand, as it travels.

The event that the command is to the machine goes as it is; what becomes of it comes back as nothing,
or as the refusal, which is raised as if it had happened here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from wfe import errors
from wfe.engine.events import Answer, Cancel, Event, Retry, Skip
from wfe.errors import WfeError
from wfe.model import Execution, Json
from wfe.store.contract import Signal

_KINDS: dict[str, type[Answer | Skip | Retry | Cancel]] = {
    "answer": Answer,
    "skip": Skip,
    "retry": Retry,
    "cancel": Cancel,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}

_encode = msgspec.json.Encoder(enc_hook=str).encode


class _Refusal(msgspec.Struct, omit_defaults=True):
    """An error that has crossed the border between two processes."""

    type: str
    message: str
    fields: dict[str, Any] = {}


def signal_of(execution: Execution, event: Event, now: datetime) -> Signal:
    """A command for `execution`, ready to be sent."""
    command: Any = event
    action = getattr(event, "action", None)
    return Signal(
        execution_id=execution.head.execution_id,
        key=execution.head.key,
        kind=_NAMES[type(command)],
        payload=_encode(command),
        step=getattr(event, "step", None),
        action=None if action is None else str(action),
        sender=command.by,
        sent_at=now,
    )


def event_of(signal: Signal) -> Event:
    """The command that arrived.

    Raises:
        NotAllowed: it is of a kind that this version does not know.
    """
    kind = _KINDS.get(signal.kind)
    if kind is None:
        key = signal.key
        raise errors.NotAllowed(
            key.workflow_id, key.transaction_id, command=signal.kind, state="of an older wfe"
        )
    return msgspec.json.decode(signal.payload, type=kind)


def packed(refusal: WfeError) -> Json:
    """A refusal, to be sent back."""
    return _encode(_Refusal(type(refusal).__name__, refusal.message, dict(vars(refusal))))


def unpacked(refusal: Json) -> WfeError:
    """The refusal that came back."""
    found = msgspec.json.decode(refusal, type=_Refusal)
    kind = getattr(errors, found.type, WfeError)
    error: WfeError = kind.__new__(kind)
    Exception.__init__(error, found.message)
    vars(error).update({"hint": "", **found.fields})
    return error
