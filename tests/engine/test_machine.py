"""The rules of the machine, one claim each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.engine.play import START, Play, flow
from wfe.engine.endings import retry_delay
from wfe.engine.events import Answer, Begin, Cancel, Resume, Retry, Succeeded
from wfe.engine.machine import apply
from wfe.errors import NotAllowed, StepNotFound, StepNotWaiting, TransactionFinished, WrongAction
from wfe.model import (
    Action,
    DomainEvent,
    EventKind,
    ExecutionState,
    StepOptions,
    StepState,
    StepStatus,
)

ASYNC = {"async_": True}


# --- forward -------------------------------------------------------------------------------------


def test_steps_run_stage_by_stage() -> None:
    play = Play(flow("a", ("b", "c"), "d"))
    assert list(play.calls) == ["a"]
    play.succeed("a")
    assert list(play.calls) == ["b", "c"]
    play.succeed("c")
    assert list(play.calls) == ["b"]
    play.succeed("b")
    assert list(play.calls) == ["d"]
    play.succeed("d")
    assert play.is_in(ExecutionState.DONE)
    assert play.finished == [ExecutionState.DONE]


def test_an_empty_flow_is_done_at_once() -> None:
    play = Play(flow())
    assert play.is_in(ExecutionState.DONE)


def test_the_next_stage_does_not_wait_for_a_no_wait_member_but_the_end_does() -> None:
    play = Play(flow(("a", "slow"), "b", options={"slow": {"async_": True, "no_wait": True}}))
    play.succeed("a")
    play.succeed("b")
    assert play.is_in(ExecutionState.INVOKING)
    play.succeed("slow")
    assert play.is_in(ExecutionState.DONE)


def test_a_skipped_step_counts_as_passed_and_is_not_undone() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a")
    play.skip("b")
    play.fail("c")
    play.to_the_end()
    assert play.called == ["a", "b", "c", "~c", "~a"]
    assert play.step("b").invoke is StepState.SKIPPED
    assert play.told(EventKind.STEP_SKIPPED) == ["b"]
    assert play.execution.head.has_skipped_steps


def test_an_output_that_is_not_to_be_saved_is_not_kept_and_neither_is_what_its_undo_receives() -> (
    None
):
    play = Play(flow("a", options={"a": {"save_response": False}}))
    play.succeed("a")
    assert play.step("a").output is None
    assert play.step("a").compensate_with is None


# --- failing and undoing -------------------------------------------------------------------------


def test_compensates_completed_steps_in_reverse_order_by_stage() -> None:
    play = Play(flow("z", ("a", "b"), "c", "d"))
    play.succeed("z", "a", "b", "c")
    play.fail("d")
    assert list(play.calls) == ["d"]
    play.succeed("d")
    assert list(play.calls) == ["c"]
    play.succeed("c")
    assert list(play.calls) == ["a", "b"]
    play.succeed("b")
    assert list(play.calls) == ["a"]
    play.succeed("a", "z")
    assert play.is_in(ExecutionState.REVERTED)


def test_a_step_without_undo_is_reverted_without_a_call_or_an_event() -> None:
    play = Play(flow("a", "b", "c", without_undo=["b"]))
    play.succeed("a", "b")
    play.fail("c")
    play.to_the_end()
    assert "~b" not in play.called
    record = play.step("b")
    assert (record.compensate, record.compensate_status) == (StepState.REVERTED, StepStatus.IDLE)
    assert (record.attempts, record.failures) == (1, 0)
    assert "b" not in play.told(EventKind.COMPENSATE_STEP_SUCCESS)


def test_siblings_in_flight_end_before_anything_is_undone() -> None:
    play = Play(flow("z", ("a", "b")))
    play.succeed("z")
    play.fail("a")
    assert play.is_in(ExecutionState.WAITING_TO_COMPENSATE)
    assert list(play.calls) == ["b"]
    play.succeed("b")
    assert sorted(play.calls) == ["a", "b"]


def test_an_undo_that_fails_for_good_ends_the_execution_failed_but_the_rest_is_undone() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a", "b")
    play.fail("c")
    play.succeed("c")
    play.fail("b", "cannot undo")
    play.succeed("a")
    assert play.is_in(ExecutionState.FAILED)
    assert [e.message for e in play.execution.errors()] == ["boom"]
    assert [e.message for e in play.execution.errors(None)] == ["boom", "cannot undo"]


def test_an_undo_that_failed_is_never_ignored() -> None:
    options = {"a": {"continue_on_permanent_failure": True}}
    play = Play(flow("a", "b", options=options))
    play.succeed("a")
    play.fail("b")
    play.succeed("b")
    play.fail("a")
    assert play.is_in(ExecutionState.FAILED)


def test_counters_start_again_only_where_a_step_is_to_be_undone() -> None:
    play = Play(flow("a", "b", "c", options={"a": {"max_retries": 2}, "b": {"max_retries": 2}}))
    play.fail("a")
    play.succeed("a")
    play.fail("b")
    play.skip("b")
    play.fail("c")
    play.to_the_end()
    assert (play.step("a").attempts, play.step("a").failures) == (1, 0)
    assert (play.step("b").attempts, play.step("b").failures) == (2, 1)


# --- retries -------------------------------------------------------------------------------------


def test_a_retry_without_interval_comes_at_once() -> None:
    play = Play(flow("a", options={"a": {"max_retries": 1}}))
    play.fail("a")
    assert play.calls["a"].attempt == 2
    play.fail("a")
    assert play.calls["a"].action is Action.COMPENSATE


def test_retries_are_counted_after_the_first_attempt() -> None:
    play = Play(flow("a", options={"a": {"max_retries": 2}}))
    for _ in range(3):
        play.fail("a")
    assert play.called == ["a", "a", "a", "~a"]


def test_a_retry_with_an_interval_comes_at_its_moment_and_not_before() -> None:
    play = Play(flow("a", options={"a": {"max_retries": 1, "retry_interval": 5}}))
    play.fail("a")
    assert play.execution.head.wake_at == START + timedelta(seconds=5)
    play.pass_time(4.999)
    assert not play.calls
    play.pass_time(0.001)
    assert play.calls["a"].attempt == 2
    assert play.execution.head.wake_at is None


def test_a_permanent_failure_is_not_retried() -> None:
    play = Play(flow("a", options={"a": {"max_retries": 5}}))
    play.fail("a", permanent=True)
    assert play.called == ["a", "~a"]


def test_a_step_without_auto_retry_parks_until_it_is_asked_for() -> None:
    play = Play(flow("a", options={"a": {"max_retries": 2, "auto_retry": False}}))
    play.fail("a")
    assert not play.calls
    assert play.step("a").invoke_status is StepStatus.TEMP_FAILURE
    play.retry("a")
    assert play.calls["a"].attempt == 2


def test_a_retry_to_come_is_dropped_when_a_sibling_fails_for_good() -> None:
    play = Play(flow(("a", "b"), options={"a": {"max_retries": 3, "retry_interval": 9}}))
    play.fail("a", "first")
    play.fail("b", "second")
    assert play.step("a").invoke is StepState.FAILED
    assert {e.message for e in play.execution.errors()} == {"first", "second"}
    play.to_the_end()
    play.pass_time(100)
    assert play.called.count("a") == 1
    assert play.is_in(ExecutionState.REVERTED)


def test_an_immediate_retry_goes_on_after_a_siblings_failure_but_not_after_a_cancel() -> None:
    options = {"a": {"max_retries": 3}}
    play = Play(flow(("a", "b"), options=options))
    play.fail("b")
    play.fail("a")
    assert play.calls["a"].action is Action.INVOKE
    play = Play(flow(("a", "b"), options=options))
    play.cancel()
    play.fail("a")
    assert "a" not in play.calls


def test_the_wait_grows_by_backoff_up_to_its_limit_and_jitter_only_lengthens_it() -> None:
    options = StepOptions(retry_interval=2, retry_backoff=3, retry_max_interval=10)
    assert [retry_delay(options, n, 0.0) for n in (1, 2, 3)] == [2, 6, 10]
    options = StepOptions(retry_interval=2, retry_jitter=0.5)
    assert retry_delay(options, 1, 0.0) == 2
    assert retry_delay(options, 1, 0.999) == pytest.approx(3, abs=0.01)


# --- passing over failures -----------------------------------------------------------------------


def test_the_wait_ends_somewhere_however_often_a_step_has_failed() -> None:
    options = StepOptions(retry_interval=1, retry_backoff=2, retry_max_interval=60)
    assert retry_delay(options, 5000, 0) == 60
    assert retry_delay(StepOptions(retry_interval=1, retry_backoff=2), 5000, 0) == 10 * 365 * 86_400


def test_continue_goes_on_and_ends_done_with_a_failed_step() -> None:
    play = Play(flow("a", "b", options={"a": {"continue_on_permanent_failure": True}}))
    play.fail("a")
    play.succeed("b")
    assert play.is_in(ExecutionState.DONE)
    assert play.execution.head.has_failed_steps


def test_skip_marks_every_later_step_at_once_and_siblings_finish() -> None:
    play = Play(flow(("a", "b"), "c", "d", options={"a": {"skip_on_permanent_failure": True}}))
    play.fail("a")
    assert play.step("d").invoke is StepState.SKIPPED_FAILURE
    assert play.is_in(ExecutionState.INVOKING)
    play.succeed("b")
    assert play.called == ["a", "b"]
    assert play.is_in(ExecutionState.DONE)
    assert play.execution.head.has_skipped_on_failure_steps


def test_skip_until_a_step_runs_its_whole_stage() -> None:
    play = Play(flow("a", "b", ("c", "d"), "e", options={"a": {"skip_on_permanent_failure": "d"}}))
    play.fail("a")
    assert sorted(play.calls) == ["c", "d"]
    play.to_the_end()
    assert play.called == ["a", "c", "d", "e"]


def test_skip_wins_over_continue() -> None:
    both = {"skip_on_permanent_failure": True, "continue_on_permanent_failure": True}
    play = Play(flow("a", "b", options={"a": both}))
    play.fail("a")
    assert play.called == ["a"]
    assert play.is_in(ExecutionState.DONE)


# --- waiting for answers -------------------------------------------------------------------------


def test_an_awaiting_step_goes_on_with_its_answer() -> None:
    play = Play(flow("a", "b", options={"a": ASYNC}))
    play.wait("a")
    assert play.execution.head.awaiting == 1
    play.answer("a")
    assert play.execution.head.awaiting == 0
    assert play.step("a").output == b"2"
    assert list(play.calls) == ["b"]
    assert play.told(EventKind.RESUME) == [None]


def test_the_first_answer_wins() -> None:
    play = Play(flow("a", "b", options={"a": ASYNC}))
    play.wait("a")
    play.answer("a")
    with pytest.raises(StepNotWaiting) as refusal:
        play.answer("a")
    assert (refusal.value.state, refusal.value.status) == ("done", "ok")


def test_an_answer_may_be_faster_than_the_function_that_asks_for_it() -> None:
    play = Play(flow("a", "b", options={"a": ASYNC}))
    play.answer("a")
    play.wait("a")
    assert not play.step("a").awaiting
    assert play.told(EventKind.STEP_AWAITING) == []
    play.succeed("b")
    assert play.is_in(ExecutionState.DONE)


def test_a_failure_from_outside_is_retried_unless_forced() -> None:
    play = Play(flow("a", options={"a": {**ASYNC, "max_retries": 1}}))
    play.wait("a")
    play.answer_error("a")
    assert play.calls["a"].attempt == 2
    play.wait("a")
    play.answer_error("a", force=True)
    assert play.calls["a"].action is Action.COMPENSATE


def test_the_next_attempt_waits_for_the_handler_that_was_overtaken() -> None:
    play = Play(flow("a", options={"a": {**ASYNC, "max_retries": 1}}))
    play.answer_error("a")
    assert play.aborted == ["a"]
    assert play.called == ["a"]
    play.wait("a")
    assert play.called == ["a", "a"]
    assert play.calls["a"].attempt == 2


def test_an_undo_waits_for_the_handler_that_was_overtaken() -> None:
    play = Play(flow("a", "b", options={"a": ASYNC}))
    play.answer("a")
    play.fail("b")
    play.succeed("b")
    assert play.aborted == ["a"]
    assert play.called == ["a", "b", "~b"]
    play.succeed("a")
    assert play.called == ["a", "b", "~b", "~a"]


def test_a_step_that_waits_is_invoked_again_so_many_times() -> None:
    options = {**ASYNC, "retry_interval_awaiting": 10, "max_awaiting_retries": 1}
    play = Play(flow("a", options={"a": options}))
    play.wait("a")
    play.pass_time(10)
    assert play.calls["a"].attempt == 2
    play.wait("a")
    play.pass_time(100)
    assert play.called == ["a", "a"]
    play.answer("a")
    assert play.is_in(ExecutionState.DONE)


def test_a_siblings_failure_waits_for_the_answer_and_a_cancel_stops_that() -> None:
    play = Play(flow(("a", "b"), options={"a": ASYNC}))
    play.wait("a")
    play.fail("b")
    assert play.is_in(ExecutionState.WAITING_TO_COMPENSATE)
    assert not play.calls
    play.cancel()
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)
    assert [e.action for e in play.execution.errors()] == ["b"]


def test_a_compensation_may_be_answered_from_outside() -> None:
    play = Play(flow("a", "b", options={"a": {"compensate_async": True}}))
    play.succeed("a")
    play.fail("b")
    play.succeed("b")
    play.wait("a")
    assert play.is_in(ExecutionState.COMPENSATING)
    play.answer("a", Action.COMPENSATE)
    assert play.is_in(ExecutionState.REVERTED)


@pytest.mark.parametrize(
    ("event", "refusal"),
    [
        (Answer(step="a", action=Action.COMPENSATE), WrongAction),
        (Answer(step="b", action=Action.INVOKE), StepNotWaiting),
        (Answer(step="nope", action=Action.INVOKE), StepNotFound),
        (Retry(step="b", action=Action.INVOKE), StepNotWaiting),
    ],
)
def test_a_refused_event_changes_nothing(event: Answer | Retry, refusal: type[Exception]) -> None:
    play = Play(flow("a", "b", options={"a": ASYNC}))
    play.wait("a")
    before = (play.execution.head, dict(play.execution.steps))
    with pytest.raises(refusal):
        apply(play.execution, event, play.now)
    assert (play.execution.head, play.execution.steps) == before


def test_a_step_that_is_being_executed_is_not_retried() -> None:
    play = Play(flow("a", options={"a": ASYNC}))
    with pytest.raises(StepNotWaiting, match="being executed"):
        play.retry("a")


# --- timeouts ------------------------------------------------------------------------------------


def test_a_waiting_step_times_out_at_its_deadline() -> None:
    play = Play(flow("a", "b", options={"b": {**ASYNC, "timeout": 5}}))
    play.succeed("a")
    play.wait("b")
    play.pass_time(5)
    assert play.step("b").invoke is StepState.TIMEOUT
    assert [e.name for e in play.execution.errors()] == ["TransactionStepTimeoutError"]
    play.to_the_end()
    assert play.called == ["a", "b", "~b", "~a"]
    with pytest.raises(TransactionFinished):
        play.answer("b")


def test_a_background_step_past_its_deadline_is_aborted_and_undone_after_its_end() -> None:
    play = Play(flow("a", options={"a": {**ASYNC, "timeout": 5}}))
    play.pass_time(5)
    assert play.aborted == ["a", "a"]  # told to end, and its undo waits for that
    assert play.called == ["a"]
    play.succeed("a", output=b"late")
    assert play.called == ["a", "~a"]
    assert play.step("a").output is None


def test_a_step_that_holds_its_caller_runs_to_its_end_and_then_counts_as_timed_out() -> None:
    play = Play(flow("a", "b", options={"a": {"timeout": 5}}))
    play.pass_time(6)
    assert play.is_in(ExecutionState.INVOKING)
    play.succeed("a", output=b"late")
    assert play.step("a").invoke is StepState.TIMEOUT
    assert play.step("a").output == b"late"
    assert play.told(EventKind.STEP_FAILURE) == ["a"]
    assert play.told(EventKind.STEP_SUCCESS) == []
    assert play.called == ["a", "~a"]


def test_a_handler_that_ends_at_the_very_deadline_is_late() -> None:
    play = Play(flow("a", options={"a": {"timeout": 5}}))
    play.now += timedelta(seconds=5)
    play.succeed("a")
    assert play.step("a").invoke is StepState.TIMEOUT


def test_the_timeout_of_a_step_counts_from_its_first_start() -> None:
    play = Play(flow("a", options={"a": {**ASYNC, "timeout": 5, "max_retries": 9}}))
    play.now += timedelta(seconds=3)
    play.fail("a")
    play.pass_time(2)
    assert play.step("a").invoke is StepState.TIMEOUT


def test_a_timed_out_step_under_continue_counts_as_passed() -> None:
    options = {"a": {**ASYNC, "timeout": 5, "continue_on_permanent_failure": True}}
    play = Play(flow("a", "b", options=options))
    play.wait("a")
    play.pass_time(5)
    play.succeed("b")
    assert play.is_in(ExecutionState.DONE)


def test_the_workflows_timeout_ends_what_waits_and_waits_for_what_holds_its_caller() -> None:
    play = Play(flow(("a", "b"), options={"a": ASYNC}, timeout=5))
    play.wait("a")
    play.pass_time(5)
    assert play.execution.head.timed_out
    assert play.step("a").invoke is StepState.TIMEOUT
    assert play.is_in(ExecutionState.WAITING_TO_COMPENSATE)
    play.succeed("b", output=b"late")
    assert play.step("b").invoke is StepState.TIMEOUT
    assert play.step("b").output == b"late"
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)


def test_continue_does_not_save_a_step_from_the_workflows_timeout() -> None:
    options = {"a": {**ASYNC, "continue_on_permanent_failure": True}}
    play = Play(flow("a", options=options, timeout=5))
    play.wait("a")
    play.pass_time(5)
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)


def test_nothing_times_out_while_it_is_being_undone() -> None:
    play = Play(flow("a", "b", timeout=5))
    play.succeed("a")
    play.fail("b")
    play.pass_time(100)
    assert not play.execution.head.timed_out
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)


# --- cancelling ----------------------------------------------------------------------------------


def test_a_cancel_waits_for_the_step_in_flight_and_undoes_it_too() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a")
    play.cancel()
    assert play.is_in(ExecutionState.WAITING_TO_COMPENSATE)
    play.succeed("b")
    play.to_the_end()
    assert play.called == ["a", "b", "~b", "~a"]
    assert play.execution.errors() == ()


def test_a_cancel_does_not_wait_for_answers() -> None:
    play = Play(flow("a", "b", options={"b": ASYNC}))
    play.succeed("a")
    play.wait("b")
    play.cancel()
    assert play.step("b").invoke is StepState.FAILED
    assert play.execution.errors() == ()
    play.to_the_end()
    assert play.called == ["a", "b", "~b", "~a"]


def test_a_done_execution_can_be_cancelled() -> None:
    play = Play(flow("a", "b"))
    play.to_the_end()
    play.cancel()
    play.to_the_end()
    assert play.called == ["a", "b", "~b", "~a"]
    assert play.finished == [ExecutionState.DONE, ExecutionState.REVERTED]


def test_what_is_being_undone_cannot_be_cancelled() -> None:
    play = Play(flow("a", "b"))
    play.succeed("a")
    play.fail("b")
    with pytest.raises(NotAllowed):
        play.cancel()
    play.to_the_end()
    with pytest.raises(TransactionFinished):
        play.cancel()


def test_a_cancel_drops_retries_to_come() -> None:
    play = Play(flow("a", "b", options={"b": {"max_retries": 5, "retry_interval": 9}}))
    play.succeed("a")
    play.fail("b")
    play.cancel()
    play.to_the_end()
    play.pass_time(100)
    assert play.called == ["a", "b", "~b", "~a"]


# --- taking up again -----------------------------------------------------------------------------


def test_resume_attempts_what_was_in_flight_again_and_leaves_what_waits_alone() -> None:
    play = Play(flow(("a", "b", "c"), options={"b": ASYNC}))
    play.succeed("c")
    play.wait("b")
    play.calls.clear()  # the process is gone
    play.send(Resume())
    assert list(play.calls) == ["a"]
    assert play.calls["a"].attempt == 2
    assert play.step("b").awaiting
    play.succeed("a")
    play.answer("b")
    assert play.is_in(ExecutionState.DONE)


def test_resume_leaves_alone_what_is_at_work_here() -> None:
    play = Play(flow(("a", "b")))
    del play.calls["b"]
    play.send(Resume(at_work=frozenset({"a"})))
    assert (play.calls["a"].attempt, play.calls["b"].attempt) == (1, 2)
    play.to_the_end()
    assert play.called == ["a", "b", "b"]


def test_what_an_earlier_attempt_reports_counts_for_nothing() -> None:
    play = Play(flow("a"))
    play.reopen()
    play.send(Succeeded(step="a", action=Action.INVOKE, attempt=1, output=b"of the dead"))
    assert play.step("a").output is None
    assert not play.execution.head.is_final


def test_what_a_step_emitted_is_kept_with_its_success() -> None:
    play = Play(flow("a", "b", options={"b": ASYNC}))
    told = _emitted("a")
    play.send(Succeeded(**_end_of(play, "a"), output=b"1", emitted=(told,)))
    play.wait("b")
    answered = _emitted("b")
    play.send(Answer(step="b", action=Action.INVOKE, output=b"2", emitted=(answered,)))
    assert (play.step("a").emitted, play.step("b").emitted) == ((told,), (answered,))


def _end_of(play: Play, step: str) -> dict[str, Any]:
    call = play.calls.pop(step)
    return {"step": step, "action": call.action, "attempt": call.attempt}


def _emitted(step: str) -> DomainEvent:
    return DomainEvent(
        name="told",
        data=1,
        event_group_id="g",
        workflow_id="w",
        transaction_id="t",
        step=step,
    )


def test_a_step_whose_asking_again_was_held_back_is_given_up_by_a_cancel() -> None:
    play = Play(flow(("a", "b"), options={"a": {**ASYNC, "retry_interval_awaiting": 4}}))
    play.wait("a")
    play.is_closing = True
    play.pass_time(4)
    assert play.step("a").held
    play.cancel()
    assert (play.step("a").invoke, play.step("a").held) == (StepState.FAILED, False)
    play.reopen()
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)


def test_resume_goes_on_undoing() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a", "b")
    play.fail("c")
    play.succeed("c")
    play.calls.clear()
    play.send(Resume())
    play.to_the_end()
    assert play.called == ["a", "b", "c", "~c", "~b", "~b", "~a"]
    assert play.is_in(ExecutionState.REVERTED)


def test_a_process_that_is_about_to_end_starts_nothing_and_the_next_one_does() -> None:
    play = Play(flow("a", "b", "c"))
    play.succeed("a")
    play.is_closing = True
    play.succeed("b")
    assert not play.calls
    assert play.step("b").invoke is StepState.DONE
    assert (play.step("c").invoke, play.step("c").attempts) == (StepState.NOT_STARTED, 0)
    play.reopen()
    assert play.calls["c"].attempt == 1
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)


def test_a_step_that_was_held_before_it_began_is_nothing_to_undo_after_a_cancel() -> None:
    play = Play(flow("a", "b"))
    play.is_closing = True
    play.succeed("a")
    assert play.execution.head.held == 1
    play.cancel()
    play.reopen()
    play.to_the_end()
    assert play.is_in(ExecutionState.REVERTED)
    assert play.called == ["a", "~a"]
    assert play.step("b").attempts == 0


def test_a_step_in_flight_after_a_cancel_is_attempted_again_before_it_is_undone() -> None:
    play = Play(flow("a", "b"))
    play.succeed("a")
    play.cancel()
    play.reopen()
    play.succeed("b", output=b"9")
    play.to_the_end()
    assert play.called == ["a", "b", "b", "~b", "~a"]
    assert play.step("b").compensate_with == b"9"


def test_a_step_that_was_held_begins_though_a_sibling_skips_what_comes_later() -> None:
    options = {"a": {"no_wait": True, "skip_on_permanent_failure": True}}
    play = Play(flow(("a", "b"), "c", "d", options=options))
    play.is_closing = True
    play.succeed("b")
    play.fail("a", permanent=True)
    play.reopen()
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)
    assert play.called == ["a", "b", "c"]


def test_a_late_return_after_the_end_changes_nothing() -> None:
    play = Play(flow("a", options={"a": ASYNC}))
    play.answer("a")
    assert play.is_in(ExecutionState.DONE)
    play.succeed("a", output=b"late")
    assert play.is_in(ExecutionState.DONE)
    assert play.step("a").output == b"2"
    assert play.finished == [ExecutionState.DONE]


def test_each_commit_raises_the_version() -> None:
    play = Play(flow("a"), begin=False)
    play.send(Begin())
    assert play.execution.head.version == 1
    play.succeed("a")
    assert play.execution.head.version == 2


def test_a_cancel_before_the_answer_refuses_the_answer() -> None:
    play = Play(flow("a", "b", options={"b": ASYNC}))
    play.succeed("a")
    play.wait("b")
    play.send(Cancel())
    with pytest.raises(WrongAction):
        play.answer("b")


# --- skipping from outside, and who did it -------------------------------------------------------


def test_a_step_that_waits_can_be_skipped_and_is_not_undone() -> None:
    play = Play(flow("a", "b", options={"a": {"async_": True}}))
    play.wait("a")
    play.skip_waiting("a")
    assert play.step("a").invoke is StepState.SKIPPED
    assert play.step("a").reason == "nobody is there"
    assert play.execution.head.awaiting == 0
    play.fail("b")
    play.to_the_end()
    assert play.called == ["a", "b", "~b"]


def test_a_step_between_two_attempts_can_be_skipped() -> None:
    options = {"max_retries": 3, "auto_retry": False}
    play = Play(flow("a", "b", options={"a": options}))
    play.fail("a")
    assert play.execution.head.parked == 1
    play.skip_waiting("a")
    play.to_the_end()
    assert play.is_in(ExecutionState.DONE)
    assert play.execution.head.has_skipped_steps
    assert play.execution.head.parked == 0


def test_an_undo_that_waits_can_be_skipped_and_counts_as_done() -> None:
    play = Play(flow("a", "b", options={"a": {"compensate_async": True}}))
    play.succeed("a")
    play.fail("b")
    play.succeed("b")
    play.wait("a")
    play.skip_waiting("a", Action.COMPENSATE)
    assert play.is_in(ExecutionState.REVERTED)


def test_a_step_that_is_being_executed_is_not_skipped() -> None:
    play = Play(flow("a"))
    with pytest.raises(StepNotWaiting, match="being executed"):
        play.skip_waiting("a")


def test_the_timeline_says_who_gave_a_command_once() -> None:
    play = Play(flow("a", "b", options={"a": {"async_": True}}))
    play.wait("a")
    play.send(Answer(step="a", action=Action.INVOKE, output=b"2", by="kim"))
    told = [(str(entry.kind), entry.detail) for entry in play.timeline[-3:]]
    assert told == [("resume", None), ("step_success", "by kim"), ("step_begin", None)]
