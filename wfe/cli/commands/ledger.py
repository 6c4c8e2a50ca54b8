"""`wfe schedules list`, `show` and `ticks`: schedules, and what became of their ticks. Reads the store
alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import NotFound, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from wfe.cli.render import Screen
    from wfe.store.contract import Reader
    from wfe.store.ledger import ScheduleRow, Tick

Name = Annotated[str, typer.Argument(metavar="NAME", help="See: wfe schedules list.")]

_COLUMNS = ("key", "workflow", "timing", "status", "next", "last")
_TICK_COLUMNS = ("scheduled_for", "state", "reason", "late_by", "key", "outcome", "error")

#: How many ticks and fires `show` shows.
_SHOWN = 5


def list_(session: Session) -> int:
    """List the schedules that were ever served, with their next and last ticks.

    In a pipe: name, workflow, timing, status (serving, paused, idle: nobody serves it), next tick and
    the last one, separated by tabs. The next tick of one that is paused or idle is when it would fire.

    \b
    wfe schedules list
    """
    from wfe.cli import output
    from wfe.clock import SystemClock

    now = SystemClock().now()
    with session.reader() as reader:
        rows = reader.ledger.schedules() if reader is not None else ()
        last = {row.name: _last(reader, row) for row in rows}
    documents = [_summary(row, last[row.name], now) for row in rows]
    if session.output in ("table", "wide") and session.for_people:
        _draw(session, documents, rows, last, now)
    else:
        output.print_list(documents, session.output, _COLUMNS)
    if not rows:
        tell("No schedules. wfe serve takes up those of workflows, wfe schedule runs others.")
    return ExitCode.OK


def show(session: Session, name: Name) -> int:
    """Show one schedule: its definition, its next ticks and its last ones.

    \b
    wfe schedules show nightly
    """
    from wfe.cli import output
    from wfe.clock import SystemClock

    now = SystemClock().now()
    with session.reader() as reader:
        row = find(session, reader, name)
        assert reader is not None
        ticks = reader.ledger.ticks(name, limit=_SHOWN)
        documents = [tick_document(row, tick, reader) for tick in ticks]
    document = {**_facts(row, now), "upcoming": _upcoming(row, now), "ticks": documents}
    match session.output:
        case "json":
            output.print_json(document)
        case "key":
            output.write_line(row.name)
        case _ if session.for_people:
            _draw_one(session, row, ticks, documents, document, now)
        case _:
            for fact, value in document.items():
                if fact not in ("upcoming", "ticks"):
                    output.print_tabbed([fact, value])
            for moment in document["upcoming"]:
                output.print_tabbed(["upcoming", moment])
            for each in documents:
                output.print_tabbed(["tick", *(each[column] for column in _TICK_COLUMNS)])
    return ExitCode.OK


def ticks(
    session: Session,
    name: Name,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="At most so many, the latest first.")
    ] = 50,
) -> int:
    """List what became of each tick of a schedule, the latest first.

    In a pipe: moment, state (fired, skipped, error, due), reason (overlap, paused, missed), seconds
    late, execution, how that stands, and what there is to say, separated by tabs.

    \b
    wfe schedules ticks nightly --limit 10
    """
    from wfe.cli import output
    from wfe.cli.render import Screen
    from wfe.clock import SystemClock

    if limit < 1:
        raise UsageError("--limit is a whole number from 1 on.")
    with session.reader() as reader:
        row = find(session, reader, name)
        assert reader is not None
        found = reader.ledger.ticks(name, limit=limit)
        documents = [tick_document(row, tick, reader) for tick in found]
    if session.output == "key":
        documents = [document for document in documents if document["state"] == "fired"]
    if session.output in ("table", "wide") and session.for_people:
        screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
        _draw_ticks(screen, found, documents, SystemClock().now())
    else:
        output.print_list(documents, session.output, _TICK_COLUMNS)
    if not found:
        tell(f"{name} has had no tick yet.")
    return ExitCode.OK


def find(session: Session, reader: Reader | None, name: str) -> ScheduleRow:
    """
    Raises:
        NotFound: there is no such schedule; near names are told.
    """
    from wfe.near import near_names

    rows = {row.name: row for row in reader.ledger.schedules()} if reader is not None else {}
    if name in rows:
        return rows[name]
    near = near_names(name, rows)
    raise NotFound(
        f"There is no schedule {name!r}." + (f" Did you mean {' or '.join(near)}?" if near else ""),
        hint=session.why_nothing_is_found()
        or f"List what there is with: {session.command('schedules', 'list')}",
    )


# --- documents -----------------------------------------------------------------------------------


def _last(reader: Reader | None, row: ScheduleRow) -> Tick | None:
    assert reader is not None
    return next(iter(reader.ledger.ticks(row.name, limit=1)), None)


def _summary(row: ScheduleRow, last: Tick | None, now: datetime) -> dict[str, Any]:
    from wfe.cli import text

    upcoming = _upcoming(row, now, count=1)
    return {
        "key": row.name,
        "workflow": row.workflow_id,
        "timing": row.timing,
        "status": _status(row),
        "next": upcoming[0] if upcoming else None,
        "last": None if last is None else text.iso(last.scheduled_for),
        "last_state": None if last is None else last.reason or last.state,
        "fired": row.fired,
    }


def _status(row: ScheduleRow) -> str:
    if row.is_paused:
        return "paused"
    return "serving" if row.holder is not None else "idle"


def _facts(row: ScheduleRow, now: datetime) -> dict[str, Any]:
    import msgspec

    from wfe.cli import text
    from wfe.store.owners import described

    return {
        "key": row.name,
        "workflow": row.workflow_id,
        "timing": row.timing,
        "status": _status(row),
        "holder": None if row.holder is None else described(row.holder),
        "origin": row.origin,
        "source": row.source,
        "definition": msgspec.json.decode(row.definition),
        "fired": row.fired,
        "since": text.iso(row.anchor),
        "paused": text.iso(row.paused_at) if row.is_paused else None,
        "fires": [{"at": text.iso(fire.at), "croniter": fire.by} for fire in row.fires],
    }


def _upcoming(row: ScheduleRow, now: datetime, count: int = _SHOWN) -> list[str]:
    """When it fires next, if it is served and not paused then."""
    from itertools import islice

    from wfe.cli import text
    from wfe.errors import InvalidSchedule
    from wfe.scheduling.plan import known_plan

    try:
        plan = known_plan(row)
    except InvalidSchedule:
        return []
    limit = plan.schedule.number_of_executions
    left = count if limit is None else min(count, max(limit - row.fired, 0))
    return [text.iso(tick) for tick in islice(plan.timetable.after(now), left)]


def tick_document(row: ScheduleRow, tick: Tick, reader: Reader | None) -> dict[str, Any]:
    """A tick, with how its execution stands."""
    from wfe.cli import documents, text
    from wfe.model import ExecutionKey

    key = ExecutionKey(row.workflow_id, tick.transaction_id)
    found = reader.load(key) if reader is not None and tick.state == "fired" else None
    return {
        "key": str(key) if tick.state == "fired" else None,
        "schedule": tick.schedule,
        "scheduled_for": text.iso(tick.scheduled_for),
        "kind": tick.kind,
        "state": tick.state,
        "reason": tick.reason,
        "late_by": round(tick.late_by, 3) if tick.kind == "tick" else None,
        "decided": text.iso(tick.decided_at),
        "outcome": None if found is None else documents.status(found),
        "error": tick.error,
    }


# --- drawing -------------------------------------------------------------------------------------


def _draw(
    session: Session,
    documents: Sequence[dict[str, Any]],
    rows: Sequence[ScheduleRow],
    last: dict[str, Tick | None],
    now: datetime,
) -> None:
    from wfe.cli.render import Screen

    if not rows:
        return
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    cells = []
    for document, row in zip(documents, rows, strict=True):
        tick = last[row.name]
        cells.append(
            [
                screen.text(row.name),
                screen.text(document["status"]),
                _next(screen, document, now),
                screen.text("" if tick is None else _came(tick, now)),
                screen.text(row.timing),
            ]
        )
    screen.table(["SCHEDULE", "STATUS", "NEXT", "LAST", "TIMING"], cells, cut=True)


#: On what condition a schedule fires next, by its status.
_CONDITION = {"idle": "if served", "paused": "if resumed"}


def _next(screen: Screen, document: dict[str, Any], now: datetime) -> Text:
    """When it fires next; of one that does not fire as it is: when it would, and if what is done."""
    condition = _CONDITION.get(document["status"])
    if document["next"] is None or condition is None:
        return screen.text(_in(document["next"], now))
    return screen.faint(f"{_in(document['next'], now)} {condition}")


def _in(moment: str | None, now: datetime) -> str:
    from datetime import datetime as moments

    from wfe.cli import text

    if moment is None:
        return "never"
    return f"in {text.elapsed(text.seconds(now, moments.fromisoformat(moment)))}"


def _came(tick: Tick, now: datetime) -> str:
    from wfe.cli import text

    return f"{tick.reason or tick.state} {text.age(tick.scheduled_for, now)} ago"


def _draw_one(
    session: Session,
    row: ScheduleRow,
    ticks: Sequence[Tick],
    documents: Sequence[dict[str, Any]],
    document: dict[str, Any],
    now: datetime,
) -> None:
    from wfe.cli import text
    from wfe.cli.render import Screen

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    screen.title(row.name)
    holder = f", by {document['holder']}" if document["holder"] else ""
    facts = {
        "workflow": row.workflow_id,
        "timing": row.timing,
        "status": f"{document['status']}{holder}",
        "fired": str(row.fired),
        "source": row.source or "",
    }
    for name, fact in facts.items():
        if fact:
            screen.paragraph(text.shown(fact), indent="  ", label=f"{name:<9}")
    screen.line()
    screen.title("Next")
    if document["upcoming"] and (way := _way(session, row)):
        screen.choices([("not as it is, but with:", way)], indent="  ")
    for moment in document["upcoming"] or ["never"]:
        screen.line(f"  {moment}")
    if ticks:
        screen.line()
        _draw_ticks(screen, ticks, documents, now)


def _way(session: Session, row: ScheduleRow) -> str | None:
    """The command that lets it fire; None where it does."""
    match _status(row):
        case "paused":
            return session.command("schedules", "resume", row.name)
        case "idle" if row.origin == "workflow":
            return session.command("serve")
        case "idle":
            return session.command("schedule", row.workflow_id, "--name", row.name) + " ..."
    return None


def _draw_ticks(
    screen: Screen,
    ticks: Sequence[Tick],
    documents: Sequence[dict[str, Any]],
    now: datetime,
) -> None:
    from wfe.cli import text

    if not ticks:
        return
    cells = []
    for tick, document in zip(ticks, documents, strict=True):
        word = document["outcome"] or tick.reason or tick.state
        kind = "" if tick.kind == "tick" else tick.kind
        late = text.elapsed(tick.late_by) if tick.kind == "tick" and tick.late_by >= 1 else ""
        cells.append(
            [
                screen.text(text.iso(tick.scheduled_for)),
                screen.state(word)
                if tick.state == "fired"
                else screen.text(f"{tick.state} {tick.reason or ''}".strip()),
                screen.text(late or kind),
                screen.text(document["key"] or tick.error or ""),
            ]
        )
    screen.table(["TICK", "STATE", "LATE", "EXECUTION"], cells, below=True)
