"""What a crash costs: at most the step in flight. Every shape of workflow, at every crash point."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testing.shapes import SHAPES, Shape, World, make_world
from wfe.errors import UsageError
from wfe.model import Event, EventKind, StepKey
from wfe.store.contract import CheckpointStore
from wfe.store.sqlite import SQLiteStore
from wfe.testing import (
    CrashedRun,
    Life,
    Run,
    VirtualEngine,
    crash_at,
    crash_everywhere,
    run_to_end,
)

_ENDS = {EventKind.STEP_SUCCESS, EventKind.STEP_SKIPPED, EventKind.COMPENSATE_STEP_SUCCESS}

#: On a file an engine finds nothing but what was written; a few shapes tell.
ON_SQLITE = ("linear", "compensation-after-retries", "awaiting", "nested")


def shapes(*names: str) -> list[Any]:
    return [pytest.param(SHAPES[name], id=name) for name in names]


def left_alone(shape: Shape) -> tuple[Run, World]:
    resources = make_world()
    run = run_to_end(shape.workflow, shape.input, answers=shape.answers, resources=resources)
    assert run.state == shape.state
    return run, resources["world"]


def words(run: Run, shape: Shape) -> list[str]:
    """The timeline, as far as it does not depend on the crash."""
    kept = [word for word in run.timeline if not (shape.fails_for_a_while and "!" in word)]
    return kept if shape.is_ordered else sorted(kept)


def ended_in(life: Life) -> set[str]:
    """The keys of steps, and of undos, that were recorded as ended."""
    return {str(_key(event)) for event in life.events if event.kind in _ENDS}


def _key(event: Event) -> StepKey:
    assert event.step is not None
    assert event.action is not None
    return StepKey(event.workflow_id, event.transaction_id, event.step, event.action)


def check(shape: Shape, runs: Iterable[CrashedRun]) -> None:
    """
    - The end is that of a run that was left alone: state, result, outputs, errors, what is recorded.
    - The effects are the same: nothing more was done, and nothing under another key.
    - What was recorded as ended was never called again.
    - What was in flight was called once more per crash, and nothing else.
    """
    expected, world = left_alone(shape)
    count = 0
    for run in runs:
        count += 1
        assert (run.state, run.outcome.result, run.outputs) == (
            expected.state,
            expected.outcome.result,
            expected.outputs,
        ), run
        assert [(e.action, e.name, e.message) for e in run.errors] == [
            (e.action, e.name, e.message) for e in expected.errors
        ], run
        assert words(run, shape) == words(expected, shape), run
        after: World = run.resources["world"]
        assert after.effects == world.effects, run
        for before, life in itertools.pairwise(run.lives):
            assert not {call.idempotency_key for call in life.calls} & ended_in(before), run
        for key, times in after.times.items():
            assert times < world.times[key] + len(run.lives), run
    assert count >= 6


@pytest.mark.parametrize("shape", shapes(*SHAPES))
def test_a_crash_costs_at_most_the_step_in_flight(shape: Shape) -> None:
    check(
        shape,
        crash_everywhere(shape.workflow, shape.input, answers=shape.answers, resources=make_world),
    )


def test_a_second_crash_costs_no_more_than_the_first() -> None:
    shape = SHAPES["threads"]
    check(shape, crash_everywhere(shape.workflow, resources=make_world, crashes=2))


@pytest.mark.parametrize("shape", shapes(*ON_SQLITE))
def test_a_crash_around_a_commit_costs_at_most_the_step_in_flight_on_sqlite(
    shape: Shape, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.db"
    VirtualEngine(store=SQLiteStore(empty)).close()
    numbers = itertools.count()

    def make_store() -> CheckpointStore:
        path = tmp_path / f"{next(numbers)}.db"
        shutil.copy(empty, path)
        return SQLiteStore(path, synchronous="normal")

    def runs() -> Iterator[CrashedRun]:
        for commit in itertools.count(1):
            for point in (f"before commit {commit}", f"after commit {commit}"):
                try:
                    yield crash_at(
                        point,
                        shape.workflow,
                        shape.input,
                        make_store,
                        answers=shape.answers,
                        resources=make_world,
                    )
                except UsageError:
                    return  # there are no more

    check(shape, runs())
