"""`wfe serve`: everything that goes on by itself, in the foreground."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wfe.cli.command import alone, command
from wfe.cli.session import Session
from wfe.errors import UsageError

app = alone()

LogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        metavar="text|json",
        help="Write lines of this kind to stderr. Else: a board on a terminal, text elsewhere.",
    ),
]


@command(app, "serve")
def serve(session: Session, log_format: LogFormat = None) -> int:
    """Run what is due: schedules of workflows, timers, and whatever a process that is gone has left,
    until Ctrl-C.

    Several of these on one database share the work: each tick fires once. The first Ctrl-C or TERM lets
    running steps end, the second leaves at once; what is unfinished goes on with the next one.

    \b
    wfe serve
    wfe serve --log-format json
    """
    from wfe.cli import serving
    from wfe.cli.failures import Failure

    shown = serving.reporter(session, log_format)
    catalog = session.catalog()
    for error in (*catalog.failures, *catalog.conflicts.values()):
        Failure.of(error).tell(color=session.colors(sys.stderr))
    if not catalog.registry.ids():
        where = ", ".join(session.config.app) or f"no folder workflows/ in {session.config.root}"
        raise UsageError(
            f"There is no workflow to serve: {where}.",
            hint="Name a file, folder or module with --app.",
        )
    return serving.serve(session, catalog, shown)
