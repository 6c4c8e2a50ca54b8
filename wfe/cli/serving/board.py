"""What a serving process shows on a terminal: its schedules, what runs and waits, and what has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from wfe.cli import text
from wfe.cli.capture import another, lines_of_output
from wfe.cli.serving.journal import lateness
from wfe.clock import SystemClock
from wfe.errors import WfeError
from wfe.model import FINAL_STATES, Event, EventKind, ExecutionKey, StepKey
from wfe.runtime.engine import Engine
from wfe.scheduling.loop import Scheduler
from wfe.scheduling.served import Upcoming
from wfe.store.contract import ExecutionSummary
from wfe.store.ledger import LedgerReader, Tick

if TYPE_CHECKING:
    from rich.text import Text

    from wfe.cli.session import Session

#: Seconds between two looks at what is unfinished.
_PACE = 1.0

#: Lines of each part, and of what is unfinished alone.
_ENDED = 5
_UNFINISHED = 10

#: Ticks of one schedule that may be about to begin at a time, and tell nothing yet.
_UNDECIDED = 3

_UNFINISHED_ONES: dict[str, Any] = {"state": {"$nin": [str(state) for state in FINAL_STATES]}}


class Board:
    """Is redrawn as things happen; what is said stands above it."""

    def __init__(self, session: Session) -> None:
        from wfe.cli.render import Screen

        self._session = session
        self._terminal = another(sys.stderr)
        self._screen = Screen(self._terminal, colors=session.colors(sys.stderr))
        self._since = SystemClock().now()
        self._scheduler: Scheduler | None = None
        self._last: dict[str, Tick] = {}
        self._unfinished: list[ExecutionSummary] = []
        self._count = 0
        self._ended: deque[tuple[datetime, str, str]] = deque(maxlen=_ENDED)
        self._frame = 0
        self._looking: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with self._terminal, self._screen.live(self._draw), lines_of_output(self._print):
            yield

    def serving(self, engine: Engine, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._read_last(engine.store.ledger)
        self._looking = asyncio.get_running_loop().create_task(self._look(engine))

    async def _look(self, engine: Engine) -> None:
        """Keep what is unfinished, and what others decide on, up to date; ends with the engine."""
        while True:
            with contextlib.suppress(WfeError):  # busy: another time
                self._unfinished, self._count = await engine.list_and_count_executions(
                    where=_UNFINISHED_ONES, order_by=("-created_at",), limit=_UNFINISHED
                )
                self._read_last(engine.store.ledger)
            await asyncio.sleep(_PACE)

    def _read_last(self, ledger: LedgerReader) -> None:
        """The last ticks of the schedules that there is room for, whoever has decided on them."""
        for plan, _ in self._upcoming()[: self._screen.height]:
            ticks = ledger.ticks(plan.name, limit=_UNDECIDED + 1)
            last = next((tick for tick in ticks if tick.state != "due"), None)
            if last is not None:
                self._note(last)

    def _note(self, tick: Tick) -> None:
        known = self._last.get(tick.schedule)
        if known is None or known.scheduled_for <= tick.scheduled_for:
            self._last[tick.schedule] = tick

    def on_event(self, event: Event) -> None:
        if event.kind is EventKind.FINISH:
            key = f"{event.workflow_id}:{event.transaction_id}"
            self._ended.appendleft((event.time, str(event.state), key))
            self._unfinished = [one for one in self._unfinished if str(one.key) != key]

    def on_tick(self, tick: Tick) -> None:
        self._note(tick)
        if tick.state == "error":
            self.say(f"{tick.schedule}: {tick.error}")

    def on_taken(self, key: ExecutionKey, error: WfeError | None) -> None:
        self.say(f"Taken up: {key}" if error is None else f"Not taken up: {key}: {error}")

    def on_log(self, key: StepKey | None, message: str) -> None:
        if key is None:
            self.say(message)
        else:
            self._print(f"{key.step}: {message}")

    def say(self, sentence: str) -> None:
        for line in text.in_lines(text.safe(sentence), self._screen.width):
            self._screen.line(line)

    def _print(self, line: str) -> None:
        """What somebody else has written, as it is."""
        self._screen.line(text.safe(line))

    def leave(self, sentence: str) -> None:
        self._screen.abandon(sentence)

    # --- drawing ---

    def _draw(self) -> list[Text]:
        if self._scheduler is None:
            return []
        self._frame += 1
        self._screen.fit(os.get_terminal_size(self._terminal.fileno()))
        now = SystemClock().now()
        rest = [*self._draw_unfinished(now), *self._draw_ended(now)]
        room = max(self._screen.height - len(rest) - 6, 3)
        up = text.elapsed(text.seconds(self._since, now))
        head = self._screen.text(f"serving {self._session.config.db}, up {up}; Ctrl-C stops")
        head.stylize("dim")
        return [*self._draw_schedules(now, room), *rest, head]

    def _draw_schedules(self, now: datetime, room: int) -> list[Text]:
        upcoming = self._upcoming()
        cell = self._screen.text
        rows = []
        for plan, moment in upcoming[:room]:
            last = self._last.get(plan.name)
            came = (
                ""
                if last is None
                else f"{last.reason or last.state} {text.age(last.scheduled_for, now)} ago"
            )
            note = "" if last is None else lateness(last)
            wait = text.elapsed(text.seconds(now, moment))
            rows.append([cell(plan.name), cell(f"in {wait}"), cell(came), cell(note)])
        lines = self._screen.lines(["SCHEDULE", "NEXT", "LAST", ""], rows) if rows else []
        return [*lines, *self._more(len(upcoming) - len(rows), "schedules")]

    def _upcoming(self) -> list[Upcoming]:
        """What is served, in the order in which it is due."""
        assert self._scheduler is not None
        never = datetime.max.replace(tzinfo=UTC)
        return sorted(self._scheduler.upcoming, key=lambda one: one.next or never)

    def _draw_unfinished(self, now: datetime) -> list[Text]:
        cell = self._screen.text
        rows = [
            [
                self._screen.state(one.shown, frame=self._frame),
                cell(text.age(one.created_at, now)),
                cell(str(one.key)),
            ]
            for one in self._unfinished
        ]
        lines = [cell(""), *self._screen.lines(["UNFINISHED", "AGE", ""], rows)] if rows else []
        return [*lines, *self._more(self._count - len(rows), "unfinished")]

    def _draw_ended(self, now: datetime) -> list[Text]:
        cell = self._screen.text
        rows = [
            [self._screen.state(state), cell(f"{text.age(moment, now)} ago"), cell(key)]
            for moment, state, key in list(self._ended)
        ]
        return [cell(""), *self._screen.lines(["ENDED", "WHEN", ""], rows)] if rows else []

    def _more(self, count: int, what: str) -> list[Text]:
        if count <= 0:
            return []
        return [self._screen.text(f"{self._screen.dots} and {count} more {what}")]
