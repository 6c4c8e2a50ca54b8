"""Resources and contexts: what steps may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from wfe import InvalidName, NotFound, Registry, StepContext, resource

from .support import line_of, place, refused


def test_a_factory_is_found_by_name_and_stays_a_function(registry: Registry) -> None:
    @resource
    def payments() -> str:
        return "client"

    @resource("stock")
    async def open_stock() -> str:
        return "client"

    assert payments() == "client"
    assert registry.resource_names() == ["payments", "stock"]
    assert registry.resource("payments").factory is payments
    assert registry.resource("stock").name == "stock"


def test_a_resource_tells_how_it_is_opened(registry: Registry) -> None:
    @resource
    def plain() -> int:
        return 1

    @resource
    async def awaited() -> int:
        return 1

    @resource
    def generated() -> Iterator[int]:
        yield 1

    @resource
    async def generated_async() -> AsyncIterator[int]:
        yield 1

    found = {
        name: (registry.resource(name).is_async, registry.resource(name).is_generator)
        for name in registry.resource_names()
    }
    assert found == {
        "plain": (False, False),
        "awaited": (True, False),
        "generated": (False, True),
        "generated_async": (True, True),
    }


def test_a_factory_that_could_not_be_called_is_refused() -> None:
    def payments(url: str) -> None: ...

    error = refused(lambda: resource(payments))
    assert "takes parameters" in error.message
    assert place(error) == line_of(payments)
    number: Any = 5
    assert "made by a function" in refused(lambda: resource(number)).message
    refused(lambda: resource("a:b")(lambda: None), InvalidName)


def test_two_resources_of_one_name_are_refused_with_both_places() -> None:
    def first() -> None: ...
    def second() -> None: ...

    resource("payments")(first)
    resource("payments")(first)
    error = refused(lambda: resource("payments")(second))
    assert f"{__file__}:{line_of(first)[1]}" in error.message
    assert place(error) == line_of(second)


def test_an_unknown_resource_is_not_found(registry: Registry) -> None:
    resource("payments")(lambda: None)
    with pytest.raises(NotFound, match=r"Did you mean payments\?"):
        registry.resource("payment")


def test_a_context_hands_what_a_step_says_to_who_made_it() -> None:
    said: list[object] = []
    ctx = StepContext(
        resolve={"payments": "client"},
        outputs={"reserve": {"id": 1}},
        is_cancelled=lambda: len(said) > 2,
        heartbeat=lambda: said.append("alive"),
        progress=lambda fraction, message: said.append((fraction, message)),
        emit=lambda name, data: said.append((name, data)),
    )
    assert ctx.resolve("payments") == "client"
    assert ctx.outputs["reserve"] == {"id": 1}
    before = ctx.cancelled
    ctx.heartbeat()
    ctx.progress(0.5, "half")
    ctx.emit("paid", {"id": 1})
    assert (before, ctx.cancelled) == (False, True)
    assert said == ["alive", (0.5, "half"), ("paid", {"id": 1})]


def test_a_context_made_by_hand_is_enough_for_a_test() -> None:
    ctx = StepContext(resolve=lambda name: name.upper())
    assert ctx.resolve("payments") == "PAYMENTS"
    assert (ctx.action, ctx.attempt, ctx.cancelled, dict(ctx.outputs)) == ("invoke", 1, False, {})
    ctx.progress(None, "unheard")
    ctx.logger.debug("unheard")
    with pytest.raises(NotFound, match="no resource 'payments'"):
        StepContext().resolve("payments")
