"""Which execution or step a person means by a key that may be shortened.

`workflow:transaction:step:action`, `workflow:transaction:step`, `workflow:transaction`, a
transaction id, or the beginning of a run id. A transaction id may hold colons, so that a text can
be read in several ways: those readings count that exist in the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wfe.errors import (
    MalformedKey,
    NotAllowed,
    StepNotFound,
    TransactionFinished,
    TransactionNotFound,
    UsageError,
)
from wfe.model import Action, Execution, ExecutionKey, StepKey

if TYPE_CHECKING:
    from wfe.store.contract import Reader

_RUN_PREFIX = re.compile(r"[0-9A-Za-z]{4,26}")
_MOST_CANDIDATES = 20
_MOST_SHOWN = 10


class Found(NamedTuple):
    """What a key means: an execution, and the step of it where the key names one."""

    execution: Execution
    step: str | None = None
    action: Action | None = None

    @property
    def key(self) -> str:
        """The key in full."""
        head = self.execution.head
        parts = [head.workflow_id, head.transaction_id, self.step, self.action]
        return ":".join(part for part in parts if part is not None)


def find_execution(reader: Reader | None, text: str) -> Execution:
    """The execution that `text` means; a key of one of its steps means it, too.

    Raises:
        MalformedKey: it is empty.
        TransactionNotFound: nothing stored is called so.
        UsageError: it may mean several; the message lists them.
    """
    if not text:
        raise MalformedKey(text, "it is empty")
    found = _readings(reader, text) if reader is not None else []
    if not found:
        workflow_id, colon, transaction_id = text.partition(":")
        message = f"Nothing stored is called {text!r}."
        raise TransactionNotFound(
            workflow_id if colon else "", transaction_id if colon else text, message
        )
    executions = {one.execution.head.run_id: Found(one.execution) for one in found}
    return _only(text, list(executions.values())).execution


def find_step(reader: Reader | None, text: str) -> StepKey:
    """The step that `text` means; an execution with one waiting step means that step.

    Raises:
        MalformedKey: nothing stored is called so, and it is no key in full either.
        TransactionNotFound, StepNotFound: a key in full that does not exist.
        TransactionFinished, NotAllowed: an execution that is over, or none of whose steps waits.
        UsageError: it may mean several; the message lists them.
    """
    found = _readings(reader, text) if reader is not None else []
    if not found:
        raise _missing_step(reader, text)
    meant = [step for one in found for step in _steps_of(one)]
    if not meant:
        head = found[0].execution.head
        if head.is_final:
            raise TransactionFinished(head.workflow_id, head.transaction_id, str(head.state))
        raise NotAllowed(
            head.workflow_id, head.transaction_id, command="answered", state=str(head.state)
        )
    return _step_key(_only(text, meant))


def _readings(reader: Reader, text: str) -> list[Found]:
    """Every reading that exists; a match of all four parts stands alone."""
    parts = text.split(":")
    if len(parts) >= 4 and parts[-1] in (Action.INVOKE, Action.COMPENSATE):
        key = ExecutionKey(parts[0], ":".join(parts[1:-2]))
        if full := _step(reader, key, parts[-2], Action(parts[-1])):
            return [full]
    return list(_short_readings(reader, text, parts))


def _short_readings(reader: Reader, text: str, parts: Sequence[str]) -> Iterator[Found]:
    if len(parts) >= 3:
        step = _step(reader, ExecutionKey(parts[0], ":".join(parts[1:-1])), parts[-1], None)
        if step is not None:
            yield step
    if len(parts) >= 2:
        execution = reader.load(ExecutionKey(parts[0], ":".join(parts[1:])))
        if execution is not None:
            yield Found(execution)
    for key in reader.keys(transaction_id=text, limit=_MOST_CANDIDATES):
        if (execution := reader.load(key)) is not None:
            yield Found(execution)
    if _RUN_PREFIX.fullmatch(text):
        yield from _runs(reader, text.upper())


def _runs(reader: Reader, prefix: str) -> Iterator[Found]:
    from wfe.store.contract import Query

    where = {"run_id": {"$like": f"{prefix}%"}}
    for summary in reader.list(Query(where=where, limit=_MOST_CANDIDATES)):
        execution = reader.load(summary.key, summary.run_id)
        if execution is not None:
            yield Found(execution)


def _step(reader: Reader, key: ExecutionKey, step: str, action: Action | None) -> Found | None:
    execution = reader.load(key)
    if execution is None or step not in execution.flow.steps:
        return None
    return Found(execution, step, action or execution.step(step).action)


def _steps_of(found: Found) -> list[Found]:
    if found.step is not None:
        return [found]
    execution = found.execution
    waiting = [name for name in execution.active if execution.step(name).awaiting]
    return [Found(execution, name, execution.step(name).action) for name in waiting]


def _step_key(found: Found) -> StepKey:
    head = found.execution.head
    assert found.step is not None
    assert found.action is not None
    return StepKey(head.workflow_id, head.transaction_id, found.step, found.action)


def _only(text: str, found: Sequence[Found]) -> Found:
    if len(found) == 1:
        return found[0]
    runs = [f"{one.key} (run {one.execution.head.run_id})" for one in found[:_MOST_SHOWN]]
    runs += ["and others"] if len(found) > _MOST_SHOWN else []
    raise UsageError(f"{text!r} may mean: {', '.join(runs)}.", hint="Write more of it.")


def _missing_step(reader: Reader | None, text: str) -> Exception:
    try:
        key = StepKey.parse(text)
    except MalformedKey:
        return MalformedKey(text, "nothing stored is called so, and it is not one in full")
    execution = reader.load(key.execution) if reader is not None else None
    if execution is None:
        return TransactionNotFound(key.workflow_id, key.transaction_id)
    from difflib import get_close_matches

    near = get_close_matches(key.step, execution.flow.steps)
    return StepNotFound(key.workflow_id, key.transaction_id, key.step, near=near)
