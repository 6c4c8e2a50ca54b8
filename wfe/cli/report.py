"""One execution in full: for people on a terminal, and as tab-separated lines."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

from wfe.cli import documents, output, text, tree
from wfe.clock import SystemClock
from wfe.model import ErrorRecord, Execution, ExecutionKey, StepKey

if TYPE_CHECKING:
    from wfe.cli.render import Screen
    from wfe.cli.session import Session


def answers(session: Session, key: StepKey) -> tuple[str, str]:
    """The two command lines that answer a waiting step. Pasted as they are, they are refused or
    harmless: an answer that nobody gave would carry the execution on."""
    return (
        session.command("step", "succeed", str(key), "--response", "JSON"),
        session.command("step", "fail", str(key), "--error", "REASON"),
    )


def goes_on(session: Session, key: ExecutionKey) -> str:
    """How an unfinished execution is carried on."""
    command = session.command("run", key.workflow_id, "--tx", key.transaction_id)
    return f"It goes on where it was with: {command}"


def print_plain(session: Session, execution: Execution) -> None:
    """Lines for scripts: `name<TAB>value`, then one line for each step, waiting key and error."""
    document = documents.outcome(execution)
    head = execution.head
    for name in ("key", "status", "state", "workflow", "transaction", "run"):
        output.print_tabbed([name, document[name]])
    for name, moment in (("created", head.created_at), ("ended", head.ended_at)):
        output.print_tabbed([name, text.iso(moment)])
    for row in tree.rows(execution, SystemClock().now()):
        record = execution.step(row.step)
        sides = [side.word if side else "" for side in (row.invoke, row.compensate)]
        moments = text.iso(record.started_at), text.iso(record.ended_at)
        output.print_tabbed(["step", row.step, *sides, *moments, *row.notes])
    for key in tree.waiting_keys(execution):
        output.print_tabbed(["waiting", str(key), *answers(session, key)])
    for error in head.errors:
        output.print_tabbed(["error", error.action, error.handler_type, error.name, error.message])
    for name, value in (("input", execution.input), ("result", execution.result)):
        output.print_tabbed([name, value.decode() if value is not None else ""])


def draw(session: Session, execution: Execution) -> None:
    """The same for a person."""
    from wfe.cli.render import Screen

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    _draw_head(screen, execution)
    screen.line()
    for line in screen.steps(tree.rows(execution, SystemClock().now())):
        screen.line(line)
    draw_waiting(screen, session, execution)
    draw_errors(screen, execution.head.errors)
    for name, value in (("Input", execution.input), ("Result", execution.result)):
        if value is not None:
            screen.line()
            screen.title(name)
            screen.line(_indented(text.safe_json(_pretty(value))))


def draw_waiting(screen: Screen, session: Session, execution: Execution) -> None:
    """The commands that answer what waits, to be pasted."""
    keys = tree.waiting_keys(execution)
    if keys:
        screen.line()
        screen.title("Waits for an answer")
    for key in keys:
        for line in answers(session, key):
            screen.line(f"  {line}")


def draw_errors(screen: Screen, errors: tuple[ErrorRecord, ...]) -> None:
    """Every error, with the user's own frames."""
    if errors:
        screen.line()
        screen.title("Errors")
    for record in errors:
        side = "undo of " if str(record.handler_type) == "compensate" else ""
        where = f"{side}{record.action}" if record.action else "result"
        screen.line(f"  {where}: {text.safe(text.failure(record.name, record.message))}")
        if found := frames(record):
            screen.dim(_indented(text.safe_lines(found), by=4))


def frames(record: ErrorRecord) -> str:
    """Where the error was raised: the user's own frames, without what its message says anyway.
    Empty for a failure that was meant: where it was raised helps nobody."""
    if record.name == "PermanentStepFailure":
        return ""
    stack = (record.stack or "").rstrip()
    told = text.failure(record.name, record.message).rstrip()
    if stack.endswith(told):  # after the module of the error's type
        stack = stack.removesuffix(told).rpartition("\n")[0]
    lines = stack.splitlines()
    return "\n".join(line for line in lines if line != "Traceback (most recent call last):")


def _draw_head(screen: Screen, execution: Execution) -> None:
    head = execution.head
    screen.title(str(head.key))
    now = SystemClock().now()
    screen.line(screen.summary(execution, now))
    facts = {
        "run": head.run_id,
        "created": _ago(head.created_at, now),
        "ended": _ago(head.ended_at, now),
        "cancelled": _ago(head.cancelled_at, now),
        "wakes": "" if head.is_final else text.iso(head.wake_at),
        "parent": head.parent_step_idempotency_key or "",
    }
    for name, fact in facts.items():
        if fact:
            screen.line(f"   {name:<10}", fact)


def _ago(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{text.iso(moment)}  {text.age(moment, now)} ago"


def _pretty(value: bytes) -> str:
    import msgspec

    return msgspec.json.format(value, indent=2).decode()


def _indented(lines: str, *, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in lines.split("\n"))
