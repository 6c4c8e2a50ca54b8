"""The keeper: what of an execution is written, when, and in whose name.

The recording policy says what has to be written now. Whoever has a stored execution in hand writes its
owner into each commit; the lease in that name is taken out before the first of them. A commit builds on
the version that was loaded: where another writer was faster, it is void, and what made it so is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wfe.errors import (
    SkipCancelledExecutionError,
    SkipExecutionError,
    SkipStepAlreadyFinishedError,
    StoreError,
)
from wfe.model import Changes, Execution
from wfe.runtime import recording
from wfe.runtime.live import Live
from wfe.store import owners
from wfe.store.contract import CheckpointStore, Settled

logger = logging.getLogger("wfe")


class Keeper:
    """Writes for one engine."""

    def __init__(self, store: CheckpointStore, on_hold: Callable[[], None]) -> None:
        self._store = store
        self._on_hold = on_hold
        #: This engine, as the store names it; whether it has taken out its lease.
        self.owner = owners.claim()
        self.is_holding = False
        self._taking_out = asyncio.Lock()

    def in_hand(self, live: Live, changes: Changes, *, stays: bool) -> Changes:
        """Say who has it in hand: this engine, as long as a handler is at work or (`stays`) somebody
        here waits for more; otherwise whoever comes."""
        head = changes.head
        stays = stays and self._store.peers is not None and not head.is_final
        is_ours = head.running or (stays and live.audience.waits_beyond(head))
        owner = self.owner if is_ours else None
        if head.owner == owner:
            return changes
        token = head.token + (owner is not None)
        return replace(changes, head=replace(head, owner=owner, token=token))

    async def keep(
        self, live: Live, changes: Changes, settled: Sequence[Settled], *, lone: bool
    ) -> None:
        """Write what the recording policy wants written now, and what became of commands from other
        processes. `lone`: nothing else is live.

        Raises:
            SkipExecutionError, or one of its kin: another writer was faster; nothing was written.
            StoreError: it could not be written.
        """
        if changes.head.owner is not None and not self.is_holding:
            await self._hold()
        if live.unsaved is not None:
            changes = _merged(live.unsaved, changes)
        if not settled and not recording.must_keep_now(live.execution.flow, live.saved, changes):
            live.unsaved = changes
            return
        try:
            if live.saved is None:
                if not await self._store.insert(live.execution, changes, lone=lone):
                    raise SkipExecutionError
            elif changes.head.is_final and not recording.is_kept(changes.head):
                await self._store.delete(live.key, changes.head.run_id, settled=settled)
            else:
                base = live.execution
                if live.unsaved is not None:
                    base = Execution(base.flow, live.saved)
                await self._store.commit(base, changes, settled=settled, lone=lone)
        except SkipExecutionError:
            raise await self._overtaken(live, changes) from None
        live.saved = changes.head
        live.unsaved = None

    async def _overtaken(self, live: Live, changes: Changes) -> SkipExecutionError:
        """What another writer has done that makes these changes void."""
        kept = await self._store.load(live.key, changes.head.run_id)
        if kept is None:
            return SkipExecutionError()
        if kept.head.cancelled_at is not None and live.execution.head.cancelled_at is None:
            return SkipCancelledExecutionError()
        for name, record in changes.steps.items():
            known = kept.steps.get(name)
            if known is not None and not known.is_active and not record.is_active:
                return SkipStepAlreadyFinishedError()
        return SkipExecutionError()

    async def settle(self, settled: Sequence[Settled]) -> None:
        """Tell senders in other processes of what changed nothing."""
        peers = self._store.peers
        if settled and peers is not None:
            await peers.settle(settled)

    # --- the lease ---

    async def _hold(self) -> None:
        """Take out the lease; whoever comes meanwhile waits for it."""
        async with self._taking_out:
            if self.is_holding:
                return
            peers = self._store.peers
            if peers is not None:
                await peers.hold(self.owner)
            self.is_holding = True
            self._on_hold()  # it looks at whether there is anything to be told of

    async def let_go(self) -> None:
        """Whatever this engine had in hand is in nobody's hand any more."""
        owners.release(self.owner)
        peers = self._store.peers if self.is_holding else None
        if peers is not None:
            try:
                await peers.release(self.owner)
            except StoreError as error:  # it counts as gone all the same, for its process has ended
                logger.debug("The lease could not be given up: %s", error)


def _merged(first: Changes, second: Changes) -> Changes:
    """Both, in one commit."""
    return Changes(
        head=second.head,
        steps={**first.steps, **second.steps},
        events=first.events + second.events,
        result=second.result,
        owes_notice=second.owes_notice,
    )
