"""Notices: ends of executions that somebody is to be told of.

- A notice is owed from the commit that ends its execution on, and until it is settled; so nothing that
  happens in between loses it. It goes with its execution.
- Whoever is about to tell takes it first, and has it as long as its lease lasts; then somebody else may.
- Settling it writes down in the timeline what became of it, in the same transaction.

The store knows neither who is told nor how: that is for whoever tells to know, so that nothing that is
stored is ever run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from wfe.model import ExecutionKey, TimelineEvent


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """An end that is to be told. Of an execution that was taken back, and ended again, the last one."""

    execution_id: str
    key: ExecutionKey
    run_id: str
    #: Of the head that ended it.
    version: int
    owed_since: datetime
    #: Who had taken it, and is gone.
    owner: str | None = None


class Notices(Protocol):
    """What is owed. The store is open meanwhile."""

    async def owed(self, *, limit: int = 100) -> Sequence[Notice]:
        """Notices that nobody who lives has taken, the oldest first."""
        ...

    async def take(self, notice: Notice, *, owner: str) -> bool:
        """Take a notice as it was found; False where somebody was faster, or it is owed no more."""
        ...

    async def settle(self, notice: Notice, entry: TimelineEvent | None) -> None:
        """It is owed no more. `entry`: what its execution's timeline is to say of that; None: nothing
        was told."""
        ...


__all__ = ["Notice", "Notices"]
