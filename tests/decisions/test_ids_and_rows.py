"""Transaction ids that are used again, and what the store keeps of an execution, and for how long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.decisions.support import After, T, W, World, key, refusal, state_of
from wfe import IdempotencyConflict, TransactionExists, parallel


async def test_decision_20_an_undo_that_may_be_answered_makes_a_workflow_stored(
    world: World,
) -> None:
    a = world.step("a", undo=(None,), compensate_async=True)
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        boom()

    world.flow(body)
    result = await world.run()
    await world.quiet()

    assert state_of(result) == "compensating"
    kept = await world.stored()
    assert kept is not None
    assert str(kept.head.state) == "compensating"
    assert world.begun == ["a", "boom", "~a"]

    await world.engine.set_step_success(key("a", "compensate"), throw_on_error=False)
    assert world.state == "reverted"
    assert world.begun == ["a", "boom", "~a"]


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("later", [0.0, 1.0])
async def test_decision_23_a_run_of_a_live_id_attaches_and_returns_the_same(
    world: World, is_stored: bool, later: float
) -> None:
    a = world.step("a", After(5, "a"))
    world.flow(lambda: a(), store=is_stored)
    first = world.start()
    await asyncio.sleep(later)
    second = world.start()
    results = await asyncio.gather(first, second)

    assert [result.result for result in results] == ["a", "a"]
    assert len({result.acknowledgement.run_id for result in results}) == 1
    assert world.begun == ["a"]
    assert world.events() == ["begin", "step_begin", "step_success", "finish"]


async def test_decision_23_it_waits_for_what_the_first_waits_for(world: World) -> None:
    a, asks = world.step("a", After(5, "a")), world.step("asks", None, async_=True)

    def body() -> None:
        a()
        asks()

    world.flow(body)
    first = world.start()
    await asyncio.sleep(1)
    second = world.start()
    one, two = await asyncio.gather(first, second)

    assert not one.acknowledgement.has_finished
    assert not two.acknowledgement.has_finished
    assert world.calls_of("asks") == 1


@pytest.mark.parametrize("is_stored", [False, True])
async def test_decision_23_on_request_it_is_refused_instead(world: World, is_stored: bool) -> None:
    a = world.step("a", After(5, "a"))
    world.flow(lambda: a(), store=is_stored)
    running = world.start()
    await asyncio.sleep(1)
    with pytest.raises(TransactionExists) as caught:
        await world.engine.run(W, transaction_id=T, on_conflict="fail")

    assert (caught.value.workflow_id, caught.value.transaction_id) == (W, T)
    assert caught.value.state == "invoking"
    await running
    assert world.begun == ["a"]


async def _states(world: World) -> list[str]:
    return [str(row.state) for row in await world.rows()]


async def test_decision_45_the_row_is_in_the_state_of_its_execution(world: World) -> None:
    a, b = world.step("a", After(2, "a")), world.step("b", After(2, "b"), undo=(After(2, None),))
    boom = world.step("boom", ValueError("boom"), undo=None)

    def body() -> None:
        a()
        b()
        boom()

    world.flow(body, retention_time=60.0)
    running = world.start()
    await asyncio.sleep(1)
    seen = await _states(world)
    for _ in range(3):
        await asyncio.sleep(2)
        seen += await _states(world)
    await running

    assert seen == ["invoking", "invoking", "compensating", "reverted"]
    assert [str(row.state) for row in await world.rows({"state": "reverted"})] == ["reverted"]


async def test_decision_45_it_says_that_a_failed_execution_waits_for_a_sibling(
    world: World,
) -> None:
    asks = world.step("asks", None, async_=True)
    boom = world.step("boom", ValueError("boom"), undo=None)
    world.flow(lambda: parallel(asks(), boom()))
    await world.run()
    await world.quiet()

    assert await _states(world) == ["waiting_to_compensate"]


async def test_decision_46_a_finished_id_that_is_run_again_adds_a_run(world: World) -> None:
    a = world.step("a", 1, 2)
    world.flow(lambda: a(), retention_time=60.0)
    first, second = await world.run(), await world.run()

    assert (first.result, second.result) == (1, 2)
    runs = [row.run_id for row in await world.rows()]
    assert len(set(runs)) == 2
    assert {first.acknowledgement.run_id, second.acknowledgement.run_id} == set(runs)


async def test_decision_46_an_idempotent_id_answers_for_good_with_what_is_stored(
    world: World,
) -> None:
    a = world.step("a", 1, 2)
    world.flow(lambda: a(), idempotent=True)
    await world.run()
    await asyncio.sleep(1_000_000)
    await world.engine.clear_expired()
    await world.restart()
    again = await world.run()

    assert (state_of(again), again.result) == ("done", 1)
    assert world.calls_of("a") == 1
    assert len(await world.rows()) == 1


async def test_decision_46_unless_its_retention_time_is_over(world: World) -> None:
    a = world.step("a", 1, 2)
    world.flow(lambda: a(), idempotent=True, retention_time=60.0)
    await world.run()
    await asyncio.sleep(59)
    assert await world.engine.clear_expired() == 0
    assert (await world.run()).result == 1
    await asyncio.sleep(2)
    assert await world.engine.clear_expired() == 1

    assert (await world.run()).result == 2


@pytest.mark.parametrize("is_finished", [False, True])
async def test_decision_46_the_same_id_with_another_input_is_a_conflict(
    world: World, is_finished: bool
) -> None:
    a = world.step("a", After(5, 1))
    world.flow(lambda order: a(order), idempotent=True)
    running = world.start(input={"id": 1, "gift": True})
    await asyncio.sleep(1)
    if is_finished:
        await running
    with pytest.raises(IdempotencyConflict):
        await world.run(input={"id": 2}, throw_on_error=True)
    result = await world.run(input={"id": 2})
    assert isinstance(refusal(result), IdempotencyConflict)
    assert result.acknowledgement.exists

    same = await world.run(input={"gift": True, "id": 1})
    none = await world.run()
    await running
    assert same.result == none.result == 1
    assert world.calls_of("a") == 1


async def test_decision_49_a_text_and_filters_hold_together(world: World) -> None:
    a, boom = world.step("a"), world.step("boom", ValueError("boom"))
    world.flow(lambda: a(), "good", retention_time=60.0)
    world.flow(lambda: boom(), "bad", retention_time=60.0)
    for name in ("good", "bad"):
        for number in (1, 2):
            await world.run(name, transaction_id=f"order-{number}")

    async def found(q: str, where: dict[str, Any]) -> list[tuple[str, str]]:
        rows = await world.rows(where, q)
        return sorted((row.workflow_id, row.transaction_id) for row in rows)

    assert await found("order-1", {}) == [("bad", "order-1"), ("good", "order-1")]
    assert await found("order-1", {"state": "done"}) == [("good", "order-1")]
    assert await found("order-1", {"state": {"$in": ["failed", "invoking"]}}) == []
    page, count = await world.engine.list_and_count_executions(
        "order", {"workflow_id": "bad"}, limit=1
    )
    assert (len(page), count) == (1, 2)


async def test_decision_62_an_empty_text_is_no_filter(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a(), retention_time=60.0)
    await world.run()

    assert len(await world.rows(q="")) == 1
    assert len(await world.rows({"state": "done"}, q="")) == 1
    assert len(await world.rows(q="  ")) == 1
