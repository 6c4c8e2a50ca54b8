"""Virtual time: an event loop that does not wait but jumps, and the clock that reads it.

The loop runs what is ready. When nothing is, time jumps to the next timer. So a workflow that sleeps
a week is tested in milliseconds, `asyncio.sleep` in a step included, and always in the same order:

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())

A thread that is at work (a `def` step, the writer of a database) holds the time still: real work is
waited for, never jumped over. What else happens outside of the loop, such as an answer on a socket,
it cannot know of; `autojump` is how long it listens before it jumps.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple, Unpack

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")
_Ready = list[tuple[selectors.SelectorKey, int]]

#: Where virtual time begins.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class _Selector(selectors.DefaultSelector):
    """A selector that asks its loop what to do instead of waiting."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> _Ready:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        return self.loop.idle(timeout, super().select)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time.

    `autojump`: real seconds without any event from outside after which time jumps to the next timer;
    None: never, a test moves it by `jump`. `patience`: real seconds after which a loop that waits for
    something from outside, and would wait for ever, raises RuntimeError instead.
    """

    def __init__(self, *, autojump: float | None = 0.0, patience: float = 10.0) -> None:
        self.autojump = autojump
        self.patience = patience
        self._virtual_time = 0.0
        self._threads_at_work = 0
        #: Who waits for the present moment to be over, and who for time to move.
        self._settling: list[asyncio.Future[None]] = []
        self._moving: list[asyncio.Future[None]] = []
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)
        # Moments are exact to the microsecond, sums of floats are not: what is due is due.
        self._clock_resolution = 1e-6

    # --- time ------------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual_time

    def jump(self, seconds: float) -> None:
        """Let time pass at once. All timers that came due meanwhile run in the loop's next round."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._virtual_time += seconds
        waiting, self._moving = self._moving, []
        _let_go(waiting)

    async def settled(self) -> None:
        """Return when nothing more happens without time passing: every task waits, no thread is at
        work."""
        waiter = self.create_future()
        self._settling.append(waiter)
        await waiter

    async def moved(self, limit: float) -> None:
        """Return when time has moved: to the next timer, or to `limit` in the loop's time where that
        is earlier."""
        waiter = self.create_future()
        self._moving.append(waiter)
        timer = self.call_at(limit, _let_go, [waiter])
        try:
            await waiter
        finally:
            timer.cancel()

    def idle(self, timeout: float | None, wait: Callable[[float | None], _Ready]) -> _Ready:
        """Nothing is ready, and the next timer is due in `timeout` seconds (None: there is none):
        let time pass, or `wait` for something real."""
        if self.is_waiting_for_threads:
            return wait(None)
        listens = self.patience if timeout is None or self.autojump is None else self.autojump
        if self._settling:
            listens = self.autojump or 0.0
        ready = wait(listens) if listens else []
        if ready:
            return ready
        if self._settling:
            settled, self._settling = self._settling, []
            _let_go(settled)
        elif timeout is None:
            raise RuntimeError(
                "Nothing is at work and no timer is set: this would wait for ever. Something is "
                "awaited that nobody does, such as the answer to a step."
            )
        elif self.autojump is None:
            raise RuntimeError(
                f"Nothing is at work, and the next timer is due in {timeout:g} s of a time that does "
                "not move by itself (autojump=None): call jump() in another task."
            )
        else:
            self.jump(timeout)
        return []

    # --- threads ---------------------------------------------------------------------------------

    @property
    def is_waiting_for_threads(self) -> bool:
        """A thread is at work whose end the loop has been promised."""
        return self._threads_at_work > 0

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[_Arguments]], _Result],
        *args: *_Arguments,
    ) -> asyncio.Future[_Result]:
        future = super().run_in_executor(executor, func, *args)
        self._threads_at_work += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, future: asyncio.Future[Any]) -> None:
        self._threads_at_work -= 1

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        # Its threads are joined by one that the loop knows nothing of.
        self._threads_at_work += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._threads_at_work -= 1


def _let_go(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def running_loop() -> VirtualLoop:
    """The loop that runs this.

    Raises:
        RuntimeError: it is none of ours, or none runs.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError(
            "Virtual time needs a VirtualLoop: asyncio.Runner(loop_factory=VirtualLoop)"
        )
    return loop


class VirtualClock:
    """The clock of a `VirtualLoop`, the running one where none is given: `Engine(clock=…)`."""

    def __init__(self, loop: VirtualLoop | None = None, *, start: datetime = EPOCH) -> None:
        self._given = loop
        self._seen = loop
        self._start = start

    @property
    def loop(self) -> VirtualLoop:
        """The loop it was given; else the running one, or, in a thread of a `def` step, the one that
        ran last."""
        if self._given is None:
            try:
                self._seen = running_loop()
            except RuntimeError:
                if self._seen is None:
                    raise
        assert self._seen is not None
        return self._seen

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.loop.time())

    def jump(self, seconds: float) -> None:
        """See `VirtualLoop.jump`."""
        self.loop.jump(seconds)

    async def sleep_until(self, moment: datetime) -> None:
        while (left := (moment - self.now()) / timedelta(seconds=1)) > 0:  # noqa: ASYNC110 time passes, no event tells
            await asyncio.sleep(left)
