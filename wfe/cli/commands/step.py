"""`wfe step`: see steps, answer one that waits, and carry its execution on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.command import command, group
from wfe.cli.commands import steps
from wfe.cli.output import LIST_FORMATS, ONE_FORMATS, RUN_FORMATS
from wfe.cli.parameters import Key
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.model import CommandResult, Event, StepKey
    from wfe.runtime.engine import Engine

app = group("See steps, and answer those that wait.")

command(app, "list", formats=LIST_FORMATS)(steps.list_)
command(app, "show", formats=ONE_FORMATS)(steps.show)


@command(app, "succeed", formats=RUN_FORMATS)
def succeed(
    session: Session,
    key: Key,
    response: Annotated[
        str | None,
        typer.Option(
            "--response", "-r", metavar="JSON|@FILE|-", help="The step's output; - is stdin."
        ),
    ] = None,
) -> int:
    """Say that a waiting step has succeeded, and carry the execution on until it is finished or
    waits again.

    \b
    wfe step succeed release:2026.11:approve:invoke --response '{"by": "kim"}'
    """
    from wfe.cli import inputs

    value = None if response is None else inputs.json_value(response, "--response")

    async def answer(
        engine: Engine, step: StepKey, on_event: Callable[[Event], None]
    ) -> CommandResult:
        return await engine.set_step_success(
            step,
            value,
            until="waiting",
            throw_on_error=False,
            events=on_event,
            by=session.sender,
        )

    return _answer(session, key, answer)


@command(app, "fail", formats=RUN_FORMATS)
def fail(
    session: Session,
    key: Key,
    error: Annotated[str, typer.Option("--error", "-e", metavar="TEXT", help="What went wrong.")],
    permanent: Annotated[
        bool, typer.Option("--permanent", help="Do not retry, even where the step could be.")
    ] = False,
) -> int:
    """Say that a waiting step has failed, and carry the execution on until it is finished or waits
    again.

    \b
    wfe step fail release:2026.12:approve:invoke --error 'not on a Friday' --permanent
    """
    if not error.strip():
        raise UsageError("--error is empty: say what went wrong.")

    async def answer(
        engine: Engine, step: StepKey, on_event: Callable[[Event], None]
    ) -> CommandResult:
        return await engine.set_step_failure(
            step,
            error,
            force_permanent_failure=permanent,
            until="waiting",
            throw_on_error=False,
            events=on_event,
            by=session.sender,
        )

    return _answer(session, key, answer)


@command(app, "skip", formats=RUN_FORMATS)
def skip(
    session: Session,
    key: Key,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")
    ] = None,
) -> int:
    """Go on without a step that waits for an answer or for its next attempt. Its output is null, and
    it will not be undone. Of a key that ends in `compensate`: its undo counts as done.

    \b
    wfe step skip release:2026.13:approve:invoke --reason 'told by phone'
    """

    async def answer(
        engine: Engine, step: StepKey, on_event: Callable[[Event], None]
    ) -> CommandResult:
        return await engine.skip_step(
            step,
            reason=reason,
            until="waiting",
            throw_on_error=False,
            events=on_event,
            by=session.sender,
        )

    return _answer(session, key, answer)


@command(app, "retry", formats=RUN_FORMATS)
def retry(session: Session, key: Key) -> int:
    """Attempt a step again now that waits for an answer or for its next attempt.

    \b
    wfe step retry release:2026.14:approve:invoke
    """

    async def answer(
        engine: Engine, step: StepKey, on_event: Callable[[Event], None]
    ) -> CommandResult:
        return await engine.retry_step(
            step, until="waiting", throw_on_error=False, events=on_event, by=session.sender
        )

    return _answer(session, key, answer)


Answer = Callable[["Engine", "StepKey", "Callable[[Event], None]"], Awaitable["CommandResult"]]


def _answer(session: Session, text: str, answer: Answer) -> int:
    from wfe.cli import conclusion, keys

    with session.reader(to_write=True) as reader:
        step = keys.find_step(reader, text)
    catalog = session.catalog_with(step.workflow_id)

    from wfe.cli import foreground
    from wfe.cli.live import watcher

    async def begin(engine: Engine, on_event: Callable[[Event], None]) -> Any:
        return await answer(engine, step, on_event)

    watching = watcher(session, answers=False)
    driven = foreground.drive(session, catalog, begin, watching, key=step.execution, is_answer=True)
    return conclusion.conclude(session, driven, is_answer=True)
