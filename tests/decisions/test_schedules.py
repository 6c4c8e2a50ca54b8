"""Schedules: what can never fire is refused where it is written."""

from __future__ import annotations

import asyncio

import pytest

from tests.decisions.support import World
from wfe import InvalidOption, Schedule, workflow
from wfe.scheduling.loop import Scheduler


async def test_decision_48_a_schedule_that_cannot_fire_is_an_error_when_composing(
    world: World,
) -> None:
    for schedule in (
        "not a cron",
        "0 0 31 2 *",
        "@sometimes",
        Schedule(cron="0 3 * * *", timezone="Mars/Olympus"),
    ):
        with pytest.raises(InvalidOption) as refused:
            workflow("w", schedule=schedule)
        assert refused.value.file == __file__
    with pytest.raises(InvalidOption, match="either a cron expression or an interval"):
        Schedule(number_of_executions=1)
    assert world.registry.ids() == []


async def test_decision_48_one_that_can_fire_does(world: World) -> None:
    a = world.step("a")
    world.flow(lambda: a(), schedule=Schedule(interval=5, number_of_executions=2))
    async with Scheduler(world.engine):
        await asyncio.sleep(12)
    assert world.begun == ["a", "a"]
