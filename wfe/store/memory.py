"""A store in memory: for engines without a file, and for tests.

It keeps the records that it is handed, which are frozen, by reference. A commit costs what it changes,
whatever else is kept; `due` and `delete_expired` look only at what has come due.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from wfe.errors import SkipExecutionError, UsageError
from wfe.model import (
    Changes,
    Execution,
    ExecutionKey,
    ExecutionState,
    Head,
    StepKey,
    StepState,
    TimelineEvent,
)
from wfe.store import owners
from wfe.store.contract import ExecutionSummary, Query, Reader, Settled, WaitingStep, could_go_on
from wfe.store.memory_ledger import MemoryLedger
from wfe.store.memory_notices import MemoryNotices
from wfe.store.moments import expires_at, to_micros, to_micros_or_none
from wfe.store.queries.conditions import holds
from wfe.store.queries.filters import Plan, arranged, plan

_NOT_OVER = (StepState.NOT_STARTED, StepState.INVOKING)


class _Run:
    """One run: its execution as it was last committed, and its timeline."""

    __slots__ = ("events", "execution", "serial")

    def __init__(self, execution: Execution, serial: int) -> None:
        self.execution = execution
        self.events: list[TimelineEvent] = []
        self.serial = serial

    @property
    def head(self) -> Head:
        return self.execution.head

    def copy(self) -> Execution:
        kept = self.execution
        return Execution(
            kept.flow,
            kept.head,
            input=kept.input,
            steps=kept.steps.values(),
            result=kept.result,
            holder=_holder(kept.head),
        )


class _Deadlines:
    """Runs by a moment that each may have, the earliest first.

    A heap whose entries are left in place when a moment changes, and recognised as outdated when they
    come up; it is built anew when they are the greater part.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._runs: dict[int, tuple[int, _Run]] = {}

    def put(self, run: _Run, moment: int | None) -> None:
        """`moment` is in microseconds; None: it has none any more."""
        known = self._runs.get(run.serial)
        if moment is None:
            self._runs.pop(run.serial, None)
        elif known is None or known[0] != moment:
            self._runs[run.serial] = (moment, run)
            heapq.heappush(self._heap, (moment, run.serial))
            if len(self._heap) > 2 * len(self._runs) + 100:
                self._heap = [(at, serial) for serial, (at, _) in self._runs.items()]
                heapq.heapify(self._heap)

    def until(self, now: int, limit: int) -> list[_Run]:
        """At most `limit` runs whose moment has come."""
        found: dict[int, _Run] = {}
        while self._heap and self._heap[0][0] <= now and len(found) < limit:
            at, serial = heapq.heappop(self._heap)
            known = self._runs.get(serial)
            if known is not None and known[0] == at:
                found[serial] = known[1]
        for serial in found:
            heapq.heappush(self._heap, (self._runs[serial][0], serial))
        return list(found.values())


