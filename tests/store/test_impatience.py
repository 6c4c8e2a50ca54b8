"""While something is written, a thread that computes lets go of the interpreter sooner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wfe import Engine, Recording, step, workflow
from wfe.authoring.registry import Registry
from wfe.store.impatience import IMPATIENCE
from wfe.store.sqlite import SQLiteStore
from wfe.store.writer import Outcome, Parcel, Writer


@pytest.fixture(autouse=True)
def interval() -> Iterator[float]:
    former = sys.getswitchinterval()
    sys.setswitchinterval(0.02)
    yield sys.getswitchinterval()
    sys.setswitchinterval(former)


def test_the_interval_is_short_until_the_last_one_is_done(interval: float) -> None:
    with IMPATIENCE:
        with IMPATIENCE:
            assert sys.getswitchinterval() < interval / 10
        assert sys.getswitchinterval() < interval / 10
    assert sys.getswitchinterval() == interval


@pytest.mark.parametrize("micros", [57, 99, 100, 4999, 5000])
def test_whatever_the_interval_was_it_is_the_same_afterwards(micros: int) -> None:
    sys.setswitchinterval((micros + 0.5) / 1e6)
    before = sys.getswitchinterval()
    for _ in range(100):
        with IMPATIENCE:
            assert sys.getswitchinterval() <= max(0.001, before)
    assert sys.getswitchinterval() == before


def test_commits_are_written_with_it(
    interval: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[bool] = set()
    write = Writer.write

    def watched(writer: Writer, group: Sequence[Parcel], **options: Any) -> list[Outcome]:
        seen.add(sys.getswitchinterval() < interval / 10)
        return write(writer, group, **options)

    monkeypatch.setattr(Writer, "write", watched)
    with Registry().scope() as registry:

        @step
        async def work() -> None: ...

        @workflow("w")
        def w() -> Any:
            return work()

    async def main() -> None:
        store = SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
        engine = Engine(store=store, registry=registry, recording=Recording.EVERY_STEP)
        async with engine:
            await asyncio.gather(*(engine.run(w) for _ in range(3)))
            await engine.run(w)

    asyncio.run(main())
    assert seen == {True}
    assert sys.getswitchinterval() == interval
