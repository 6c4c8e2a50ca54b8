"""What a store of executions promises, whatever it is made of.

- A commit is whole: its head, step records, timeline entries and result are seen together, or none
  of them is.
- A commit names the version it was computed from (the version of `execution.head`); where the store
  holds another one nothing is written and SkipExecutionError is raised.
- When `insert` or `commit` returns, what it wrote survives the death of the process (and, as far as
  the store's durability setting says, of the machine).
- A final run is never rewritten, except that a cancel takes a kept `done` run back in the same run.
- Of one key there is at most one unfinished run; the newest run is the one a key means.
- What is loaded equals what was committed.
- Moments come back aware, in UTC, to the microsecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from wfe.model import (
    Action,
    Changes,
    Execution,
    ExecutionKey,
    ExecutionState,
    StepState,
    StepStatus,
    TimelineEvent,
)
from wfe.store.owners import is_alive

#: Fields that `Query.where` and `Query.order_by` know.
QUERY_FIELDS = (
    "execution_id",
    "workflow_id",
    "transaction_id",
    "run_id",
    "state",
    "status",
    "created_at",
    "updated_at",
    "retention_time",
    "parent_step_idempotency_key",
)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which executions, in which order. All parts combine with AND.

    `q`: words, each of which must be a case-insensitive substring of workflow id, transaction id,
    state or run id; empty: no filter. `where`: field → value, or → {"$ne" | "$in" | "$nin" | "$gt" |
    "$gte" | "$lt" | "$lte" | "$like": …}; "$or" / "$and": a list of such mappings; a value None
    means absent. `order_by`: field names, "-" in front for descending; ties go by execution id, so
    that pages never overlap.
    """

    q: str = ""
    where: Mapping[str, Any] = msgspec.field(default_factory=dict)
    order_by: Sequence[str] = ("-created_at",)
    #: At most so many; None: all.
    limit: int | None = None
    offset: int = 0


class ExecutionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as a list shows it: its row, without steps and values."""

    execution_id: str
    workflow_id: str
    transaction_id: str
    run_id: str
    state: ExecutionState
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    wake_at: datetime | None = None
    retention_time: float | None = None
    parent_step_idempotency_key: str | None = None
    #: Handlers at work, and steps that wait for an answer, at the last commit.
    running: int = 0
    awaiting: int = 0
    #: The process whose handlers were at work at the last commit.
    owner: str | None = None

    @property
    def key(self) -> ExecutionKey:
        return ExecutionKey(self.workflow_id, self.transaction_id)

    @property
    def status(self) -> str:
        """The state in a person's words, as far as it is in the store; what `Query` filters by."""
        return derived_status(self.state, self.running, self.awaiting, self.wake_at)

    @property
    def shown(self) -> str:
        """The status as it is shown: see `shown_status`."""
        return shown_status(self.state, self.running, self.awaiting, self.wake_at, self.owner)


def derived_status(
    state: ExecutionState, running: int, awaiting: int, wake_at: datetime | None
) -> str:
    """`running` (a step is being executed), `waiting` (for an outside answer), `sleeping` (for a
    timer), or the final state."""
    if state.is_final:
        return str(state)
    if running:
        return "running"
    if awaiting:
        return "waiting"
    return "sleeping" if wake_at is not None else "running"


def shown_status(
    state: ExecutionState,
    running: int,
    awaiting: int,
    wake_at: datetime | None,
    owner: str | None,
) -> str:
    """As `derived_status`, but `interrupted` where the process that was executing a step is gone.
    Whether a process lives is not in the store, so nothing can be filtered by this."""
    if running and not state.is_final and not is_alive(owner):
        return "interrupted"
    return derived_status(state, running, awaiting, wake_at)


class WaitingStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits for an answer from outside."""

    workflow_id: str
    transaction_id: str
    run_id: str
    step: str
    action: Action
    state: StepState
    status: StepStatus
    attempts: int
    since: datetime | None


class Reader(Protocol):
    """Questions that a store answers without user code and without a running loop."""

    def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        """The newest run of `key`, or that run; None where there is none."""
        ...

    def list(self, query: Query) -> Sequence[ExecutionSummary]:
        """The executions that match.

        Raises:
            UsageError: an unknown field or operator; the message lists what there is.
        """
        ...

    def count(self, query: Query) -> int:
        """How many match, whatever `limit` and `offset` say."""
        ...

    def keys(
        self,
        *,
        workflow_id: str | None = None,
        transaction_id: str | None = None,
        run_id_prefix: str | None = None,
        limit: int = 20,
    ) -> Sequence[ExecutionKey]:
        """The distinct keys that have exactly these parts, newest first. At least one is given."""
        ...

    def timeline(self, execution_id: str) -> Sequence[TimelineEvent]:
        """What happened to an execution, in order."""
        ...

    def steps_waiting(self, *, limit: int | None = None) -> Sequence[WaitingStep]:
        """Steps that wait for an answer, oldest first."""
        ...


class CheckpointStore(Protocol):
    """Where executions are kept. Used by one event loop at a time."""

    @property
    def is_private(self) -> bool:
        """No other process can reach it: what is not live here is not live at all."""
        ...

    async def open(self) -> None:
        """Make ready; idempotent.

        Raises:
            StoreUnusable: it cannot be read or written, or is no database; the message says which.
            SchemaTooNew: a newer version wrote it. Nothing is changed.
            StoreBusy: locked beyond the timeout.
        """
        ...

    async def close(self) -> None:
        """Wait for what was handed over, then release everything; idempotent."""
        ...

    async def insert(self, execution: Execution, changes: Changes, *, lone: bool = False) -> bool:
        """Keep a new run, with its first changes, in one commit.

        False, and nothing is kept, where an unfinished run of this key (or this very run) exists.
        `lone` says that nothing else is under way, so that the caller's thread may do the work.

        Raises:
            StoreBusy: locked beyond the timeout, or no space left; nothing was kept.
        """
        ...

    async def commit(self, execution: Execution, changes: Changes, *, lone: bool = False) -> None:
        """Keep `changes`, which were computed from `execution` as it is (changes are not taken yet).

        Raises:
            SkipExecutionError: the store holds another version; nothing was written.
            StoreBusy: locked beyond the timeout, or no space left; nothing was written.
        """
        ...

    async def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        """The newest run of `key`, or that run; None where there is none."""
        ...

    async def due(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        """Unfinished executions whose `wake_at` has come, the longest overdue first."""
        ...

    async def delete(self, key: ExecutionKey, run_id: str) -> bool:
        """Forget a run with all that belongs to it; False where there is none."""
        ...

    async def delete_children(self, root: ExecutionKey) -> int:
        """Forget the runs that were steps of `root` or of its children, except idempotent ones;
        says how many."""
        ...

    async def delete_expired(self, now: datetime) -> int:
        """Forget final runs whose `retention_time` has passed since they ended; says how many.
        Never an unfinished one, never one without a retention time."""
        ...

    async def changed(self) -> bool:
        """True where another process has written since the last time this was asked."""
        ...

    @property
    def reader(self) -> Reader:
        """Answers over what is kept."""
        ...


__all__ = [
    "QUERY_FIELDS",
    "CheckpointStore",
    "ExecutionSummary",
    "Query",
    "Reader",
    "WaitingStep",
    "derived_status",
    "shown_status",
]
