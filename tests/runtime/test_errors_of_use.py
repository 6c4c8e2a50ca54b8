"""Errors of use: the call means nothing, whatever the state. They are raised even where
`throw_on_error` is False, tell the way out, and have changed nothing.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.decisions.support import T, W, World, key
from wfe import (
    InvalidInput,
    InvalidTransactionId,
    MalformedKey,
    TransactionFinished,
    TransactionNotFound,
    UsageError,
    WorkflowNotFound,
)


def _define(world: World) -> None:
    asks = world.step("asks", None, async_=True)
    world.flow(lambda order: asks(order), retention_time=3600.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "fewer than four parts"),
        ("w:t:asks", "fewer than four parts"),
        ("w::asks:invoke", "empty"),
        (":t:asks:invoke", "empty"),
        ("w:t::invoke", "empty"),
        ("w:t:asks:undo", "'undo' is neither invoke nor compensate"),
    ],
)
async def test_a_text_that_is_no_key_is_an_error_of_use(world: World, text: str, why: str) -> None:
    _define(world)
    await world.run()
    await world.quiet()
    before = (await world.stored(), list(world.told))
    for command in (world.engine.set_step_success, world.engine.retry_step):
        with pytest.raises(MalformedKey, match=why) as caught:
            await command(text, throw_on_error=False)
        assert caught.value.key == text
        assert "workflow:transaction:step:action" in caught.value.hint
    kept = await world.stored()
    assert kept is not None
    assert before[0] is not None
    assert (kept.head, world.told) == (before[0].head, before[1])


async def test_an_unknown_workflow_is_an_error_of_use_that_lists_near_names(world: World) -> None:
    asks = world.step("asks")
    world.flow(lambda: asks(), "place-order")
    engine, wrong = world.engine, "place-ordr"
    commands = [
        engine.run(wrong, throw_on_error=False),
        engine.cancel(wrong, T, throw_on_error=False),
        engine.resume(wrong, T, throw_on_error=False),
        engine.wait_for(wrong, T, throw_on_error=False),
        engine.get_running_transaction(wrong, T),
        engine.set_step_success(key("asks", workflow=wrong), throw_on_error=False),
        engine.set_step_failure(key("asks", workflow=wrong), "no", throw_on_error=False),
        engine.retry_step(key("asks", workflow=wrong), throw_on_error=False),
    ]
    for outcome in await asyncio.gather(*commands, return_exceptions=True):
        assert isinstance(outcome, WorkflowNotFound)
        assert (outcome.workflow_id, outcome.near) == (wrong, ("place-order",))
        assert "Did you mean place-order?" in str(outcome)
    with pytest.raises(WorkflowNotFound):
        engine.unregister(wrong)
    assert world.told == []


@pytest.mark.parametrize("transaction", ["", "a\nb", "\x1b[31m", "x" * 1001])
async def test_a_transaction_id_that_cannot_be_kept_is_an_error_of_use(
    world: World, transaction: str
) -> None:
    _define(world)
    with pytest.raises(InvalidTransactionId) as caught:
        await world.run(transaction_id=transaction)

    assert caught.value.transaction_id.rstrip("…") in transaction
    assert caught.value.hint
    assert await world.rows() == []
    assert world.told == []


async def test_an_input_that_does_not_fit_is_an_error_of_use(world: World) -> None:
    asks = world.step("asks")

    def body(order: int) -> None:
        asks(order)

    world.flow(body, store=True)
    with pytest.raises(InvalidInput, match="order") as caught:
        await world.run(input="three")

    assert caught.value.parameter == "order"
    assert caught.value.hint
    assert await world.rows() == []
    assert world.told == []


async def test_a_filter_that_does_not_exist_is_an_error_of_use_that_lists_what_there_is(
    world: World,
) -> None:
    with pytest.raises(UsageError, match="transaction_id"):
        await world.rows({"transactoin": T})


async def test_looking_for_an_execution_that_is_not_running_is_refused(world: World) -> None:
    _define(world)
    with pytest.raises(TransactionNotFound) as missing:
        await world.engine.get_running_transaction(W, T)
    assert type(missing.value) is TransactionNotFound

    await world.run()
    await world.succeed("asks", 1)
    with pytest.raises(TransactionFinished) as finished:
        await world.engine.get_running_transaction(W, T)
    assert finished.value.state == "done"
