"""When an execution is written down: the two recording policies, in one place.

`every-step` writes at each change, so that a crash costs at most the step in flight. `reference`
writes what the recordings of the reference engine show: at the begin, at each change of the
execution's state and around steps that must be stored; nothing at all for a workflow that needs no
checkpoint.
"""

from __future__ import annotations

from wfe.model import Changes, Flow, Head, Recording, StepOptions


def is_stored(flow: Flow, recording: Recording) -> bool:
    """Are executions of this workflow kept in the store?"""
    if recording is Recording.EVERY_STEP:
        return True
    options = flow.options
    return bool(
        options.store
        or options.retention_time
        or options.idempotent
        or options.timeout is not None
        or flow.has_lasting_steps
    )


def must_keep_now(flow: Flow, saved: Head | None, changes: Changes) -> bool:
    """Must these changes be in the store before anything follows from them?"""
    head = changes.head
    if head.recording is Recording.EVERY_STEP or saved is None or saved.state is not head.state:
        return True
    if head.running == 0:
        return True  # it comes to rest, and may be forgotten here
    # A step that a changed definition has taken out is in the records alone.
    known = (flow.steps[name].options for name in changes.steps if name in flow.steps)
    return any(map(_is_stored_step, known))


def _is_stored_step(options: StepOptions) -> bool:
    if options.store is not None:
        return options.store
    return options.outlives_call or options.timeout is not None


def is_kept(head: Head) -> bool:
    """Does a finished execution stay in the store?"""
    return (
        head.recording is Recording.EVERY_STEP
        or bool(head.retention_time)
        or head.idempotent
        or head.root is not None
    )
