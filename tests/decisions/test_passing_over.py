"""Passing over: steps that may fail, steps that are skipped, steps that nobody waits for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.decisions.support import After, World, state_of, step_of
from wfe import InvalidOption, parallel


@pytest.mark.parametrize("place", ["first", "last"])
async def test_decision_38_skipping_on_failure_does_not_depend_on_the_place_in_a_group(
    world: World, place: str
) -> None:
    bad = world.step("bad", ValueError("boom"), skip_on_permanent_failure=True)
    good, later = world.step("good", After(2, "good")), world.step("later")

    def body() -> None:
        parallel(bad(), good()) if place == "first" else parallel(good(), bad())
        later()

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "done"
    assert step_of(result, "good") == "done/ok"
    assert step_of(result, "later").startswith("skipped_failure")
    assert world.calls_of("later") == 0


async def test_decision_38_skipping_until_a_step_runs_the_stage_that_holds_it(
    world: World,
) -> None:
    a = world.step("a", ValueError("boom"), skip_on_permanent_failure="c")
    b, c, d, e = (world.step(name) for name in "bcde")

    def body() -> None:
        a()
        b()
        parallel(c(), d())
        e()

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "done"
    assert sorted(world.begun) == ["a", "c", "d", "e"]


@pytest.mark.parametrize("named", ["nobody", "a", "before"])
async def test_decision_38_skipping_until_a_step_that_does_not_come_is_refused_when_composing(
    world: World, named: str
) -> None:
    before, a = world.step("before"), world.step("a", skip_on_permanent_failure=named)

    def body() -> None:
        before()
        a()

    with pytest.raises(InvalidOption, match=named) as caught:
        world.flow(body)
    assert caught.value.file == __file__


@pytest.mark.parametrize("place", ["first", "last"])
async def test_decision_38_64_the_next_stage_does_not_wait_for_a_no_wait_step_wherever_it_stands(
    world: World, place: str
) -> None:
    slow = world.step("slow", After(10, "slow"), no_wait=True)
    quick, after = world.step("quick", After(1, "quick")), world.step("after")

    def body() -> Any:
        if place == "first":
            one, two = parallel(slow(), quick())
        else:
            two, one = parallel(quick(), slow())
        after([one, two])
        return [one, two]

    world.flow(body)
    result = await world.run(until="finished")

    assert world.log.index("quick.") < world.log.index("after")
    assert world.log.index("after.") < world.log.index("slow.")
    # A reader that comes too early sees nothing; the end has waited.
    assert world.received["after"] == [[None, "quick"]]
    assert result.result == ["slow", "quick"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_decision_57_the_output_of_a_no_wait_step_is_not_lost(
    world: World, is_async: bool
) -> None:
    slow = world.step("slow", None if is_async else After(5, "slow"), no_wait=True, async_=is_async)
    after = world.step("after")

    def body() -> Any:
        made = slow()
        after()
        return made

    world.flow(body, retention_time=60.0)
    await world.run()
    await world.quiet()
    if is_async:
        await world.succeed("slow", "slow")

    assert world.state == "done"
    assert world.event("finish").result == "slow"
    kept = await world.stored()
    assert kept is not None
    assert kept.step("slow").output == b'"slow"'


async def test_decision_64_a_failing_no_wait_step_lets_nothing_begin_too_early(
    world: World,
) -> None:
    slow = world.step("slow", After(3, ValueError("boom")), no_wait=True)
    a, b, c = (world.step(name, After(2, name)) for name in "abc")

    def body() -> None:
        slow()
        a()
        b()
        c()

    world.flow(body)
    result = await world.run()

    assert state_of(result) == "reverted"
    # b was at work when slow failed: it ends and is undone; c never begins.
    assert world.log[:7] == ["slow", "a", "a.", "b", "slow.", "b.", "~b"]
    assert world.begun == ["slow", "a", "b", "~b", "~a", "~slow"]
