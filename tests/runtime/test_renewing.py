"""An engine whose workflows are loaded anew while executions are at work, or wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from wfe import Engine, Recording, Registry, StepContext, resource, step, workflow
from wfe.errors import DefinitionChanged
from wfe.model import CommandResult, EventKind

calls: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


async def told(caplog: pytest.LogCaptureFixture) -> None:
    while not caplog.records:  # noqa: ASYNC110 who logs wakes nobody
        await asyncio.sleep(0.01)


class Flows:
    """One loading of the modules. `go` is what a step waits for."""

    def __init__(self, name: str, *, first: str = "first") -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        with Registry().scope() as self.registry:

            @step(first)
            async def begin() -> str:
                calls.append(f"{name} begin")
                self.begun.set()
                await self.go.wait()
                return name

            @step
            async def end(value: str) -> str:
                calls.append(f"{name} end")
                return f"{value} {name}"

            @step(async_=True)
            async def ask(value: str) -> None: ...

            @workflow("order")
            def order() -> Any:
                return end(begin())

            @workflow("asking")
            def asking() -> Any:
                ask(begin())
                return end("answered")

            @workflow("parent")
            def parent() -> Any:
                begin()
                return order.as_step()


def engine(flows: Flows) -> Engine:
    return Engine(registry=flows.registry, recording=Recording.EVERY_STEP)


async def begun(engine: Engine, flows: Flows, name: str) -> asyncio.Task[CommandResult]:
    run = asyncio.create_task(engine.run(name, transaction_id="t1", until="finished"))
    await flows.begun.wait()
    return run


def test_what_is_at_work_goes_on_with_what_it_began_with() -> None:
    async def main() -> None:
        old, new = Flows("old"), Flows("new")
        async with engine(old) as running:
            run = await begun(running, old, "order")
            running.renew(new.registry)
            new.go.set()
            assert (await running.run("order")).result == "new new"
            old.go.set()
            assert (await run).result == "old old"

    asyncio.run(main())


def test_what_waits_goes_on_with_what_is_there_by_then() -> None:
    async def main() -> None:
        old, new = Flows("old"), Flows("new")
        async with engine(old) as running:
            old.go.set()
            await running.run("asking", transaction_id="t1")
            running.renew(new.registry)
            answered = await running.set_step_success("asking:t1:ask:invoke", until="finished")
            assert answered.result == "answered new"

    asyncio.run(main())


def test_what_waits_is_refused_where_the_point_reached_is_changed() -> None:
    async def main() -> None:
        old, new = Flows("old"), Flows("new", first="another")
        async with engine(old) as running:
            old.go.set()
            await running.run("asking", transaction_id="t1")
            running.renew(new.registry)
            with pytest.raises(DefinitionChanged):
                await running.set_step_success("asking:t1:ask:invoke", until="finished")
            running.renew(Flows("again").registry)
            answered = await running.set_step_success("asking:t1:ask:invoke", until="finished")
            assert answered.result == "answered again"

    asyncio.run(main())


def test_a_parent_of_before_has_its_own_child_and_the_name_means_the_new_one() -> None:
    async def main() -> None:
        old, new = Flows("old"), Flows("new")
        async with engine(old) as running:
            run = await begun(running, old, "parent")
            running.renew(new.registry)
            old.go.set()
            assert (await run).result == "old old"
            assert running.workflow("order") is new.registry.get("order")
            new.go.set()
            assert (await running.run("order")).result == "new new"

    asyncio.run(main())


def test_a_deadline_of_what_cannot_go_on_is_told_once_and_not_tried_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def loaded(*names: str) -> Registry:
        with Registry().scope() as registry:

            @step(retry_interval=0.05, max_retries=5)
            async def flaky() -> None:
                raise OSError("no luck")

            @workflow("order")
            def order() -> None:
                for name in names:
                    flaky.config(name=name)()

        return registry

    async def main() -> None:
        async with Engine(registry=loaded("a"), recording=Recording.EVERY_STEP) as running:
            await running.run("order", transaction_id="t1", throw_on_error=False)
            with caplog.at_level(logging.WARNING, "wfe"):
                running.renew(loaded("b", "a"))
                await told(caplog)
                for _ in range(1000):
                    await asyncio.sleep(0)
            (record,) = caplog.records
            assert record.getMessage().startswith("What is due of order:t1 is not done:")
            assert running.is_quiet

    asyncio.run(main())


def test_who_listens_to_a_workflow_hears_the_new_one() -> None:
    async def main() -> None:
        old, new = Flows("old"), Flows("new")
        heard: list[Any] = []
        async with engine(old) as running:
            running.subscribe("order", lambda event: heard.append(event.result))
            running.renew(new.registry)
            new.go.set()
            await running.run("order")
        assert heard[-1] == "new new"

    asyncio.run(main())


def test_a_resource_of_a_new_factory_is_opened_anew_and_both_are_closed() -> None:
    def loaded(name: str) -> Registry:
        with Registry().scope() as registry:

            @resource("client")
            def client() -> Iterator[str]:
                yield name
                calls.append(f"{name} closed")

            @resource("other")
            async def other() -> str:
                calls.append("other opened")
                return "other"

            @step
            async def use(ctx: StepContext) -> list[str]:
                return [ctx.resolve("client"), ctx.resolve("other")]

            @workflow("order")
            def order() -> Any:
                return use()

        return registry

    async def main() -> None:
        async with Engine(registry=loaded("old")) as running:
            assert (await running.run("order")).result == ["old", "other"]
            running.renew(loaded("new"))
            assert (await running.run("order")).result == ["new", "other"]
            assert (await running.run("order")).result == ["new", "other"]

    asyncio.run(main())
    assert calls == ["other opened"] * 2 + ["new closed", "old closed"]


def test_events_of_an_old_execution_go_on_to_be_told() -> None:
    async def main() -> None:
        old, new = Flows("old"), Flows("new")
        heard: list[EventKind] = []
        async with engine(old) as running:
            running.subscribe("order", lambda event: heard.append(event.kind))
            run = await begun(running, old, "order")
            running.renew(new.registry)
            old.go.set()
            await run
        assert heard[-1] is EventKind.FINISH

    asyncio.run(main())
