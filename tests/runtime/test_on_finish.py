"""`Engine(on_finish=...)`: who is told of ends, by which engine, and what is left when one is gone."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.decisions.support import World
from wfe import (
    Engine,
    Event,
    ExecutionKey,
    InvalidOption,
    OnFinish,
    PermanentStepFailure,
    Recording,
    Registry,
    Workflow,
    step,
    workflow,
)
from wfe.errors import StepFailed
from wfe.model import EventKind, TimelineEvent
from wfe.store.sqlite import SQLiteStore
from wfe.testing import VirtualEngine

#: Appends the key and the ending of what it is told to the file that is named.
TELL = (
    "import json, sys; told = json.load(sys.stdin);"
    " print(told['key'], told['ending'], file=open(sys.argv[1], 'a'))"
)
KEY = ExecutionKey("falls", "t1")


def composed(**options: Any) -> tuple[Registry, Workflow[Any, Any]]:
    with Registry().scope() as registry:

        @step
        async def fall(value: Any) -> None:
            raise PermanentStepFailure("down")

        @workflow("falls", **options)
        def falls(value: Any) -> None:
            fall(value)

    return registry, falls


class Scene:
    """A workflow that fails, and a command that writes down what it is told."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "told"
        self.db = folder / "wfe.db"
        self.registry, self.falls = composed()

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-c", TELL, str(self.file))

    @property
    def told(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def engine(self, **options: Any) -> Engine:
        given = {"on_finish": self.command, "recording": Recording.EVERY_STEP, **options}
        store = SQLiteStore(self.db, synchronous="normal")
        return Engine(store=store, registry=self.registry, **given)

    async def fail(self, engine: Engine, transaction_id: str = "t1") -> None:
        await engine.run("falls", 1, transaction_id=transaction_id, throw_on_error=False)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def until(something: Callable[[], object]) -> None:
    """Return when there is something."""
    while not something():  # noqa: ASYNC110 nobody tells
        await asyncio.sleep(0)


def notices(engine: Engine, key: ExecutionKey = KEY) -> list[TimelineEvent]:
    reader = engine.store.reader
    execution = reader.load(key)
    assert execution is not None
    timeline = reader.timeline(execution.head.execution_id)
    return [entry for entry in timeline if entry.kind is EventKind.NOTICE]


def test_an_engine_that_is_shut_down_lets_those_be_told_who_are(scene: Scene) -> None:
    async def main() -> None:
        async with scene.engine() as engine:
            await scene.fail(engine)
        async with scene.engine() as engine:
            assert len(notices(engine)) == 1
            assert list(await engine.store.notices.owed()) == []

    asyncio.run(main())
    assert scene.told == ["falls:t1 reverted"]


def test_it_delays_nobody(scene: Scene) -> None:
    async def main() -> None:
        async with scene.engine(on_finish="sleep 60") as engine:
            await asyncio.wait_for(scene.fail(engine), 10)
            assert not engine.is_quiet
            await engine.shutdown(grace=0)
        async with scene.engine() as engine:
            assert notices(engine) == []
            assert await engine.send_notices() == 1
            assert await engine.send_notices() == 0

    asyncio.run(main())
    assert scene.told == ["falls:t1 reverted"]


def test_what_is_held_back_is_left_to_others(scene: Scene) -> None:
    async def main() -> None:
        async with scene.engine() as engine:
            engine.hold_notices()
            await scene.fail(engine)
            await scene.fail(engine, "t2")
            assert engine.hold_notices() == (KEY, ExecutionKey("falls", "t2"))
            await engine.recover()
        assert scene.told == []
        async with scene.engine() as engine:
            assert await engine.send_notices([KEY]) == 1
            assert scene.told == ["falls:t1 reverted"]
            await engine.recover()
        assert scene.told == ["falls:t1 reverted", "falls:t2 reverted"]

    asyncio.run(main())


def test_of_two_engines_one_tells(scene: Scene) -> None:
    async def main() -> None:
        async with scene.engine() as one, scene.engine() as other:
            one.hold_notices()
            for number in range(6):
                await scene.fail(one, f"t{number}")
            sent = await asyncio.gather(one.send_notices(), other.send_notices())
            assert sum(sent) >= 6

    asyncio.run(main())
    assert sorted(scene.told) == [f"falls:t{number} reverted" for number in range(6)]


def test_who_does_not_know_whom_to_tell_leaves_it(scene: Scene) -> None:
    async def main() -> None:
        async with scene.engine() as engine:
            engine.hold_notices()
            await scene.fail(engine)
        for options in ({"on_finish": None}, {"on_finish": False}, {"registry": Registry()}):
            store = SQLiteStore(scene.db, synchronous="normal")
            given: dict[str, Any] = {"registry": scene.registry, "on_finish": scene.command}
            given |= options
            async with Engine(store=store, **given) as engine:
                assert await engine.send_notices() == 0
                assert len(await store.notices.owed()) == 1

    asyncio.run(main())


def test_an_end_that_was_taken_back_is_not_told_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "told"
    command = [sys.executable, "-c", TELL, str(file)]
    with Registry().scope() as registry:

        @step
        async def build() -> str:
            return "1.2"

        @workflow("release", on_finish=OnFinish(command, states="all"))
        def release() -> None:
            build()

    async def main() -> None:
        store = SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
        options: Any = {"store": store, "registry": registry, "recording": Recording.EVERY_STEP}
        async with Engine(**options) as engine:
            engine.hold_notices()
            await engine.run(release, transaction_id="t1")
            await engine.cancel(release, "t1")
            assert await engine.send_notices() == 1
            await engine.cancel(release, "t1", throw_on_error=False)
            assert await engine.send_notices() == 0

    asyncio.run(main())
    assert file.read_text().splitlines() == ["release:t1 cancelled"]


def test_who_listens_in_another_process_hears_of_no_notice(tmp_path: Path) -> None:
    with Registry().scope() as registry:

        @step(compensate_async=True)
        async def build() -> str:
            return "1.2"

        @build.compensate
        async def remove(version: str) -> None: ...

        @workflow("release", on_finish=OnFinish("true", states="all"))
        def release() -> None:
            build()

    def engine() -> Engine:
        store = SQLiteStore(tmp_path / "wfe.db", synchronous="normal")
        return Engine(store=store, registry=registry, recording=Recording.EVERY_STEP)

    async def main() -> list[str]:
        heard: list[Event] = []
        async with engine() as one, engine() as other:
            await other.run(release, transaction_id="t1")
            await other.send_notices()
            assert len(notices(other, ExecutionKey("release", "t1"))) == 1
            undone = asyncio.ensure_future(
                other.cancel(release, "t1", until="finished", throw_on_error=False)
            )
            await until(lambda: one.store.reader.steps_waiting())
            waiting = asyncio.ensure_future(
                one.wait_for(release, "t1", events=heard.append, throw_on_error=False)
            )
            await until(lambda: one._audiences.waited_for())
            await other.set_step_success("release:t1:build:compensate", throw_on_error=False)
            await asyncio.gather(waiting, undone)
        return [str(event.kind) for event in heard]

    # What happens while it listens, each once. (That it is taken up, to be answered, is one of these.)
    assert asyncio.run(main()) == ["resume", "compensate_step_success", "finish"]


def test_nothing_is_written_where_nobody_is_told(scene: Scene) -> None:
    async def main() -> list[str]:
        said: list[str] = []
        async with scene.engine(on_finish=None) as engine:
            store = engine.store
            assert isinstance(store, SQLiteStore)
            store._opened().writer._connection.raw.set_trace_callback(said.append)
            await scene.fail(engine)
        return said

    said = asyncio.run(main())
    assert any("INSERT INTO execution_event" in text for text in said)
    assert not any("execution_notice" in text for text in said)


def test_what_is_not_kept_is_told_by_the_process_that_ran_it(scene: Scene) -> None:
    async def main() -> None:
        async with Engine(registry=scene.registry, on_finish=scene.command) as engine:
            await scene.fail(engine)
            with pytest.raises(StepFailed):
                await engine.run("falls", 1, transaction_id="t2")

    asyncio.run(main())
    assert sorted(scene.told) == ["falls:t1 reverted", "falls:t2 reverted"]


def test_a_program_on_virtual_time_is_told_as_well(scene: Scene) -> None:
    with VirtualEngine(on_finish=scene.command) as engine:
        engine.run(scene.falls, 1, transaction_id="t1")
        engine.advance(1)
        (notice,) = notices(engine.inner)
        assert notice.error is None
    assert scene.told == ["falls:t1 reverted"]


async def test_a_workflow_is_told_once_for_each_end(world: World) -> None:
    heard: list[Any] = []

    @step
    async def hear(what: Any) -> None:
        heard.append(what)

    @workflow("notify")
    def notify(what: Any) -> None:
        hear(what)

    _, falls = composed(on_finish=notify, retention_time=60)
    engine = world.engine
    outcome = await engine.run(falls, {"big": 2**70}, transaction_id="t1", throw_on_error=False)
    await engine.send_notices()
    (document,) = heard
    assert outcome.execution is not None
    head = outcome.execution.head
    assert (document["key"], document["id"]) == ("falls:t1", head.execution_id)
    assert [entry.detail for entry in notices(engine)] == ["workflow:notify"]


@pytest.mark.parametrize("given", ["", [], [""], 3, ["mail", 3], "mail 'ops", {"run": "mail"}])
def test_who_cannot_be_told_is_refused_when_the_workflow_is_composed(given: Any) -> None:
    with pytest.raises(InvalidOption, match="on_finish"):
        composed(on_finish=given)
    with pytest.raises(InvalidOption, match="on_finish"):
        Engine(on_finish=given)


@pytest.mark.parametrize(
    "fields",
    [
        {"states": "sick"},
        {"states": []},
        {"timeout": 0},
        {"timeout": "1s"},
        {"folder": 5},
        {"folder": ""},
    ],
)
def test_an_on_finish_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=r"test_on_finish\.py"):
        OnFinish("mail", **fields)


def test_what_a_workflow_leaves_open_comes_from_the_engine() -> None:
    base = OnFinish("mail ops", states="all", timeout=5, folder="/srv")
    own = OnFinish(states=["failed"]).over(base)
    assert (own.command, own.told, own.timeout) == (("mail", "ops"), ("failed",), 5)
    assert OnFinish("page").over(base).folder == "/srv"
    assert OnFinish("page").over(None).told == ("reverted", "failed", "timed_out")
    assert OnFinish("workflow:notify").workflow_id == "notify"
    assert str(OnFinish(["mail", "-s", "it failed"])) == "mail -s 'it failed'"
