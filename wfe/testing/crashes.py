"""Crashes: a workflow whose process dies at one point, or at every one there is, and is taken up again.

Each crash has a store of its own, and goes through lives on it: an engine that stops dead, then
another one that finds what the store has. Whether a workflow survives that is then seen by comparing
with a run that was left alone:

    expected = run_to_end(place_order, ORDER)
    for crashed in crash_everywhere(place_order, ORDER):
        assert crashed.outputs == expected.outputs, crashed.point
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from wfe.authoring.responses import NOT_GIVEN
from wfe.authoring.workflows import Workflow
from wfe.errors import TransactionFinished, UsageError
from wfe.model import FINAL_STATES, CommandResult, DomainEvent, ExecutionKey, Recording
from wfe.runtime.engine import Engine
from wfe.store import owners
from wfe.store.contract import CheckpointStore, ExecutionSummary, Query
from wfe.store.memory import MemoryStore
from wfe.testing.answers import Answers, accepted, checked
from wfe.testing.families import registry_of
from wfe.testing.lives import Call, Crash, CrashingStore, Life
from wfe.testing.outcomes import Run
from wfe.testing.running import YEAR, NotEnded, begin, refuse_in_a_loop, to_end
from wfe.testing.virtual import EPOCH, VirtualClock, VirtualLoop
from wfe.testing.watched import watched


class CrashedRun(Run, frozen=True, kw_only=True):
    """A run that crashed, was taken up again and came to its end. Its events are those recorded."""

    #: The lives it took; the last one came to the end.
    lives: tuple[Life, ...]
    #: What `resources` has made for it.
    resources: Mapping[str, Any]

    @property
    def point(self) -> str:
        """Where it crashed."""
        return _points(self.lives)

    @property
    def calls(self) -> list[Call]:
        """All calls of steps' functions, over all lives."""
        return [call for life in self.lives for call in life.calls]

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; crashed {self.point}>"


def crash_everywhere(
    workflow: Workflow[Any, Any],
    input: Any = NOT_GIVEN,
    make_store: Callable[[], CheckpointStore] = MemoryStore,
    *,
    answers: Answers | None = None,
    transaction_id: str = "test",
    resources: Callable[[], Mapping[str, Any]] = dict,
    within: float = YEAR,
    crashes: int = 1,
) -> Iterator[CrashedRun]:
    """Run a workflow once per crash point, take it up again each time, and give what it came to.

    `make_store` makes an empty store for each; `resources` makes what `ctx.resolve` finds: the world
    outside, which does not crash. `crashes=2` crashes each second life at each of its points, too.
    The rest is as for `run_to_end`.

    Raises:
        NotEnded: it does not come to its end after a crash; a note says after which.
    """
    asked = checked(answers, workflow)
    scene = _Scene(workflow, input, make_store, asked, transaction_id, resources, within)
    refuse_in_a_loop("crash_everywhere()", instead="a test that is not async")
    yield from _explored(scene, (), crashes)


def _explored(scene: _Scene, plan: tuple[int, ...], crashes: int) -> Iterator[CrashedRun]:
    run = scene.play(plan)
    if len(run.lives) <= len(plan):
        return  # threads took turns in another way, and the point was not reached
    if plan:
        yield run
    if len(plan) < crashes:
        for number in range(1, len(run.lives[-1].points) + 1):
            yield from _explored(scene, (*plan, number), crashes)


def crash_at(
    point: str,
    workflow: Workflow[Any, Any],
    input: Any = NOT_GIVEN,
    make_store: Callable[[], CheckpointStore] = MemoryStore,
    *,
    answers: Answers | None = None,
    transaction_id: str = "test",
    resources: Callable[[], Mapping[str, Any]] = dict,
    within: float = YEAR,
) -> CrashedRun:
    """Run a workflow, let it crash at one point, such as "after charge", and take it up again.

    Raises:
        UsageError: it does not reach that point; the hint lists those that it does.
    """
    asked = checked(answers, workflow)
    scene = _Scene(workflow, input, make_store, asked, transaction_id, resources, within)
    refuse_in_a_loop("crash_at()", instead="a test that is not async")
    run = scene.play((point,))
    if len(run.lives) == 1:
        raise UsageError(
            f"{workflow.id!r} does not reach the crash point {point!r}.",
            hint=f"It reaches: {', '.join(run.lives[0].points)}.",
        )
    return run


