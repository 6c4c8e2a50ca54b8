"""Arguments and flags that several commands take, so that they are called and explained alike."""

from __future__ import annotations

from typing import Annotated

import typer

#: An execution, or a step of one: see `keys`.
Key = Annotated[str, typer.Argument(metavar="KEY", help="See: wfe help keys.")]

#: A workflow: see `Session.target`.
Target = Annotated[str, typer.Argument(metavar="TARGET", help="NAME, FILE.py:NAME or MODULE:NAME.")]

#: Of whatever serves: see `serving.process.reporter`.
LogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        metavar="text|json",
        help="Write lines of this kind to stderr. Else: a board on a terminal, text elsewhere.",
    ),
]

#: Of whatever runs workflows: see `telemetry.traces`.
Otel = Annotated[
    bool,
    typer.Option("--otel", help="Send traces to where OTEL_* variables say: pip install wfe[otel]"),
]
