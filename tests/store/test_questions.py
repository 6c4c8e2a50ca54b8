"""What is asked at the same time is answered in one visit of the thread, each to who asked it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from wfe.store.questions import Questions
from wfe.testing.virtual import VirtualLoop


class Counting(ThreadPoolExecutor):
    """One thread, and how often it was called."""

    def __init__(self) -> None:
        super().__init__(1)
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        return super().submit(fn, *args, **kwargs)


@pytest.fixture
def thread() -> Iterator[Counting]:
    with Counting() as executor:
        yield executor


def held(thread: Counting) -> threading.Event:
    """The thread is busy until the event is set."""
    ends = threading.Event()
    thread.submit(ends.wait)
    return ends


def test_questions_that_come_while_the_thread_is_busy_are_answered_in_one_visit(
    thread: Counting,
) -> None:
    questions = Questions(thread)

    async def main() -> list[int]:
        ends = held(thread)
        asked = [asyncio.ensure_future(questions.ask(partial(int, n))) for n in range(250)]
        await asyncio.sleep(0)
        ends.set()
        return list(await asyncio.gather(*asked))

    assert asyncio.run(main()) == list(range(250))
    assert thread.calls == 1 + 1


def test_what_a_question_raises_reaches_who_asked_it_and_nobody_else(thread: Counting) -> None:
    questions = Questions(thread)

    def fail() -> int:
        raise LookupError("no such row")

    async def main() -> list[Any]:
        ends = held(thread)
        asked = [questions.ask(question) for question in (lambda: 1, fail, lambda: 3)]
        ends.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    first, second, third = asyncio.run(main())
    assert (first, third) == (1, 3)
    assert isinstance(second, LookupError)


def test_an_asker_that_gives_up_harms_nobody(thread: Counting) -> None:
    questions = Questions(thread)

    async def main() -> int:
        ends = held(thread)
        gives_up = asyncio.ensure_future(questions.ask(lambda: 1))
        stays = asyncio.ensure_future(questions.ask(lambda: 2))
        await asyncio.sleep(0)
        gives_up.cancel()
        ends.set()
        return await stays

    assert asyncio.run(main()) == 2


def test_a_loop_that_ended_while_it_waited_holds_up_no_other_one(thread: Counting) -> None:
    questions = Questions(thread)
    ends = held(thread)

    async def give_up() -> None:
        asked.append(asyncio.ensure_future(questions.ask(lambda: 1)))
        await asyncio.sleep(0)

    asked: list[asyncio.Future[int]] = []
    asyncio.run(give_up())
    assert asked[0].cancelled()
    ends.set()
    assert asyncio.run(questions.ask(lambda: 2)) == 2


def test_a_loop_whose_time_jumps_waits_for_the_answer(thread: Counting) -> None:
    questions = Questions(thread)

    async def main(loop: VirtualLoop) -> float:
        later = loop.call_later(1000, lambda: None)
        began = loop.time()
        await questions.ask(partial(time.sleep, 0.05))
        later.cancel()
        return loop.time() - began

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        assert runner.run(main(loop)) < 1000
