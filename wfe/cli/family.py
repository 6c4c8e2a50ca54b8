"""Family: the executions that are steps of another, found in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfe.model import Execution, ExecutionKey, StepKey

if TYPE_CHECKING:
    from wfe.store.contract import Reader


def child_of(reader: Reader, parent: Execution, step: str) -> Execution | None:
    """The execution that a step of `parent` runs; None where the step runs no workflow, has not begun,
    or its child is not kept."""
    key = child_key(parent, step)
    if key is None or parent.step(step).started_at is None:
        return None
    child = reader.load(key)
    if child is None or _is_of(child, parent, step):
        return child
    return _of_earlier_run(reader, key, parent, step)


def child_key(parent: Execution, step: str) -> ExecutionKey | None:
    """What the execution is called that a step of `parent` runs; None where it runs none."""
    workflow_id = parent.flow.steps[step].child
    return None if workflow_id is None else ExecutionKey(workflow_id, _transaction_of(parent, step))


def _transaction_of(parent: Execution, step: str) -> str:
    """The child's transaction id: what the undo of the step is kept for, once that is known."""
    record = parent.step(step)
    if record.compensate_with is not None:
        import msgspec

        told = msgspec.json.decode(record.compensate_with)
        if isinstance(told, str):
            return told
    name = f"{step}-{parent.head.transaction_id}"
    return f"{name}-attempt-{record.failures + 1}" if record.failures else name


def _is_of(child: Execution, parent: Execution, step: str) -> bool:
    head = parent.head
    key = StepKey(head.workflow_id, head.transaction_id, step)
    return child.head.parent_step_idempotency_key == str(key) and (
        child.head.parent_run_id in (None, head.run_id)
    )


def _of_earlier_run(
    reader: Reader, key: ExecutionKey, parent: Execution, step: str
) -> Execution | None:
    """The child of a run that was run again since: it has the same key as that of the newer run."""
    from wfe.store.contract import Query

    where = {"workflow_id": key.workflow_id, "transaction_id": key.transaction_id}
    for summary in reader.list(Query(where=where)):
        child = reader.load(key, summary.run_id)
        if child is not None and _is_of(child, parent, step):
            return child
    return None
