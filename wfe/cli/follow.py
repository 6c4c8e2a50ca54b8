"""Following: an execution as other processes move it, read from the store whenever that has changed.

Reads only. Where nobody writes, a look costs SQLite one page of memory; once a second the execution is
read all the same, because the death of a process writes nothing.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING

from wfe.errors import StoreBusy, TransactionNotFound

if TYPE_CHECKING:
    from wfe.model import Execution
    from wfe.store.contract import Reader

#: Seconds between two looks at the store, and at most between two at the execution.
_PACE = 0.1
_LONGEST = 1.0


def follow(
    reader: Reader, execution: Execution, patience: float | None = None
) -> Iterator[Execution]:
    """`execution`, and again each time that it has moved or changed hands; ends behind a final one, or
    after `patience` seconds (None: never).

    Raises:
        TransactionNotFound: it was deleted meanwhile.
        StoreUnusable: the database was.
    """
    reader.changed()
    yield execution
    end = None if patience is None else monotonic() + patience
    looked, pause = monotonic(), _PACE
    while not execution.head.is_final and (end is None or monotonic() < end):
        sleep(pause if end is None else max(min(pause, end - monotonic()), 0))
        began = monotonic()
        try:
            if not reader.changed() and began - looked < _LONGEST:
                continue
            found = _again(reader, execution)
        except StoreBusy:
            continue  # readers wait only for what locks everybody out; that passes
        looked = monotonic()
        pause = max(_PACE, looked - began)  # a long execution takes half of one's time at most
        if (found.head.version, found.holder) != (execution.head.version, execution.holder):
            yield found
        execution = found


def _again(reader: Reader, execution: Execution) -> Execution:
    head = execution.head
    found = reader.load(head.key, head.run_id)
    if found is None:
        raise TransactionNotFound(
            head.workflow_id, head.transaction_id, f"{head.key} was deleted meanwhile."
        )
    return found


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let a TERM end the command as an INT does, so that the terminal is left as it was."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
