"""Replies: what the senders of events are told, and when."""

from __future__ import annotations

import asyncio

from wfe.errors import EngineClosed, WfeError


class Replies:
    """What the senders of the events of one turn are told: only once it is kept, for a refusal, too,
    follows from what the events before it have led to."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[asyncio.Future[None], WfeError | None]] = []

    def add(self, reply: asyncio.Future[None] | None, refusal: WfeError | None = None) -> None:
        if reply is not None:
            self._entries.append((reply, refusal))

    def deliver(self) -> None:
        for reply, refusal in self._entries:
            if reply.done():
                continue
            if refusal is None:
                reply.set_result(None)
            else:
                reply.set_exception(refusal)

    def fail(self, error: BaseException) -> None:
        for reply, _ in self._entries:
            if not reply.done():
                reply.set_exception(as_exception(error))


def as_exception(error: BaseException) -> Exception:
    """What a caller may be told: being cut off is no business of theirs."""
    return error if isinstance(error, Exception) else EngineClosed()
