"""Each rule by one example: what is expected of us where the recording says something else."""

from __future__ import annotations

from typing import Any

import pytest

from .archive import carried
from .matchers import ANY, OneOf, StartsWith
from .rules import RULES
from .verdict import expectation

SCENARIOS = {scenario["name"]: scenario for scenario in carried()}

#: Nothing is expected there.
NOTHING = None
#: The expectation is cut off there after so many items.
FIRST = "first"

EVERYTHING = ("events", "everything")
CALLS = ("calls", "steps")

EXAMPLES: list[tuple[str, str, tuple[Any, ...], Any]] = [
    # errors
    (
        "a_childs_error_is_told_as_it_is",
        "nested-sync-child-fails-in-async-parent",
        (*EVERYTHING, "w:t", "flow", -1, "errors", 0, "message"),
        "child broke",
    ),
    (
        "a_timeout_is_told_once",
        "stepto-sync-exceeded",
        (*EVERYTHING, "w:t", "steps", "a", 2, "event"),
        "step_begin",
    ),
    (
        "a_result_that_cannot_be_computed_is_an_error",
        "basic-transform-raises-in-result",
        ("commands", 0, "all_errors", 0, "message"),
        "bad result",
    ),
    (
        "a_cancelled_execution_says_so",
        "cancel-compensation-fails-throw",
        ("commands", 1, "thrown"),
        ANY,
    ),
    (
        "a_schedule_that_cannot_fire_is_refused",
        "sched-bad-cron",
        ("workflows", 0, "refused"),
        True,
    ),
    # undo
    (
        "a_handler_ends_before_its_undo",
        "stepto-async-background",
        ("calls", "stages", "w:t"),
        ["0", "1", "1~", "0~"],
    ),
    (
        "a_child_that_reverted_is_undone",
        "nested-child-fails-stored",
        ("final", "w:t", "rows", 0, "steps", "child-as-step", "compensate"),
        "reverted/ok",
    ),
    (
        "a_failed_undo_is_never_ignored",
        "random-0225",
        ("final", "w:t", "rows", 0, "state"),
        "failed",
    ),
    # identity
    (
        "another_input_is_a_conflict",
        "again-idempotent-done",
        ("commands", 1, "refused"),
        "IdempotencyConflict",
    ),
    (
        "idempotent_rows_stay",
        "again-idempotent-no-retention",
        ("final", "w:t", "rows", 0, "state"),
        "done",
    ),
    (
        "a_reverted_execution_is_finished",
        "cancel-idempotent-reverted",
        ("commands", 1, "refused"),
        "TransactionFinished",
    ),
    (
        "a_name_that_cannot_be_is_refused",
        "more-workflow-id-with-colon",
        ("commands", 0, "thrown"),
        "WorkflowNotFound",
    ),
    (
        "a_group_of_one_is_fine",
        "basic-parallel-single",
        ("workflows", 0, "refused"),
        False,
    ),
    # commands
    (
        "what_went_well_is_returned",
        "misc-continue-error-throw",
        ("commands", 0, "acknowledgement", "has_failed"),
        False,
    ),
    (
        "a_second_run_attaches",
        "again-stored-while-running",
        ("commands", 2, "flow", "state"),
        "done",
    ),
    (
        "the_first_answer_wins",
        "race-two-success",
        ("commands", 2, "results", 1, "refused"),
        "StepNotWaiting",
    ),
    (
        "a_call_tells_the_state_at_its_return",
        "more-answer-running-sync",
        ("commands", 3, "result"),
        "outside",
    ),
    (
        "concurrent_calls_tell_what_came_of_all",
        "race-pair-success",
        ("commands", 2, "results", 0),
        ANY,
    ),
    (
        "finished_is_not_unknown",
        "cancel-compensation-fails",
        ("commands", 2, "refused"),
        OneOf(("TransactionFinished",)),
    ),
    (
        "an_empty_search_is_no_filter",
        "list-q",
        ("commands", 10, "rows", 3, "workflow_id"),
        "gamma",
    ),
    # values
    ("nothing_is_null", "basic-output-kinds", ("commands", 0, "result", "none"), None),
    ("falsy_inputs_arrive", "basic-input-passing", ("commands", 0, "result", "zero"), 0),
    (
        "a_hook_may_answer_plainly",
        "hook-result-raw",
        ("commands", 0, "result", "h"),
        {"extra": 6},
    ),
    (
        "a_failed_step_has_no_output",
        "comp-permanent-data-stored",
        ("final", "w:t", "rows", 0, "outputs", "b"),
        None,
    ),
    (
        "no_wait_holds_wherever_it_stands",
        "nowait-basic",
        ("final", "w:t", "rows", 0, "outputs", "a"),
        "a",
    ),
    (
        "no_result_unless_done",
        "async-await-success-step-response",
        ("commands", 2, "result"),
        None,
    ),
    (
        "an_answer_is_what_its_undo_receives",
        "async-await-success-step-response",
        (*CALLS, "w:t", "a", 1, "input"),
        {"undo": 1},
    ),
    # events
    (
        "a_skipped_step_says_so",
        "basic-skip-response",
        (*EVERYTHING, "w:t", "steps", "a", 1, "event"),
        "step_skipped",
    ),
    (
        "a_late_return_tells_nothing",
        "race-handler-completes-itself",
        (*EVERYTHING, "w:t", "steps", "a", -1, "event"),
        "step_success",
    ),
    (
        "an_end_is_told_once",
        "race-compensate-async-pair-slow-table",
        (*EVERYTHING, "w:t", "flow", -2, "event"),
        "compensate_begin",
    ),
    (
        "children_emit_like_any",
        "nested-child-retries",
        (*EVERYTHING, "child:child-as-step-t"),
        ANY,
    ),
    # rows
    ("an_async_undo_is_stored", "random-0389", ("workflows", 0, "stored"), True),
    (
        "a_childs_rows_go_with_its_roots",
        "nested-child-stored-only",
        ("final", "child:child-as-step-t"),
        NOTHING,
    ),
    (
        "a_kept_child_can_be_undone",
        "random-0178",
        (*CALLS, "child:child-as-step-t", "c1", FIRST),
        1,
    ),
    (
        "a_row_is_in_the_state_of_its_execution",
        "more-comp-await-cancel",
        ("commands", 1, "stored", "w:t", "rows", 0, "state"),
        "compensating",
    ),
    # courses: what is expected ends where another course begins
    (
        "pending_retries_are_dropped",
        "more-interval-sibling-fails",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        2,
    ),
    (
        "a_step_may_fail_while_it_is_cancelled",
        "cancel-background-fails",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        1,
    ),
    (
        "nothing_times_out_while_it_is_undone",
        "wfto-compensation-slow",
        (*EVERYTHING, "w:t", "flow", FIRST),
        2,
    ),
    (
        "a_timeout_can_be_passed_over",
        "stepto-skip",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        3,
    ),
    ("an_async_step_may_skip", "async-skip", (*EVERYTHING, "w:t", "steps", "a", FIRST), 1),
    (
        "an_async_step_may_answer_plainly",
        "async-raw-value-is-awaiting",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        1,
    ),
    (
        "a_conditional_step_waits",
        "async-when-awaiting",
        (*EVERYTHING, "w:t1", "steps", "a", FIRST),
        1,
    ),
    (
        "a_failed_attempt_is_parked",
        "retry-auto-false-sync",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        1,
    ),
    (
        "a_failure_from_outside_is_parked_too",
        "retry-auto-false-external",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        2,
    ),
    (
        "awaiting_retries_are_counted_as_retries",
        "retry-awaiting-max-one",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        2,
    ),
    (
        "an_undo_may_be_asked_again",
        "more-comp-await-awaiting-retry",
        (*EVERYTHING, "w:t", "steps", "b", FIRST),
        4,
    ),
    (
        "the_place_in_a_group_never_matters",
        "skipon-parallel-first",
        (*EVERYTHING, "w:t", "steps", "a", FIRST),
        1,
    ),
    (
        "a_cancel_waits_for_nobody",
        "cancel-awaiting",
        (*EVERYTHING, "w:t", "flow", FIRST),
        1,
    ),
    (
        "a_retried_step_can_be_answered",
        "more-external-failure-then-await-pair",
        ("commands", 4),
        ANY,
    ),
    # races
    (
        "every_attempt_runs_once",
        "more-run-again-during-parallel",
        (*CALLS, "w:t", "a", FIRST),
        2,
    ),
    (
        "a_step_at_work_is_not_retried",
        "more-retry-step-running-sync",
        ("commands", 2, "refused"),
        "StepNotWaiting",
    ),
    (
        "nothing_runs_twice_at_once",
        "again-unstored-while-running",
        (*EVERYTHING, "w:t", "flow", FIRST),
        1,
    ),
    (
        "a_restart_loses_nothing",
        "restart-retry-interval",
        ("commands", 3),
        ANY,
    ),
    ("names_hold_what_keys_can", "basic-colon-in-transaction-id", ("commands", 1), ANY),
    ("what_cannot_be_stored_is_a_failure", "err-circular-output", ("commands", 0), ANY),
    ("members_of_a_group_start_together", "more-mixed-slow-sync-pair", ("commands", 0), ANY),
    (
        "a_race_has_either_end",
        "race-two-cancels",
        ("commands", 1, "results", 1, "refused"),
        OneOf(("NotAllowed", "TransactionFinished")),
    ),
    # last
    (
        "handlers_see_everything",
        "events-handlers-background",
        ("events", "handlers", "*", "flow", -1, "event"),
        "finish",
    ),
    (
        "subscribers_are_independent",
        "sub-two-anonymous",
        ("events", "subscriber s1", "w:t1", "flow", 0, "event"),
        "begin",
    ),
    (
        "undone_stage_by_stage",
        "more-parallel-tail-compensation-order",
        ("calls", "stages", "w:t"),
        ["0", "1", "2", "3", "3~", "2~", "1~", "0~"],
    ),
]


def at(form: Any, path: tuple[Any, ...]) -> Any:
    """What lies there in an expectation."""
    for part in path:
        if part == FIRST:
            assert isinstance(form, StartsWith)
            return len(form.items)
        form = form.get(part) if isinstance(form, dict) else form[part]
    return form


@pytest.mark.parametrize(("rule", "name", "path", "value"), EXAMPLES, ids=lambda x: str(x)[:60])
def test_expects(rule: str, name: str, path: tuple[Any, ...], value: Any) -> None:
    expected, fired = expectation(SCENARIOS[name])
    assert rule in {each.split(" ", 1)[1] for each in fired}
    assert at(expected, path) == value


def test_every_rule_has_an_example() -> None:
    shown = {rule for rule, *_ in EXAMPLES}
    assert [each.name for each in RULES if each.name.split(" ", 1)[1] not in shown] == []


def test_rules_leave_a_plain_recording_alone() -> None:
    assert expectation(SCENARIOS["basic-linear-five"])[1] == []
