"""Replies: what the senders of events are told, and when."""

from __future__ import annotations

import asyncio

from wfe.errors import EngineClosed, WfeError
from wfe.runtime.signals import packed
from wfe.store.contract import Settled

#: Who waits here, the signal that it came as, and the refusal.
Reply = tuple["asyncio.Future[None] | None", "int | None", "WfeError | None"]


class Replies(list[Reply]):
    """What the senders of the events of one turn are told, each the refusal of its event, or None:
    only once it is kept, for a refusal, too, follows from what the events before it have led to.
    Senders in other processes learn it from the store, in the same commit."""

    __slots__ = ()

    def settled(self) -> list[Settled]:
        """What became of the events that came as signals."""
        return [
            Settled(signal, None if refusal is None else packed(refusal))
            for _, signal, refusal in self
            if signal is not None
        ]

    def deliver(self) -> None:
        for reply, _, refusal in self:
            if reply is None or reply.done():
                continue
            if refusal is None:
                reply.set_result(None)
            else:
                reply.set_exception(refusal)

    def fail(self, error: BaseException) -> None:
        for reply, _, _ in self:
            if reply is not None and not reply.done():
                reply.set_exception(as_exception(error))


def as_exception(error: BaseException) -> Exception:
    """What a caller may be told: being cut off is no business of theirs."""
    return error if isinstance(error, Exception) else EngineClosed()
