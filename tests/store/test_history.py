"""History: what the timeline says of a moment is how it was then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from tests.engine.play import Play, flow
from tests.engine.test_machine_properties import MOVES, finish, flows, move
from tests.testing.shapes import SHAPES, make_world
from wfe.errors import UsageError
from wfe.model import (
    Changes,
    Execution,
    ExecutionKey,
    Flow,
    StepRecord,
    StepState,
    TimelineEvent,
)
from wfe.store.history import at
from wfe.store.memory import MemoryStore
from wfe.testing import run_to_end

#: What the timeline tells of a step.
FIELDS = (
    "stage",
    "invoke",
    "invoke_status",
    "compensate",
    "compensate_status",
    "attempts",
    "failures",
    "awaiting",
    "undo",
    "started_at",
    "last_attempt_at",
    "ended_at",
    "undone_at",
    "output",
    "error",
    "reason",
)
#: What it tells of the execution as a whole.
HEAD_FIELDS = (
    "state",
    "started_at",
    "ended_at",
    "cancelled_at",
    "errors",
    "awaiting",
    "undo_failed",
    "has_failed_steps",
    "has_skipped_steps",
    "has_reverted_steps",
)


def told_of(record: StepRecord) -> dict[str, Any]:
    told = {field: getattr(record, field) for field in FIELDS}
    if record.invoke is StepState.DONE:
        told["compensate_with"] = record.compensate_with
    return told


def told(execution: Execution) -> dict[str, Any]:
    steps = {name: told_of(execution.step(name)) for name in execution.flow.steps}
    return {**{field: getattr(execution.head, field) for field in HEAD_FIELDS}, "steps": steps}


def is_told(then: Execution, timeline: Sequence[TimelineEvent]) -> bool:
    """Whether the timeline had an entry since the execution was given up."""
    head = then.head
    moments = [head.cancelled_at, head.times_out_at if head.timed_out else None]
    return all(moment is None or moment <= timeline[-1].time for moment in moments)


class Remembering(MemoryStore):
    """Keeps every execution as it was after each commit, and how long its timeline was then."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: dict[str, list[tuple[int, Execution]]] = {}

    async def insert(self, execution: Execution, changes: Changes, **options: Any) -> bool:
        kept = await super().insert(execution, changes, **options)
        self._remember(changes)
        return kept

    async def commit(self, execution: Execution, changes: Changes, **options: Any) -> None:
        await super().commit(execution, changes, **options)
        self._remember(changes)

    def _remember(self, changes: Changes) -> None:
        execution = self.reader.load(changes.head.key, changes.head.run_id)
        assert execution is not None
        name = changes.head.execution_id
        moments = self.moments.setdefault(name, [])
        moments.append((len(self.reader.timeline(name)), execution))


@pytest.mark.parametrize("shape_name", SHAPES)
def test_after_every_commit_of_every_shape_the_fold_is_what_was_kept(shape_name: str) -> None:
    shape = SHAPES[shape_name]
    store = Remembering()
    run_to_end(
        shape.workflow, shape.input, answers=shape.answers, resources=make_world(), store=store
    )
    assert store.moments
    for name, moments in store.moments.items():
        timeline = store.reader.timeline(name)
        _, last = moments[-1]
        if last.head.cancelled_at == timeline[0].time:
            continue  # in virtual time all of it was one moment, which has no before and after
        for length, then in moments:
            assert told(at(last, timeline, length)) == told(then)
            assert told(at(then, timeline[:length], length)) == told(then)


@given(flows(), MOVES)
def test_whatever_happens_the_fold_is_how_it_was(flow: Flow, moves: list[tuple[str, int]]) -> None:
    play = Play(flow)
    moments = [(len(play.timeline), play.execution.copy())]
    for what, choice in moves:
        play.now += timedelta(milliseconds=1)
        move(play, what, choice)
        moments.append((len(play.timeline), play.execution.copy()))
    play.now += timedelta(milliseconds=1)
    play.reopen()
    finish(play)
    moments.append((len(play.timeline), play.execution.copy()))
    for length, then in moments:
        if is_told(then, play.timeline[:length]):
            assert told(at(then, play.timeline[:length], length)) == told(then)
            assert told(at(play.execution, play.timeline, length)) == told(then)


def test_a_retry_that_is_to_come_is_told_from_a_failure_for_good() -> None:
    play = Play(flow("a", "b", options={"a": {"max_retries": 1, "retry_interval": 60.0}}))
    play.fail("a")
    failed_once = len(play.timeline)
    play.pass_time(60)
    play.fail("a")
    then = at(play.execution, play.timeline, failed_once)
    assert (then.step("a").invoke, then.step("a").invoke_status) == ("invoking", "temp_failure")
    assert (then.head.state, then.head.errors) == ("invoking", ())
    assert at(play.execution, play.timeline, failed_once + 2).step("a").invoke == "failed"


def test_outputs_and_the_result_are_there_where_they_were_there_then() -> None:
    store = MemoryStore()
    run_to_end(SHAPES["linear"].workflow, resources=make_world(), store=store)
    execution = store.reader.load(ExecutionKey("linear", "test"))
    assert execution is not None
    timeline = store.reader.timeline(execution.head.execution_id)
    half = at(execution, timeline, 3)
    assert [half.step(name).output for name in half.flow.steps] == [b'"first done"', None, None]
    assert (half.result, half.head.ended_at) == (None, None)
    assert at(execution, timeline, len(timeline)).result == execution.result


def test_a_sleeping_step_counts_as_sleeping_from_its_begin_on() -> None:
    store = MemoryStore()
    run_to_end(SHAPES["sleeping"].workflow, resources=make_world(), store=store)
    execution = store.reader.load(ExecutionKey("sleeping", "test"))
    assert execution is not None
    timeline = store.reader.timeline(execution.head.execution_id)
    (begin,) = [
        number
        for number, entry in enumerate(timeline, 1)
        if (entry.step, entry.kind) == ("a-week", "step_begin")
    ]
    asleep = at(execution, timeline, begin).step("a-week")
    assert (asleep.sleeping, asleep.running) == (True, False)


@pytest.mark.parametrize("position", [0, -1, 3])
def test_an_entry_that_is_not_there_is_refused_with_those_that_are(position: int) -> None:
    play = Play(flow("a"))
    with pytest.raises(UsageError) as refusal:
        at(play.execution, play.timeline, position)
    assert refusal.value.hint == "It has 1 to 2."


def test_what_happened_to_a_step_that_the_flow_has_no_longer_is_left_out() -> None:
    play = Play(flow("a", "gone", "b"))
    play.succeed("a")
    play.fail("gone")
    play.to_the_end()
    now = play.execution
    carried_over = Execution(flow("a", "b"), now.head, steps=now.steps.values())
    for position in range(1, len(play.timeline) + 1):
        then = at(carried_over, play.timeline, position)
        assert told_of(then.step("a")) == told_of(at(now, play.timeline, position).step("a"))
        assert list(then.flow.steps) == ["a", "b"]
