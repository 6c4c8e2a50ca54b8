"""The frontier, counted anew: what a head says of its execution follows from the records.

The machine keeps these numbers as it goes and never looks back. Where records came about in another
way, they are counted here; for an execution that the machine has brought to where it is, that changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from wfe.engine.names import INVOKE, STEP_COMPENSATING, STEP_INVOKING, STEP_NOT_STARTED
from wfe.model import Flow, Head, StepRecord


def is_under_way(record: StepRecord) -> bool:
    """The side that the step is at has begun, or is held, and has not settled."""
    return record.state in (STEP_INVOKING, STEP_COMPENSATING) or (
        record.held and record.state is STEP_NOT_STARTED
    )


def waits_to_be_undone(record: StepRecord) -> bool:
    """The way back has not come to it yet."""
    return record.undo and record.compensate is STEP_NOT_STARTED and not record.held


def counted(head: Head, flow: Flow, records: Iterable[StepRecord]) -> Head:
    """`head`, whose stages are right, with the numbers that follow from `records`.

    A step counts as the options of `flow` say: one that is `no_wait` now is not waited for by the
    stage that is open.
    """
    records = list(records)
    under_way = [record for record in records if is_under_way(record)]
    forward = [record for record in under_way if record.action is INVOKE]
    loose = sum(flow.steps[record.name].options.no_wait for record in forward)
    return replace(
        head,
        open=len(forward) - loose,
        loose=loose,
        running=sum(record.running for record in records),
        awaiting=sum(record.awaiting for record in records),
        undo_open=len(under_way) - len(forward),
    )
