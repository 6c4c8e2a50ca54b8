"""Family: the executions that are steps of another, found in the store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from wfe.errors import WfeError
from wfe.model import Execution, ExecutionKey, StepKey, StepState

if TYPE_CHECKING:
    from wfe.cli.session import Session
    from wfe.store.contract import Reader

#: So many executions are looked into, and so many levels of them.
_MOST = 16
_DEEPEST = 8

#: Seconds between two looks, at least.
_PACE = 0.2


class Child(NamedTuple):
    """An execution that is a step of another one, and those of its own steps that are looked into."""

    execution: Execution
    children: Children


#: By the step that runs them.
Children = Mapping[str, Child]

NONE: Children = MappingProxyType({})


def looked_into(reader: Reader, parent: Execution) -> Children:
    """The children of which there is more to tell than that they are done, with theirs: those under way
    before others, and no more than anybody would read."""
    return _looked_into(reader, parent, iter(range(_MOST)), _DEEPEST)


def _looked_into(
    reader: Reader, parent: Execution, left: Iterator[int], levels: int
) -> dict[str, Child]:
    found: dict[str, Child] = {}
    for step in _telling(parent) if levels else ():
        child = child_of(reader, parent, step)
        if child is None:
            continue
        if next(left, None) is None:
            break
        found[step] = Child(child, _looked_into(reader, child, left, levels - 1))
    return found


def _telling(parent: Execution) -> list[str]:
    """The steps that run a workflow, and are neither to come nor simply done."""
    simple = (StepState.DONE, StepState.NOT_STARTED, StepState.SKIPPED, StepState.SKIPPED_FAILURE)
    steps = []
    for step, spec in parent.flow.steps.items():
        if spec.child is not None:
            record = parent.step(step)
            if record.invoke not in simple or record.compensate is not StepState.DORMANT:
                steps.append(step)
    return sorted(steps, key=lambda step: step not in parent.active)


class Onlooker:
    """Looks into the children of an execution again and again, as others move them. Reads the store by
    a connection of its own; where it cannot, the children are as they were."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open = contextlib.ExitStack()
        self._reader: Reader | None = None
        self._seen: Execution | None = None
        self._children = NONE
        self._next = 0.0

    def children(self, parent: Execution) -> Children:
        """As `looked_into`, of what `parent` was not long ago."""
        if not any(spec.child for spec in parent.flow.steps.values()):
            return NONE
        is_news = parent is not self._seen
        is_last = is_news and parent.head.is_final
        if monotonic() < self._next and not is_last:
            return self._children
        with contextlib.suppress(WfeError):
            if self._reader is None:
                self._reader = self._open.enter_context(self._session.reader())
            if self._reader is not None and (self._reader.changed() or is_news):
                began = monotonic()
                self._children = looked_into(self._reader, parent)
                self._seen = parent
                # Many children take half of one's time at most.
                self._next = monotonic() + max(_PACE, monotonic() - began)
        return self._children

    def close(self) -> None:
        """Look no more."""
        self._open.close()


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
