"""Group reads: what is asked at the same time is answered in one visit of the reading thread.

Handing a question over and back takes longer than answering it, and beside a thread that computes in
Python a hundred times as long. So a thousand executions that are loaded at once cost some visits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from wfe.store.impatience import IMPATIENCE

_T = TypeVar("_T")

#: So many are answered before the first of them is told.
_MOST = 100

_Asked = tuple[Callable[[], Any], "asyncio.Future[Any]"]
_Answered = tuple["asyncio.Future[Any]", Any, "BaseException | None"]


class Questions:
    """Has a thread answer what is asked on event loops."""

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread
        self._queue: deque[_Asked] = deque()
        #: Who has called the thread, which has not looked at the queue since.
        self._caller: asyncio.AbstractEventLoop | None = None

    async def ask(self, question: Callable[[], _T]) -> _T:
        """What `question` returns or raises, called in the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()
        self._queue.append((question, future))
        if self._caller is not loop:
            self._caller = loop
            # By the loop, so that one whose time jumps knows of work that has to be waited for.
            loop.run_in_executor(self._thread, self._answer)
        return await future

    def _answer(self) -> None:
        """In the thread: whatever is asked until it has nothing left to answer."""
        self._caller = None
        while self._queue:
            with IMPATIENCE:
                told = self._answered()
            for loop, answered in told.items():
                with suppress(RuntimeError):  # a loop that is closed has nobody who waits
                    loop.call_soon_threadsafe(_tell, answered)

    def _answered(self) -> dict[asyncio.AbstractEventLoop, list[_Answered]]:
        told: dict[asyncio.AbstractEventLoop, list[_Answered]] = {}
        for _ in range(min(len(self._queue), _MOST)):
            question, future = self._queue.popleft()
            answer, raised = None, None
            try:
                answer = question()
            except BaseException as error:
                raised = error
            told.setdefault(future.get_loop(), []).append((future, answer, raised))
        return told


def _tell(answered: Sequence[_Answered]) -> None:
    for future, answer, error in answered:
        if future.done():
            continue  # cancelled: nobody waits any more
        if error is None:
            future.set_result(answer)
        else:
            future.set_exception(error)
