"""Resources that cannot be had at first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from wfe import Engine, StepContext, resource, step, workflow
from wfe.authoring.registry import Registry


@pytest.mark.parametrize("failing", ["async", "async generator", "plain"])
def test_one_that_could_not_be_opened_is_tried_again_by_the_next_who_asks(failing: str) -> None:
    tried: list[str] = []

    def connect() -> str:
        tried.append("connect")
        if len(tried) < 3:
            raise OSError("the server is starting")
        return "connected"

    with Registry().scope() as registry:
        if failing == "async":

            @resource("server")
            async def opened() -> str:
                return connect()

        elif failing == "async generator":

            @resource("server")
            async def lasting() -> AsyncIterator[str]:
                yield connect()

        else:

            @resource("server")
            def plain() -> str:
                return connect()

        @step
        async def look(ctx: StepContext) -> str:
            return ctx.workflow_id

        @step(max_retries=5)
        async def use(ctx: StepContext) -> str:
            found: str = ctx.resolve("server")
            return found

        @workflow("order")
        def order() -> Any:
            look()
            return use()

    async def main() -> None:
        async with Engine(registry=registry) as engine:
            outcome = await engine.run("order")
            assert outcome.result == "connected"
            assert (await engine.run("order")).result == "connected"

    asyncio.run(main())
    assert tried == ["connect"] * 3


def test_one_that_nobody_asks_for_is_tried_once() -> None:
    tried: list[str] = []

    with Registry().scope() as registry:

        @resource("broken")
        async def broken() -> str:
            tried.append("broken")
            raise OSError("no such server")

        @step
        async def look(ctx: StepContext) -> str:
            return ctx.workflow_id

        @workflow("order")
        def order() -> Any:
            for number in range(5):
                look.config(name=f"look-{number}")()

    async def main() -> None:
        async with Engine(registry=registry) as engine:
            await engine.run("order")

    asyncio.run(main())
    assert tried == ["broken"]
