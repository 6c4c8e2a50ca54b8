"""`wfe serve`: everything that goes on by itself, in the foreground."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wfe.cli.command import alone, command
from wfe.cli.parameters import LogFormat, Otel
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.discover import Catalog

app = alone()


@command(app, "serve")
def serve(
    session: Session,
    log_format: LogFormat = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Import modules anew that change: pip install wfe[watch]"),
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT",
            help="Answer Prometheus there: pip install wfe[metrics]",
        ),
    ] = None,
    otel: Otel = False,
) -> int:
    """Run what is due: schedules of workflows, timers, and whatever a process that is gone has left,
    until Ctrl-C.

    Several of these on one database share the work: each tick fires once. The first Ctrl-C or TERM lets
    running steps end, the second leaves at once; what is unfinished goes on with the next one.

    \b
    wfe serve
    wfe serve --log-format json
    wfe serve --watch
    wfe serve --metrics 127.0.0.1:9464
    """
    from wfe.cli import telemetry
    from wfe.cli.extras import check_installed
    from wfe.cli.serving import process

    shown = process.reporter(session, log_format)
    if watch:
        check_installed("--watch", "watchfiles", "watchfiles", "watch")
    catalog = _catalog(session)
    with contextlib.ExitStack() as stack:
        beside = process.Beside(watch=watch)
        if metrics is not None:
            counted, place = stack.enter_context(telemetry.metrics(session, metrics))
            beside.events.append(counted.on_event)
            beside.ticks.append(counted.on_tick)
            beside.said.append(f"Metrics are at {place}")
        if otel:
            beside.events.append(stack.enter_context(telemetry.traces(session)).on_event)
        return process.serve(session, catalog, shown, beside=beside)


def _catalog(session: Session) -> Catalog:
    """What there is to serve; what did not load is told.

    Raises:
        UsageError: there is nothing.
    """
    from wfe.cli.failures import Failure

    catalog = session.catalog()
    for error in (*catalog.failures, *catalog.conflicts.values()):
        Failure.of(error).tell(color=session.colors(sys.stderr))
    if not catalog.registry.ids():
        raise UsageError(
            f"There is no workflow to serve: {session.where_workflows_are}.",
            hint="Name a file, folder or module with --app.",
        )
    return catalog
