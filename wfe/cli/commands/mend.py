"""`wfe executions resume|retry|cancel|delete`: what a person does about an execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from wfe.cli.consent import Yes
from wfe.cli.exit_codes import ExitCode
from wfe.cli.parameters import Key
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import NotAllowed, UsageError, WfeError

if TYPE_CHECKING:
    from wfe.cli.foreground import Command
    from wfe.discover import Catalog
    from wfe.model import CommandResult, Event, Execution, ExecutionKey, Head
    from wfe.runtime.engine import Engine

AllowChanged = Annotated[
    bool,
    typer.Option(
        "--allow-changed",
        help="Go on though the workflow has changed up to where it stands: what was added there is "
        "skipped, what was taken out is not undone.",
    ),
]
Rename = Annotated[
    list[str] | None,
    typer.Option("--rename", metavar="OLD=NEW", help="A step that has another name now."),
]
MaybeKey = Annotated[str | None, typer.Argument(metavar="[KEY]", help="See: wfe help keys.")]


def resume(
    session: Session,
    key: MaybeKey = None,
    allow_changed: AllowChanged = False,
    rename: Rename = None,
) -> int:
    """Drive on what was interrupted, until it is finished or waits for an answer from outside.

    Steps that were in flight are attempted again under the same idempotency key; steps that wait
    for an answer go on waiting. Without KEY: everything that is interrupted; and whoever was to be told
    of an end by a process that is gone (on_finish) is told.

    \b
    wfe executions resume order-0045
    wfe executions resume
    """
    from wfe.cli import inputs

    on_change = inputs.on_change(allow_changed, rename or [])
    if key is None:
        if on_change:
            raise UsageError("A change is allowed for one execution: name it by its KEY.")
        return _resume_all(session)
    execution, catalog = _known(session, key)
    head = execution.head

    async def take_up(engine: Engine, on_event: Callable[[Event], None]) -> CommandResult:
        return await engine.resume(
            head.workflow_id,
            head.transaction_id,
            until="waiting",
            throw_on_error=False,
            events=on_event,
            **on_change,
        )

    return _driven(session, catalog, take_up, head.key)


def retry(session: Session, key: Key) -> int:
    """Run again what was reverted or has failed: the same input, a new run of the same id.

    \b
    wfe executions retry order-0044
    """
    from wfe.store import codec

    execution, catalog = _known(session, key)
    head = execution.head
    if str(head.state) not in ("reverted", "failed"):
        raise NotAllowed(
            head.workflow_id, head.transaction_id, command="retried", state=str(head.state)
        )
    given = {} if execution.input is None else {"input": codec.decode(execution.input)}

    async def run_again(engine: Engine, on_event: Callable[[Event], None]) -> CommandResult:
        return await engine.run(
            head.workflow_id,
            transaction_id=head.transaction_id,
            on_conflict="rerun",
            until="waiting",
            throw_on_error=False,
            events=on_event,
            **given,
        )

    return _driven(session, catalog, run_again, head.key)


def cancel(session: Session, key: Key) -> int:
    """Undo an execution: one that goes on, or one that is done and still kept.

    Steps that are being executed may end first. Where another process has the execution in hand, the
    command returns as soon as that one has accepted it.

    \b
    wfe executions cancel order-0046
    """
    execution, catalog = _known(session, key)
    head = execution.head

    async def undo(engine: Engine, on_event: Callable[[Event], None]) -> CommandResult:
        return await engine.cancel(
            head.workflow_id,
            head.transaction_id,
            wait=True,
            until="waiting",
            throw_on_error=False,
            events=on_event,
            by=session.sender,
        )

    return _driven(session, catalog, undo, head.key, is_cancel=True)


def delete(session: Session, key: Key, yes: Yes = False) -> int:
    """Forget a finished execution, with all that is kept of it. One that is not finished is refused:
    cancel it first.

    \b
    wfe executions delete order-0047 -y
    """
    import asyncio

    from wfe.cli import consent, keys, output

    with session.reader(to_write=True) as reader:
        head = keys.find_execution(reader, key).head
    if not head.is_final:
        raise NotAllowed(
            head.workflow_id, head.transaction_id, command="deleted", state=str(head.state)
        )
    consent.ask(f"delete {head.key} (run {head.run_id})", yes=yes)
    asyncio.run(_delete(session, head))
    if session.output == "json":
        output.print_json({"ok": True, "key": str(head.key), "run": head.run_id})
    else:
        tell(f"Deleted {head.key} (run {head.run_id}).")
    return ExitCode.OK


async def _delete(session: Session, head: Head) -> None:
    from wfe.cli.foreground import engine_of

    async with engine_of(session) as engine:
        await engine.delete(head.workflow_id, head.transaction_id, head.run_id)


# --- driving -------------------------------------------------------------------------------------


def _resume_all(session: Session) -> int:
    """Everything that is interrupted; a line for each, and what became of it."""
    from wfe.cli import conclusion, foreground, output

    catalog = session.catalog()
    found, signal = foreground.drive_many(session, catalog, _recovered, tells_all=True)
    if signal is not None:
        again = session.command("executions", "resume")
        return conclusion.interrupted(session, signal, f"What is left goes on with: {again}")
    assert found is not None
    lines = [
        {"key": str(key), "status": _status(outcome), "error": _reason(outcome)}
        for key, outcome in found.items()
    ]
    if session.output == "json":
        output.print_json(lines)
    elif session.output != "table" or lines:
        for line in lines:
            output.print_tabbed([line["key"], line["status"], line["error"]])
    else:
        tell("Nothing is interrupted.")
    return ExitCode.ERROR if any(line["error"] for line in lines) else ExitCode.OK


async def _recovered(engine: Engine) -> dict[ExecutionKey, CommandResult | WfeError]:
    """Take up what is interrupted, and wait until it is finished or waits for somebody."""
    found: dict[ExecutionKey, CommandResult | WfeError] = {}
    while fresh := {key: e for key, e in (await engine.recover()).items() if key not in found}:
        for key, error in fresh.items():
            found[key] = error or await engine.wait_for(
                key.workflow_id, key.transaction_id, until="waiting", throw_on_error=False
            )
    return found


def _status(outcome: CommandResult | WfeError) -> str:
    from wfe.cli import documents
    from wfe.model import CommandResult

    if isinstance(outcome, CommandResult) and outcome.execution is not None:
        return documents.status(outcome.execution)
    return "interrupted"


def _reason(outcome: CommandResult | WfeError) -> str | None:
    """Why it was not taken up."""
    from wfe.model import CommandResult

    if isinstance(outcome, CommandResult):
        outcome_reason = outcome.acknowledgement.reason
        return None if outcome_reason is None else str(outcome_reason)
    return str(outcome)


def _known(session: Session, text: str) -> tuple[Execution, Catalog]:
    """The execution that a key means, and the workflows, among which its own is."""
    from wfe.cli import keys

    with session.reader(to_write=True) as reader:
        execution = keys.find_execution(reader, text)
    return execution, session.catalog_with(execution.head.workflow_id)


def _driven(
    session: Session,
    catalog: Catalog,
    command: Command,
    key: ExecutionKey,
    *,
    is_cancel: bool = False,
) -> int:
    from wfe.cli import conclusion, foreground
    from wfe.cli.live import watcher

    watching = watcher(session, answers=False)
    driven = foreground.drive(session, catalog, command, watching, key=key, is_answer=is_cancel)
    return conclusion.conclude(session, driven, is_answer=is_cancel, is_cancel=is_cancel)
