"""What a scheduler serves: schedules, each with the moment at which it is due next.

They are found by name, and lie in a heap in the order in which they are due: a schedule costs an entry,
not a timer. What was replaced or dropped stays in the heap until its moment, and is passed over then.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import count
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


class Agenda:
    """All that is served."""

    def __init__(self) -> None:
        self._served: dict[str, Served] = {}
        self._heap: list[tuple[datetime, int, Served]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._served)

    def __contains__(self, name: object) -> bool:
        return name in self._served

    def __iter__(self) -> Iterator[Served]:
        """By name."""
        return iter(sorted(self._served.values(), key=lambda served: served.plan.name))

    def get(self, name: str) -> Served | None:
        return self._served.get(name)

    def holds(self, served: Served) -> bool:
        """Is it served still, and not another one of its name?"""
        return self._served.get(served.plan.name) is served

    def enter(self, served: Served) -> None:
        """Serve it, in place of one of its name."""
        self._served[served.plan.name] = served
        self.put(served)

    def put(self, served: Served) -> None:
        """Have it wait for the moment at which it is due by now; one that fires no more is dropped."""
        if not self.holds(served):
            return
        if served.due is None or served.is_over:
            self.drop(served.plan.name)
        else:
            heapq.heappush(self._heap, (served.due, next(self._numbers), served))

    def drop(self, name: str) -> bool:
        """Serve it no more; False: it was not served."""
        return self._served.pop(name, None) is not None

    def next(self) -> datetime | None:
        """When something is due, or was before it was dropped."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime) -> list[Served]:
        """Those that are due, in order; each has to be put back."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            _, _, served = heapq.heappop(self._heap)
            if self.holds(served):
                due.append(served)
        return due

    def go_back(self, now: datetime) -> None:
        """The clock was set back to `now`: what comes next comes sooner than it seemed."""
        self._heap.clear()
        for served in self:
            served.since = min(served.since, now)
            served.due = served.plan.next(served.since)
            self.put(served)
