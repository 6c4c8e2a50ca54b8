"""Orphans: schedules in the ledger whose workflow is not there any more, because it was renamed or
removed. Their ticks are errors until somebody forgets or pauses them; silence would look like success.

Not every schedule that is unknown here is one: another process may serve it, or another project that
shares the database. It is one where the file that defined it is loaded here, or is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable
from pathlib import Path

from wfe.authoring.registry import Registry
from wfe.errors import InvalidSchedule
from wfe.scheduling.plan import Plan, known_plan
from wfe.store.ledger import Ledger, ScheduleRow

logger = logging.getLogger("wfe")


class Orphans:
    """Finds orphans among what the ledger knows."""

    def __init__(self, ledger: Ledger, registry: Registry, owner: str) -> None:
        self._ledger = ledger
        #: Who looks for them: it may have served one while its workflow was there.
        self._owner = owner
        self._registry = registry

    def among(
        self, rows: Iterable[ScheduleRow], known: Container[str]
    ) -> list[tuple[Plan, ScheduleRow]]:
        """Those of the ledger's rows that are orphans, and none of the `known` names."""
        plans = []
        files = {self._registry.get(name).source[0] for name in self._registry.ids()}
        for row in rows:
            if row.name in known or not self._is_one(row, files):
                continue
            try:
                plans.append((known_plan(row), row))
            except InvalidSchedule as error:
                logger.warning("Schedule %s cannot be read any more: %s", row.name, error)
        return plans

    async def without_holder(self, plans: Iterable[Plan]) -> set[str]:
        """The names of those that nobody else has begun to serve meanwhile."""
        names = {plan.name for plan in plans}
        if not names:
            return names
        rows = {row.name: row for row in await self._ledger.known()}
        ours = (None, self._owner)
        return {name for name in names if name in rows and rows[name].holder in ours}

    def _is_one(self, row: ScheduleRow, files: Container[str]) -> bool:
        if row.origin != "workflow" or row.holder is not None:
            return False
        if row.workflow_id in self._registry.ids():
            return False
        return row.source in files or row.source is None or not Path(row.source).exists()
