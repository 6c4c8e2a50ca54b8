"""`graph`: a workflow or an execution as a diagram, for a terminal, a document or a report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.parameters import Key, Target
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.cli.diagrams.diagram import Diagram

_FORMATS = ("text", "mermaid", "svg")

Format = Annotated[
    str, typer.Option("--format", metavar="|".join(_FORMATS), help="What to draw it in.")
]


def of_execution(
    session: Session,
    key: Key,
    format: Format = "text",
) -> int:
    """Draw the steps of an execution as they are now: stages from left to right, steps that run
    together below each other, the steps of nested workflows inside.

    \b
    wfe executions graph order-0042
    wfe executions graph order-0042 --format svg
    """
    from wfe.cli import keys
    from wfe.cli.diagrams import diagram
    from wfe.clock import SystemClock

    _check(format)
    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
        assert reader is not None
        found = diagram.of_execution(reader, execution, SystemClock().now())
    return _print(session, found, format)


def of_workflow(
    session: Session,
    target: Target,
    format: Format = "text",
) -> int:
    """Draw the steps of a workflow: stages from left to right, steps that run together below each
    other, the steps of nested workflows inside, each workflow once.

    \b
    wfe workflows graph order
    wfe workflows graph order --format mermaid
    """
    from wfe.cli.diagrams import diagram

    _check(format)
    workflow, _ = session.target(target)
    return _print(session, diagram.of_workflow(workflow), format)


def _check(format: str) -> None:
    if format not in _FORMATS:
        from difflib import get_close_matches

        near = get_close_matches(format, _FORMATS, n=1)
        raise UsageError(
            f"There is no format {format!r}.",
            hint=f"Did you mean {near[0]}?" if near else f"There are: {', '.join(_FORMATS)}.",
        )


def _print(session: Session, found: Diagram, format: str) -> int:
    from wfe.cli import output

    match format:
        case "mermaid":
            from wfe.cli.diagrams import mermaid

            output.write_line(mermaid.drawn(found))
        case "svg":
            from wfe.cli.diagrams import svg

            output.write_line(svg.drawn(found))
        case _ if session.for_people:
            from wfe.cli.render import Screen

            Screen(sys.stdout, colors=session.colors(sys.stdout)).diagram(found)
        case _:
            _print_text(found)
    return ExitCode.OK


def _print_text(found: Diagram) -> None:
    import shutil

    from wfe.cli import output
    from wfe.cli.diagrams import characters
    from wfe.cli.looks import can_show_symbols

    width = shutil.get_terminal_size((100, 1)).columns
    for line in characters.drawn(found, width, plain=not can_show_symbols(sys.stdout)):
        output.write_line("".join(part.text for part in line))
