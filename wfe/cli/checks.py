"""The report of `wfe db check`: a line for each check as soon as it is done, with what it found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfe.cli import output, text
from wfe.cli.exit_codes import ExitCode
from wfe.cli.failures import Failure
from wfe.cli.telling import tell
from wfe.store.checkup import Result, check_up, is_damaged, is_partial
from wfe.store.salvage import Reach, reach

if TYPE_CHECKING:
    from wfe.cli.render import Screen
    from wfe.cli.session import Session


def run(session: Session, path: Path) -> int:
    """Check the database, report, and give the exit code."""
    screen = screen_of(session)
    results: list[Result] = []
    for result in check_up(path, busy_timeout=session.config.busy_timeout):
        results.append(result)
        show(session, screen, result)
    reached = reach(path) if is_damaged(results) else []
    _show_reached(session, screen, reached)
    failure = _failure(session, path, results)
    if session.output == "json":
        outcome = {"ok": True} if failure is None else failure.document()
        checks = [document(result) for result in results]
        readable = [table._asdict() for table in reached]
        output.print_json({**outcome, "checks": checks, "readable": readable})
    if is_partial(results) and not is_damaged(results):
        hint = session.with_flags("Its schema is an older one: wfe db migrate")
        tell(f"What is in it was not checked. {hint}")
    if failure is None:
        return ExitCode.OK
    failure.tell(color=session.colors(sys.stderr))
    return failure.exit_code


def screen_of(session: Session) -> Screen | None:
    """What is drawn on; None where lines or JSON are printed."""
    if session.output == "json" or not session.for_people:
        return None
    from wfe.cli.render import Screen

    return Screen(sys.stdout, colors=session.colors(sys.stdout))


def _failure(session: Session, path: Path, results: Sequence[Result]) -> Failure | None:
    found = sum(result.found for result in results)
    if not found:
        return None
    if is_damaged(results):
        return Failure(
            f"The database {path} is damaged.",
            code="damaged",
            hint=_newest_backup(path)
            or "No copy of it lies beside it. Keep the file, and restore a backup of yours.",
        )
    finding = f"{found} finding{'s' * (found != 1)}"
    return Failure(f"The database {path} is not as it should be: {finding}.", code="findings")


def _newest_backup(path: Path) -> str:
    from wfe.store.backup import known

    backups = known(path)
    return f"Keep the file, and put the newest copy in its place: {backups[0]}" if backups else ""


def document(result: Result) -> dict[str, Any]:
    """A check as JSON."""
    return {
        "name": result.name,
        "claim": result.claim,
        "ok": result.is_ok,
        "found": result.found,
        "findings": [finding._asdict() for finding in result.findings],
    }


def show(session: Session, screen: Screen | None, result: Result) -> None:
    """The lines of one check; none where JSON is to be printed at the end."""
    if screen is not None:
        _draw(screen, result)
    elif session.output != "json":
        word = "ok" if result.is_ok else "wrong"
        output.print_tabbed([word, result.name, result.claim, result.found])
        for finding in result.findings:
            output.print_tabbed(["finding", result.name, *finding])


def _draw(screen: Screen, result: Result) -> None:
    state = screen.state("ok" if result.is_ok else "wrong")
    state.append(f"{' ' * (7 - len(state.plain))}  {result.name:<12} ", style="default")
    screen.beside(state, text.shown(result.claim))
    for finding in result.findings:
        about = f"{finding.key} " if finding.key else ""
        screen.paragraph(text.shown(f"{about}{finding.message}"), indent="    ")
        if finding.mend:
            screen.line("    Mend it with: ", text.shown(finding.mend))
    if more := result.found - len(result.findings):
        screen.line(f"    and {more} more")


def _show_reached(session: Session, screen: Screen | None, reached: Sequence[Reach]) -> None:
    if screen is not None and reached:
        screen.line()
        screen.title("What can be read of it")
        screen.columns([[f"  {one.table}", f"{one.rows} rows", _extent(one)] for one in reached])
    elif screen is None and session.output != "json":
        for one in reached:
            output.print_tabbed(["readable", one.table, one.rows, _extent(one)])


def _extent(one: Reach) -> str:
    return "all of them" if one.is_whole else "the others are lost"
