"""What a live execution comes to: all that has arrived for it, put to the machine in one go.

Nothing is kept here, nothing is acted on. A deadline counts from its moment on, whichever task ran
first.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from wfe.engine.draft import Draft
from wfe.engine.events import Due, Outcome, Resume
from wfe.engine.machine import apply_to
from wfe.engine.names import INVOKE
from wfe.errors import WfeError
from wfe.model import Changes
from wfe.runtime.failures import record_of
from wfe.runtime.live import Live
from wfe.runtime.replies import Replies
from wfe.runtime.values import ExecutionValues
from wfe.store import codec


def outcome_of(
    live: Live, now: datetime, replies: Replies, *, holds_back: bool, keeps_timeline: bool
) -> Outcome | None:
    """What all events of the inbox come to, which is empty then; None where they change nothing.
    Senders who are owed an answer are put down in `replies`; the rest as `Draft` has it."""
    draft = Draft(live.execution, now, holds_back=holds_back, keeps_timeline=keeps_timeline)
    inbox = live.inbox
    changed = is_taken_up = False
    wake_at = live.execution.head.wake_at
    # A deadline counts from its moment on, whichever task ran first; but what was at work in a
    # process that is gone is looked at before.
    is_overdue = wake_at is not None and now >= wake_at
    if is_overdue and not any(type(event) is Resume for event, _, _ in inbox):
        apply_to(draft, Due())
        is_overdue, changed = False, True
    while inbox:
        event, reply, signal = inbox.popleft()
        kind = type(event)
        try:
            if kind is Resume:
                if not is_taken_up:
                    apply_to(draft, Resume(at_work=frozenset(live.running)))
                is_taken_up = changed = True
            elif kind is not Due:
                apply_to(draft, event)
                changed = True
            if is_overdue and is_taken_up:
                apply_to(draft, Due())
                is_overdue = False
        except WfeError as refusal:
            if reply is None and signal is None:
                raise
            replies.append((reply, signal, refusal))
        else:
            if reply is not None or signal is not None:
                replies.append((reply, signal, None))
    return draft.outcome() if changed else None


async def with_result(live: Live, changes: Changes) -> Changes:
    """Compute the workflow's result, once, before the checkpoint that makes it done."""
    values = ExecutionValues(live.execution, live.transforms, changes.steps)
    try:
        result = codec.encode(await live.workflow.result(values), what="result")
    except Exception as error:
        live.audience.causes[""] = error
        record = record_of(error, None, INVOKE)
        head = replace(changes.head, errors=(*changes.head.errors, record))
        return replace(changes, head=head)
    return replace(changes, result=result)
