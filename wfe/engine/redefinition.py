"""Redefinition: an execution goes on by a definition that was changed while it waited.

    carried_over(execution, loaded, now) -> CarriedOver(execution, changes)

The *point reached* is the last stage that was opened. Stages up to it must be as they were, or the
execution is refused; later ones may change freely, and so may options. On request (`allow_changed`)
it goes on all the same: a step that has begun keeps its record wherever it is now, the point reached
is the last stage that has such a step, and what else there is up to there is skipped.

Here it is said whether an execution goes on; `passage` takes it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from wfe.engine.comparison import Names, compare, is_same_step
from wfe.engine.frontier import is_under_way
from wfe.engine.names import EXECUTION_FAILED, EXECUTION_REVERTED, INVOKE
from wfe.engine.passage import changes_of_passage
from wfe.errors import DefinitionChanged
from wfe.model import Changes, Execution, Flow, StepKind, StepRecord

_NO_RENAMES: Mapping[str, str] = MappingProxyType({})
_OVER = frozenset({EXECUTION_REVERTED, EXECUTION_FAILED})


class CarriedOver(msgspec.Struct, frozen=True):
    """An execution by the loaded flow, and the changes that make it go on by it.

    They are a commit of their own, to be kept and taken before anything else happens: its timeline
    entries say what was renamed, is skipped and is not undone. None: nothing has to be done, and the
    execution is the very one that was given.
    """

    execution: Execution
    changes: Changes | None = None


def carried_over(
    execution: Execution,
    loaded: Flow,
    now: datetime,
    *,
    renames: Mapping[str, str] = _NO_RENAMES,
    allow_changed: bool = False,
) -> CarriedOver:
    """`execution`, which no process drives, going on by `loaded` from `now`.

    `renames` are old names of steps and their new ones: record, output and the decision of a
    condition that is called like its step go along. From then on the step has another idempotency
    key; who answers it, or recognises it by its key, must know the new one. What it failed with keeps
    the old name. A pair that was taken over before is passed over.

    With `allow_changed` nothing up to the point reached is called again: steps that were added there
    are skipped, and steps that are gone are no longer undone. Two steps of one name, but of another
    kind or child, count as one that is gone and one that was added, which has the other's output.

    Raises:
        DefinitionChanged: it differs up to the point reached, or, even with `allow_changed`, a step
            that is under way is gone, or a nested workflow under way has another name.
        UsageError: `renames` names a step that is not there, or gives two steps one name.
    """
    flow, head = execution.flow, execution.head
    if head.state in _OVER:
        return CarriedOver(execution)
    names = Names(flow, loaded, renames)
    if flow == loaded and head.definition == loaded.hash:
        return CarriedOver(execution)
    differences = compare(flow, loaded, head.stage, names)
    in_the_way = _in_the_way(execution, loaded, names)
    if in_the_way or (differences and not allow_changed):
        raise DefinitionChanged(
            head.workflow_id,
            head.transaction_id,
            changes=(*differences.lines, *in_the_way),
            way_out=_way_out(execution, loaded, {**renames, **differences.renames}),
        )
    changes = changes_of_passage(execution, loaded, names, now, differs=bool(differences))
    return CarriedOver(_by(loaded, execution), changes)


def _by(loaded: Flow, execution: Execution) -> Execution:
    return Execution(
        loaded,
        execution.head,
        input=execution.input,
        steps=execution.steps.values(),
        result=execution.result,
        holder=execution.holder,
        has_signals=execution.has_signals,
    )


def _way_out(
    execution: Execution, loaded: Flow, renames: Mapping[str, str]
) -> dict[str, Any] | None:
    """What would let the execution go on: with these new names, as far as they lead; None: nothing."""
    names = Names(execution.flow, loaded, renames)
    if _in_the_way(execution, loaded, names):
        return None
    still_differs = compare(execution.flow, loaded, execution.head.stage, names)
    way = {"renames": dict(renames), "allow_changed": bool(still_differs)}
    return {name: value for name, value in way.items() if value}


def _in_the_way(execution: Execution, loaded: Flow, names: Names) -> list[str]:
    """Steps under way that nobody could go on with, as lines of a listing."""
    found = []
    for name, record in execution.steps.items():
        if not is_under_way(record):
            continue
        spec, now = execution.flow.steps[name], names.step(name)
        other = loaded.steps.get(now)
        why = ""
        if other is None:
            why = f"it {_doing(record)}, and can be taken out only when it is over"
        elif not is_same_step(spec, other):
            why = f"it {_doing(record)}, and can become another step only when it is over"
        elif now != name and spec.kind is StepKind.WORKFLOW and record.action is INVOKE:
            why = "its workflow reports to that name, and can be renamed only when it is over"
        if why:
            found.append(f"! {name}: {why}")
    return found


def _doing(record: StepRecord) -> str:
    if record.awaiting:
        return "waits for an answer"
    if record.sleeping:
        return "sleeps"
    return "is being executed" if record.running else "waits for its next attempt"
