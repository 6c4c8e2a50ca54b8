"""What a command that drove an execution prints at its end, and its exit code."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from wfe.cli import documents, endings, exit_codes, output, text, tree, ways
from wfe.cli.exit_codes import ExitCode
from wfe.cli.failures import Failure
from wfe.cli.foreground import Driven, leave_running_steps
from wfe.cli.telling import tell
from wfe.errors import TransactionNotFound
from wfe.model import CommandResult, Execution, ExecutionKey
from wfe.store import owners

if TYPE_CHECKING:
    from wfe.cli.session import Session


def conclude(
    session: Session,
    driven: Driven,
    *,
    is_answer: bool = False,
    is_cancel: bool = False,
    quiet: bool = False,
) -> int:
    """Print what came of it. `is_answer`: an answer was accepted, which is what counts. `is_cancel`:
    that answer was to cancel it. `quiet`: stdout is taken by something else."""
    if driven.result is None or driven.signal is not None:
        return _left(session, driven)
    execution = _accepted(driven.result)
    came_to = exit_codes.of_run(execution)
    failure = endings.failure_of(execution, session.command)
    if is_cancel and came_to is ExitCode.CANCELLED:
        _confirm(session, execution, failure)
        return ExitCode.OK
    if not quiet:
        _print(session, execution, failure)
    _tell(session, execution, failure)
    return exit_codes.of_answer(execution) if is_answer else came_to


def _confirm(session: Session, execution: Execution, failure: Failure | None) -> None:
    """It was undone, as it was to be: no error."""
    _print(session, execution, None)
    if failure is not None:
        failure.tell(color=session.colors(sys.stderr), label="")


def stored(session: Session, driven: Driven, *, quiet: bool = False) -> int:
    """The execution was accepted, and another process is to drive it. `quiet` as in `conclude`."""
    if driven.result is None or driven.signal is not None:
        return _left(session, driven)
    execution = _accepted(driven.result)
    if session.output == "json":
        output.print_json({"ok": True, **documents.outcome(execution)})
    elif not quiet:
        output.write_line(str(execution.head.key))
    return ExitCode.OK


def _accepted(result: CommandResult) -> Execution:
    acknowledgement, execution = result.acknowledgement, result.execution
    if not acknowledgement.accepted or execution is None:
        raise acknowledgement.reason or TransactionNotFound(
            acknowledgement.workflow_id, acknowledgement.transaction_id
        )
    return execution


def _print(session: Session, execution: Execution, failure: Failure | None) -> None:
    """To stdout: the document, the key, or the result alone; the waiting keys where there is none."""
    if session.output == "json":
        document = documents.outcome(execution)
        head = failure.document() if failure is not None else {"ok": True}
        output.print_json({**head, **document})
    elif session.output == "key":
        output.write_line(str(execution.head.key))
    elif str(execution.head.state) == "done" and failure is None:
        _print_result(execution)
    elif not sys.stdout.isatty():
        for key in tree.waiting_keys(execution):
            output.write_line(str(key))


def _print_result(execution: Execution) -> None:
    import msgspec

    value = execution.result or b"null"
    if value == b"null" and sys.stdout.isatty():
        return
    output.print_json(msgspec.Raw(value))


def _tell(session: Session, execution: Execution, failure: Failure | None) -> None:
    """To stderr: what a person has to know or do now."""
    if failure is not None:
        failure.tell(color=session.colors(sys.stderr))
        return
    if _is_driven_elsewhere(execution):
        name = str(execution.head.key)
        owner = owners.described(execution.holder or "")
        watch = session.command("executions", "watch", name)
        tell(f"Accepted: {owner} has {name} in hand and goes on with it.")
        tell(f"Watch it with: {watch}")
        return
    keys = tree.waiting_keys(execution)
    if keys:
        tell(f"{execution.head.key} waits for an answer:")
    for key in keys:
        for way in ways.answer(session.command, key):
            print(f"  {text.shown(way.command)}", file=sys.stderr)
    for step, child in tree.waiting_children(execution):
        why = session.command("executions", "why", str(child))
        tell(f"{step} waits for {child}: {why}")


def _is_driven_elsewhere(execution: Execution) -> bool:
    """Another process has it in hand: our own engine has let go of everything by now."""
    holder = execution.holder
    if execution.head.is_final or holder is None:
        return False
    return owners.is_there(holder) is not False


def _left(session: Session, driven: Driven) -> int:
    """The command ended before the execution did, or at the same moment."""
    key = driven.key
    if key is None:
        return _end_early(session, driven.signal, "nothing had begun.")
    end = _final_state(session, key)
    return _end_early(
        session,
        driven.signal,
        f"{key} is {end or 'not finished'}.",
        hint=(
            ways.go_on(session.command, key)
            if end is None
            else f"See: {session.command('executions', 'show', str(key))}"
        ),
        key=str(key),
    )


def interrupted(session: Session, number: int, hint: str) -> int:
    """A signal has ended a command that drove several executions. `hint`: how to go on."""
    return _end_early(session, number, "not all is done.", hint=hint)


def _end_early(
    session: Session, number: int | None, what: str, *, hint: str = "", key: str | None = None
) -> int:
    """Say that a signal (None: patience) has ended the command, and end it."""
    code = ExitCode.WAITING if number is None else ExitCode(128 + number)
    name, why = "not_finished", "No longer watched"
    if number is not None:
        name, why = "interrupted", f"Interrupted ({signal.Signals(number).name})"
    failure = Failure(f"{why}: {what}", code=name, exit_code=code, hint=hint, key=key)
    if session.output == "json":
        output.print_json(failure.document())
    failure.tell(color=session.colors(sys.stderr))
    leave_running_steps(code)
    return code


def _final_state(session: Session, key: ExecutionKey) -> str | None:
    with session.reader() as reader:
        execution = reader.load(key) if reader is not None else None
    return str(execution.head.state) if execution is not None and execution.head.is_final else None
