"""What a loss of power leaves: with `full` everything that was acknowledged, with `normal` what had
been committed up to some moment; never a part of a commit.

No test can pull the plug. These take the files that a killed process has left, take away what might
not have reached the disk, and open what is left with the store.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.crash.checks import check_structure
from tests.crash.conftest import Room
from tests.crash.power import (
    HEADER,
    Acknowledged,
    Frame,
    Writes,
    end_of,
    former,
    frames,
    held,
    page_size,
)
from wfe.store.database import open_for_writing

#: A disk writes so many bytes at once.
SECTOR = 512


class Disk:
    """The files that a killed process has left, and what each commit had come to."""

    def __init__(self, room: Room, commits: Sequence[Acknowledged], db: Path, before: str) -> None:
        self.db = db.read_bytes()
        self.log = Path(f"{db}-wal").read_bytes()
        self.former = former(str(db)).read_bytes() if former(str(db)).exists() else b""
        self.commits = commits
        #: The last commit of the log's former generation, or what was there at first.
        self.before = before
        self._folder = room.folder
        self._numbers = itertools.count()

    @property
    def end(self) -> int:
        return end_of(self.log)

    def expected(self, log: bytes) -> str:
        """What the database holds with such a log, which is whole as far as it is as it was written."""
        sizes = range(min(len(log), len(self.log)) + 1)
        whole = bisect(sizes, False, key=lambda size: log[:size] != self.log[:size]) - 1
        newest = self.commits[-1].generation
        done = [c.held for c in self.commits if c.generation == newest and c.log <= whole]
        return done[-1] if done else self.before

    def found(self, log: bytes, db: bytes | None = None) -> str:
        """What the store finds in such files."""
        path = self._folder / f"cut-{next(self._numbers)}.db"
        path.write_bytes(self.db if db is None else db)
        Path(f"{path}-wal").write_bytes(log)
        connection = open_for_writing(path)
        try:
            return held(connection.raw)
        finally:
            connection.close()
            check_structure(path)
            path.unlink()


def written(room: Room, **options: Any) -> Disk:
    """Let a process write, and die."""
    db = room.database()
    connection = open_for_writing(db)
    before = held(connection.raw)
    connection.close()
    times = 4 if room.is_full else 1
    commits = room.servers.one(Writes(db=str(db), times=times, **options), list[Acknowledged])
    for older, newer in itertools.pairwise(commits):
        if newer.generation > older.generation:
            before = older.held
    return Disk(room, commits, db, before)


def cuts(disk: Disk, room: Room) -> Iterator[int]:
    """Bytes after which the log ends: at the edges of commits, frames and its header, and anywhere."""
    newest = disk.commits[-1].generation
    edges = {c.log for c in disk.commits if c.generation == newest}
    edges |= {HEADER} | {frame.end for frame in room.sample(list(frames(disk.log)), 10)}
    near = {edge + step for edge in edges for step in (-1, 0, 1)}
    near |= {room.random.randrange(disk.end) for _ in range(500 if room.is_full else 30)}
    yield from sorted(cut for cut in near if 0 <= cut <= disk.end)


def tails(disk: Disk, cut: int, chance: random.Random) -> Iterator[bytes]:
    """What may stand behind that: nothing; zeros; anything; a part of what belongs there, and again
    anything."""
    yield b""
    kind = chance.randrange(3)
    if kind == 0:
        yield bytes(chance.randrange(1, 9000))
    elif kind == 1:
        yield chance.randbytes(chance.randrange(1, 9000))
    else:
        part = disk.log[cut : cut + chance.randrange(1, 4000)]
        torn = bytes(byte ^ 0xFF for byte in part[-8:])
        yield part[:-8] + torn + chance.randbytes(300)


def test_with_full_every_commit_that_was_acknowledged_is_found(room: Room) -> None:
    disk = written(room, synchronous="full")
    assert min(commit.synchronous for commit in disk.commits) == 2
    count = 0
    for cut in room.sample(list(cuts(disk, room)), 40):
        for tail in tails(disk, cut, room.random):
            log = disk.log[:cut] + tail
            assert disk.found(log) == disk.expected(log), (cut, tail)
            count += 1
    assert disk.found(disk.log) == disk.commits[-1].held
    room.count(losses_of_power=count)


def test_with_normal_what_is_found_was_committed_and_nothing_after_it(room: Room) -> None:
    disk = written(room, synchronous="normal")
    assert min(commit.synchronous for commit in disk.commits) == 1
    count = 300 if room.is_full else 30
    for _ in range(count):
        log = bytearray(disk.log)
        for _ in range(room.random.randrange(1, 4)):
            lost = room.random.randrange(disk.end) // SECTOR * SECTOR
            log[lost : lost + SECTOR] = bytes(SECTOR)
        assert disk.found(bytes(log)) == disk.expected(bytes(log))
    room.count(losses_of_power=count)


@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_a_log_that_has_begun_anew_is_cut_like_the_first_one(synchronous: str, room: Room) -> None:
    disk = written(room, synchronous=synchronous, restarts_after=12)
    assert disk.commits[-1].generation == 1
    chosen = room.sample(list(cuts(disk, room)), 20)
    for cut in chosen:
        # Where the new frames have not reached the disk the former ones still stand.
        log = disk.log[:cut] + disk.former[cut:]
        assert disk.found(log) == disk.expected(log), cut
    room.count(losses_of_power=len(chosen))


def test_a_loss_of_power_while_the_log_is_copied_into_the_database_takes_nothing(
    room: Room,
) -> None:
    disk = written(room, synchronous="normal")
    size = page_size(disk.log)
    last: dict[int, Frame] = {frame.page: frame for frame in frames(disk.log)}
    count = 100 if room.is_full else 10
    for _ in range(count):
        db = bytearray(disk.db)
        for frame in room.random.sample(list(last.values()), room.random.randrange(len(last))):
            page = disk.log[frame.end - size : frame.end]
            place = (frame.page - 1) * size
            db.extend(bytes(max(place + size - len(db), 0)))
            # Of a page, too, only some sectors may have been written.
            for sector in range(0, room.random.randrange(1, size // SECTOR + 1) * SECTOR, SECTOR):
                db[place + sector : place + sector + SECTOR] = page[sector : sector + SECTOR]
        assert disk.found(disk.log, bytes(db)) == disk.commits[-1].held
    room.count(losses_of_power=count)
