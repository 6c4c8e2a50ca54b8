"""`wfe schedule`: one workflow on a schedule of the command line, in the foreground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.command import alone, command
from wfe.cli.parameters import LogFormat, Target
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.authoring.schedules import Schedule
    from wfe.authoring.workflows import Workflow
    from wfe.discover import Catalog
    from wfe.scheduling.plan import Plan
    from wfe.store.ledger import ScheduleRow

app = alone()

_OVERLAPS = {"skip": "forbid", "allow": "allow"}
_CATCH_UPS = ("none", "last", "all")


@command(app, "schedule")
def schedule(
    session: Session,
    target: Target,
    cron: Annotated[
        str | None, typer.Option("--cron", metavar="EXPR", help="A cron expression: wfe help cron.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="An interval: 90s, 15m, 1h30m.")
    ] = None,
    tz: Annotated[
        str, typer.Option("--tz", metavar="ZONE", help="The time zone of --cron: Europe/London.")
    ] = "UTC",
    max_: Annotated[
        int | None, typer.Option("--max", metavar="N", help="Run so often in all, then end.")
    ] = None,
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap",
            metavar="skip|allow",
            help="What becomes of a tick while the execution before is unfinished.",
        ),
    ] = "skip",
    catch_up: Annotated[
        str,
        typer.Option(
            "--catch-up",
            metavar="none|last|all",
            help="Which ticks run that passed since this schedule was last served.",
        ),
    ] = "last",
    input: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="JSON|@FILE|-", help="The input of each run."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A key of the input: see wfe run."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Its name; else that of the workflow."),
    ] = None,
    log_format: LogFormat = None,
) -> int:
    """Run a workflow on a schedule, until Ctrl-C. Every tick is in the ledger: wfe schedules ticks NAME.

    The same schedule in a second process shares its ticks: each is run once, and the other goes on when
    one ends. --max counts over restarts.

    \b
    wfe schedule order -i @order.json --cron '0 3 * * *' --tz Europe/London
    wfe schedule order --every 1s --max 2 -i @order.json --name often
    """
    from wfe.authoring.responses import NOT_GIVEN
    from wfe.cli import inputs

    value = inputs.workflow_input(input, param or [])
    interval = inputs.seconds(every, "--every")
    workflow, catalog = session.target(target)
    if value is NOT_GIVEN:
        workflow.check_input(None)
    else:
        value = inputs.fitted(workflow, value, param or [])
    wanted = _schedule(
        cron,
        interval,
        timezone=tz,
        number_of_executions=max_,
        concurrency=_one_of("--overlap", overlap, _OVERLAPS),
        catch_up=_one_of("--catch-up", catch_up, {word: word for word in _CATCH_UPS}),
        input=None if value is NOT_GIVEN else value,
    )
    plan = _plan(workflow, wanted, workflow.id if name is None else name)
    said = _told_of_others(session, plan, workflow, catalog)

    from wfe.cli.serving import process

    shown = process.reporter(session, log_format)
    beside = process.Beside()
    beside.said += said
    return process.serve(session, catalog, shown, plan, beside=beside)


def _schedule(cron: str | None, every: float | None, **options: Any) -> Schedule:
    from wfe.authoring.schedules import Schedule

    if (cron is None) == (every is None):
        raise UsageError(
            "A schedule has either --cron or --every.",
            hint="Write --cron '0 3 * * *' or --every 90s.",
        )
    if cron is not None and not cron.strip():
        raise UsageError("--cron is empty.", hint="See: wfe help cron")
    if not options["timezone"].strip():
        raise UsageError("--tz is empty.", hint="Write a time zone: Europe/London.")
    if every is not None and every < 0.001:
        raise UsageError("--every is a millisecond at least.")
    limit = options["number_of_executions"]
    if limit is not None and limit < 1:
        raise UsageError("--max is a whole number from 1 on.")
    return Schedule(cron=cron, interval=every, **options)


def _one_of(flag: str, given: str, known: dict[str, str]) -> str:
    if given not in known:
        raise UsageError(f"{flag} {given!r} is none of {', '.join(known)}.")
    return known[given]


def _plan(workflow: Workflow[Any, Any], wanted: Schedule, name: str) -> Plan:
    from wfe.clock import SystemClock
    from wfe.model import check_name
    from wfe.scheduling.plan import Plan

    reason = check_name(name)
    if reason is not None:
        raise UsageError(f"{name!r} cannot be the name of a schedule: {reason}.")
    file, _ = workflow.source
    return Plan(
        name, workflow.id, wanted, anchor=SystemClock().now(), origin="command", source=file
    )


def _told_of_others(
    session: Session, plan: Plan, workflow: Workflow[Any, Any], catalog: Catalog
) -> list[str]:
    """Who else serves a schedule of this name, and how often it has run; refuses where that is another
    schedule."""
    from wfe.store.owners import described

    with session.reader(to_write=True) as reader:
        rows = reader.ledger.schedules() if reader is not None else ()
    row = next((row for row in rows if row.name == plan.name), None)
    _refuse_own(plan, row, workflow, catalog)
    said = []
    limit = plan.schedule.number_of_executions
    if row is not None and row.timing == plan.timing and limit is not None and row.fired >= limit:
        said.append(
            f"{plan.name} has run {row.fired} times already. Count anew after: "
            f"{session.command('schedules', 'delete', plan.name)}"
        )
    if row is None or row.holder is None:
        return said
    holder = described(row.holder)
    if row.timing != plan.timing or row.workflow_id != plan.workflow_id:
        raise UsageError(
            f"The {holder} holds the schedule {plan.name}: {row.workflow_id}, {row.timing}.",
            hint="End it, or give this one a name of its own: --name NAME.",
        )
    return [
        *said,
        f"The {holder} holds the schedule {plan.name}: each tick runs once, here or there.",
    ]


def _refuse_own(
    plan: Plan, row: ScheduleRow | None, workflow: Workflow[Any, Any], catalog: Catalog
) -> None:
    """Refuse the name of a workflow's own schedule: whoever serves it now or later would run both."""
    hint = "Give this one a name of its own: --name NAME."
    loaded = catalog.registry
    is_own = plan.name in loaded.ids() and loaded.get(plan.name).schedule is not None
    is_known = row is not None and row.origin == "workflow"
    if plan.name != workflow.id and (is_own or is_known):
        raise UsageError(
            f"{plan.name} is the own schedule of another workflow, which wfe serve runs.", hint=hint
        )
    if is_own or (is_known and row is not None and row.holder is not None):
        raise UsageError(
            f"{plan.name} is the workflow's own schedule, which wfe serve runs.", hint=hint
        )
