"""An execution goes on by a definition that was changed while it waited, one claim each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.play import START, Play, flow
from tests.engine.test_machine_properties import check
from wfe.engine.events import Cancel, Decided, Resume, Sleeps
from wfe.engine.passage import ADDED, BROUGHT_FORWARD
from wfe.engine.redefinition import CarriedOver, carried_over
from wfe.errors import DefinitionChanged, StepNotFound, UsageError
from wfe.model import (
    Action,
    Execution,
    ExecutionState,
    Flow,
    StepKind,
    StepState,
    StepStatus,
)

ASYNC = {"async_": True}


def other(*stages: str | tuple[str, ...], **fields: Any) -> Flow:
    """The flow that is loaded now."""
    return replace(flow(*stages, **fields), hash="other")


def with_spec(flow: Flow, name: str, **fields: Any) -> Flow:
    """The flow, with a step that is of another kind, guard or child."""
    return replace(flow, steps={**flow.steps, name: replace(flow.steps[name], **fields)})


def at(flow: Flow, *succeeded: str, waits: Sequence[str] = ()) -> Play:
    """An execution that has come so far, and whose process is gone."""
    play = Play(flow)
    play.succeed(*succeeded)
    for name in waits:
        play.wait(name)
    play.calls.clear()
    return play


def waiting() -> Play:
    """An execution that waits at `approve`, its third stage."""
    stages = ("reserve", ("pack", "label"), "approve", "ship")
    options = {"approve": ASYNC}
    return at(flow(*stages, options=options), "reserve", "pack", "label", waits=["approve"])


def carried(play: Play, loaded: Flow, **how: Any) -> CarriedOver:
    return carried_over(play.execution, loaded, play.now, **how)


def go_on(play: Play, loaded: Flow, **how: Any) -> list[str | None]:
    """Take the execution up by the loaded flow; what its timeline says of that."""
    over = carried(play, loaded, **how)
    assert over.changes is not None
    over.execution.take(over.changes)
    play.execution = over.execution
    play.send(Resume())
    check(play)
    return [entry.detail for entry in over.changes.events]


def refusal(play: Play, loaded: Flow, **how: Any) -> DefinitionChanged:
    with pytest.raises(DefinitionChanged) as raised:
        carried(play, loaded, **how)
    return raised.value


# --- what may change -----------------------------------------------------------------------------


def test_a_flow_that_is_the_same_gives_the_same_object() -> None:
    play = waiting()
    assert carried(play, play.execution.flow) == CarriedOver(play.execution)


def test_what_is_over_stays_as_it_was() -> None:
    play = Play(flow("a", "b"))
    play.succeed("a")
    play.fail("b")
    play.to_the_end()
    assert carried(play, other("z"), renames={"no": "such"}) == CarriedOver(play.execution)


def test_what_is_no_matter_of_the_flow_stays() -> None:
    stored = waiting().execution
    stored.input, stored.result, stored.holder, stored.has_signals = b"1", b"2", "somebody", True
    loaded = other("reserve", ("pack", "label"), "approve")
    execution = carried_over(stored, loaded, START).execution
    for name in set(Execution.__slots__) - {"flow"}:
        assert getattr(execution, name) == getattr(stored, name)


def test_what_has_not_begun_may_change_altogether() -> None:
    play = Play(flow("a"), begin=False)
    changes = carried(play, other("x", "y")).changes
    assert changes is not None
    assert (changes.head.definition, changes.head.stage) == ("other", -1)


def test_later_stages_may_change_and_the_new_ones_run() -> None:
    play = waiting()
    loaded = other("reserve", ("pack", "label"), "approve", ("weigh", "insure"))
    assert go_on(play, loaded) == ["the workflow has changed meanwhile"]
    play.answer("approve")
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)
    assert play.called[-2:] == ["weigh", "insure"]
    assert "ship" not in play.called


def test_the_order_in_which_the_steps_of_a_stage_are_written_makes_no_difference() -> None:
    play = waiting()
    go_on(play, other("reserve", ("label", "pack"), "approve", "ship"))
    play.answer("approve")
    assert list(play.calls) == ["ship"]


def test_it_is_a_commit_of_its_own() -> None:
    play = waiting()
    before = play.execution.head
    over = carried(play, other("reserve", ("pack", "label"), "approve"))
    assert (over.execution.flow.hash, over.execution.head) == ("other", before)
    assert over.changes is not None
    head = over.changes.head
    assert (head.version, head.entries) == (before.version + 1, before.entries + 1)
    assert (head.updated_at, over.changes.events[0].time) == (play.now, play.now)


def test_options_may_change_alone_and_nothing_is_said_about_it() -> None:
    play = waiting()
    stages = ("reserve", ("pack", "label"), "approve", "ship")
    loaded = flow(*stages, options={"approve": ASYNC, "ship": {"max_retries": 1}})
    assert go_on(play, loaded) == []
    play.answer("approve")
    play.fail("ship")
    play.succeed("ship")
    assert play.is_in(ExecutionState.DONE)


# --- what is refused -----------------------------------------------------------------------------

CHANGES: dict[str, tuple[Sequence[str | tuple[str, ...]], list[str]]] = {
    "a step was taken out": (
        [("pack", "label"), "approve", "ship"],
        ["- reserve", "  pack", "  label", "  approve"],
    ),
    "a step was added before": (
        ["reserve", "check", ("pack", "label"), "approve", "ship"],
        ["  reserve", "+ check", "  pack", "  label", "  approve"],
    ),
    "a step was added to a stage": (
        ["reserve", ("pack", "label", "weigh"), "approve", "ship"],
        ["  reserve", "  pack", "  label", "+ weigh", "  approve"],
    ),
    "a step was added to the open stage": (
        ["reserve", ("pack", "label"), ("approve", "check"), "ship"],
        ["  …", "  label", "  approve", "+ check"],
    ),
    "steps changed places": (
        [("pack", "label"), "reserve", "approve", "ship"],
        ["  pack", "  label", "~ reserve: now after label", "  approve"],
    ),
    "a stage was taken apart": (
        ["reserve", "pack", "label", "approve", "ship"],
        [
            "  reserve",
            "~ pack: no longer together with label",
            "~ label: no longer together with pack",
            "  approve",
        ],
    ),
    "stages were put together": (
        [("reserve", "pack", "label"), "approve", "ship"],
        [
            "~ reserve: now together with label and pack",
            "~ pack: now together with reserve",
            "~ label: now together with reserve",
            "  approve",
        ],
    ),
    "a later step was brought forward": (
        ["reserve", "ship", ("pack", "label"), "approve"],
        ["  reserve", "~ ship: brought forward", "  pack", "  label", "  approve"],
    ),
    "a step has another name": (
        ["reserve_stock", ("pack", "label"), "approve", "ship"],
        [
            "- reserve",
            "+ reserve_stock: renamed? --rename reserve=reserve_stock",
            "  pack",
            "  label",
            "  approve",
        ],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_up_to_the_point_reached_is_refused_with_a_listing(case: str) -> None:
    stages, lines = CHANGES[case]
    play = waiting()
    head, steps = play.execution.head, dict(play.execution.steps)
    error = refusal(play, other(*stages))
    assert list(error.changes) == lines
    assert (play.execution.head, play.execution.steps) == (head, steps)


@pytest.mark.parametrize(
    ("fields", "how"),
    [
        ({"kind": StepKind.HOOK}, "a hook now, was a step"),
        ({"guards": ("gift", "big")}, "guarded by gift and big now, was by nothing"),
        ({"kind": StepKind.WORKFLOW, "child": "w2"}, "a workflow now, was a step"),
    ],
)
def test_what_stands_behind_a_name_counts(fields: dict[str, Any], how: str) -> None:
    play = at(flow("a", "b"), "a")
    error = refusal(play, with_spec(other("a", "b"), "a", **fields))
    assert error.changes == (f"~ a: {how}", "  b")


def test_another_child_counts() -> None:
    child = {"kind": StepKind.WORKFLOW, "child": "one"}
    play = at(with_spec(flow("a", "b"), "a", **child), "a")
    error = refusal(play, with_spec(other("a", "b"), "a", **{**child, "child": "two"}))
    assert error.changes == ("~ a: runs two now, ran one", "  b")


def test_a_refusal_says_what_to_do() -> None:
    play = waiting()
    error = refusal(play, other("reserve", ("pack", "label"), "approve_it", "ship"))
    assert error.message == (
        "Workflow 'w' has other steps than when execution w:t began: - approve, + approve_it."
    )
    assert error.way_out == {"renames": {"approve": "approve_it"}}
    assert error.changes[-1].startswith("! approve: it waits for an answer")
    assert error.hint == (
        "Bring the steps back, cancel the execution with the code that began it, or go on all the "
        "same: wfe run w --tx t --rename approve=approve_it"
    )
    assert str(error).splitlines() == [error.message, *error.changes, error.hint]


def test_what_to_do_is_what_would_help() -> None:
    play = waiting()
    error = refusal(play, other("reserve", "x", ("pack", "label"), "approve", "ship"))
    assert error.way_out == {"allow_changed": True}
    error = refusal(play, other("reserve", ("pack", "label"), "ship"))
    assert error.way_out is None
    assert error.hint.endswith(" or cancel the execution with the code that began it.")

    loaded = other("get", "x", ("pack", "labels"), "approve_it", "ship")
    error = refusal(play, loaded, renames={"reserve": "get"})
    assert error.way_out is not None
    assert error.way_out == {
        "renames": {"reserve": "get", "label": "labels", "approve": "approve_it"},
        "allow_changed": True,
    }
    assert go_on(play, loaded, **error.way_out)


def test_a_long_listing_shows_what_changed_and_a_little_around_it() -> None:
    names = [f"s{number}" for number in range(20)]
    play = at(flow(*names, options={"s19": ASYNC}), *names[:-1], waits=["s19"])
    error = refusal(play, other(*names[:10], "x", *names[10:]))
    assert error.changes == ("  …", "  s8", "  s9", "+ x", "  s10", "  s11", "  …")


# --- renaming ------------------------------------------------------------------------------------


def renamed() -> Play:
    play = waiting()
    loaded = other("get", ("pack", "label"), "accept", "ship", options={"accept": ASYNC})
    go_on(play, loaded, renames={"reserve": "get", "approve": "accept"})
    return play


def test_a_renamed_step_keeps_its_record_and_its_undo() -> None:
    play = renamed()
    assert (play.step("get").output, play.step("get").stage) == (b"1", 0)
    play.answer_error("accept", force=True)
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)
    assert play.called[-4:] == ["~accept", "~pack", "~label", "~get"]


def test_a_renamed_step_that_waits_is_answered_by_its_new_name() -> None:
    play = renamed()
    with pytest.raises(StepNotFound):
        play.answer("approve")
    play.answer("accept")
    play.succeed("ship")
    assert play.is_in(ExecutionState.DONE)


def test_what_was_called_by_the_old_name_is_left_behind_and_waits_for_nothing() -> None:
    left = renamed().execution.steps["approve"]
    assert (left.invoke, left.awaiting, left.reason) == (
        StepState.NOT_STARTED,
        False,
        "renamed to accept",
    )


def test_the_timeline_is_told_the_new_key_of_a_step_under_way() -> None:
    renames = {"reserve": "get", "approve": "accept"}
    loaded = other("get", ("pack", "label"), "accept", "ship")
    assert go_on(waiting(), loaded, renames=renames) == [
        "the workflow has changed meanwhile",
        "reserve is called get from here on",
        "approve is called accept from here on, and its key is w:t:accept:invoke",
    ]


def test_the_failure_of_a_renamed_step_keeps_the_old_name() -> None:
    options = {"a": {"continue_on_permanent_failure": True}}
    play = Play(flow("a", "b", options=options))
    play.fail("a")
    play.calls.clear()
    go_on(play, other("z", "b"), renames={"a": "z"})
    assert [error.action for error in play.execution.head.errors] == ["a"]


def test_renaming_a_second_time_is_nothing_new() -> None:
    play = renamed()
    flow, renames = play.execution.flow, {"reserve": "get", "approve": "accept"}
    assert carried(play, flow, renames=renames) == CarriedOver(play.execution)


def test_two_steps_may_take_each_others_name() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a", output=b"2")
    play.succeed("b")
    play.calls.clear()
    go_on(play, other("b", "a", "c"), renames={"a": "b", "b": "a"})
    assert [play.step(name).stage for name in ("b", "a", "c")] == [0, 1, 2]
    assert [play.step(name).output for name in ("b", "a")] == [b"2", b"1"]


def test_a_step_may_take_the_name_that_another_one_gives_up() -> None:
    play = at(flow("a", "b"), "a")
    go_on(play, other("z", "b", "a"), renames={"a": "z"})
    play.succeed("b")
    assert play.step("a").attempts == 1
    play.to_the_end()
    assert play.called == ["a", "b", "b", "a"]


@pytest.mark.parametrize(
    ("renames", "message", "hint"),
    [
        ({"aprove": "accept"}, "no step 'aprove' to rename", "Did you mean approve?"),
        ({"approve": "acept"}, "no step 'acept' to rename 'approve' to", "Did you mean accept?"),
        ({"zzz": "accept"}, "no step 'zzz'", "It has: reserve, pack, label, approve, ship."),
        ({"approve": "ship"}, "cannot both go on as 'ship'", "a name of its own"),
    ],
)
def test_renaming_what_is_not_there_is_an_error_of_use(
    renames: dict[str, str], message: str, hint: str
) -> None:
    loaded = other("reserve", ("pack", "label"), "accept", "ship")
    with pytest.raises(UsageError, match=message) as raised:
        carried(waiting(), loaded, renames=renames)
    assert hint in raised.value.hint


def test_a_nested_workflow_under_way_cannot_be_renamed_but_one_that_is_over_can() -> None:
    child = {"kind": StepKind.WORKFLOW, "child": "w2"}
    stored = with_spec(flow("a", "b", options={"a": ASYNC}), "a", **child)
    loaded = with_spec(other("z", "b"), "z", **child)
    error = refusal(at(stored, waits=["a"]), loaded, renames={"a": "z"}, allow_changed=True)
    assert error.changes[-1].startswith("! a: its workflow reports to that name")
    assert "--rename" not in error.hint
    assert go_on(at(stored, "a"), loaded, renames={"a": "z"})


def test_a_condition_that_is_called_like_its_value_is_renamed_with_it() -> None:
    def block(name: str, flow: Flow) -> Flow:
        flow = with_spec(flow, "a", guards=(name,))
        return with_spec(flow, name, kind=StepKind.VALUE, guards=(name,))

    play = Play(block("gift", flow("a", "gift", "b")))
    play.send(Decided(guard="gift", holds=True))
    play.succeed("a", "gift")
    play.calls.clear()
    go_on(play, block("present", other("a", "present", "b")), renames={"gift": "present"})
    assert play.execution.head.guards == {"present": True}


# --- going on all the same -----------------------------------------------------------------------


def test_a_step_added_before_is_skipped_and_says_why() -> None:
    play = waiting()
    loaded = other("reserve", "check", ("pack", "label", "weigh"), "approve", "ship")
    said = go_on(play, loaded, allow_changed=True)
    for name in ("check", "weigh"):
        record = play.step(name)
        assert (record.invoke, record.invoke_status) == (StepState.SKIPPED, StepStatus.OK)
        assert record.reason == ADDED == "added after the execution had passed"
        assert f"{name} was {ADDED}: it is skipped" in said
    play.answer("approve")
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)
    assert play.execution.head.has_skipped_steps
    assert not {"check", "weigh"} & set(play.called)


def test_a_step_that_was_taken_out_is_not_undone_and_the_others_are() -> None:
    play = waiting()
    said = go_on(play, other(("pack",), "approve", "ship"), allow_changed=True)
    assert "reserve is no step any more: what it did is not undone" in said
    assert play.execution.steps["reserve"].reason == "taken out of the workflow when it was done"
    play.answer("approve")
    play.fail("ship")
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)
    assert play.called[-3:] == ["~ship", "~approve", "~pack"]


def test_a_step_under_way_cannot_be_taken_out() -> None:
    play = waiting()
    loaded = other("reserve", ("pack", "label"), "ship")
    error = refusal(play, loaded, allow_changed=True)
    assert error.changes[-1] == (
        "! approve: it waits for an answer, and can be taken out only when it is over"
    )


def under_way(what: str) -> Play:
    play = Play(flow("a", options={"a": {"max_retries": 1, "retry_interval": 9}}))
    if what == "waits for its next attempt":
        play.fail("a")
    if what == "sleeps":
        play.send(Sleeps(step="a", attempt=1, until=START + timedelta(seconds=9)))
    play.calls.clear()
    return play


@pytest.mark.parametrize("what", ["is being executed", "sleeps", "waits for its next attempt"])
def test_the_listing_says_what_a_step_in_the_way_is_at(what: str) -> None:
    error = refusal(under_way(what), other("b"), allow_changed=True)
    assert error.changes[-1] == f"! a: it {what}, and can be taken out only when it is over"


def test_a_step_under_way_cannot_become_another_step() -> None:
    loaded = with_spec(other("a"), "a", kind=StepKind.HOOK)
    error = refusal(under_way("is being executed"), loaded, allow_changed=True)
    assert "can become another step only when it is over" in error.changes[-1]


def test_what_was_left_behind_once_stays_as_it_is() -> None:
    play = renamed()
    left = play.execution.steps["reserve"]
    play.calls.clear()
    go_on(play, replace(play.execution.flow, hash="third"))
    assert play.execution.steps["reserve"] is left


def test_after_a_change_of_places_the_point_reached_is_the_last_step_that_has_begun() -> None:
    play = waiting()
    loaded = other("ship", "approve", "x", ("label", "pack"), "y", "reserve", "z")
    said = go_on(play, loaded, allow_changed=True)
    assert play.execution.head.stage == 5
    assert play.step("ship").reason == BROUGHT_FORWARD
    assert f"ship was {BROUGHT_FORWARD}: it is skipped" in said
    play.answer("approve")
    assert list(play.calls) == ["z"]
    play.fail("z")
    play.to_the_end()
    assert play.called[-5:] == ["~z", "~reserve", "~label", "~pack", "~approve"]


def test_what_was_skipped_as_added_runs_where_it_comes_later_after_all() -> None:
    play = waiting()
    go_on(play, other("x", "reserve", ("pack", "label"), "approve"), allow_changed=True)
    play.calls.clear()
    loaded = replace(other("reserve", ("pack", "label"), "approve", "x"), hash="third")
    go_on(play, loaded, allow_changed=True)
    play.answer("approve")
    assert list(play.calls) == ["x"]


def test_a_step_that_was_taken_out_and_comes_back_later_begins_afresh() -> None:
    play = waiting()
    go_on(play, other(("pack", "label"), "approve"), allow_changed=True)
    play.calls.clear()
    go_on(play, replace(other(("pack", "label"), "approve", "reserve"), hash="third"))
    play.answer("approve")
    assert play.step("reserve").attempts == 1
    play.succeed("reserve")
    assert play.is_in(ExecutionState.DONE)


def test_a_step_of_another_kind_is_another_step_that_has_the_output_of_the_first() -> None:
    play = at(flow("a", "b", "c"), "a", "b")
    loaded = with_spec(other("a", "b", "c"), "a", kind=StepKind.WORKFLOW, child="w2")
    said = go_on(play, loaded, allow_changed=True)
    assert "a is another step now: what it did is not undone" in said
    assert (play.step("a").invoke, play.step("a").output) == (StepState.SKIPPED, b"1")
    play.fail("c")
    play.to_the_end()
    assert play.called[-2:] == ["~c", "~b"]


def test_a_decision_is_not_taken_for_that_of_another_condition_of_the_same_number() -> None:
    stored = flow("a", "b", "c", options={"b": ASYNC})
    stored = with_spec(stored, "a", guards=("when-1",))
    play = Play(with_spec(stored, "c", guards=("when-2",)))
    play.send(Decided(guard="when-1", holds=False))
    play.skip("a")
    play.wait("b")
    play.calls.clear()
    go_on(play, with_spec(other("b", "c"), "c", guards=("when-1",)), allow_changed=True)
    assert play.execution.head.guards == {}


# --- on the way back -----------------------------------------------------------------------------


def test_on_the_way_back_later_stages_do_not_matter() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a")
    play.fail("b")
    play.calls.clear()
    go_on(play, other("a", "b"))
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)
    assert play.called[-2:] == ["~b", "~a"]


def test_on_the_way_back_steps_that_changed_places_are_undone_once_in_the_new_order() -> None:
    play = Play(flow("a", "b", "c", "d"))
    play.succeed("a", "b", "c")
    play.fail("d")
    play.succeed("d")
    assert list(play.calls) == ["c"]
    play.calls.clear()
    go_on(play, other("d", "c", "a", "b"), allow_changed=True)
    play.succeed("c")
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)
    assert play.called[-3:] == ["~c", "~b", "~a"]
    assert play.called.count("~d") == 1


def test_a_done_execution_can_be_cancelled_by_a_changed_definition() -> None:
    play = at(flow("a", "b"), "a", "b")
    assert play.is_in(ExecutionState.DONE)
    error = refusal(play, other("x", "a", "b"))
    assert error.changes == ("+ x", "  a", "  b")
    over = carried(play, other("a", "b", "c"))
    assert over.changes is not None
    over.execution.take(over.changes)
    play.execution = over.execution
    play.send(Cancel())
    play.to_the_end()
    assert play.called == ["a", "b", "~b", "~a"]


# --- what a failure has skipped ------------------------------------------------------------------


def after_a_failure(skip: bool | str, *later: str) -> Play:
    options: dict[str, dict[str, Any]] = {"a": {"skip_on_permanent_failure": skip}, "b": ASYNC}
    play = Play(flow(("a", "b"), *later, options=options))
    play.fail("a")
    play.wait("b")
    play.calls.clear()
    return play


@pytest.mark.parametrize(
    ("skip", "loaded", "runs"),
    [
        (True, ["x", "c", "d", "y"], []),
        ("d", ["x", "c", "d", "y"], ["d", "y"]),
        ("d", ["d", "c", "y"], ["d", "y"]),
        ("d", ["x", "y"], ["x", "y"]),
    ],
)
def test_a_failure_that_skips_skips_what_has_come_between_too(
    skip: bool | str, loaded: list[str], runs: list[str]
) -> None:
    play = after_a_failure(skip, "c", "d")
    go_on(play, other(("a", "b"), *loaded))
    play.answer("b")
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)
    assert play.called[2:] == runs


def test_an_option_that_came_after_the_failure_skips_nothing() -> None:
    options = {"a": {"continue_on_permanent_failure": True}, "b": ASYNC}
    play = Play(flow(("a", "b"), "c", options=options))
    play.fail("a")
    play.wait("b")
    play.calls.clear()
    options["a"]["skip_on_permanent_failure"] = True
    go_on(play, flow(("a", "b"), "c", options=options))
    play.calls.clear()
    go_on(play, other(("a", "b"), "c", "d", options=options))
    play.answer("b")
    play.to_the_end()
    assert play.called[-2:] == ["c", "d"]


# --- options that change -------------------------------------------------------------------------


def wakes_after(play: Play) -> float | None:
    """Seconds from the start to the next deadline."""
    moment = play.execution.head.wake_at
    return None if moment is None else (moment - START) / timedelta(seconds=1)


def failed_once(**options: Any) -> Play:
    play = Play(flow("a", options={"a": {"max_retries": 2, **options}}))
    play.fail("a")
    play.calls.clear()
    return play


def test_a_retry_that_was_to_come_later_comes_at_once_where_there_is_no_interval_any_more() -> None:
    play = failed_once(retry_interval=60)
    go_on(play, flow("a", options={"a": {"max_retries": 2}}))
    assert list(play.calls) == ["a"]
    assert wakes_after(play) is None


def test_a_step_that_was_parked_is_tried_again_where_that_goes_by_itself_now() -> None:
    play = failed_once(auto_retry=False)
    go_on(play, flow("a", options={"a": {"max_retries": 2, "retry_interval": 5}}))
    assert list(play.calls) == ["a"]


def test_a_step_that_was_parked_while_its_handler_was_at_work_is_tried_again_too() -> None:
    play = Play(flow("a", options={"a": {"max_retries": 2, "auto_retry": False}}))
    play.answer_error("a")
    play.calls.clear()
    go_on(play, flow("a", options={"a": {"max_retries": 2}}))
    assert list(play.calls) == ["a"]


def test_a_retry_that_was_to_come_is_parked_where_nothing_goes_by_itself_now() -> None:
    play = failed_once(retry_interval=60)
    go_on(play, flow("a", options={"a": {"max_retries": 2, "auto_retry": False}}))
    assert (play.execution.head.parked, wakes_after(play)) == (1, None)
    play.retry("a")
    assert list(play.calls) == ["a"]


def test_a_retry_that_is_to_come_keeps_its_moment_under_another_interval() -> None:
    play = failed_once(retry_interval=60)
    go_on(play, flow("a", options={"a": {"max_retries": 2, "retry_interval": 5}}))
    assert wakes_after(play) == 60


def test_a_step_that_waits_for_an_answer_is_no_longer_called_again() -> None:
    play = at(flow("a", options={"a": {**ASYNC, "retry_interval_awaiting": 60}}), waits=["a"])
    assert wakes_after(play) == 60
    go_on(play, flow("a", options={"a": ASYNC}))
    assert wakes_after(play) is None
    play.answer("a")
    assert play.is_in(ExecutionState.DONE)


def test_a_timeout_counts_from_the_start_whenever_it_was_given() -> None:
    play = at(flow("a", options={"a": ASYNC}, timeout=50), waits=["a"])
    go_on(play, flow("a", options={"a": ASYNC}, timeout=500))
    assert wakes_after(play) == 500
    go_on(play, flow("a", options={"a": {**ASYNC, "timeout": 30}}))
    assert wakes_after(play) == 30
    play.pass_time(30)
    assert play.step("a").invoke is StepState.TIMEOUT


@pytest.mark.parametrize("before", [True, False])
def test_a_step_under_way_may_begin_or_cease_to_hold_the_stage(before: bool) -> None:
    def with_no_wait(is_loose: bool) -> Flow:
        return flow("a", "b", options={"a": {**ASYNC, "no_wait": is_loose}})

    play = at(with_no_wait(before), *(["b"] if before else []), waits=["a"])
    go_on(play, with_no_wait(not before))
    assert (play.execution.head.open, play.execution.head.loose) == (int(before), int(not before))
    play.answer("a")
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)


def test_an_undo_that_was_added_meanwhile_is_called() -> None:
    play = at(flow("a", "b", without_undo=["a", "b"]), "a")
    go_on(play, flow("a", "b", without_undo=["b"]))
    play.fail("b")
    play.to_the_end()
    assert play.called[-1] == "~a"


def test_an_undo_under_way_goes_on_though_it_is_not_there_any_more() -> None:
    options = {"a": {"compensate_async": True}}
    play = Play(flow("a", "b", options=options))
    play.succeed("a")
    play.fail("b")
    play.succeed("b")
    play.wait("a")
    play.calls.clear()
    go_on(play, flow("a", "b", options=options, without_undo=["a"]))
    play.answer("a", Action.COMPENSATE)
    assert play.is_in(ExecutionState.REVERTED)
