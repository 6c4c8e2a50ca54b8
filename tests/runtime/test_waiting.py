"""`until="waiting"`: the caller is let go when a whole family waits for nobody but those outside."""

from __future__ import annotations

import asyncio
from typing import Any

from wfe import Engine, parallel, step, workflow
from wfe.authoring.registry import Registry
from wfe.testing import VirtualClock, VirtualLoop

calls: list[str] = []


def families() -> Registry:
    with Registry().scope() as registry:

        @step
        async def work(seconds: float) -> None:
            await asyncio.sleep(seconds)
            calls.append(f"worked {seconds:g}")

        @step(async_=True)
        async def ask() -> None:
            calls.append("asked")

        @workflow("child")
        def child(seconds: float) -> Any:
            work(seconds)
            return ask()

        @workflow("parent")
        def parent() -> Any:
            return child.as_step(1.0)

        @workflow("parent-of-two")
        def parent_of_two() -> Any:
            one = child.as_step.config(name="one")(1.0)
            other = child.as_step.config(name="other")(3.0)
            return list(parallel([one, other]))

        @workflow("grandparent")
        def grandparent() -> Any:
            return parent.as_step()

    return registry


def waits(name: str) -> list[str]:
    """What was called until the caller was let go, in virtual time."""
    calls.clear()

    async def main() -> None:
        registry = families()
        async with Engine(clock=VirtualClock(), registry=registry) as engine:
            outcome = await engine.run(registry.get(name), until="waiting")
            assert not outcome.acknowledgement.has_finished

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    return calls


def test_a_child_that_works_is_not_waited_for_by_an_answer() -> None:
    assert waits("parent") == ["worked 1", "asked"]


def test_the_last_child_to_come_to_rest_lets_the_caller_go() -> None:
    assert waits("parent-of-two") == ["worked 1", "asked", "worked 3", "asked"]


def test_a_family_may_have_several_generations() -> None:
    assert waits("grandparent") == ["worked 1", "asked"]
