"""A plan: one schedule as it is served, from what is written down to what starts when."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from wfe.authoring.schedules import Schedule
from wfe.authoring.workflows import Workflow
from wfe.clock import LONGEST_SLEEP
from wfe.model import Json
from wfe.scheduling.cron import VERSION, Cron
from wfe.scheduling.schedule import Timetable, tick_transaction_id
from wfe.store.ledger import LAST_FIRES, Fire, Origin, Registration, ScheduleRow

#: Seconds that the last tick may be late and count as on time all the same: a sleep may be as long as
#: LONGEST_SLEEP. And ticks before it: who was busy for a moment has missed nothing.
_GRACE = timedelta(seconds=2 * LONGEST_SLEEP)
_HICCUP = timedelta(seconds=5)

#: How many ticks of a time in which nobody was there are written down one by one; and how many are
#: caught up with at a time.
LISTED = 1000

#: How far back fires are looked for: of the 29th of February there is one in eight years at worst.
_FARTHEST = timedelta(days=40 * 366)


class Dues(NamedTuple):
    """What is to be done about ticks whose time has come, each list in order."""

    #: Are on time, or are caught up with: each is to be run.
    run: list[datetime]
    #: Are passed over.
    missed: list[datetime]
    #: There were more of them before, which nobody wrote down.
    is_cut: bool = False
    #: They are caught up with one by one: not even the first overtakes what is still to be begun.
    is_queue: bool = False

    @property
    def all(self) -> list[datetime]:
        return sorted((*self.run, *self.missed))


class Plan:
    """A schedule under its name, with its ticks."""

    def __init__(
        self,
        name: str,
        workflow_id: str,
        schedule: Schedule,
        *,
        anchor: datetime,
        origin: Origin = "workflow",
        source: str | None = None,
    ) -> None:
        """`anchor`: see `Timetable`.

        Raises:
            InvalidSchedule
        """
        self.name = name
        self.workflow_id = workflow_id
        self.schedule = schedule
        self.origin: Origin = origin
        self.source = source
        self.timetable = Timetable(schedule, anchor=anchor)

    @property
    def timing(self) -> str:
        """When it fires, in words that differ where the moments may."""
        return f"{self.timetable.timing.text} in {self.schedule.timezone}"

    @property
    def reckoned_by(self) -> str | None:
        """The version of croniter that its moments come from; None: it is by no expression."""
        return VERSION if isinstance(self.timetable.timing, Cron) else None

    @property
    def registration(self) -> Registration:
        return Registration(
            name=self.name,
            workflow_id=self.workflow_id,
            origin=self.origin,
            source=self.source,
            timing=self.timing,
            definition=encoded(self.schedule),
        )

    def registration_after(self, known: ScheduleRow | None, now: datetime) -> Registration:
        """The registration with its last fires until now, where the ledger, which has `known` of it,
        has none."""
        given = self.registration
        if known is not None and known.fires and known.definition == given.definition:
            return given
        return replace(given, fires=self.last_fires(now))

    def last_fires(self, now: datetime) -> tuple[Fire, ...]:
        """Its last fires until now, whoever was there; none where it is by no expression."""
        version = self.reckoned_by
        if version is None:
            return ()
        found: deque[datetime] = deque()
        for begin in _ever_earlier(now):
            found = deque(self.timetable.between(begin, now), maxlen=LAST_FIRES)
            if len(found) == LAST_FIRES:
                break
        return tuple(Fire(moment, version) for moment in found)

    def anchor(self, row: ScheduleRow) -> None:
        """Count from where the ledger says."""
        self.timetable = self.timetable.anchored(row.anchor)

    def transaction_id(self, tick: datetime) -> str:
        return tick_transaction_id(self.name, tick)

    def input_for(self, tick: datetime) -> Any:
        return self.timetable.input_for(tick)

    def begins(self, tick: datetime) -> datetime:
        """When a tick is to be begun: the same moment, whoever asks."""
        if not self.schedule.jitter:
            return tick
        share = zlib.crc32(self.transaction_id(tick).encode()) / 2**32
        return tick + timedelta(seconds=share * self.schedule.jitter)

    def next(self, after: datetime) -> datetime | None:
        """When the first tick after `after` is to be begun; None: there is none any more."""
        tick = self.timetable.next(after)
        return None if tick is None else self.begins(tick)

    def dues(self, since: datetime, now: datetime, *, present_since: datetime) -> Dues:
        """What is to be done about the ticks after `since` that are to have begun by `now`.

        On time are those that came since `present_since`, when somebody began to be there, and are
        not long past; whatever else was missed, `catch_up` is about. Where all are to be run there may
        be more of them than LISTED, which come first: ask again for the others.
        """
        if self.schedule.catch_up == "all":
            oldest = list(islice(self.timetable.between(since, now), LISTED))
            ticks = [tick for tick in oldest if self.begins(tick) <= now]
            return Dues(
                ticks, [], is_queue=len(self._on_time(ticks, now, present_since)) < len(ticks)
            )
        newest = deque(self.timetable.between(*self._searched(since, now)), maxlen=LISTED + 1)
        ticks = [tick for tick in newest if self.begins(tick) <= now]
        is_cut = len(newest) > LISTED
        if is_cut:
            del ticks[0]
        on_time = self._on_time(ticks, now, present_since)
        late = ticks[: len(ticks) - len(on_time)]
        match self.schedule.catch_up:
            case "last" if late and not on_time:
                return Dues(late[-1:], late[:-1], is_cut)
            case _:
                return Dues(on_time, late, is_cut)

    def _on_time(
        self, ticks: list[datetime], now: datetime, present_since: datetime
    ) -> list[datetime]:
        """Those of `ticks` that are on time: the last ones, if any."""
        return [
            tick
            for tick in ticks
            if tick >= present_since and now - self.begins(tick) <= self._tolerance(tick, ticks)
        ]

    def _tolerance(self, tick: datetime, ticks: list[datetime]) -> timedelta:
        return _GRACE if tick == ticks[-1] else _HICCUP

    def _searched(self, since: datetime, now: datetime) -> tuple[datetime, datetime]:
        """A time that ends now, in which there are LISTED ticks and one; all of it where there are
        fewer. One that fires every second, and was left alone for a year, has 31 million."""
        length = timedelta(seconds=LISTED + 1)
        while now - length > since:
            begin = now - length
            if len(deque(self.timetable.between(begin, now), maxlen=LISTED + 1)) > LISTED:
                return begin, now
            length *= 4
        return since, now


def _ever_earlier(now: datetime) -> Iterator[datetime]:
    length = timedelta(seconds=LAST_FIRES)
    while length < _FARTHEST:
        yield now - length
        length *= 4
    yield now - _FARTHEST


def own_plan(workflow: Workflow[Any, Any], now: datetime) -> Plan | None:
    """What a workflow's own `schedule` wants, under the workflow's name; None: it has none.

    Raises:
        InvalidSchedule
    """
    if workflow.schedule is None:
        return None
    file, _ = workflow.source
    return Plan(workflow.id, workflow.id, workflow.schedule, anchor=now, source=file)


def known_plan(row: ScheduleRow) -> Plan:
    """What the ledger has of a schedule.

    Raises:
        InvalidSchedule: the present version of wfe cannot read it.
    """
    return Plan(
        row.name,
        row.workflow_id,
        decoded(row.definition),
        anchor=row.anchor,
        origin=row.origin,
        source=row.source,
    )


def encoded(schedule: Schedule) -> Json:
    return msgspec.json.encode(schedule)


def decoded(definition: Json) -> Schedule:
    return msgspec.json.decode(definition, type=Schedule)
