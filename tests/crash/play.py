"""A play: a flow on a database file, carried on by one process after the other until it has ended.

Whoever dies is followed by a process that takes up what it has left. A flow that waits for an answer
gets it from a process of its own: after the one that began it has left, or (`Flow.stays`) while that
one waits.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.crash.forks import Fork
from tests.crash.life import DEADLINE, WAITS, Order, Report, Role, live

#: Processes that a play takes at most beyond those that are to die.
_MOST = 8

_FINAL = ("done", "reverted", "failed")


class Play(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    flow: str
    db: str
    #: By the number of the process, in the order in which they begin: where it dies.
    plan: Mapping[int, str | int] = {}
    #: See `Order`; of the first process.
    log: int | None = None
    #: There is no database yet.
    is_new: bool = False

    @property
    def ledger(self) -> Path:
        return Path(self.db).with_suffix(".ledger")


def perform(play: Play) -> list[Report]:
    """Let it happen; how each process ended, in the order in which they began."""
    stage = _Stage(play)
    role: Role = "drive"
    while len(stage.reports) < _MOST + len(play.plan):
        report = stage.enter(role)
        if report.trouble or (report.state in _FINAL and report.died is None):
            break
        role = "answer" if report.waiting and report.died is None else "drive"
    return stage.reports


class _Stage:
    def __init__(self, play: Play) -> None:
        self._play = play
        self.reports: list[Report] = []

    def enter(self, role: Role) -> Report:
        """Have a process of this role live its life."""
        number = len(self.reports)
        order = Order(
            flow=self._play.flow,
            role=role,
            db=Path(self._play.db),
            at=self._play.plan.get(number),
            log=None if number else self._play.log,
        )
        self.reports.append(Report(role=role, pid=0))
        process = _Process(order)
        if process.waits() and self.enter("answer").died:
            while self.enter("answer").died:  # who gets no reply asks again
                pass
            while self.enter("drive").died:
                pass
        report = self.reports[number] = process.ended()
        return report


class _Process:
    """A process that carries out an order."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._fork = Fork(lambda pipe: live(order, pipe), deadline=DEADLINE + 10)
        self._text = b""

    def waits(self) -> bool:
        """True when it waits for an answer, False when it has ended."""
        while not self._text.startswith(WAITS):
            if not (heard := self._fork.hear()):
                return False
            self._text += heard
        self._text = self._text.removeprefix(WAITS)
        return True

    def ended(self) -> Report:
        """How it ended, when it has."""
        while heard := self._fork.hear():
            self._text += heard
        status = self._fork.status()
        text = self._text.removeprefix(WAITS)
        if text:
            return msgspec.json.decode(text, type=Report)
        report = Report(role=self._order.role, pid=self._fork.pid)
        if self._order.log is not None and os.WTERMSIG(status) == signal.SIGXFSZ:
            report.died = f"at byte {self._order.log} of the log"
        else:
            report.trouble = f"it ended with status {status}"
        return report
