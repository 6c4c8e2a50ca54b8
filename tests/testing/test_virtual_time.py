"""Virtual time: it jumps where nothing is ready, never over real work, and by hand where asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from wfe.testing import EPOCH, VirtualClock, VirtualLoop

_T = TypeVar("_T")
WEEK = 7 * 24 * 3600.0


def play(
    main: Callable[[VirtualLoop], Coroutine[Any, Any, _T]],
    *,
    autojump: float | None = 0.0,
    patience: float = 10.0,
) -> _T:
    def factory() -> VirtualLoop:
        return VirtualLoop(autojump=autojump, patience=patience)

    async def body() -> _T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return await main(loop)

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(body())


def test_a_week_of_sleep_passes_at_once_and_whole() -> None:
    async def main(loop: VirtualLoop) -> float:
        await asyncio.sleep(WEEK)
        return loop.time()

    assert play(main) == WEEK


def test_sleepers_wake_in_the_order_of_their_moments() -> None:
    async def main(loop: VirtualLoop) -> list[tuple[float, float]]:
        woken = []

        async def sleeper(seconds: float) -> None:
            await asyncio.sleep(seconds)
            woken.append((seconds, loop.time()))

        await asyncio.gather(sleeper(3), sleeper(0.5), sleeper(WEEK), sleeper(1))
        return woken

    assert play(main) == [(0.5, 0.5), (1, 1), (3, 3), (WEEK, WEEK)]


def test_a_thread_at_work_holds_the_time_still() -> None:
    async def main(loop: VirtualLoop) -> float:
        asked = asyncio.Event()
        go_on = threading.Event()

        def work() -> None:
            loop.call_soon_threadsafe(asked.set)
            assert go_on.wait(10)

        sleeper = asyncio.ensure_future(asyncio.sleep(1))
        thread = asyncio.ensure_future(asyncio.to_thread(work))
        await asked.wait()
        assert loop.is_waiting_for_threads
        assert not sleeper.done()
        go_on.set()
        await thread
        return loop.time()

    assert play(main) == 0


def test_settled_returns_when_all_has_happened_that_needs_no_time() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        happened: list[str] = []

        async def other() -> None:
            for _ in range(10):
                await asyncio.sleep(0)
            await asyncio.to_thread(happened.append, "thread")
            await asyncio.sleep(1)
            happened.append("later")

        task = asyncio.ensure_future(other())
        await loop.settled()
        assert loop.time() == 0
        found = list(happened)
        await task
        return found

    assert play(main) == ["thread"]


def test_moved_returns_at_the_next_timer_or_at_its_limit() -> None:
    async def main(loop: VirtualLoop) -> list[float]:
        sleeper = asyncio.ensure_future(asyncio.sleep(5))
        times = []
        for limit in (2, 100, 10):
            await loop.moved(limit)
            times.append(loop.time())
        await sleeper
        return times

    assert play(main) == [2, 5, 10]


def test_without_autojump_time_moves_by_hand_only() -> None:
    async def main(loop: VirtualLoop) -> tuple[bool, bool, float]:
        sleeper = asyncio.ensure_future(asyncio.sleep(10))
        await loop.settled()
        loop.jump(9)
        await loop.settled()
        early = sleeper.done()
        loop.jump(1)
        await loop.settled()
        return early, sleeper.done(), loop.time()

    assert play(main, autojump=None) == (False, True, 10)


def test_a_loop_that_nobody_will_wake_says_so_instead_of_hanging() -> None:
    async def main(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(RuntimeError, match="would wait for ever"):
        play(main, patience=0.01)


def test_a_timer_that_nobody_moves_the_time_to_says_so_instead_of_hanging() -> None:
    async def main(loop: VirtualLoop) -> None:
        await asyncio.sleep(3)

    with pytest.raises(RuntimeError, match=r"due in 3 s .* jump\(\)"):
        play(main, autojump=None, patience=0.01)


def test_autojump_listens_to_the_outside_before_it_jumps() -> None:
    async def main(loop: VirtualLoop) -> str:
        answer = loop.create_future()
        # A thread that the loop knows nothing of, as a server outside would be.
        outside = threading.Thread(
            target=loop.call_soon_threadsafe, args=(answer.set_result, "real")
        )
        outside.start()
        try:
            return await asyncio.wait_for(answer, 1)
        finally:
            outside.join()

    assert play(main, autojump=10.0) == "real"


def test_time_does_not_run_backwards() -> None:
    async def main(loop: VirtualLoop) -> None:
        loop.jump(-1)

    with pytest.raises(ValueError, match="backwards"):
        play(main)


def test_years_pass_without_losing_a_microsecond() -> None:
    async def main(loop: VirtualLoop) -> timedelta:
        clock = VirtualClock(loop)
        for _ in range(30):
            await clock.sleep_until(clock.now() + timedelta(days=100, microseconds=1))
        return clock.now() - EPOCH

    assert play(main) == timedelta(days=3000, microseconds=30)


def test_the_clock_starts_where_it_is_told_and_jumps_with_its_loop() -> None:
    start = EPOCH + timedelta(days=1)

    async def main(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop, start=start)
        assert clock.now() == start
        clock.jump(60)
        assert clock.now() == start + timedelta(minutes=1)
        assert VirtualClock().now() == EPOCH + timedelta(minutes=1)
        await clock.sleep_until(start)
        assert loop.time() == 60

    play(main)


def test_a_clock_on_another_loop_says_what_it_needs() -> None:
    async def main() -> None:
        VirtualClock().now()

    with pytest.raises(RuntimeError, match="loop_factory=VirtualLoop"):
        asyncio.run(main())
