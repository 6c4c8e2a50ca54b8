"""`wfe workflows check`: what can be seen of workflows before one of them runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli import output, text
from wfe.cli.exit_codes import ExitCode
from wfe.cli.failures import Failure
from wfe.cli.session import Session
from wfe.cli.telling import tell

if TYPE_CHECKING:
    from wfe.lint.findings import Finding

FORMATS = ("table", "json")


def run(
    session: Session,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET", show_default=False, help="NAME, FILE.py:NAME or MODULE:NAME."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
) -> int:
    """Look workflows through for what would go wrong, without running a step. Ends with 2 where there
    is an error. What each code means: wfe help lint.

    In a pipe a line for each finding: FILE:LINE: LEVEL CODE: SENTENCE.

    \b
    wfe workflows check
    wfe workflows check order --strict
    """
    from wfe.clock import SystemClock
    from wfe.lint.check import look_through

    workflow, catalog = (None, session.catalog()) if target is None else session.target(target)
    findings = look_through(catalog, SystemClock().now(), only=workflow)
    names = catalog.registry.ids() if workflow is None else [workflow.id]
    counts = _counts(findings)
    failure = None
    if any(finding.level == "error" or strict for finding in findings):
        hint = "What each code means: wfe help lint"
        failure = Failure(f"{counts}.", code="lint", exit_code=ExitCode.USAGE, hint=hint)
    if session.output == "json":
        outcome = {"ok": True} if failure is None else failure.document()
        output.print_json(
            {**outcome, "workflows": names, "findings": [_document(f) for f in findings]}
        )
    else:
        _show(session, findings)
    if failure is not None:
        failure.tell(color=session.colors(sys.stderr))
        return failure.exit_code
    told = f"{_number(len(names), 'workflow')}: {counts}." if names else session.why_no_workflows()
    tell(told)
    return ExitCode.OK


def _counts(findings: Sequence[Finding]) -> str:
    errors = sum(finding.level == "error" for finding in findings)
    warnings = len(findings) - errors
    return f"{_number(errors, 'error')}, {_number(warnings, 'warning')}"


def _number(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'s' * (count != 1)}"


def _document(finding: Finding) -> dict[str, Any]:
    return {**finding._asdict(), "level": str(finding.level)}


def _show(session: Session, findings: Sequence[Finding]) -> None:
    if not session.for_people:
        for one in findings:
            output.write_line(
                f"{_place(one)}: {one.level} {one.code}: {text.safe(one.sentence)}",
            )
        return
    from wfe.cli.render import Screen

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    for one in findings:
        screen.line(screen.state(str(one.level)), f" {one.code}  {text.shown(_place(one))}")
        screen.paragraph(text.shown(one.sentence), indent="    ")


def _place(finding: Finding) -> str:
    """File and line, as a person in the current folder would write them."""
    from wfe.discover import shown

    if finding.file is None:
        return "-"
    return text.safe(f"{shown(finding.file)}:{finding.line}")
