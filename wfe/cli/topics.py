"""`wfe help TOPIC`: what is true of every command."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer

from wfe.cli.command import alone, command
from wfe.cli.exit_codes import MEANINGS, ExitCode
from wfe.cli.session import Session
from wfe.errors import UsageError

_KEYS = """\
A key names an execution or a step of it:

  order:tx1:charge:invoke     workflow : transaction : step : action, in full
  order:tx1:charge            the same step, at the side it is at (invoke or compensate)
  order:tx1                   an execution; its newest run where the id was run again
  tx1                         the same, where only one workflow has this transaction
  01KBZ8                      a run id, or the beginning of one

Each may be shortened as long as it stays unique; where it does not, the command lists what it could
mean and ends with 2. A transaction id may hold colons: the workflow is before the first colon, step
and action after the last two. A command about a step also takes an execution with one waiting step.
"""


def _exit_codes() -> str:
    return "".join(f"{code:>4}  {meaning}\n" for code, meaning in MEANINGS.items())


def _keys() -> str:
    return _KEYS


_TOPICS = {"exit-codes": _exit_codes, "keys": _keys}


app = alone()


@command(app, "help")
def topic(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="TOPIC", show_default=False)] = None,
) -> int:
    """Explain a topic: exit-codes or keys."""
    if name is None:
        print(f"Topics: {', '.join(_TOPICS)}. Commands explain themselves with --help.")
        return ExitCode.OK
    if name not in _TOPICS:
        near = get_close_matches(name, _TOPICS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(_TOPICS)}."
        raise UsageError(f"There is no topic {name!r}.", hint=hint)
    print(_TOPICS[name](), end="")
    return ExitCode.OK
