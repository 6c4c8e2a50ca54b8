"""What a scheduler serves: schedules, each with the moment at which it is due next."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from wfe.scheduling.plan import Plan


class Upcoming(NamedTuple):
    """A schedule that is served, and when it fires next."""

    plan: Plan
    #: None: it fires no more.
    next: datetime | None


class Served:
    """A schedule that is served."""

    __slots__ = ("due", "fired", "is_exhausted", "plan", "since", "vain")

    def __init__(self, plan: Plan, since: datetime, fired: int, *, vain: str = "") -> None:
        self.plan = plan
        #: Everything up to here is in the ledger.
        self.since = since
        #: How many executions there were, as far as is known here.
        self.fired = fired
        #: Why its ticks cannot be begun; empty: they can.
        self.vain = vain
        self.due = plan.next(since)
        self.is_exhausted = False

    @property
    def is_over(self) -> bool:
        limit = self.plan.schedule.number_of_executions
        return self.due is None or self.is_exhausted or (limit is not None and self.fired >= limit)
