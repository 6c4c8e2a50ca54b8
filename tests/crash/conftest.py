"""The crash room. `CRASH=full` has everything tried instead of a sample; `CRASH_SEED=7` draws the
sample again that a run of that seed has drawn."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.crash.checks import Left, left
from tests.crash.life import Report
from tests.crash.play import Play
from tests.crash.servers import Servers
from wfe.store.database import open_for_writing

IS_FULL = os.environ.get("CRASH") == "full"
SEED = int(os.environ.get("CRASH_SEED") or random.SystemRandom().randrange(1_000_000))

_T = TypeVar("_T")


class Room:
    """Where plays are performed, each on a database of its own."""

    def __init__(self, servers: Servers, folder: Path, test: pytest.Item) -> None:
        self.servers = servers
        self.folder = folder
        self.is_full = IS_FULL
        #: Draws what the test draws, whatever other tests draw.
        self.random = random.Random(f"{SEED} {test.name}")
        self._test = test
        self._empty = folder / "empty.db"
        self._numbers = itertools.count()
        open_for_writing(self._empty).close()

    def sample(self, choices: Sequence[_T], most: int) -> Sequence[_T]:
        """All of them, or as many as there is time for."""
        if self.is_full or len(choices) <= most:
            return choices
        return self.random.sample(choices, most)

    def database(self, *, is_new: bool = False) -> Path:
        """A file for a play, and for its ledger beside it; an empty database, unless `is_new`."""
        db = self.folder / f"{next(self._numbers)}.db"
        if not is_new:
            shutil.copy(self._empty, db)
        return db

    def left_alone(self, flow: str) -> Left:
        """What is left where nobody dies."""
        (found,) = self.perform(flow, [{}])
        return found

    def perform(
        self,
        flow: str,
        plans: Iterable[Mapping[int, str | int]],
        *,
        logs: Iterable[int | None] = itertools.repeat(None),
        is_new: bool = False,
    ) -> Iterator[Left]:
        """Play a flow once for each plan; what each has left."""
        plays = [
            Play(
                flow=flow,
                db=str(self.database(is_new=is_new)),
                plan=plan,
                log=log,
                is_new=is_new,
            )
            for plan, log in zip(plans, logs, strict=False)
        ]
        self.count(plays=len(plays))
        replies = self.servers.all(plays, list[Report])
        for play, reports in zip(plays, replies, strict=True):
            yield left(play, reports)
            self._clear(Path(play.db))

    def _clear(self, db: Path) -> None:
        for file in self.folder.glob(f"{db.stem}.*"):
            file.unlink()

    def count(self, **times: int) -> None:
        """Have it said at the end of the run how often things were done, whichever process did them."""
        self._test.user_properties += times.items()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with Servers() as running:
        yield running


@pytest.fixture
def room(servers: Servers, tmp_path: Path, request: pytest.FixtureRequest) -> Room:
    print(f"CRASH_SEED={SEED}")  # shown where the test fails
    return Room(servers, tmp_path, request.node)