class MemoryStore:
    """The CheckpointStore that ends with its process."""

    peers = None

    def __init__(self) -> None:
        #: By key, in the order in which the runs began.
        self._runs: dict[ExecutionKey, dict[str, _Run]] = {}
        self._by_id: dict[str, _Run] = {}
        #: The unfinished run of a key.
        self._unfinished: dict[ExecutionKey, _Run] = {}
        self._children: dict[str, dict[int, _Run]] = {}
        self._wakes = _Deadlines()
        self._expiries = _Deadlines()
        self._serial = 0
        self.ledger = MemoryLedger()
        self.notices = MemoryNotices(self._note)
        self._reader = MemoryReader(self._runs, self._by_id, self.ledger)

    @property
    def reader(self) -> Reader:
        return self._reader

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def insert(self, execution: Execution, changes: Changes, *, lone: bool = False) -> bool:
        head = changes.head
        if head.key in self._unfinished or head.run_id in self._runs.get(head.key, ()):
            return False
        self._serial += 1
        kept = Execution(
            execution.flow,
            execution.head,
            input=execution.input,
            steps=execution.steps.values(),
            result=execution.result,
        )
        run = self._by_id[head.execution_id] = _Run(kept, self._serial)
        self._runs.setdefault(head.key, {})[head.run_id] = run
        if head.root is not None:
            self._children.setdefault(head.root, {})[run.serial] = run
        self._take(run, changes)
        return True

    async def commit(
        self,
        execution: Execution,
        changes: Changes,
        *,
        settled: Sequence[Settled] = (),
        lone: bool = False,
    ) -> None:
        run = self._by_id.get(changes.head.execution_id)
        if run is None or run.head.version != execution.head.version:
            raise SkipExecutionError
        if run.head.is_final and not self._may_be_taken_back(run, changes.head):
            raise SkipExecutionError
        run.execution.flow = execution.flow
        self._take(run, changes)

    def _may_be_taken_back(self, run: _Run, head: Head) -> bool:
        """Only a cancel does that, to a `done` run, and while no newer one is unfinished."""
        return (
            run.head.state is ExecutionState.DONE
            and head.state is not ExecutionState.DONE
            and head.key not in self._unfinished
        )

    def _take(self, run: _Run, changes: Changes) -> None:
        run.execution.take(changes)
        run.events += changes.events
        head = changes.head
        if not head.is_final:
            self._unfinished[head.key] = run
        elif self._unfinished.get(head.key) is run:
            del self._unfinished[head.key]
        if changes.owes_notice:
            self.notices.owe(head)
        self._wakes.put(run, None if head.is_final else to_micros_or_none(head.wake_at))
        self._expiries.put(run, expires_at(head))

    def _note(self, execution_id: str, entry: TimelineEvent) -> None:
        run = self._by_id.get(execution_id)
        if run is not None:
            run.events.append(entry)

    async def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        return self._reader.load(key, run_id)

    async def due(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        return [run.head.key for run in self._wakes.until(to_micros(now), limit)]

    async def interrupted(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        found = (
            run.head.key
            for run in self._unfinished.values()
            if _holder(run.head) is None
            and (could_go_on(run.head, now) or self._has_ended_child(run))
        )
        return list(islice(found, limit))

    def _has_ended_child(self, run: _Run) -> bool:
        """Does a step of it wait for its child, which has ended?"""
        head = run.head
        children = self._children.get(head.root or str(head.key)) if head.awaiting else None
        if not children:
            return False
        awaited = {
            str(StepKey(head.workflow_id, head.transaction_id, step.name))
            for step in run.execution.steps.values()
            if step.awaiting
        }
        return any(
            child.head.is_final
            and child.head.parent_run_id == head.run_id
            and child.head.parent_step_idempotency_key in awaited
            for child in children.values()
        )

    async def delete(
        self, key: ExecutionKey, run_id: str, *, settled: Sequence[Settled] = ()
    ) -> bool:
        run = self._runs.get(key, {}).get(run_id)
        if run is None:
            return False
        self._forget(run)
        return True

    async def delete_children(self, root: ExecutionKey) -> int:
        children = self._children.get(str(root), {}).values()
        over = [run for run in children if run.head.is_final and not run.head.idempotent]
        for run in over:
            self._forget(run)
        return len(over)

    async def delete_expired(self, now: datetime) -> int:
        expired = self._expiries.until(to_micros(now), len(self._by_id))
        going = {run.serial: run for run in expired if run.head.root is None}
        children = {run.serial: run for run in expired if run.head.root is not None}
        for root in list(going.values()):
            along = self._children.get(str(root.head.key), {}).values()
            children.update((run.serial, run) for run in along if _goes_along(run.head))
        for serial in sorted(children):  # a parent has the lower serial: it has been decided on
            run = children[serial]
            parent = self._parent(run.head)
            if (parent is None and not _goes_along(run.head)) or (
                parent is not None and parent.serial in going
            ):
                going[serial] = run
        for run in going.values():
            self._forget(run)
        return len(going)

    def _parent(self, head: Head) -> _Run | None:
        """The run that an execution is a step of, as long as it is kept."""
        if head.parent_step_idempotency_key is None or head.parent_run_id is None:
            return None
        key = StepKey.parse(head.parent_step_idempotency_key).execution
        return self._runs.get(key, {}).get(head.parent_run_id)

    def _forget(self, run: _Run) -> None:
        head = run.head
        del self._by_id[head.execution_id]
        self.notices.drop(head.execution_id)
        runs = self._runs[head.key]
        del runs[head.run_id]
        if not runs:
            del self._runs[head.key]
        if self._unfinished.get(head.key) is run:
            del self._unfinished[head.key]
        if head.root is not None:
            siblings = self._children[head.root]
            del siblings[run.serial]
            if not siblings:
                del self._children[head.root]
        self._wakes.put(run, None)
        self._expiries.put(run, None)


class MemoryReader:
    """The Reader of a MemoryStore."""

    def __init__(
        self,
        runs: dict[ExecutionKey, dict[str, _Run]],
        by_id: dict[str, _Run],
        ledger: MemoryLedger,
    ) -> None:
        self._runs = runs
        self._by_id = by_id
        self.ledger = ledger

    def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        runs = self._runs.get(key)
        if not runs:
            return None
        run = next(reversed(runs.values())) if run_id is None else runs.get(run_id)
        return None if run is None else run.copy()

    def list(self, query: Query) -> Sequence[ExecutionSummary]:
        asked = plan(query)
        return arranged(self._meeting(asked), asked)

    def count(self, query: Query) -> int:
        return sum(1 for _ in self._meeting(plan(query)))

    def _meeting(self, asked: Plan) -> Iterator[ExecutionSummary]:
        # A copy: a query may run in a thread while the loop goes on.
        for run in list(self._by_id.values()):
            summary = _summary(run.head)
            if holds(asked.condition, summary, run.execution):
                yield summary

    def tally(self) -> Mapping[tuple[str, ExecutionState], int]:
        heads = [run.head for run in list(self._by_id.values())]
        return Counter((head.workflow_id, head.state) for head in heads)

    def step_counts(self, execution_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        found = (self._by_id.get(each) for each in execution_ids)
        return {run.head.execution_id: _step_counts(run.execution) for run in found if run}

    def keys(
        self,
        *,
        workflow_id: str | None = None,
        transaction_id: str | None = None,
        run_id_prefix: str | None = None,
        limit: int = 20,
    ) -> Sequence[ExecutionKey]:
        if workflow_id is None and transaction_id is None and run_id_prefix is None:
            raise UsageError("Give a workflow id, a transaction id or the beginning of a run id.")
        matching = [
            run.head
            for run in list(self._by_id.values())
            if workflow_id in (None, run.head.workflow_id)
            and transaction_id in (None, run.head.transaction_id)
            and run.head.run_id.startswith(run_id_prefix or "")
        ]
        matching.sort(key=lambda head: (head.created_at, head.execution_id), reverse=True)
        return list(dict.fromkeys(head.key for head in matching))[:limit]

    def timeline(self, execution_id: str, *, after: int = 0) -> Sequence[TimelineEvent]:
        run = self._by_id.get(execution_id)
        return [] if run is None else run.events[after:]

    def changed(self) -> bool:
        return True

    def steps_waiting(self, *, limit: int | None = None) -> Sequence[WaitingStep]:
        waiting = [
            (_none_first(to_micros_or_none(step.last_attempt_at)), run.head, step)
            for run in list(self._by_id.values())
            if not run.head.is_final
            for step in list(run.execution.steps.values())
            if step.awaiting
        ]
        waiting.sort(key=lambda entry: (entry[0], entry[1].execution_id, entry[2].name))
        return [
            WaitingStep(
                workflow_id=head.workflow_id,
                transaction_id=head.transaction_id,
                run_id=head.run_id,
                step=step.name,
                action=step.action,
                state=step.state,
                status=step.status,
                attempts=step.attempts,
                since=step.last_attempt_at,
            )
            for _, head, step in waiting[:limit]
        ]


def _goes_along(head: Head) -> bool:
    """A child that has no time of its own: it goes with its root."""
    return head.is_final and head.retention_time is None and not head.idempotent


def _holder(head: Head) -> str | None:
    return head.owner if head.owner is not None and owners.is_there(head.owner) else None


def _step_counts(execution: Execution) -> tuple[int, int]:
    over = sum(record.invoke not in _NOT_OVER for record in list(execution.steps.values()))
    return over, len(execution.flow.steps)


def _none_first(moment: int | None) -> tuple[bool, int]:
    """Sorts as SQLite does: what has no moment comes before everything."""
    return moment is not None, moment or 0


def _summary(head: Head) -> ExecutionSummary:
    return ExecutionSummary(
        execution_id=head.execution_id,
        workflow_id=head.workflow_id,
        transaction_id=head.transaction_id,
        run_id=head.run_id,
        state=head.state,
        created_at=head.created_at,
        updated_at=head.updated_at,
        ended_at=head.ended_at,
        wake_at=head.wake_at,
        retention_time=head.retention_time,
        parent_step_idempotency_key=head.parent_step_idempotency_key,
        running=head.running,
        awaiting=head.awaiting,
        held=head.held,
        parked=head.parked,
        holder=_holder(head),
    )
