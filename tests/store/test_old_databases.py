"""Databases of former versions: they are brought up to date, and what is in them goes on.

There is a file for each schema that was ever released: see databases/README.md.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import platform
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.store.databases.make import HOST, description, registry
from tests.store.support import mode
from wfe import CommandResult, Engine, Recording, Scheduler
from wfe.scheduling.plan import known_plan
from wfe.store.backup import damage
from wfe.store.checkup import check_up
from wfe.store.contract import Query
from wfe.store.database import open_for_reading, open_reader, upgrade
from wfe.store.facts import facts
from wfe.store.ledger import Tick
from wfe.store.migrations import MIGRATIONS, schema_version
from wfe.store.sqlite import SQLiteStore

FOLDER = Path(__file__).parent / "databases"
FILES = sorted(FOLDER.glob("v*.db.xz"))


class Later:
    """Long after what is in the files has become due."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(milliseconds=1)
        return self._now

    async def sleep_until(self, moment: datetime) -> None:
        await asyncio.Event().wait()


@pytest.fixture(params=FILES, ids=lambda file: file.name.partition(".")[0])
def old(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file as it was, in a place of its own, on the host that it was made on."""
    monkeypatch.setattr(platform, "node", lambda: HOST)
    file = tmp_path / "wfe.db"
    file.touch(mode=0o600)
    file.write_bytes(lzma.decompress(request.param.read_bytes()))
    return file


@pytest.fixture
def said(request: pytest.FixtureRequest, old: Path) -> list[dict[str, Any]]:
    """What the wfe that wrote it said of it."""
    file: Path = request.node.callspec.params["old"]
    return list(json.loads((FOLDER / file.name.replace(".db.xz", ".json")).read_text()))


def described(file: Path) -> list[dict[str, Any]]:
    """What the present code says."""
    with open_reader(file) as reader:
        return [description(reader, item) for item in reader.list(Query(order_by=("created_at",)))]


def now(file: Path, key: str) -> dict[str, Any]:
    """How its newest run stands."""
    return [each for each in described(file) if each["key"] == key][-1]


def carry_on(file: Path, *commands: Callable[[Engine], Awaitable[CommandResult]]) -> None:
    async def main() -> None:
        engine = Engine(
            store=SQLiteStore(file, synchronous="normal"),
            clock=Later(),
            registry=registry,
            recording=Recording.EVERY_STEP,
        )
        async with engine:
            for command in commands:
                await command(engine)

    asyncio.run(main())


def test_there_is_a_file_for_every_schema_but_the_newest() -> None:
    kept = {int(file.name.partition(".")[0].removeprefix("v")) for file in FILES}
    assert {each.version for each in MIGRATIONS[:-1]} <= kept
    assert all(file.stat().st_size < 40_000 for file in FILES)


def test_it_is_backed_up_and_brought_up_to_date(old: Path) -> None:
    before = old.read_bytes()
    version = facts(old).schema
    done = upgrade(old)
    assert (done.before, done.after) == (version, MIGRATIONS[-1].version)
    if done.before == done.after:
        assert done.backup is None
        return
    assert done.backup == old.with_name(f"wfe.db.backup-v{version}")
    assert mode(done.backup) == mode(old) == 0o600
    assert damage(done.backup) == ""
    with closing(open_for_reading(done.backup, any_schema=True)) as connection:
        assert schema_version(connection) == version
    assert len(before) == done.backup.stat().st_size


def test_every_execution_is_as_it_was(old: Path, said: list[dict[str, Any]]) -> None:
    upgrade(old)
    assert described(old) == said


def test_it_is_in_order(old: Path) -> None:
    upgrade(old)
    assert [result for result in check_up(old) if not result.is_ok] == []


def test_what_waits_can_be_answered(old: Path) -> None:
    keys = [
        "release:waiting:approve:invoke",
        "two-answers:waiting:left:invoke",
        "two-answers:waiting:right:invoke",
        "two-answers:half:right:invoke",
        "child:child-as-step-waiting:approve:invoke",
    ]
    carry_on(
        old,
        *(partial(Engine.set_step_success, key=key, response="yes") for key in keys),
        lambda engine: engine.wait_for("parent", "waiting"),
    )
    for key in ("release:waiting", "two-answers:waiting", "two-answers:half", "parent:waiting"):
        assert now(old, key)["state"] == "done"
    assert now(old, "release:waiting")["result"] == '"yes"'
    assert now(old, "parent:waiting")["result"] == '"yes"'
    with open_reader(old) as reader:
        assert reader.steps_waiting() == []


def test_what_waits_can_be_refused_and_is_undone(old: Path) -> None:
    key = "two-answers:half:right:invoke"
    carry_on(old, lambda engine: engine.set_step_failure(key, "no", throw_on_error=False))
    assert now(old, "two-answers:half")["state"] == "reverted"


def test_what_was_interrupted_goes_on_at_the_step_in_flight(old: Path) -> None:
    carry_on(old, lambda engine: engine.resume("deadly", "interrupted", until="finished"))
    stands = now(old, "deadly:interrupted")
    assert (stands["state"], stands["result"]) == ("done", '"value"')
    with open_reader(old) as reader:
        (item,) = reader.list(Query(where={"workflow_id": "deadly"}))
        begun = [
            (event.step, event.attempt)
            for event in reader.timeline(item.execution_id)
            if str(event.kind) == "step_begin"
        ]
    assert begun == [("first", 1), ("deadly", 1), ("deadly", 2)]


def test_what_sleeps_wakes_when_its_time_has_come(old: Path) -> None:
    carry_on(old, lambda engine: engine.resume("nap", "sleeping", until="finished"))
    assert now(old, "nap:sleeping")["result"] == '"rested"'


def test_its_schedules_are_served_on(old: Path) -> None:
    if facts(old).schema < 4:
        return  # there were none
    upgrade(old)
    with open_reader(old) as reader:
        (row,) = reader.ledger.schedules()
        states = [tick.reason or tick.state for tick in reader.ledger.ticks("nightly")]
    assert (row.fired, row.fires, row.holder) == (2, (), None)
    assert states == ["due", "missed", "fired"]

    async def main() -> None:
        is_begun = asyncio.Event()

        def on_tick(tick: Tick) -> None:
            if tick.scheduled_for == row.accounted_until and tick.state == "fired":
                is_begun.set()

        engine = Engine(
            store=SQLiteStore(old, synchronous="normal"), clock=Later(), registry=registry
        )
        async with engine, Scheduler(engine, own=False, on_tick=on_tick) as scheduler:
            await scheduler.add(known_plan(row))
            await asyncio.wait_for(is_begun.wait(), 20)

    asyncio.run(main())
    with open_reader(old) as reader:
        (now,) = reader.ledger.schedules()
    assert len(now.fires) == 5


def test_what_is_kept_answers_again_or_runs_again(old: Path) -> None:
    carry_on(
        old,
        lambda engine: engine.run("once", 1, transaction_id="kept"),
        lambda engine: engine.run("echo", 3, transaction_id="again"),
    )
    keys = [each["key"] for each in described(old)]
    assert keys.count("once:kept") == 1
    assert keys.count("echo:again") == 3
    assert now(old, "echo:again")["result"] == "3"
