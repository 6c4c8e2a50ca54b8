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
        or any(_needs_memory(spec.options) for spec in flow.steps.values())
    )


def _needs_memory(options: StepOptions) -> bool:
    """A step that outlives the call that began it."""
    return options.async_ or options.compensate_async or options.retry_interval > 0


def must_keep_now(flow: Flow, saved: Head | None, changes: Changes) -> bool:
    """Must these changes be in the store before anything follows from them?"""
    head = changes.head
    if head.recording is Recording.EVERY_STEP or saved is None or saved.state is not head.state:
        return True
    if head.running == 0:
        return True  # it comes to rest, and may be forgotten here
    return any(_is_stored_step(flow.steps[name].options) for name in changes.steps)


def _is_stored_step(options: StepOptions) -> bool:
    if options.store is not None:
        return options.store
    return _needs_memory(options) or options.timeout is not None


def is_kept(head: Head) -> bool:
    """Does a finished execution stay in the store?"""
    return (
        head.recording is Recording.EVERY_STEP
        or bool(head.retention_time)
        or head.idempotent
        or head.root is not None
    )
