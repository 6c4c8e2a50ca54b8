"""What an execution came to is what the command ends with."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.project import Project
from wfe.cli import exit_codes, report
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import colors_by_default
from wfe.model import Action, ErrorRecord, Execution, ExecutionState, Flow, Head

NOW = datetime(2026, 11, 30, tzinfo=UTC)
HEAD = Head(
    execution_id="wf_exec_1",
    workflow_id="order",
    transaction_id="t1",
    run_id="01",
    created_at=NOW,
    updated_at=NOW,
)
LATE = ErrorRecord(
    action="ship", handler_type=Action.INVOKE, name="TransactionStepTimeoutError", message="late"
)
BROKEN = ErrorRecord(action="ship", handler_type=Action.INVOKE, name="ValueError", message="no")
RESULT = ErrorRecord(action=None, handler_type=Action.INVOKE, name="ValueError", message="no")


def execution(state: ExecutionState, **fields: Any) -> Execution:
    flow = Flow(workflow_id="order", stages=(), steps={})
    return Execution(flow, msgspec.structs.replace(HEAD, state=state, **fields))


@pytest.mark.parametrize(
    ("state", "fields", "code"),
    [
        (ExecutionState.DONE, {}, 0),
        (ExecutionState.DONE, {"errors": (BROKEN,)}, 0),
        (ExecutionState.DONE, {"errors": (RESULT,)}, 1),
        (ExecutionState.REVERTED, {"errors": (BROKEN,)}, 10),
        (ExecutionState.FAILED, {"errors": (BROKEN,)}, 11),
        (ExecutionState.FAILED, {"errors": (LATE,), "cancelled_at": NOW, "timed_out": True}, 11),
        (ExecutionState.REVERTED, {"errors": (LATE,)}, 12),
        (ExecutionState.REVERTED, {"timed_out": True}, 12),
        (ExecutionState.REVERTED, {"cancelled_at": NOW, "timed_out": True}, 13),
        (ExecutionState.INVOKING, {}, 20),
        (ExecutionState.COMPENSATING, {}, 20),
    ],
)
def test_a_run_ends_with(state: ExecutionState, fields: dict[str, Any], code: int) -> None:
    assert exit_codes.of_run(execution(state, **fields)) == code


@pytest.mark.parametrize("state", ExecutionState)
def test_an_accepted_answer_fails_only_with_a_failed_undo(state: ExecutionState) -> None:
    failed = state is ExecutionState.FAILED
    assert exit_codes.of_answer(execution(state)) == (ExitCode.FAILED if failed else ExitCode.OK)


def test_a_result_that_cannot_be_computed_ends_with_1_and_keeps_what_was_done(
    project: Project,
) -> None:
    project.write(
        "workflows/broken.py",
        """
        from wfe import WorkflowResponse, step, transform, workflow

        @step
        def act() -> int:
            return 0

        @workflow("broken")
        def broken():
            return WorkflowResponse(transform(act(), fn=lambda n: 1 // n))
        """,
    )
    ended = project.wfe("run", "broken", "--tx", "t1", "-o", "json")
    assert ended.code == 1
    assert ended.document["state"] == "done"
    assert ended.document["error"]["code"] == "result_failed"
    assert "ZeroDivisionError" in ended.document["error"]["message"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "on_terminal", "in_pipe"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_colours_are_for_terminals_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], on_terminal: bool, in_pipe: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert colors_by_default(_Terminal()) is on_terminal
    assert colors_by_default(io.StringIO()) is in_pipe


def test_colours_asked_for_by_name_make_a_pipe_a_screen(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    shown = flows.wfe("executions", "list", "--color", "always").out
    assert "\x1b[32m✓" in shown
    assert "KEY" in shown


def test_what_the_message_says_is_not_said_again_below_it() -> None:
    stack = 'Traceback (most recent call last):\n  File "a.py", line 1, in ship\n{}: no\n'
    for told in ("ValueError", "wfe.errors.ValueError"):
        record = msgspec.structs.replace(BROKEN, stack=stack.format(told))
        assert report.frames(record) == '  File "a.py", line 1, in ship'


def test_the_error_of_a_step_and_that_of_an_undo_are_two_sentences(flows: Project) -> None:
    ended = flows.wfe("run", "wall", "-p", "fail=ship", "-o", "json")
    assert re.search(r"Step 'ship': .*\. The undo of step ", ended.document["error"]["message"])
