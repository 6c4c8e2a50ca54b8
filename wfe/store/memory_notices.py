"""The notices of a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wfe.model import Head, TimelineEvent
from wfe.store import owners
from wfe.store.notices import Notice


class MemoryNotices:
    """The Notices that end with their process."""

    def __init__(self, note: Callable[[str, TimelineEvent], None]) -> None:
        #: Adds an entry to the timeline of an execution.
        self._note = note
        self._owed: dict[str, Notice] = {}

    async def owed(self, *, limit: int = 100) -> Sequence[Notice]:
        found = [each for each in self._owed.values() if not _is_taken(each)]
        found.sort(key=lambda each: (each.owed_since, each.execution_id))
        return found[:limit]

    async def take(self, notice: Notice, *, owner: str) -> bool:
        if self._owed.get(notice.execution_id) != notice:
            return False
        self._owed[notice.execution_id] = replace(notice, owner=owner)
        return True

    async def settle(self, notice: Notice, entry: TimelineEvent | None) -> None:
        known = self._owed.get(notice.execution_id)
        if known is not None and known.version == notice.version:
            del self._owed[notice.execution_id]
        if entry is not None:
            self._note(notice.execution_id, entry)

    def owe(self, head: Head) -> None:
        """Its end is to be told from now on."""
        self._owed[head.execution_id] = Notice(
            execution_id=head.execution_id,
            key=head.key,
            run_id=head.run_id,
            version=head.version,
            owed_since=head.updated_at,
        )

    def drop(self, execution_id: str) -> None:
        """The execution is forgotten."""
        self._owed.pop(execution_id, None)


def _is_taken(notice: Notice) -> bool:
    return notice.owner is not None and bool(owners.is_there(notice.owner))
