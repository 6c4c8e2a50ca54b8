"""What holds of the machine whatever happens: arbitrary flows, behaviours and interleavings."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.play import Play, flow
from wfe.errors import NotFound, Refused
from wfe.model import Action, EventKind, ExecutionState, Flow, StepState, StepStatus

NAMES = "abcdefgh"


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Up to eight steps in up to four stages, with any options."""
    count = draw(st.integers(0, len(NAMES)))
    names = list(NAMES[:count])
    stages: list[list[str]] = []
    for name in names:
        if not stages or (len(stages) < 4 and draw(st.booleans())):
            stages.append([])
        stages[-1].append(name)
    options = {}
    for number, stage in enumerate(stages):
        later = [name for names in stages[number + 1 :] for name in names]
        for name in stage:
            options[name] = draw(step_options(*sorted(later)))
    without_undo = draw(st.sets(st.sampled_from(names))) if names else set()
    timeout = draw(st.sampled_from([None, None, 7.0]))
    return flow(*stages, options=options, without_undo=without_undo, timeout=timeout)


@functools.cache
def step_options(*later: str) -> st.SearchStrategy[dict[str, Any]]:
    """Made once for the same later steps: a strategy is examined before its first draw, which takes
    longer than the draw."""
    some = st.fixed_dictionaries(
        {},
        optional={
            "max_retries": st.integers(0, 2),
            "retry_interval": st.sampled_from([0.0, 2.0]),
            "auto_retry": st.booleans(),
            "async_": st.booleans(),
            "timeout": st.sampled_from([3.0, 30.0]),
            "retry_interval_awaiting": st.just(4.0),
            "max_awaiting_retries": st.integers(0, 2),
            "compensate_async": st.booleans(),
            "continue_on_permanent_failure": st.booleans(),
            "skip_on_permanent_failure": st.sampled_from([False, True, *later]),
            "no_wait": st.booleans(),
            "save_response": st.booleans(),
        },
    )
    return st.one_of(st.just({}), some)


#: What may happen, and to which of the steps it could happen to.
MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "succeed",
                "succeed",
                "succeed",
                "fail",
                "fail_for_good",
                "skip",
                "await",
                "answer",
                "answer_error",
                "retry",
                "skip_waiting",
                "time",
                "cancel",
                "crash",
                "close",
            ]
        ),
        st.integers(0, 7),
    ),
    max_size=40,
)


def move(play: Play, what: str, choice: int) -> None:
    """Make one thing happen, where it can. A refusal must change nothing."""
    before = (play.execution.head, dict(play.execution.steps))
    at_work = sorted(play.calls)
    steps = sorted(play.execution.flow.steps)
    try:
        match what:
            case "time":
                play.pass_time(1.0 + choice)
            case "cancel":
                play.cancel()
            case "crash":
                play.reopen()
            case "close":
                play.is_closing = True
            case "answer" | "answer_error" | "retry" | "skip_waiting" if steps:
                name = steps[choice % len(steps)]
                action = play.step(name).action
                if what == "answer":
                    play.answer(name, action)
                elif what == "retry":
                    play.retry(name, action)
                elif what == "skip_waiting":
                    play.skip_waiting(name, action)
                else:
                    play.answer_error(name)
            case "succeed" | "fail" | "fail_for_good" | "skip" | "await" if at_work:
                _end(play, what, at_work[choice % len(at_work)])
    except (Refused, NotFound):
        assert (play.execution.head, play.execution.steps) == before


def _end(play: Play, what: str, name: str) -> None:
    call = play.calls[name]
    options = play.execution.flow.steps[name].options
    undoing = call.action is Action.COMPENSATE
    waits = options.compensate_async if undoing else options.async_
    if what == "await" and waits:
        play.wait(name)
    elif what == "skip" and not undoing:
        play.skip(name)
    elif what in ("fail", "fail_for_good"):
        play.fail(name, permanent=what == "fail_for_good")
    else:
        play.succeed(name)


def check(play: Play) -> None:
    """What holds at every moment."""
    head, execution = play.execution.head, play.execution
    records = execution.steps.values()
    assert head.running == sum(r.running for r in records)
    assert head.running == len(play.calls) or play.is_left
    assert head.awaiting == sum(r.awaiting for r in records)
    if not head.running and not head.is_final:
        assert head.held == sum(r.held for r in records)
        assert head.parked == sum(
            r.status is StepStatus.TEMP_FAILURE and r.retry_at is None and not r.held
            for r in records
        )
    assert set(execution.active) == {r.name for r in records if r.is_active}
    assert head.open >= 0
    assert head.loose >= 0
    for record in records:
        assert not (record.awaiting and record.running)
        assert not record.held or record.running or play.is_closing
    if head.is_final:
        assert head.wake_at is None
        assert all(r.status not in _WAITING for r in records if r.undo)
    elif not play.is_closing:
        assert is_going_on(play), "stuck: nothing runs, is awaited, parked or due"


_WAITING = (StepStatus.WAITING_RESPONSE, StepStatus.TEMP_FAILURE)


