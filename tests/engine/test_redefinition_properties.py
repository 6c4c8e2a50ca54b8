"""What holds of an execution whose definition changes at any moment, in any way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from tests.engine.play import Play, flow
from tests.engine.test_machine_properties import (
    MOVES,
    check,
    finish,
    flows,
    move,
    step_options,
)
from wfe.engine.events import Resume
from wfe.engine.redefinition import CarriedOver, carried_over
from wfe.errors import DefinitionChanged
from wfe.model import (
    EventKind,
    Execution,
    ExecutionState,
    Flow,
    StepRecord,
    StepState,
)


class Edit(NamedTuple):
    """A flow that was edited, and which of its steps were renamed."""

    flow: Flow
    renames: dict[str, str]

    def now(self, name: str) -> str:
        return self.renames.get(name, name)


@st.composite
def later_edits(draw: st.DrawFn, before: Flow, reached: int) -> Edit:
    """Any change behind a stage, of options anywhere, and of the order inside a stage."""
    stages = [draw(st.permutations(stage)) for stage in before.stages[: reached + 1]]
    rest = [name for stage in before.stages[reached + 1 :] for name in stage]
    rest = draw(st.permutations([*rest, "x", "y"]))[: draw(st.integers(0, len(rest) + 2))]
    stages += _staged(rest, draw(st.lists(st.booleans(), min_size=len(rest), max_size=len(rest))))
    return Edit(_flow(draw, before, stages, {}), {})


@st.composite
def edits(draw: st.DrawFn, before: Flow) -> Edit:
    """Any change whatsoever."""
    names = list(before.steps)
    renamed = draw(st.sets(st.sampled_from(names), max_size=2)) if names else set()
    renames = {name: name.upper() for name in sorted(renamed)}
    gone = draw(st.sets(st.sampled_from(names), max_size=2)) if names else set()
    stages = [
        [renames.get(name, name) for name in stage if name not in gone - renamed]
        for stage in before.stages
    ]
    for name in (
        "x",
        "y",
        *draw(st.lists(st.sampled_from(names or ["z"]), max_size=2, unique=True)),
    ):
        if name in ("x", "y") and not draw(st.booleans()):
            continue
        now = renames.get(name, name)
        stages = [[other for other in stage if other != now] for stage in stages]
        place = draw(st.integers(0, len(stages)))
        if draw(st.booleans()) or place == len(stages):
            stages.insert(place, [now])
        else:
            stages[place].append(now)
    return Edit(_flow(draw, before, [stage for stage in stages if stage], renames), renames)


def _staged(names: Iterable[str], breaks: list[bool]) -> list[list[str]]:
    stages: list[list[str]] = []
    for name, begins in zip(names, breaks, strict=True):
        if begins or not stages:
            stages.append([])
        stages[-1].append(name)
    return stages


def _flow(draw: st.DrawFn, before: Flow, stages: list[list[str]], renames: dict[str, str]) -> Flow:
    former = {new: old for old, new in renames.items()}
    options: dict[str, dict[str, Any]] = {}
    without_undo = []
    for number, stage in enumerate(stages):
        later = [name for names in stages[number + 1 :] for name in names]
        for name in stage:
            spec = before.steps.get(former.get(name, name))
            if spec is None or draw(st.integers(0, 3)) == 0:
                options[name] = draw(step_options(*sorted(later)))
                undoes = draw(st.booleans())
            else:
                options[name], undoes = asdict(spec.options), spec.has_compensation
                if options[name]["skip_on_permanent_failure"] not in (False, True, *later):
                    options[name]["skip_on_permanent_failure"] = True
            if not undoes:
                without_undo.append(name)
    timeout = draw(st.sampled_from([before.options.timeout, before.options.timeout, 9.0]))
    after = flow(*stages, options=options, without_undo=without_undo, timeout=timeout)
    return replace(after, hash="edited")


def is_under_way(record: StepRecord) -> bool:
    return record.state in (StepState.INVOKING, StepState.COMPENSATING) or record.held


def is_settled(record: StepRecord) -> bool:
    return record.invoke not in (StepState.NOT_STARTED, StepState.INVOKING)


def go(play: Play, moves: list[tuple[str, int]]) -> Iterator[None]:
    """Make things happen, one after the other."""
    for what, choice in moves:
        if what == "crash" and play.execution.head.is_final:
            continue  # nobody takes it up, to note that an overtaken handler is gone
        move(play, what, choice)
        yield


def played(flow: Flow, moves: list[tuple[str, int]]) -> Play:
    """An execution at an arbitrary moment, at which its process dies."""
    play = Play(flow)
    for _ in go(play, moves):
        pass
    if play.execution.head.is_final:
        play.to_the_end()
    play.calls.clear()
    return play


def taken(over: CarriedOver) -> Execution:
    """The execution as it goes on."""
    if over.changes is not None:
        over.execution.take(over.changes)
    return over.execution


def go_on(play: Play, over: CarriedOver) -> None:
    """Another process takes the execution up."""
    play.execution = taken(over)
    play.is_closing = False
    if not play.execution.head.is_final:
        play.send(Resume())
        play.pass_time(0)
    check(play)


def play_to_the_end(play: Play, moves: list[tuple[str, int]]) -> None:
    for _ in go(play, [entry for entry in moves if entry[0] != "close"]):
        check(play)
    finish(play)
    check(play)
    assert play.execution.head.is_final


def check_undone_once(play: Play) -> None:
    """Of the steps that the flow still has."""
    happened = {StepState.DONE, StepState.FAILED, StepState.TIMEOUT}
    for name in play.execution.flow.steps:
        record = play.step(name)
        if play.state is ExecutionState.DONE or record.invoke not in happened:
            assert record.compensate is StepState.DORMANT
        else:
            assert record.compensate in (StepState.REVERTED, StepState.FAILED)
    ends = [
        entry.step for entry in play.timeline if entry.kind is EventKind.COMPENSATE_STEP_SUCCESS
    ]
    assert len(ends) == len(set(ends))


@given(flows(), MOVES, MOVES, st.data())
def test_what_comes_after_the_point_reached_may_change_freely(
    flow: Flow, moves: list[tuple[str, int]], more: list[tuple[str, int]], data: st.DataObject
) -> None:
    play = played(flow, moves)
    before = dict(play.execution.steps)
    edit = data.draw(later_edits(flow, play.execution.head.stage))
    called = len(play.called)

    go_on(play, carried_over(play.execution, edit.flow, play.now))

    play_to_the_end(play, more)
    again = set(play.called[called:])
    assert not again & {name for name, record in before.items() if is_settled(record)}
    check_undone_once(play)


@given(flows(), MOVES, st.data())
def test_what_comes_up_to_the_point_reached_is_compared_as_sets_of_steps(
    flow: Flow, moves: list[tuple[str, int]], data: st.DataObject
) -> None:
    play = played(flow, moves)
    head, steps = play.execution.head, dict(play.execution.steps)
    edit = data.draw(edits(flow))
    passed = [{edit.now(n) for n in stage} for stage in flow.stages[: head.stage + 1]]
    differs = passed != [set(stage) for stage in edit.flow.stages[: len(passed)]]
    is_over = head.state in (ExecutionState.REVERTED, ExecutionState.FAILED)
    marks, way_out = set(), None
    try:
        over = carried_over(play.execution, edit.flow, play.now, renames=edit.renames)
    except DefinitionChanged as refusal:
        marks, way_out = {line[0] for line in refusal.changes}, refusal.way_out
    else:
        assert is_over or taken(over).head.stage == head.stage
    assert bool(marks & set("-+~")) == (differs and not is_over)
    assert (play.execution.head, play.execution.steps) == (head, steps)
    if way_out is not None:
        assert carried_over(play.execution, edit.flow, play.now, **way_out).changes is not None


@given(flows(), MOVES, MOVES, st.data())
def test_an_execution_that_is_allowed_to_change_comes_to_its_end_and_undoes_once(
    flow: Flow, moves: list[tuple[str, int]], more: list[tuple[str, int]], data: st.DataObject
) -> None:
    play = played(flow, moves)
    before, called = dict(play.execution.steps), len(play.called)
    edit = data.draw(edits(flow))
    over, in_the_way = allowed(play, edit)
    gone = {n for n, r in before.items() if is_under_way(r) and edit.now(n) not in edit.flow.steps}
    assert in_the_way == gone
    if over is None or over.execution is play.execution:
        return
    go_on(play, over)
    play_to_the_end(play, more)
    check_undone_once(play)
    settled = {edit.now(name) for name, record in before.items() if is_settled(record)}
    again = {name for name in play.called[called:] if not name.startswith("~")}
    assert not again & settled


def allowed(play: Play, edit: Edit) -> tuple[CarriedOver | None, set[str]]:
    """An execution carried over as far as that goes, or the steps that are in the way."""
    try:
        return carried_over(
            play.execution, edit.flow, play.now, renames=edit.renames, allow_changed=True
        ), set()
    except DefinitionChanged as refusal:
        lines = [line for line in refusal.changes if line[0] == "!"]
        return None, {line[2:].partition(":")[0] for line in lines}


@given(flows(), MOVES)
def test_an_equal_flow_of_another_hash_changes_nothing_but_the_definition(
    flow: Flow, moves: list[tuple[str, int]]
) -> None:
    before = played(flow, moves).execution
    over = carried_over(before, replace(flow, hash="other"), before.head.updated_at)
    if before.head.state in (ExecutionState.REVERTED, ExecutionState.FAILED):
        assert over.execution is before
        return
    assert over.changes is not None
    assert over.changes.steps == {}
    head = over.changes.head
    # Counted and looked for where the machine had reason to.
    assert head == replace(
        before.head,
        definition="other",
        version=before.head.version + 1,
        entries=before.head.entries + 1,
        held=head.held,
        parked=head.parked,
        wake_at=head.wake_at,
    )
    if before.head.wake_at is None:
        assert head.wake_at is None


@given(flows(), MOVES, st.data())
def test_carried_over_once_it_needs_no_second_time(
    flow: Flow, moves: list[tuple[str, int]], data: st.DataObject
) -> None:
    play = played(flow, moves)
    edit = data.draw(edits(flow))
    over, _ = allowed(play, edit)
    if over is None or over.changes is None:
        return
    execution = taken(over)
    again = carried_over(execution, edit.flow, play.now, renames=edit.renames)
    assert (again.execution, again.changes) == (execution, None)
    assert set(execution.steps) >= set(play.execution.steps) - set(edit.renames)
    for name, record in execution.steps.items():
        assert record.name == name
        assert name not in edit.flow.steps or record.stage == edit.flow.steps[name].stage
