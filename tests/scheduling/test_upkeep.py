"""Upkeep: what processes that are gone have left goes on, once, and what cannot is told, once."""

from __future__ import annotations

from pathlib import Path

from tests.scheduling.serving import World
from wfe import Recording
from wfe.errors import WfeError
from wfe.model import ExecutionKey
from wfe.runtime.engine import Engine
from wfe.scheduling.upkeep import Upkeep
from wfe.store.sqlite import SQLiteStore

Told = list[tuple[str, str | None]]


def upkeep(world: World, told: Told) -> Upkeep:
    def note(key: ExecutionKey, error: WfeError | None) -> None:
        told.append((str(key), None if error is None else type(error).__name__))

    return Upkeep(world.engine, on_taken=note)


async def leave_unfinished(world: World) -> None:
    """An execution whose process goes in the middle of its step."""
    world.takes = 50.0
    await world.engine.run("job", 1, transaction_id="t1", until="stored")
    await world.wait(10)
    await world.end()
    await world.begin()


def test_takes_up_what_is_interrupted_at_its_start(world: World) -> None:
    world.job()

    async def test(world: World) -> None:
        await leave_unfinished(world)
        told: Told = []
        keeper = upkeep(world, told)
        await keeper.start()
        await world.wait(60)
        await keeper.stop()
        execution = await world.store.load(ExecutionKey("job", "t1"))
        assert execution is not None
        assert str(execution.head.state) == "done"
        assert told == [("job:t1", None)]
        assert len(world.runs) == 2

    world.play(test)


def test_takes_up_what_is_left_later_within_seconds(world: World) -> None:
    world.job()

    async def test(world: World) -> None:
        told: Told = []
        keeper = upkeep(world, told)
        await keeper.start()
        accepting = Engine(store=world.store, clock=world.clock, registry=world.registry)
        accepting.hold_back()
        await accepting.start()
        await accepting.run("job", 1, transaction_id="t1", until="stored")
        await world.wait(3)
        await keeper.stop()
        assert told == ([("job:t1", None)] if world.runs else [])

    if isinstance(world.store, SQLiteStore):  # of a store in memory there is one engine
        world.play(test)


def test_says_once_what_cannot_go_on_and_tries_again_now_and_then(world: World) -> None:
    world.job()

    async def test(world: World) -> None:
        await leave_unfinished(world)
        job = world.registry.get("job")
        world.registry.remove("job")
        told: Told = []
        keeper = upkeep(world, told)
        await keeper.start()
        await world.wait(200)
        assert told == [("job:t1", "WorkflowNotFound")]
        world.registry.add(job)
        await world.wait(120)
        await keeper.stop()
        assert told[1:] == [("job:t1", None)]

    world.play(test)


def test_of_two_that_look_one_takes_it(tmp_path: Path) -> None:
    world = World(
        lambda: SQLiteStore(tmp_path / "wfe.db", synchronous="normal"), Recording.EVERY_STEP
    )
    world.job()

    async def test(world: World) -> None:
        await leave_unfinished(world)
        store = SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
        other = Engine(
            store=store,
            clock=world.clock,
            registry=world.registry,
            recording=Recording.EVERY_STEP,
        )
        async with other:
            told: Told = []
            first = upkeep(world, told)
            second = Upkeep(other, on_taken=lambda key, error: told.append((str(key), None)))
            await first.start()
            await second.start()
            await world.wait(70)
            await first.stop()
            await second.stop()
        assert len(world.runs) == 2  # the one that was cut off, and the one that took it up
        assert told == [("job:t1", None)]

    world.play(test)
