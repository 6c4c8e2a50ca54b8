"""`wfe workflows`: what can be run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from wfe.cli.command import command, group
from wfe.cli.commands import check, graph
from wfe.cli.exit_codes import ExitCode
from wfe.cli.output import LIST_FORMATS, ONE_FORMATS
from wfe.cli.parameters import Target
from wfe.cli.session import Session
from wfe.cli.telling import tell

if TYPE_CHECKING:
    from wfe.authoring.schedules import Schedule
    from wfe.authoring.workflows import Workflow
    from wfe.cli.failures import Failure
    from wfe.cli.render import Screen
    from wfe.discover import Catalog

app = group("See what can be run.")

_COLUMNS = ("key", "steps", "source", "description")


@command(app, "list", formats=LIST_FORMATS)
def list_(session: Session) -> int:
    """List the workflows that were found. Ends with 2 where a module does not load.

    In a pipe: name, number of steps, place and description, separated by tabs.
    """
    from wfe.cli import output

    catalog = session.catalog()
    found = [_summary(catalog.registry.get(name)) for name in catalog.registry.ids()]
    failures = _failures(catalog)
    if session.output == "json" and failures:
        output.print_json({**failures[0].document(), "workflows": found})
    elif session.output in ("table", "wide") and session.for_people:
        _draw(session, found)
    else:
        output.print_list(found, session.output, _COLUMNS)
    for failure in failures:
        failure.tell(color=session.colors(sys.stderr))
    if not found and not failures:
        tell(session.why_no_workflows())
    return failures[0].exit_code if failures else ExitCode.OK


@command(app, "show", formats=ONE_FORMATS)
def show(
    session: Session,
    target: Target,
) -> int:
    """Show one workflow: its place, options, schedule, steps and input.

    \b
    wfe workflows show order
    """
    from wfe.cli import documents, output

    workflow, _ = session.target(target)
    document = documents.workflow(workflow)
    match session.output:
        case "json":
            output.print_json(document)
        case "key":
            output.write_line(workflow.id)
        case _ if session.for_people:
            _draw_one(session, workflow, document)
        case _:
            _print_one(document)
    return ExitCode.OK


command(app, "graph")(graph.of_workflow)
command(app, "check", formats=check.FORMATS)(check.run)


def _summary(workflow: Workflow[Any, Any]) -> dict[str, Any]:
    from wfe.discover import shown

    file, line = workflow.source
    return {
        "key": workflow.id,
        "steps": len(workflow.flow.steps),
        "source": f"{shown(file)}:{line}",
        "description": workflow.options.description,
    }


def _failures(catalog: Catalog) -> list[Failure]:
    from wfe.cli.failures import Failure

    return [Failure.of(error) for error in (*catalog.failures, *catalog.conflicts.values())]


def _draw(session: Session, found: list[dict[str, Any]]) -> None:
    from wfe.cli.render import Screen

    if not found:
        return
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    rows = [
        [screen.text(one[name] if name != "steps" else str(one[name])) for name in _COLUMNS]
        for one in found
    ]
    screen.table(["WORKFLOW", "STEPS", "SOURCE", "DESCRIPTION"], rows, cut=True)


def _draw_one(session: Session, workflow: Workflow[Any, Any], document: dict[str, Any]) -> None:
    from msgspec.structs import replace

    from wfe.cli import text, tree
    from wfe.cli.render import Screen

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    screen.title(workflow.id)
    if description := workflow.options.description:
        screen.paragraph(text.shown(description), indent="  ")
    screen.line(f"  {document['source']}")
    if options := tree.told_options(replace(workflow.options, description="")):
        screen.paragraph(screen.joined(options), indent="  ")
    if workflow.schedule is not None:
        screen.paragraph(_told_schedule(workflow.schedule), indent="  ")
    screen.line()
    screen.title("Steps")
    for line in screen.steps(tree.outline(workflow.flow), whole=True):
        screen.line(line)
    _draw_input(screen, document["input"])


def _told_schedule(schedule: Schedule) -> str:
    from wfe.clock import SystemClock
    from wfe.scheduling.schedule import Timetable

    timing = Timetable(schedule, anchor=SystemClock().now()).timing
    zone = "" if schedule.interval is not None else f" in {schedule.timezone}"
    return f"runs by itself while wfe serve runs: {timing.describe()} ({timing.text}{zone})"


def _draw_input(screen: Screen, schema: dict[str, Any]) -> None:
    from wfe.cli import fields, output

    objects = fields.of_input(schema)
    for name, found in objects.items():
        screen.line()
        screen.title(name or "Input")
        screen.columns([[f"  {field.name}", field.need, field.type] for field in found])
    if not objects:
        screen.line()
        screen.title("Input")
        is_none = schema == {"type": "null"}
        screen.line("  none" if is_none else output.json_text(schema, indent=2))


def _print_one(document: dict[str, Any]) -> None:
    from wfe.cli import output

    for name in ("key", "source", "description", "options", "schedule", "input"):
        output.print_tabbed([name, document[name]])
    for name, step in document["steps"].items():
        output.print_tabbed(["step", name, *step.values()])