class _Scene(msgspec.Struct, frozen=True):
    """What is played again and again."""

    workflow: Workflow[Any, Any]
    input: Any
    make_store: Callable[[], CheckpointStore]
    answers: Answers
    transaction_id: str
    make_resources: Callable[[], Mapping[str, Any]]
    within: float

    def play(self, plan: tuple[int | str, ...]) -> CrashedRun:
        """Live a life for each point of the plan, as far as they are reached, and one to the end."""
        store = self.make_store()
        resources = self.make_resources()
        emitted: list[DomainEvent] = []
        lives: list[Life] = []
        now = EPOCH
        outcome = None
        while outcome is None:
            at = plan[len(lives)] if len(lives) < len(plan) else None
            crashing = CrashingStore(store, at)
            lives.append(crashing.life)
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                clock = VirtualClock(start=now)
                try:
                    outcome = runner.run(self._live(crashing, clock, resources, emitted))
                except Crash:
                    now = runner.run(_bury(crashing, clock))
                except NotEnded as error:
                    error.add_note(f"It was taken up after crashes: {_points(lives)}.")
                    raise
        return CrashedRun(
            outcome=outcome,
            events=tuple(event for life in lives for event in life.events),
            emitted=tuple(emitted),
            lives=tuple(lives),
            resources=resources,
        )

    async def _live(
        self,
        store: CrashingStore,
        clock: VirtualClock,
        resources: Mapping[str, Any],
        emitted: list[DomainEvent],
    ) -> CommandResult:
        """One life: begin, or find what is there, and go on to the end."""
        workflow = watched(self.workflow, store.life)
        engine = Engine(
            store=store,
            clock=clock,
            registry=registry_of(workflow),
            resources=resources,
            recording=Recording.EVERY_STEP,
            event_sink=emitted.extend,
        )
        key = ExecutionKey(workflow.id, self.transaction_id)
        await engine.start()
        try:
            if await store.load(key) is None:
                await begin(engine, workflow, self.input, self.transaction_id)
            else:
                await _recover(engine, store)
            outcome = await to_end(engine, store, key, self.answers, self.within)
        except Exception:  # not where it is cancelled: a life that crashed cleans up nothing
            await engine.shutdown()
            raise
        await engine.shutdown()
        return outcome


def _unfinished(store: CheckpointStore) -> Sequence[ExecutionSummary]:
    """Executions that have not ended, the oldest first."""
    query = Query(
        where={"state": {"$nin": [str(state) for state in FINAL_STATES]}}, order_by=("created_at",)
    )
    return store.reader.list(query)


async def _recover(engine: Engine, store: CheckpointStore) -> None:
    """Take up everything that the life before has left unfinished."""
    for found in _unfinished(store):
        taken = await engine.resume(
            found.workflow_id, found.transaction_id, until="stored", throw_on_error=False
        )
        # The parent that was taken up before it may have driven it to its end.
        if not isinstance(taken.acknowledgement.reason, TransactionFinished):
            accepted(taken)


async def _bury(store: CrashingStore, clock: VirtualClock) -> datetime:
    """What the death of a process brings about by itself: its threads and tasks are no more, its
    files are closed, and whoever asks sees that it is gone. Returns the time of death."""
    loop = clock.loop
    died_at = clock.now()
    loop.set_exception_handler(lambda loop, context: None)
    if loop.is_waiting_for_threads:
        await loop.settled()
    store.life.bury()
    await _end_tasks()
    for found in _unfinished(store):
        execution = await store.load(found.key, found.run_id)
        if execution is not None and execution.head.owner is not None:
            owners.release(execution.head.owner)
    await store.close()
    await asyncio.sleep(0)  # the last that its threads have said may have begun something
    await _end_tasks()
    return died_at


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _points(lives: Sequence[Life]) -> str:
    return ", then ".join(life.crashed_at for life in lives if life.crashed_at)
