"""`wfe executions`: find executions and look at them. Reads the store alone, runs no user code."""

from __future__ import annotations

from wfe.cli.command import command, group
from wfe.cli.commands import diff, following, graph, listing, mend, show, why
from wfe.cli.output import LIST_FORMATS, ONE_FORMATS, RUN_FORMATS

app = group("Find executions and look at them.")

command(app, "list", formats=LIST_FORMATS)(listing.list_)
command(app, "show", formats=ONE_FORMATS)(show.show)
command(app, "why", formats=ONE_FORMATS)(why.why)
command(app, "resume", formats=RUN_FORMATS)(mend.resume)
command(app, "retry", formats=RUN_FORMATS)(mend.retry)
command(app, "cancel", formats=RUN_FORMATS)(mend.cancel)
command(app, "delete", formats=ONE_FORMATS)(mend.delete)
command(app, "graph")(graph.of_execution)
command(app, "diff", formats=("table", "json"))(diff.diff)
command(app, "events", formats=LIST_FORMATS)(following.events)
command(app, "watch")(following.watch)
command(app, "result", formats=RUN_FORMATS)(following.result)
