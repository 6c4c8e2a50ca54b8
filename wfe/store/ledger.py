"""The ledger: every schedule that was ever served, and what became of each of its ticks.

- Of a schedule and a moment there is one row. Whoever inserts it has the tick, so that of several
  schedulers one starts it, whatever their clocks say.
- A tick is claimed (`due`, with an owner), then begun, then settled. One whose owner is gone, or that
  has none, is taken by whoever comes: its execution has the same transaction id for all of them, so
  that it is neither lost nor begun twice.
- Everything up to `accounted_until` has its row, or was not to have one.
- What is claimed counts against the number of executions; what is settled otherwise than as fired
  counts no more.
- Of a schedule by an expression the last fires are kept, each with the version of the package that read
  the expression then, so that a version that reads it otherwise is noticed.

The store looks into no definition, and computes no moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

import msgspec

from wfe.model import Json

#: `due`: to be begun. `fired`: its execution was begun. `skipped`: it was passed over, for `reason`.
#: `error`: it could not be begun.
TickState = Literal["due", "fired", "skipped", "error"]

#: What a tick comes from: the schedule itself, a person who wanted one now, or one of the past.
TickKind = Literal["tick", "manual", "backfill"]

#: Why a tick was passed over: an execution before it was unfinished; the schedule was paused; nobody
#: was there to run it.
Reason = Literal["overlap", "paused", "missed"]

#: Who wrote a schedule down: a workflow (its option), or a command.
Origin = Literal["workflow", "command"]


#: How many fires are kept with a schedule.
LAST_FIRES = 5


class Fire(NamedTuple):
    """A moment at which a schedule was due, whatever became of it."""

    at: datetime
    #: The version of croniter by which it was computed.
    by: str


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that is about to be served."""

    name: str
    workflow_id: str
    origin: Origin
    #: The file that defines it, where there is one.
    source: str | None = None
    #: When it fires, in words: it is another schedule where this is another text.
    timing: str
    definition: Json
    #: Its last fires until now, in order, where it is by an expression: what a schedule that is new, or
    #: of another definition, begins with.
    fires: tuple[Fire, ...] = ()


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the ledger knows it."""

    name: str
    workflow_id: str
    origin: Origin
    source: str | None
    timing: str
    definition: Json
    #: When it was first served in its present timing.
    anchor: datetime
    accounted_until: datetime
    #: How many of its ticks were begun or are about to be.
    fired: int
    #: The last pause: it lasts until `resumed_at`, or goes on. None: there was none.
    paused_at: datetime | None = None
    resumed_at: datetime | None = None
    #: The scheduler that serves it, where that one lives.
    holder: str | None = None
    #: At most LAST_FIRES, in order.
    fires: tuple[Fire, ...] = ()

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None and self.resumed_at is None

    def was_paused(self, moment: datetime) -> bool:
        """Was it paused at `moment`, as far as the last pause says?"""
        if self.paused_at is None or moment < self.paused_at:
            return False
        return self.resumed_at is None or moment < self.resumed_at


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the ledger: one schedule, one moment."""

    schedule: str
    scheduled_for: datetime
    kind: TickKind = "tick"
    state: TickState
    reason: Reason | None = None
    transaction_id: str
    execution_id: str | None = None
    error: str | None = None
    #: Who has claimed it.
    owner: str | None = None
    #: Its execution is not known to have ended.
    is_open: bool = False
    #: When it came to its state.
    decided_at: datetime

    @property
    def late_by(self) -> float:
        """Seconds from its moment to the decision; of a backfill that says nothing."""
        return (self.decided_at - self.scheduled_for).total_seconds()


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A tick that somebody wants to begin, to leave for later, or to pass over."""

    schedule: str
    scheduled_for: datetime
    kind: TickKind = "tick"
    #: `due`: begin it; with `owner` None: whoever comes.
    state: TickState
    reason: Reason | None = None
    error: str | None = None
    owner: str | None = None
    transaction_id: str
    #: The timing that it was computed from; None: whatever that is.
    timing: str | None = None
    #: So many executions at most, in all; None: no limit.
    limit: int | None = None
    #: The version of croniter by which its moment was computed; None: it is of no expression.
    reckoned_by: str | None = None


#: What became of a claim: it is in the ledger as wanted; it is there as passed over, because the
#: schedule is paused; somebody else has the tick; all executions have been had; the schedule has another
#: timing by now, or is gone.
Claimed = Literal["kept", "paused", "taken", "exhausted", "superseded"]


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What a claimed tick came to."""

    tick: Tick
    state: TickState
    reason: Reason | None = None
    execution_id: str | None = None
    error: str | None = None
    is_open: bool = False


