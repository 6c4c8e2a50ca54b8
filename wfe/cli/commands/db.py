"""`wfe db`: the database file. What it is like, whether it is whole, copies of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.command import command, group
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.store.facts import Facts

app = group("Look after the database file.")

_FORMATS = ("table", "json")


@command(app, "info", formats=_FORMATS)
def info(session: Session) -> int:
    """Show the size, the settings and the contents. Says what could be done about them.

    \b
    wfe db info
    """
    from wfe.cli import output
    from wfe.store.facts import facts

    found = facts(_path(session), busy_timeout=session.config.busy_timeout)
    document = _document(session, found)
    if session.output == "json":
        output.print_json(document)
    elif session.for_people:
        _draw(session, found)
    else:
        for name, value in document.items():
            output.print_tabbed([name, value])
    _say_what_to_do(session, found)
    return ExitCode.OK


@command(app, "check", formats=_FORMATS)
def check(session: Session) -> int:
    """Find out whether it is whole. That includes whether executions agree with their own steps, and
    whether only their owner can read the files. Changes nothing. Ends with 1 where something is wrong.

    \b
    wfe db check
    """
    from wfe.cli import checks

    return checks.run(session, _path(session))


@command(app, "migrate", formats=_FORMATS)
def migrate(session: Session) -> int:
    """Bring it to this version's schema. A copy is made first. Every command that writes does the same
    by itself.

    \b
    wfe db migrate
    """
    from wfe.store.database import upgrade

    path = _path(session)
    done = upgrade(path, busy_timeout=session.config.busy_timeout)
    backup = None if done.backup is None else str(done.backup)
    document = {"path": str(path), "before": done.before, "after": done.after, "backup": backup}
    if done.before == done.after:
        return _tell(session, document, f"{path} has the newest schema, {done.after}, already.")
    sentence = f"{path} was brought from schema {done.before} to {done.after}."
    return _tell(session, document, f"{sentence} As it was: {backup}" if backup else sentence)


@command(app, "backup", formats=_FORMATS)
def backup(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to put the copy.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is there; only by a whole copy.")
    ] = False,
) -> int:
    """Copy it while others go on writing. The copy is the database as it was at one moment; it is
    checked before it gets its name, and only its owner can read it.

    To put one back: move the database away together with its -wal and -shm, then copy the backup
    into its place.

    \b
    wfe db backup wfe-backup.db
    """
    from wfe.cli import text
    from wfe.cli.meter import Meter
    from wfe.store.backup import back_up
    from wfe.store.database import open_for_reading

    path, target = _path(session), Path(file).expanduser().absolute()
    patience = session.config.busy_timeout
    if not file:
        raise UsageError("FILE is empty: name the copy.")
    open_for_reading(path, busy_timeout=patience, any_schema=True).close()
    with Meter("Copying") as meter:
        back_up(
            path,
            target,
            replace=force,
            patience=patience,
            on_progress=lambda left, pages: meter.show(pages - left, pages),
        )
    size = target.stat().st_size
    document = {"path": str(path), "backup": str(target), "size": size}
    return _tell(session, document, f"{path} was copied to {target} ({text.size(size)}).")


@command(app, "compact", formats=_FORMATS)
def compact(session: Session) -> int:
    """Give free space back to the disk. The file is rewritten without it; whoever writes waits
    meanwhile, about a second for some hundred megabytes.

    \b
    wfe db compact
    """
    from wfe.cli import text
    from wfe.store import compact

    path = _path(session)
    done = compact.compact(path, busy_timeout=session.config.busy_timeout)
    sizes = f"{text.size(done.before)} before, {text.size(done.after)} now"
    return _tell(session, {"path": str(path), **done._asdict()}, f"{path}: {sizes}.")


def _path(session: Session) -> Path:
    from wfe.store.database import absolute

    return absolute(session.config.db)


def _tell(session: Session, document: dict[str, Any], sentence: str) -> int:
    from wfe.cli import output, text

    if session.output == "json":
        output.print_json({"ok": True, **document})
    elif session.for_people:
        print(text.shown(sentence))
    else:
        for name, value in document.items():
            output.print_tabbed([name, value])
    return ExitCode.OK


# --- info ----------------------------------------------------------------------------------------


def _document(session: Session, found: Facts) -> dict[str, Any]:
    from wfe.cli import text
    from wfe.store.facts import NEWEST, SQLITE

    return {
        "path": str(found.path),
        "size": found.size,
        "wal_size": found.wal_size,
        "free": found.free,
        "schema": found.schema,
        "newest_schema": NEWEST,
        "sqlite": SQLITE,
        "journal_mode": found.journal_mode,
        "synchronous": session.config.synchronous,
        "retention": session.config.retention,
        "last_sweep": text.iso(found.last_sweep) or None,
        "executions": found.executions if found.is_known else None,
        "states": found.states,
        "oldest": text.iso(found.oldest) or None,
        "newest": text.iso(found.newest) or None,
    }


def _draw(session: Session, found: Facts) -> None:
    from wfe.cli import text
    from wfe.cli.render import Screen
    from wfe.clock import SystemClock
    from wfe.store.facts import NEWEST, SQLITE

    now = SystemClock().now()
    size = f"{text.size(found.size)}, of which {text.size(found.free)} are free"
    swept = f"last swept {text.ago(found.last_sweep, now)}" if found.last_sweep else "never swept"
    schema = f"{found.schema}" if found.schema == NEWEST else f"{found.schema}, newest {NEWEST}"
    lines = {
        "size": f"{size}; {text.size(found.wal_size)} in the log",
        "schema": schema,
        "sqlite": f"{SQLITE}, journal {found.journal_mode}, synchronous {session.config.synchronous}",
        "retention": f"{text.elapsed(session.config.retention)}, {swept}",
        "oldest": text.ago(found.oldest, now),
        "newest": text.ago(found.newest, now),
    }
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    screen.title(str(found.path))
    for name, fact in lines.items():
        if fact:
            screen.paragraph(fact, indent="  ", label=f"{name:<11}")
    if not found.is_known:
        return
    screen.line()
    screen.title(f"{found.executions} execution{'s' * (found.executions != 1)}")
    cells = [[screen.state(state), screen.text(str(n))] for state, n in found.states.items()]
    for line in screen.rows(cells):
        screen.line("  ", line)


def _say_what_to_do(session: Session, found: Facts) -> None:
    from wfe.store.compact import is_worth_it
    from wfe.store.facts import NEWEST

    said = ""
    if found.schema > NEWEST:
        said = f"It was written by a newer wfe; this one knows schema {NEWEST}."
    elif 0 < found.schema < NEWEST:
        said = session.with_flags("Bring it up to date with: wfe db migrate")
    elif is_worth_it(found.free, found.size):
        said = session.with_flags("To give back to the disk what is free: wfe db compact")
    if said:
        tell(said)
