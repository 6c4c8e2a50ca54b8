"""`wfe executions list`: find executions. Reads the store alone, runs no user code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from wfe.cli.render import Screen
    from wfe.store.contract import ExecutionSummary, Query, Reader

#: What a tab-separated line holds, and what `-o wide` adds.
_COLUMNS = ("key", "status", "created", "updated")
_WIDE_COLUMNS = (*_COLUMNS, "ended", "state", "run", "parent", "steps_done", "steps_total")

#: Executions whose steps are counted at a time.
_AT_A_TIME = 500


def list_(
    session: Session,
    q: Annotated[
        str,
        typer.Option(
            "--query",
            "-q",
            metavar="TEXT",
            help="Only where every word is part of the workflow, the transaction, the state or the "
            "run id; or field=value, and more: see wfe help query.",
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
    every: Annotated[
        bool,
        typer.Option("--all", help="Also those that are steps of others, as with --workflow."),
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="At most so many, the newest; 0: all.")
    ] = 50,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="PLACE", help="Go on behind the end of another page."),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Print how many there are.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep the list up to date, on a terminal.")
    ] = False,
) -> int:
    """List executions, the newest first.

    In a pipe: key, status, created and updated, separated by tabs; -o wide adds when it ended, its
    state, run and parent, and how many of its steps are over, of how many.

    \b
    wfe executions list --state failed,waiting --since '2h ago'
    wfe executions list -q '0042 error~timeout' -o json
    wfe executions list -w order --count
    """
    from wfe.cli import output

    wanted = _Wanted(q, workflow, state, since, until, every, limit)
    query = wanted.query(cursor)
    if watch:
        return _watch(session, wanted, cursor, counts=count)
    with session.reader() as reader:
        if count:
            output.print_json(reader.count(query) if reader is not None else 0)
            return ExitCode.OK
        found = list(reader.list(query)) if reader is not None else []
        shown = found[:limit] if limit else found
        counts = _step_counts(session, reader, shown)
        hidden = _hidden(session, reader, wanted, cursor) if not found else 0
    _print(session, shown, counts)
    if len(found) > len(shown):
        _say_how_to_go_on(session, wanted, shown)
    elif not found:
        _say_why_there_are_none(session, hidden, exists=reader is not None)
    return ExitCode.OK


# --- which ---------------------------------------------------------------------------------------


class _Wanted(NamedTuple):
    """The flags that say which executions."""

    q: str
    workflow: str | None
    state: str | None
    since: str | None
    until: str | None
    every: bool
    limit: int

    def query(self, cursor: str | None) -> Query:
        """What they ask for, one more than is shown. Times are counted from now.

        Raises:
            UsageError: a flag that means nothing.
        """
        from wfe.cli import inputs
        from wfe.clock import SystemClock
        from wfe.store.contract import Query
        from wfe.store.queries import pages, typed

        if self.limit < 0:
            raise UsageError("--limit is a whole number from 0 (all) on.")
        now = SystemClock().now()
        conditions = list(typed.conditions(self.q, now))
        if self.state is not None:
            conditions.append(typed.states(self.state))
        if cursor is not None:
            conditions.append(pages.behind(cursor))
        where: dict[str, Any] = {}
        if self.workflow is not None:
            where["workflow_id"] = self.workflow
        elif not self.every:
            where["parent_step_idempotency_key"] = None
        created = {}
        if self.since is not None:
            created["$gte"] = inputs.moment(self.since, "--since", now)
        if self.until is not None:
            created["$lt"] = inputs.moment(self.until, "--until", now)
        if created:
            where["created_at"] = created
        limit = self.limit + 1 if self.limit else None
        return Query(where=where, conditions=conditions, limit=limit)

    def flags(self) -> list[str]:
        """The flags, to be typed again."""
        named = {
            "-q": self.q,
            "-w": self.workflow,
            "--state": self.state,
            "--since": self.since,
            "--until": self.until,
            "--limit": str(self.limit) if self.limit != 50 else None,
        }
        flags = [word for flag, value in named.items() if value for word in (flag, value)]
        return [*flags, "--all"] if self.every else flags


def _hidden(session: Session, reader: Reader | None, wanted: _Wanted, cursor: str | None) -> int:
    """How many there would be with --all, where a person is to be told."""
    if reader is None or wanted.every or wanted.workflow is not None or not session.for_people:
        return 0
    return reader.count(wanted._replace(every=True).query(cursor))


def _step_counts(
    session: Session, reader: Reader | None, shown: Sequence[ExecutionSummary]
) -> Mapping[str, tuple[int, int]]:
    """How many steps are over, and how many there are, where that is printed."""
    if reader is None or session.output in ("table", "key"):
        return {}
    counts: dict[str, tuple[int, int]] = {}
    ids = iter([item.execution_id for item in shown])
    while some := list(islice(ids, _AT_A_TIME)):
        counts.update(reader.step_counts(some))
    return counts


# --- how -----------------------------------------------------------------------------------------


def _print(
    session: Session,
    shown: Sequence[ExecutionSummary],
    counts: Mapping[str, tuple[int, int]],
) -> None:
    from wfe.cli import output

    if session.output in ("table", "wide") and session.for_people:
        _draw(session, shown, counts)
        return
    columns = _WIDE_COLUMNS if session.output == "wide" else _COLUMNS
    output.print_list([*_documents(shown, counts)], session.output, columns)


def _documents(
    shown: Sequence[ExecutionSummary], counts: Mapping[str, tuple[int, int]]
) -> Iterator[Mapping[str, Any]]:
    from wfe.cli import documents
    from wfe.store.queries.pages import place

    for item in shown:
        over, in_all = counts.get(item.execution_id, (None, None))
        steps = {"steps_done": over, "steps_total": in_all, "cursor": place(item)}
        yield {**documents.summary(item), **steps}


def _draw(
    session: Session,
    shown: Sequence[ExecutionSummary],
    counts: Mapping[str, tuple[int, int]],
) -> None:
    from wfe.cli.render import Screen

    if shown:
        screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
        screen.table(*_table(screen, shown, counts if session.output == "wide" else None))


def _table(
    screen: Screen,
    shown: Sequence[ExecutionSummary],
    counts: Mapping[str, tuple[int, int]] | None,
) -> tuple[list[str], list[list[Text]]]:
    """Titles and rows for people; wide with the counts of steps."""
    from wfe.cli import text
    from wfe.clock import SystemClock

    now = SystemClock().now()
    rows = []
    for item in shown:
        row = [screen.state(item.shown), screen.text(text.age(item.created_at, now))]
        if counts is not None:
            over, in_all = counts.get(item.execution_id, ("", ""))
            took = text.elapsed(text.seconds(item.created_at, item.ended_at))
            cells = (took, f"{over}/{in_all}", text.iso(item.updated_at), item.run_id)
            row += map(screen.text, cells)
        rows.append([*row, screen.text(str(item.key))])
    titles = ("TOOK", "STEPS", "UPDATED", "RUN") if counts is not None else ()
    return ["STATUS", "AGE", *titles, "KEY"], rows


# --- what else there is to say -------------------------------------------------------------------


def _say_how_to_go_on(session: Session, wanted: _Wanted, shown: Sequence[ExecutionSummary]) -> None:
    from wfe.store.queries.pages import place

    flags = [*wanted.flags(), *(("-o", session.output) if session.output != "table" else ())]
    more = session.command("executions", "list", *flags, "--cursor", place(shown[-1]))
    tell(f"There are more than {wanted.limit}. The next page: {more}")


def _say_why_there_are_none(session: Session, hidden: int, *, exists: bool) -> None:
    if not exists:
        tell(f"No executions: there is no database {session.config.db} yet.")
    elif hidden:
        are = "1 is a step" if hidden == 1 else f"{hidden} are steps"
        tell(f"No executions but for {are} of others: see --all.")
    elif session.for_people:
        tell("No executions.")


# --- kept up to date -----------------------------------------------------------------------------


def _watch(session: Session, wanted: _Wanted, cursor: str | None, *, counts: bool) -> int:
    if counts or session.output not in ("table", "wide"):
        raise UsageError("--watch keeps a table up to date: use it with -o table or wide.")
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        raise UsageError(
            "--watch needs a terminal to draw on.",
            hint="Follow one execution in a pipe with: wfe executions events KEY -f",
        )
    from wfe.cli import watching

    def picture(reader: Reader | None, screen: Screen) -> Sequence[Text]:
        if reader is None:
            return [screen.text(f"No executions: there is no database {session.config.db} yet.")]
        fits = min(wanted.limit or screen.height, screen.height)
        shown = reader.list(wanted._replace(limit=fits).query(cursor))[:fits]
        if not shown:
            return [screen.text("No executions.")]
        is_wide = session.output == "wide"
        return screen.lines(
            *_table(screen, shown, _step_counts(session, reader, shown) if is_wide else None)
        )

    return watching.watch(session, picture)