def is_going_on(play: Play) -> bool:
    head = play.execution.head
    parked = any(r.status is StepStatus.TEMP_FAILURE for r in play.execution.steps.values())
    return bool(play.calls) or head.awaiting > 0 or head.wake_at is not None or parked


def finish(play: Play) -> None:
    """Let the world be kind until the end: handlers succeed, answers come, parked steps are retried."""
    if play.is_closing:
        play.reopen()
    for _ in range(500):
        if play.execution.head.is_final and not play.calls:
            return
        if play.calls:
            play.succeed(next(iter(play.calls)))
            continue
        for record in list(play.execution.steps.values()):
            if record.awaiting:
                play.answer(record.name, record.action)
                break
            if record.status is StepStatus.TEMP_FAILURE and record.retry_at is None:
                play.retry(record.name, record.action)
                break
        else:
            assert play.execution.head.wake_at is not None
            play.now = max(play.now, play.execution.head.wake_at)
            play.pass_time(0)
    raise AssertionError("it does not come to an end")


@given(flows(), MOVES)
def test_an_execution_is_never_stuck_and_always_comes_to_an_end(
    flow: Flow, moves: list[tuple[str, int]]
) -> None:
    play = Play(flow)
    check(play)
    for what, choice in moves:
        move(play, what, choice)
        check(play)
    finish(play)
    check(play)


@given(flows(), MOVES)
def test_final_is_final_but_for_the_cancel_of_a_done_execution(
    flow: Flow, moves: list[tuple[str, int]]
) -> None:
    play = Play(flow)
    finish(play)
    for what, choice in moves:
        before = play.state
        move(play, what, choice)
        if before in (ExecutionState.REVERTED, ExecutionState.FAILED):
            assert play.state is before
        if before is ExecutionState.DONE and what != "cancel":
            assert play.state is before


@given(flows(), MOVES)
def test_every_attempt_is_begun_once(flow: Flow, moves: list[tuple[str, int]]) -> None:
    play = Play(flow)
    for what, choice in moves:
        move(play, what, choice)
    finish(play)
    begun = [
        (entry.step, entry.action, entry.attempt)
        for entry in play.timeline
        if entry.kind is EventKind.STEP_BEGIN
    ]
    assert len(begun) == len(set(begun)) == len(play.called)


@given(flows(), MOVES)
def test_undoes_exactly_what_may_have_happened_once_in_reverse_by_stage(
    flow: Flow, moves: list[tuple[str, int]]
) -> None:
    play = Play(flow)
    for what, choice in moves:
        move(play, what, choice)
    finish(play)
    happened = {StepState.DONE, StepState.FAILED, StepState.TIMEOUT}
    for record in play.execution.steps.values():
        if play.state is ExecutionState.DONE:
            assert record.compensate is StepState.DORMANT
        elif record.invoke in happened:
            assert record.compensate in (StepState.REVERTED, StepState.FAILED)
        else:
            assert record.compensate is StepState.DORMANT
    undone = [
        entry
        for entry in play.timeline
        if entry.kind in (EventKind.COMPENSATE_STEP_SUCCESS, EventKind.STEP_BEGIN)
        and entry.action is Action.COMPENSATE
    ]
    stages = [flow.steps[entry.step or ""].stage for entry in undone]
    assert stages == sorted(stages, reverse=True)
    ends = [e.step for e in undone if e.kind is EventKind.COMPENSATE_STEP_SUCCESS]
    assert len(ends) == len(set(ends))


@given(flows(), MOVES)
def test_a_stage_begins_after_everything_it_waits_for_has_settled(
    flow: Flow, moves: list[tuple[str, int]]
) -> None:
    play = Play(flow)
    settled: dict[str, bool] = {}

    def look() -> None:
        for name, record in play.execution.steps.items():
            if record.started_at is not None:
                for before in (n for stage in flow.stages[: record.stage] for n in stage):
                    waited_for = not flow.steps[before].options.no_wait
                    assert not waited_for or settled.get(before) or _is_settled(play, before)
            settled[name] = _is_settled(play, name)

    look()
    for what, choice in moves:
        move(play, what, choice)
        look()


def _is_settled(play: Play, name: str) -> bool:
    return play.step(name).invoke not in (StepState.NOT_STARTED, StepState.INVOKING)


@settings(max_examples=50)
@given(flows(), MOVES)
def test_the_same_events_lead_to_the_same_state(flow: Flow, moves: list[tuple[str, int]]) -> None:
    plays = [Play(flow), Play(flow)]
    for what, choice in moves:
        for play in plays:
            move(play, what, choice)
    assert plays[0].execution.head == plays[1].execution.head
    assert plays[0].execution.steps == plays[1].execution.steps


@given(flows())
def test_a_timer_is_set_for_the_next_moment_at_which_something_is_due(flow: Flow) -> None:
    play = Play(flow)
    for name in sorted(play.calls):
        play.fail(name) if flow.steps[name].options.max_retries else None
    due = [r.retry_at for r in play.execution.steps.values() if r.retry_at is not None]
    wake_at = play.execution.head.wake_at
    if due and not play.execution.head.is_final:
        assert wake_at is not None
        assert wake_at <= min(due)
        assert wake_at >= play.now - timedelta(0)
