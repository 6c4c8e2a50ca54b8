"""Compacting: a database file gives back to the disk what it holds free.

Not done by itself: free pages are used again before a file grows, and one that sweeps as much as it
takes in keeps its size. `auto_vacuum`, which could give back a little at a time, has to be chosen when
a file is made, costs every write, and leaves the rest scattered; rewriting the file takes a second for
some hundred megabytes that stay, during which other writers wait.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from wfe.store import trouble
from wfe.store.database import BUSY_TIMEOUT, open_for_writing

#: Free bytes from which on compacting is worth a word, and the part of the file that they are.
_MUCH = 16_000_000
_PART = 0.25


class Compacted(NamedTuple):
    """The size of the file in bytes, before and after."""

    before: int
    after: int


def compact(path: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> Compacted:
    """Rewrite the file without what is free in it. Others can read meanwhile, and wait to write.

    Raises:
        StoreUnusable: there is no such database, or it cannot be written.
        StoreBusy: locked for longer than `busy_timeout` seconds, or no space for the copy that this
            takes; nothing is changed then.
    """
    if not path.exists():
        raise trouble.missing(path)
    with (
        trouble.translated(path),
        closing(open_for_writing(path, busy_timeout=busy_timeout)) as connection,
    ):
        connection.pragma("wal_checkpoint(TRUNCATE)")
        before = path.stat().st_size
        # A whole database might be too much for the memory.
        connection.raw.execute("PRAGMA temp_store = FILE")
        connection.raw.execute("VACUUM")
        connection.pragma("wal_checkpoint(TRUNCATE)")
        return Compacted(before, path.stat().st_size)


def is_worth_it(free: int, size: int) -> bool:
    """Is so much free, in bytes, that a person may want to compact the file?"""
    return free >= _MUCH and free >= size * _PART
