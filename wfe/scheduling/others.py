"""Others: who else has in hand what is served here, so that it is taken over soon where they die.

A schedule is in the hand of whoever has registered it first. Whether the process of an owner on this host
lives is asked of the system, which costs nothing; of others only the ledger tells, when their lease is over.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from wfe.store import owners
from wfe.store.ledger import ScheduleRow


class Others:
    """The owners that lived when the ledger was read, apart from one's own."""

    def __init__(self, own: str) -> None:
        self._own = own
        #: By schedule.
        self._holders: dict[str, str] = {}

    def __len__(self) -> int:
        """How many schedules they hold."""
        return len(self._holders)

    def clear(self) -> None:
        self._holders.clear()

    def note(self, rows: Iterable[ScheduleRow], served: Container[str]) -> None:
        """Take note of who has these schedules in hand, as far as they are served here."""
        for row in rows:
            if row.name in served and row.holder not in (None, self._own):
                self._holders[row.name] = row.holder
            else:
                self._holders.pop(row.name, None)

    def has_lost_one(self) -> bool:
        """Has one of them died?"""
        return any(owners.is_there(other) is False for other in set(self._holders.values()))
