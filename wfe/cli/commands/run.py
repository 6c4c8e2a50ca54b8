"""`wfe run`: one execution of a workflow, in the foreground."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wfe.cli.command import alone, command
from wfe.cli.output import RUN_FORMATS
from wfe.cli.parameters import Otel, Target
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.model import CommandResult, Event
    from wfe.runtime.engine import Engine

_UNTIL: dict[str, Literal["finished", "waiting", "stored"]] = {
    "done": "finished",
    "waiting": "waiting",
    "stored": "stored",
}


app = alone()


@command(app, "run", formats=RUN_FORMATS)
def run(
    session: Session,
    target: Target,
    input: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="JSON|@FILE|-", help="The input; - is stdin."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="KEY=VALUE",
            help="A key of the input: JSON if it parses and fits, else text; @FILE is a file's content; "
            "a.b nests.",
        ),
    ] = None,
    tx: Annotated[
        str | None,
        typer.Option("--tx", metavar="ID", help="The transaction id; default: a new one."),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="done|waiting|stored",
            help="Return when it is finished; or when only answers from outside are missing (20); "
            "or when it is accepted.",
        ),
    ] = "done",
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Stop watching after that (20): 90s, 15m."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="FILE|-", help="Write each event as a line of JSON."),
    ] = None,
    allow_changed: Annotated[
        bool,
        typer.Option(
            "--allow-changed",
            help="Go on though the workflow has changed up to where --tx stands: what was added "
            "there is skipped, what was taken out is not undone.",
        ),
    ] = False,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            "--rename",
            metavar="OLD=NEW",
            help="A step of --tx that the workflow has under another name now; may be repeated.",
        ),
    ] = None,
    otel: Otel = False,
) -> int:
    """Run a workflow and print its result.

    Progress goes to stderr, the result to stdout. The same --tx again attaches to, resumes or
    repeats that execution.

    \b
    wfe run order -p gift=true -p address.city=Oslo
    wfe run order -i @order.json --tx order-0042 -o json
    wfe run workflows/release.py:release -i '"1.2"' --until waiting
    """
    from wfe.authoring.responses import NOT_GIVEN
    from wfe.cli import inputs

    if until not in _UNTIL:
        raise UsageError(f"--until {until!r} is none of {', '.join(_UNTIL)}.")
    if events == "-" and session.output != "table":
        raise UsageError("--events - and -o both want stdout.", hint="Give --events a file.")
    patience = inputs.seconds(timeout, "--timeout")
    value = inputs.workflow_input(input, param or [])
    if tx is None and (allow_changed or rename):
        flag = "--rename" if rename else "--allow-changed"
        raise UsageError(f"{flag} is about an execution that exists.", hint="Name it: --tx ID.")
    on_change = inputs.on_change(allow_changed, rename or [])
    workflow, catalog = session.target(target)
    if value is not NOT_GIVEN:
        value = inputs.fitted(workflow, value, param or [])

    from wfe.cli import conclusion, foreground, recorder, telemetry
    from wfe.cli.live import watcher
    from wfe.model import ExecutionKey

    async def begin(engine: Engine, on_event: Callable[[Event], None]) -> CommandResult:
        if until == "stored":
            engine.hold_back()
        return await engine.run(
            workflow,
            value,
            transaction_id=tx,
            until=_UNTIL[until],
            throw_on_error=False,
            events=on_event,
            **on_change,
        )

    if tx is not None:
        _say_which_case(session, workflow.id, tx)
    with contextlib.ExitStack() as stack:
        if otel:
            session.listeners.append(stack.enter_context(telemetry.traces(session)).on_event)
        watching = stack.enter_context(
            recorder.recording(events, watcher(session, answers=until == "done"))
        )
        key = None if tx is None else ExecutionKey(workflow.id, tx)
        driven = foreground.drive(session, catalog, begin, watching, key=key, timeout=patience)
    ended = conclusion.stored if until == "stored" else conclusion.conclude
    return ended(session, driven, quiet=events == "-")


def _say_which_case(session: Session, workflow_id: str, transaction_id: str) -> None:
    """What the same transaction id again means depends on how it stands."""
    from wfe.cli import documents
    from wfe.model import ExecutionKey

    with session.reader(to_write=True) as reader:
        known = reader.load(ExecutionKey(workflow_id, transaction_id)) if reader else None
    if known is None:
        return
    head = known.head
    if not head.is_final:
        status = documents.status(known)
        again = (
            "it is taken up where it was" if status == "interrupted" else "it goes on where it is"
        )
        case = f"is {status}: {again}"
    elif head.idempotent:
        case = f"is {head.state} and idempotent: this is what it came to, nothing runs"
    else:
        case = f"is {head.state}: this is a new run of it"
    tell(f"{head.key} {case}.")
