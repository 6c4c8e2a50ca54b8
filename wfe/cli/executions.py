"""`wfe executions`: find executions and look at them. Reads the store alone, runs no user code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.command import command, group
from wfe.cli.exit_codes import ExitCode
from wfe.cli.output import LIST_FORMATS, ONE_FORMATS
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.store.contract import ExecutionSummary, Query

app = group("Find executions and look at them.")

#: What a tab-separated line holds, and what `-o wide` adds.
_COLUMNS = ("key", "status", "created", "updated")
_WIDE_COLUMNS = (*_COLUMNS, "ended", "state", "run", "parent")


@command(app, "list", formats=LIST_FORMATS)
def list_(
    session: Session,
    q: Annotated[
        str,
        typer.Option(
            "--query",
            "-q",
            metavar="TEXT",
            help="Only where every word is part of the workflow, the transaction, the state or the "
            "run id.",
            show_default=False,
        ),
    ] = "",
    workflow: Annotated[
        str | None, typer.Option("--workflow", "-w", metavar="ID", help="Only of this workflow.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="STATE,STATE", help="Only in one of these states: failed,waiting."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Only created since then: 2h ago, 2026-11-30."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only created before then.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="At most so many, the newest; 0: all.")
    ] = 50,
    count: Annotated[bool, typer.Option("--count", help="Print how many there are.")] = False,
) -> int:
    """List executions, the newest first.

    In a pipe: key, status, created and updated, separated by tabs.

    \b
    wfe executions list --state failed,waiting --since '2h ago'
    wfe executions list -q 0042 -o json
    wfe executions list -w order --count
    """
    from wfe.cli import output

    query = _query(q, workflow, state, since, until, limit)
    with session.reader() as reader:
        if count:
            output.print_json(reader.count(query) if reader is not None else 0)
            return ExitCode.OK
        found = list(reader.list(query)) if reader is not None else []
    more = bool(limit) and len(found) > limit
    _print(session, found[:limit] if limit else found)
    _say_what_is_missing(session, found, more=more, limit=limit, exists=reader is not None)
    return ExitCode.OK


@command(app, "show", formats=ONE_FORMATS)
def show(
    session: Session,
    key: Annotated[str, typer.Argument(metavar="KEY", help="See: wfe help keys.")],
) -> int:
    """Show one execution: its steps, what it waits for, its errors, its input and result.

    \b
    wfe executions show order:order-0042
    wfe executions show order-0042 -o json
    """
    from wfe.cli import documents, keys, output, report

    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
    match session.output:
        case "json":
            output.print_json(documents.execution(execution))
        case "key":
            output.write_line(str(execution.head.key))
        case _ if session.for_people:
            report.draw(session, execution)
        case _:
            report.print_plain(session, execution)
    return ExitCode.OK


# --- which ---------------------------------------------------------------------------------------


def _query(
    q: str,
    workflow: str | None,
    state: str | None,
    since: str | None,
    until: str | None,
    limit: int,
) -> Query:
    from wfe.cli import inputs
    from wfe.clock import SystemClock
    from wfe.store.contract import Query

    if limit < 0:
        raise UsageError("--limit is a whole number from 0 (all) on.")
    now = SystemClock().now()
    where: dict[str, Any] = {}
    if workflow is not None:
        where["workflow_id"] = workflow
    if state is not None:
        where.update(_states(state))
    created = {}
    if since is not None:
        created["$gte"] = inputs.moment(since, "--since", now)
    if until is not None:
        created["$lt"] = inputs.moment(until, "--until", now)
    if created:
        where["created_at"] = created
    return Query(q=q, where=where, limit=limit + 1 if limit else None)


def _states(listed: str) -> dict[str, Any]:
    """The condition for states as they are stored, derived statuses, or both."""
    from wfe.model import ExecutionState

    derived = ("running", "waiting", "sleeping")
    names = [name.strip() for name in listed.split(",")]
    for name in names:
        if name not in (*ExecutionState, *derived):
            _refuse_state(name, [*map(str, ExecutionState), *derived])
    conditions = []
    if states := [name for name in names if name not in derived]:
        conditions.append({"state": {"$in": states}})
    if statuses := [name for name in names if name in derived]:
        conditions.append({"status": {"$in": statuses}})
    return conditions[0] if len(conditions) == 1 else {"$or": conditions}


def _refuse_state(name: str, known: Sequence[str]) -> None:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    raise UsageError(
        f"There is no state {name!r}.",
        hint=f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}.",
    )


# --- how -----------------------------------------------------------------------------------------


def _print(session: Session, found: Sequence[ExecutionSummary]) -> None:
    from wfe.cli import documents, output

    if session.output in ("table", "wide") and session.for_people:
        _draw(session, found)
        return
    columns = _WIDE_COLUMNS if session.output == "wide" else _COLUMNS
    output.print_list([documents.summary(item) for item in found], session.output, columns)


def _draw(session: Session, found: Sequence[ExecutionSummary]) -> None:
    import sys

    from wfe.cli import text
    from wfe.cli.render import Screen
    from wfe.clock import SystemClock

    if not found:
        return
    now = SystemClock().now()
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    wide = session.output == "wide"
    rows = []
    for item in found:
        row = [screen.state(item.shown), screen.text(text.age(item.created_at, now))]
        if wide:
            took = text.elapsed(text.seconds(item.created_at, item.ended_at))
            row += map(screen.text, (took, text.iso(item.updated_at), item.run_id))
        rows.append([*row, screen.text(str(item.key))])
    titles = ("TOOK", "UPDATED", "RUN") if wide else ()
    screen.table(["STATUS", "AGE", *titles, "KEY"], rows)


def _say_what_is_missing(
    session: Session, found: Sequence[object], *, more: bool, limit: int, exists: bool
) -> None:
    import sys

    if more:
        print(f"There are more than {limit}: see --limit, -q, --state, --since.", file=sys.stderr)
    elif not exists:
        print(f"No executions: there is no database {session.config.db} yet.", file=sys.stderr)
    elif not found and session.for_people:
        print("No executions.", file=sys.stderr)
