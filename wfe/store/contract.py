"""What a store of executions promises, whatever it is made of.

- A commit is whole: its head, step records, timeline entries and result are seen together, or none
  of them is.
- A commit names the version it was computed from (the version of `execution.head`); where the store
  holds another one nothing is written and SkipExecutionError is raised.
- When `insert` or `commit` returns, what it wrote survives the death of the process (and, as far as
  the store's durability setting says, of the machine).
- A final run is never rewritten, except that a cancel takes a kept `done` run back in the same run.
- A notice that changes owe (`Changes.owes_notice`) is owed with the same commit.
- Of one key there is at most one unfinished run; the newest run is the one a key means.
- What is loaded equals what was committed; `holder` is the owner that it names, where that one lives
  and holds its lease.
- Moments come back aware, in UTC, to the microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from wfe.clock import SystemClock
from wfe.errors import StoreError
from wfe.model import (
    Action,
    Changes,
    Execution,
    ExecutionKey,
    ExecutionState,
    Head,
    Json,
    StepState,
    StepStatus,
    TimelineEvent,
)
from wfe.store.ledger import Ledger, LedgerReader
from wfe.store.notices import Notices
from wfe.store.queries.conditions import Condition

#: Fields that `Query.where` and `Query.order_by` know.
QUERY_FIELDS = (
    "execution_id",
    "workflow_id",
    "transaction_id",
    "run_id",
    "state",
    "status",
    "shown",
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
    #: More of what has to be true: see `wfe.store.queries.typed`.
    conditions: Sequence[Condition] = ()
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
    #: As in the head, at the last commit.
    running: int = 0
    awaiting: int = 0
    held: int = 0
    parked: int = 0
    #: The engine that has it in hand, where it still holds its lease.
    holder: str | None = None

    @property
    def key(self) -> ExecutionKey:
        return ExecutionKey(self.workflow_id, self.transaction_id)

    @property
    def status(self) -> str:
        """The state in a person's words, as far as it is in the row; what `Query` filters by."""
        return status_in_hand(self)

    @property
    def shown(self) -> str:
        """The status as it is shown: see `shown_status`."""
        return shown_status(self, self.holder)


def status_in_hand(of: Head | ExecutionSummary) -> str:
    """`running` (a step is being executed, or about to be), `waiting` (for an answer from outside,
    or a `retry_step`), `sleeping` (for a timer), or the final state."""
    if of.state.is_final:
        return str(of.state)
    if of.running or of.held:
        return "running"
    if of.awaiting or of.parked:
        return "waiting"
    return "sleeping" if of.wake_at is not None else "running"


def shown_status(of: Head | ExecutionSummary, holder: str | None) -> str:
    """The same, but `interrupted` where something could go on and no living engine has it in hand."""
    if holder is None and could_go_on(of, SystemClock().now()):
        return "interrupted"
    return status_in_hand(of)


def could_go_on(of: Head | ExecutionSummary, now: datetime) -> bool:
    """Is there anything to do at `now`, for whoever takes it in hand?"""
    if of.state.is_final:
        return False
    return status_in_hand(of) == "running" or (of.wake_at is not None and of.wake_at <= now)


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

    def tally(self) -> Mapping[tuple[str, ExecutionState], int]:
        """How many executions there are, by workflow id and state."""
        ...

    def step_counts(self, execution_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        """By execution id: how many steps are over, and how many there are."""
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

    def timeline(self, execution_id: str, *, after: int = 0) -> Sequence[TimelineEvent]:
        """What happened to an execution, in order, but for the first `after` entries."""
        ...

    def steps_waiting(self, *, limit: int | None = None) -> Sequence[WaitingStep]:
        """Steps that wait for an answer, oldest first."""
        ...

    def changed(self) -> bool:
        """False where certainly nothing was written since the last time this was asked."""
        ...

    @property
    def ledger(self) -> LedgerReader:
        """Schedules, and what became of their ticks."""
        ...


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """A command for an execution that another process has in hand."""

    #: The store's number for it; 0: not sent yet.
    id: int = 0
    execution_id: str
    key: ExecutionKey
    #: What kind of command, and the command itself; the store looks into neither.
    kind: str
    payload: Json
    step: str | None = None
    action: str | None = None
    #: Who gave it, in words.
    sender: str | None = None
    sent_at: datetime


class Settled(msgspec.Struct, frozen=True):
    """What became of a signal: applied, or refused because of `refusal`."""

    signal: int
    refusal: Json | None = None


class Peers(Protocol):
    """What the processes that share a store tell each other through it.

    An engine that has executions in hand holds a lease (`wfe.store.owners`); commands for them that
    are given elsewhere reach it as signals. A signal is settled once, with the commit of its effect.
    """

    async def hold(self, owner: str) -> None:
        """Take out a lease, which is renewed until `release`; idempotent."""
        ...

    async def release(self, owner: str) -> None:
        """Give it up: whatever is in this name is in nobody's hand; idempotent."""
        ...

    async def send(self, signal: Signal) -> int:
        """Keep a signal; its number."""
        ...

    async def pending_of(self, execution_id: str) -> Sequence[Signal]:
        """The signals for an execution that are not settled, in order."""
        ...

    async def pending_for(self, owner: str) -> Sequence[Signal]:
        """The same for every execution that `owner` has in hand."""
        ...

    async def outcome(self, signal: int) -> Settled | None:
        """What became of a signal; None: it is pending."""
        ...

    async def settle(self, settled: Sequence[Settled]) -> None:
        """Keep what became of signals that changed nothing."""
        ...

    def watch(self, on_change: Callable[[StoreError | None], None]) -> None:
        """Have `on_change` called on the running loop soon after another process may have written;
        with an error, and for the last time, where the store is out of reach for good."""
        ...

    def unwatch(self) -> None:
        """Do so no longer."""
        ...


class CheckpointStore(Protocol):
    """Where executions are kept. Used by one event loop at a time."""

    @property
    def peers(self) -> Peers | None:
        """The other processes that share it; None where no other process can reach it. Only while
        it is open."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Schedules, and what became of their ticks. Only while it is open."""
        ...

    @property
    def notices(self) -> Notices:
        """Ends that somebody is to be told of. Only while it is open."""
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

    async def commit(
        self,
        execution: Execution,
        changes: Changes,
        *,
        settled: Sequence[Settled] = (),
        lone: bool = False,
    ) -> None:
        """Keep `changes`, which were computed from `execution` as it is (changes are not taken yet),
        and what became of the signals that led to them.

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

    async def interrupted(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        """Unfinished executions that could go on (a step was being executed, or is held back;
        `wake_at` has come; or a child that is waited for has ended) and that no living engine has in
        hand; the oldest first."""
        ...

    async def delete(
        self, key: ExecutionKey, run_id: str, *, settled: Sequence[Settled] = ()
    ) -> bool:
        """Forget a run with all that belongs to it, and keep what became of the signals that led to
        that; False where there is no such run."""
        ...

    async def delete_children(self, root: ExecutionKey) -> int:
        """Forget the runs that were steps of `root` or of its children, except idempotent ones;
        says how many."""
        ...

    async def delete_expired(self, now: datetime) -> int:
        """Forget final runs whose `retention_time` has passed since they ended; says how many.
        Never an unfinished one. A child stays as long as the run it is a step of, and goes with its
        root if it has no retention time of its own and is not idempotent."""
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
    "Peers",
    "Settled",
    "Signal",
    "WaitingStep",
    "could_go_on",
    "shown_status",
    "status_in_hand",
]
