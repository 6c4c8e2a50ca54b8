"""`wfe schedules`: when schedules fire, and what became of their ticks."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.command import command, group
from wfe.cli.commands import ledger, scheduling
from wfe.cli.exit_codes import ExitCode
from wfe.cli.output import LIST_FORMATS, ONE_FORMATS, RUN_FORMATS
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.authoring.schedules import Schedule
    from wfe.scheduling.schedule import Timetable
    from wfe.store.ledger import ScheduleRow

app = group("See and direct what runs by itself.")

_FORMATS = ("table", "json", "jsonl", "csv")
_SHORT = ("table", "json")

command(app, "list", formats=LIST_FORMATS)(ledger.list_)
command(app, "show", formats=ONE_FORMATS)(ledger.show)
command(app, "ticks", formats=LIST_FORMATS)(ledger.ticks)
command(app, "pause", formats=_SHORT)(scheduling.pause)
command(app, "resume", formats=_SHORT)(scheduling.resume)
command(app, "delete", formats=_SHORT)(scheduling.delete)
command(app, "trigger", formats=RUN_FORMATS)(scheduling.trigger)
command(app, "backfill")(scheduling.backfill)


@command(app, "preview", formats=_FORMATS)
def preview(
    session: Session,
    what: Annotated[
        str,
        typer.Argument(
            metavar="EXPR|NAME",
            help="A cron expression in quotes, the TARGET of a workflow with a schedule, or the "
            "name of a schedule that was served.",
        ),
    ],
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", help="Show so many fires.")
    ] = 10,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            help="The time zone: Europe/London. Else the schedule's, or UTC.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="From then on: 2026-10-24. Else from now on."),
    ] = None,
) -> int:
    """Explain a schedule, warn of what may not be meant, and list its next fires.

    What may be written: wfe help cron. In a pipe: a word and its values, separated by tabs; after
    the word fire come the local time, the time in UTC, and remarks.

    \b
    wfe schedules preview '30 1 * * *' --tz Europe/London --from 2026-03-28
    wfe schedules preview '@every 90s' -n 3
    """
    from wfe.cli import inputs
    from wfe.clock import SystemClock
    from wfe.scheduling.schedule import Timetable

    if number < 1:
        raise UsageError("-n is a whole number from 1 on.")
    now = SystemClock().now()
    if tz is not None and not tz.strip():
        raise UsageError("--tz is empty.", hint="Write a time zone: Europe/London.")
    start = now if from_ is None else inputs.moment(from_, "--from", now)
    schedule, name = _schedule(session, what, tz)
    timetable = Timetable(schedule, anchor=_anchor(session, name, schedule) or start)
    ticks = list(islice(timetable.after(start - timedelta.resolution), number))
    _print(session, timetable, ticks)
    if len(ticks) < number:
        tell("It fires no more after that." if ticks else "It fires no more.")
    return ExitCode.OK


def _schedule(session: Session, what: str, zone: str | None) -> tuple[Schedule, str | None]:
    """What is to be previewed, in the zone that was asked for, and the name that it is served under;
    None: it is an expression."""
    from msgspec.structs import replace

    from wfe.authoring.schedules import Schedule
    from wfe.errors import InvalidSchedule, WorkflowNotFound

    if not what.strip():
        raise InvalidSchedule(what, "it is empty")
    if len(what.split()) > 1 or what.startswith("@"):
        return Schedule(cron=what, timezone=zone or "UTC"), None
    try:
        workflow, _ = session.target(what)
    except WorkflowNotFound:
        if (known := _known(session, what)) is None:
            raise
        return (replace(known, timezone=zone) if zone else known), what
    if workflow.schedule is None:
        raise UsageError(
            f"The workflow {workflow.id!r} has no schedule.",
            hint=f'Give it one: @workflow("{workflow.id}", schedule="0 3 * * *"). An expression is '
            "previewed in quotes.",
        )
    own = replace(workflow.schedule, timezone=zone) if zone else workflow.schedule
    return own, workflow.id


def _known(session: Session, name: str) -> Schedule | None:
    """One that was served under this name, such as those of `wfe schedule --name`."""
    from wfe.scheduling.plan import known_plan

    row = _row(session, name)
    return None if row is None else known_plan(row).schedule


def _anchor(session: Session, name: str | None, schedule: Schedule) -> datetime | None:
    """What the interval of a schedule is counted from, as long as it is served as it is; None: it was
    not served yet, or otherwise."""
    from wfe.scheduling.plan import decoded

    row = None if name is None else _row(session, name)
    if row is None:
        return None
    known = decoded(row.definition)
    return (
        row.anchor if (known.cron, known.interval) == (schedule.cron, schedule.interval) else None
    )


def _row(session: Session, name: str) -> ScheduleRow | None:
    with session.reader() as reader:
        rows = reader.ledger.schedules() if reader is not None else ()
    return next((row for row in rows if row.name == name), None)


def _print(session: Session, timetable: Timetable, ticks: list[datetime]) -> None:
    from wfe.cli import output

    facts = {
        "expression": timetable.timing.text,
        "description": timetable.timing.describe(),
        "timezone": timetable.schedule.timezone,
        "warnings": list(timetable.timing.warnings),
    }
    fires = [_fire(timetable, tick) for tick in ticks]
    match session.output:
        case "json":
            output.print_json({**facts, "fires": fires})
        case "jsonl" | "csv":
            if session.output == "csv":
                fires = [{**fire, "remarks": "; ".join(fire["remarks"])} for fire in fires]
            output.print_list(fires, session.output, ())
            for warning in timetable.timing.warnings:
                tell(f"warning: {warning}")
        case _ if session.for_people:
            _draw(session, timetable, ticks)
        case _:
            for name in ("expression", "description", "timezone"):
                output.print_tabbed([name, facts[name]])
            for warning in timetable.timing.warnings:
                output.print_tabbed(["warning", warning])
            for fire in fires:
                output.print_tabbed(["fire", fire["local"], fire["utc"], *fire["remarks"]])


def _fire(timetable: Timetable, tick: datetime) -> dict[str, Any]:
    from wfe.cli import text

    return {
        "local": tick.astimezone(timetable.zone).isoformat(timespec="milliseconds"),
        "utc": text.iso(tick),
        "remarks": list(timetable.timing.remarks(tick)),
    }


def _draw(session: Session, timetable: Timetable, ticks: list[datetime]) -> None:
    from wfe.cli import text
    from wfe.cli.render import Screen, aligned

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    screen.title(timetable.timing.text)
    described = f"{timetable.timing.describe()} ({timetable.schedule.timezone})"
    for sentence in (described, *(f"Note: {warning}" for warning in timetable.timing.warnings)):
        screen.paragraph(text.shown(sentence), indent="  ")
    if not ticks:
        return
    screen.line()
    clock = "%a %Y-%m-%d %H:%M:%S" if any(tick.second for tick in ticks) else "%a %Y-%m-%d %H:%M"
    rows = [["LOCAL", "UTC"], *(_columns(timetable, tick, clock) for tick in ticks)]
    remarks = ["", *("; ".join(timetable.timing.remarks(tick)) for tick in ticks)]
    if all(local == f"{utc} UTC" for local, utc in rows[1:]):
        rows = [[utc] for _, utc in rows]
    lines = aligned([list(map(screen.text, row)) for row in rows])
    for line, remark in zip(lines, remarks, strict=True):
        if remark and len(line.plain) + len(remark) <= screen.width:
            screen.line(line, remark)
            continue
        line.rstrip()
        screen.line(line)
        if remark:
            screen.paragraph(remark, indent="    ")


def _columns(timetable: Timetable, tick: datetime, clock: str) -> list[str]:
    """A fire as people read it: where clocks of the zone stand, and those of UTC."""
    local = tick.astimezone(timetable.zone)
    return [local.strftime(f"{clock} %Z"), tick.strftime(clock)]
