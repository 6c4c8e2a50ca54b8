"""Asking before many things are changed at once: on a terminal; elsewhere `-y` is the answer."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wfe.cli import text
from wfe.cli.telling import fitted
from wfe.errors import UsageError, WfeError

#: The flag of every command that asks.
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def ask(what: str, *, yes: bool, is_idle: bool = False) -> None:
    """Ask whether to do `what` ("remove 12 executions"), and return where that is agreed to. `is_idle`:
    it would change nothing, so there is nothing to ask; a script that lacks the flag is told all the
    same, and not only on the day on which there is something to do.

    Raises:
        UsageError: there is nobody to ask.
        WfeError: the person does not agree.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"This would {what}, and nobody can be asked.", hint="Say -y to do it.")
    if is_idle:
        return
    sys.stderr.write(f"{fitted(text.shown(f'This will {what}. Go on? [y/N]'))} ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise WfeError("Nothing was done.")
