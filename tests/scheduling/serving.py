"""A world in virtual time for the tests of the loop: workflows with schedules, an engine and a scheduler
that can be restarted over their store, and a clock that can be set."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

from wfe import Engine, Recording, Registry, Schedule, StepContext, WorkflowResponse, step, workflow
from wfe.scheduling.loop import Scheduler
from wfe.store.contract import CheckpointStore
from wfe.store.ledger import Tick
from wfe.testing import VirtualClock, VirtualLoop

#: The long forms are wanted: make schedules.
IS_FULL = os.environ.get("SCHEDULES") == "full"

#: When every test begins.
START = datetime.fromisoformat("2026-03-02T12:00:30+00:00")


class SettableClock(VirtualClock):
    """Virtual time, read from a clock on the wall that somebody may set, and that goes on while the
    machine is suspended."""

    def __init__(self) -> None:
        super().__init__(start=START)
        self._offset = timedelta()

    def now(self) -> datetime:
        return super().now() + self._offset

    def set(self, by: timedelta) -> None:
        """Forward, or back."""
        self._offset += by

    async def sleep_until(self, moment: datetime) -> None:
        # As the system's clock: it does not notice being set, and looks every so often.
        while (left := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110 time passes
            await asyncio.sleep(min(left, 30))


class World:
    """What is served, and what came of it."""

    def __init__(self, open_store: Callable[[], CheckpointStore], recording: Recording) -> None:
        self._open_store = open_store
        self._recording = recording
        self.store = open_store()
        self.clock = SettableClock()
        self.registry = Registry()
        #: Schedule, moment of the tick, and when its step began.
        self.runs: list[tuple[str, datetime | None, datetime]] = []
        self.inputs: list[Any] = []
        #: What was decided, in order.
        self.decided: list[Tick] = []
        #: Seconds that a job takes, where its workflow is none of `durations`.
        self.takes = 0.0
        self.durations: dict[str, float] = {}
        self.engine: Engine
        self.scheduler: Scheduler

    def play(
        self,
        test: Callable[[World], Coroutine[Any, Any, None]],
        *,
        loop: Callable[[], VirtualLoop] = VirtualLoop,
    ) -> None:
        async def main() -> None:
            await self.begin()
            try:
                await test(self)
            finally:
                await self.end()

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(main())

    def job(self, name: str = "job", schedule: Schedule | None = None, **options: Any) -> None:
        """A workflow of one step, which takes note."""

        async def work(ctx: StepContext, value: Any = None) -> None:
            self.runs.append((ctx.workflow_id, ctx.scheduled_for, self.clock.now()))
            self.inputs.append(value)
            await asyncio.sleep(self.durations.get(ctx.workflow_id, self.takes))

        with self.registry.scope():
            made = step("work", **options)(work)

            def body(value: Any = None) -> WorkflowResponse[None]:
                return WorkflowResponse(made(value))

            workflow(name, schedule=schedule)(body)

    async def begin(self, **options: Any) -> None:
        self.engine = Engine(
            store=self.store, clock=self.clock, registry=self.registry, recording=self._recording
        )
        await self.engine.start()
        self.scheduler = Scheduler(self.engine, on_tick=self.decided.append, **options)
        await self.scheduler.start()

    async def end(self) -> None:
        await self.scheduler.stop()
        await self.engine.shutdown(grace=0)

    async def pause(self, seconds: float) -> None:
        """Nobody is there for a while."""
        await self.end()
        await asyncio.sleep(seconds)
        await self.begin()

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await loop.settled()

    def ticks(self, name: str = "job") -> list[Tick]:
        """The ledger's, in order."""
        return list(reversed(self.store.ledger.ticks(name)))

    def told(self, name: str = "job") -> list[str]:
        """The same in short words: seconds after START, and what became of it."""
        return [
            f"{(tick.scheduled_for - START).total_seconds():g} {tick.reason or tick.state}"
            for tick in self.ticks(name)
        ]

    @property
    def began(self) -> list[float]:
        """When steps began, in seconds after START."""
        return [(began - START).total_seconds() for _, _, began in self.runs]
