"""`wfe gc`: forget what is finished and was kept long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wfe.cli.command import alone, command
from wfe.cli.consent import Yes
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.cli.telling import tell

if TYPE_CHECKING:
    from wfe.store.sweep import Due, Swept

app = alone()


@command(app, "gc", formats=("table", "json"))
def gc(
    session: Session,
    older: Annotated[
        str | None,
        typer.Option(
            "--older",
            metavar="TIME",
            help="What ended longer ago than this, however long it was to be kept: 90d, 12h.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be removed, and remove nothing.")
    ] = False,
    yes: Yes = False,
) -> int:
    """Remove finished executions whose retention time has passed. What is unfinished stays, and what
    was a step of something that stays.

    Commands that run workflows do a part of this by themselves, once a day.

    \b
    wfe gc --dry-run
    wfe gc --older 90d -y
    """
    from wfe.cli import consent, inputs
    from wfe.clock import SystemClock
    from wfe.store.database import absolute
    from wfe.store.sweep import Due, Swept, would_go

    now = SystemClock().now()
    due = Due(now)
    if older is not None:
        ended = inputs.moment(older, "--older", now, examples="90d, 12h or 2026-11-30")
        due = Due(ended, by_age=True)
    path = absolute(session.config.db)
    found = Swept(0, 0)
    if path.exists():
        found = would_go(path, due, now=now, busy_timeout=session.config.busy_timeout)
    if dry_run:
        return _tell(session, found, dry_run=True)
    is_idle = found == (0, 0)
    consent.ask(f"remove {_count(found)}", yes=yes, is_idle=is_idle)
    return _tell(session, found if is_idle else _sweep(session, due), dry_run=False)


def _sweep(session: Session, due: Due) -> Swept:
    from wfe.cli.meter import Meter
    from wfe.clock import SystemClock
    from wfe.store.database import absolute
    from wfe.store.sweep import sweep

    config = session.config
    with Meter("Removing") as meter:
        return sweep(
            absolute(config.db),
            due,
            now=SystemClock().now(),
            synchronous=config.synchronous,
            busy_timeout=config.busy_timeout,
            on_progress=meter.show,
        )


def _count(swept: Swept) -> str:
    executions = f"{swept.executions} finished execution{'s' * (swept.executions != 1)}"
    return f"{executions} and {swept.leftovers} leftovers" if swept.leftovers else executions


def _tell(session: Session, swept: Swept, *, dry_run: bool) -> int:
    from wfe.cli import output

    if session.output == "json":
        output.print_json({"ok": True, "dry_run": dry_run, **swept._asdict()})
    elif session.for_people:
        print(f"{'Would remove' if dry_run else 'Removed'} {_count(swept)}.")
    else:
        for name, value in swept._asdict().items():
            output.print_tabbed([name, value])
    if not dry_run and swept.executions:
        _say_what_is_free(session)
    return ExitCode.OK


def _say_what_is_free(session: Session) -> None:
    from wfe.cli import text
    from wfe.store.compact import is_worth_it
    from wfe.store.database import absolute
    from wfe.store.facts import facts

    found = facts(absolute(session.config.db), busy_timeout=session.config.busy_timeout)
    if is_worth_it(found.free, found.size):
        free, size = text.size(found.free), text.size(found.size)
        hint = session.with_flags("To give it back to the disk: wfe db compact")
        tell(f"{free} of {size} are free in the file, for what comes next. {hint}")