def registered(
    registration: Registration, known: ScheduleRow | None, owner: str, now: datetime
) -> ScheduleRow:
    """A schedule as it stands once it is registered; `known` is how it stood, with its holder."""
    is_same = known is not None and known.timing == registration.timing
    kept = known.fires if known and known.definition == registration.definition else ()
    return ScheduleRow(
        name=registration.name,
        workflow_id=registration.workflow_id,
        origin=registration.origin,
        source=registration.source,
        timing=registration.timing,
        definition=registration.definition,
        anchor=known.anchor if known and is_same else now,
        accounted_until=known.accounted_until if known and is_same else now,
        fired=known.fired if known and is_same else 0,
        paused_at=None if known is None else known.paused_at,
        resumed_at=None if known is None else known.resumed_at,
        holder=owner if known is None or known.holder is None else known.holder,
        fires=kept or registration.fires,
    )


def fires_after(row: ScheduleRow, claim: Claim) -> tuple[Fire, ...]:
    """The last fires of a schedule, that of an accounted tick included."""
    if claim.reckoned_by is None or any(fire.at == claim.scheduled_for for fire in row.fires):
        return row.fires
    fires = sorted((*row.fires, Fire(claim.scheduled_for, claim.reckoned_by)))
    return tuple(fires[-LAST_FIRES:])


def verdict(row: ScheduleRow | None, claim: Claim, known: TickState | None) -> Claimed:
    """What becomes of a claim, where the ledger knows of the schedule what `row` says, and of the tick
    that it is in the state `known`."""
    may_replace = claim.kind == "backfill" and known in ("skipped", "error")
    if known is not None and not may_replace:
        return "taken"
    if row is None or claim.timing not in (None, row.timing):
        return "superseded"
    if claim.kind != "tick" or claim.state == "skipped":
        return "kept"
    if row.was_paused(claim.scheduled_for):
        return "paused"
    is_exhausted = claim.limit is not None and row.fired >= claim.limit
    return "exhausted" if claim.state == "due" and is_exhausted else "kept"


def row_of(claim: Claim, verdict: Claimed, now: datetime) -> Tick:
    """A claim that was not refused, as it is written down."""
    is_paused = verdict == "paused"
    return Tick(
        schedule=claim.schedule,
        scheduled_for=claim.scheduled_for,
        kind=claim.kind,
        state="skipped" if is_paused else claim.state,
        reason="paused" if is_paused else claim.reason,
        transaction_id=claim.transaction_id,
        error=None if is_paused else claim.error,
        owner=None if is_paused else claim.owner,
        decided_at=now,
    )


def counts(tick: Tick) -> bool:
    """Does it count against the number of executions?"""
    return tick.kind == "tick" and tick.state in ("due", "fired")


class LedgerReader(Protocol):
    """Questions to the ledger that need no running loop."""

    def schedules(self) -> Sequence[ScheduleRow]:
        """All there are, by name."""
        ...

    def ticks(self, name: str, *, limit: int | None = None) -> Sequence[Tick]:
        """The ticks of a schedule, the latest moment first."""
        ...

    def owed(self) -> int:
        """How many ticks, of all schedules, are to be begun and are not begun yet."""
        ...


class Ledger(LedgerReader, Protocol):
    """What schedulers write. Every method is one transaction; the store is open meanwhile."""

    async def register(
        self, registrations: Sequence[Registration], *, owner: str, now: datetime
    ) -> Sequence[ScheduleRow]:
        """Serve schedules from now on; how each stands, with the holder that it has. A holder that is
        gone is replaced. One of another timing begins anew: what its ticks were until now is kept,
        and none before `now` is owed any more."""
        ...

    async def known(self) -> Sequence[ScheduleRow]:
        """All there are, by name."""
        ...

    async def claim(self, claims: Sequence[Claim], *, now: datetime) -> Sequence[Claimed]:
        """Write down ticks, each unless it is there (a backfill replaces one that was not begun); what
        became of each. Those of one schedule are in the order of their moments, and account for all of
        its ticks up to the last of them."""
        ...

    async def pending(self) -> Sequence[Tick]:
        """Ticks that are due, and nobody who lives is about to begin; the earliest first."""
        ...

    async def take(self, ticks: Sequence[Tick], *, owner: str) -> Sequence[Tick]:
        """Claim pending ticks; those that nobody else has taken meanwhile."""
        ...

    async def settle(self, settlements: Sequence[Settlement], *, now: datetime) -> None:
        """Keep what ticks came to."""
        ...

    async def unfinished(self, name: str) -> Sequence[Tick]:
        """Ticks whose execution is not known to have ended, and claimed ones of those who live."""
        ...

    async def end(self, ticks: Sequence[Tick]) -> None:
        """Their executions have ended."""
        ...

    async def pause(self, name: str, *, now: datetime) -> bool:
        """Pass over its ticks from now on; False where there is no such schedule."""
        ...

    async def resume(self, name: str, *, now: datetime) -> bool:
        """Do so no longer; False where there is no such schedule."""
        ...

    async def forget(self, name: str) -> bool:
        """Remove a schedule and all its ticks; False where there is none."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget what was decided before that moment, unless it still goes on; says how much."""
        ...
