"""`wfe executions show`: one execution, as it is now or as it was at an entry of its timeline."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.parameters import Key
from wfe.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfe.cli.report import View
    from wfe.model import Execution, TimelineEvent


def show(
    session: Session,
    key: Key,
    steps: Annotated[bool, typer.Option("--steps", help="Show the steps.")] = False,
    input: Annotated[bool, typer.Option("--input", help="Show the input.")] = False,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Show what the steps returned, and the result.")
    ] = False,
    errors: Annotated[
        bool, typer.Option("--errors", help="Show every error, and where it was raised.")
    ] = False,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Show what happened, entry by entry.")
    ] = False,
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="N",
            help="As it was right after entry N of its timeline.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Show one execution: its steps, what it waits for, its errors, its input and result. With one of
    the sections named, only those.

    \b
    wfe executions show order:order-0042
    wfe executions show order-0042 --timeline
    wfe executions show order-0042 --steps --outputs --at 4
    wfe executions show order-0042 -o json
    """
    from wfe.cli import family, keys, output, report

    chosen = {"steps": steps, "input": input, "outputs": outputs, "errors": errors}
    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
        assert reader is not None
        asked = timeline or at is not None
        entries = reader.timeline(execution.head.execution_id) if asked else ()
        looks = session.for_people and at is None
        children = family.looked_into(reader, execution) if looks else family.NONE
    if at is not None:
        from wfe.store import history

        view = report.View(
            history.at(execution, entries, at), entries[at - 1].time, entries[:at], is_past=True
        )
    else:
        from wfe.clock import SystemClock

        view = report.View(
            execution, SystemClock().now(), entries, is_past=False, children=children
        )
    sections = {name for name, wanted in chosen.items() if wanted}
    sections |= {"timeline"} if timeline else set()
    match session.output:
        case "json":
            output.print_json(_document(view, timeline, at))
        case "key":
            output.write_line(str(execution.head.key))
        case _ if session.for_people:
            from wfe.cli.render import Screen

            screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
            report.draw(screen, session, view, sections or report.USUAL)
        case _:
            report.print_plain(session, view, sections or report.USUAL)
    return ExitCode.OK


def _document(view: View, with_timeline: bool, at: int | None) -> dict[str, Any]:
    from wfe.cli import documents

    document = documents.execution(view.execution)
    if view.is_past:
        document["status"], document["at"] = view.status, at
    if with_timeline:
        document["timeline"] = _timeline(view.execution, view.timeline)
    return document


def _timeline(execution: Execution, entries: Sequence[TimelineEvent]) -> list[dict[str, Any]]:
    from wfe.cli import documents

    key = execution.head.key
    return [documents.entry(key, number, entry) for number, entry in enumerate(entries, 1)]
