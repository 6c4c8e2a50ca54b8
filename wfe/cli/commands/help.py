"""`wfe help TOPIC`: what is true of every command."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import Annotated

import typer

from wfe.cli import text
from wfe.cli.command import alone, command
from wfe.cli.commands import guides
from wfe.cli.exit_codes import MEANINGS, ExitCode
from wfe.cli.session import Session
from wfe.cli.telling import width_of
from wfe.errors import UsageError

_KEYS = """\
A key names an execution or a step of it:

  order:tx1:charge:invoke     workflow : transaction : step : action, in full
  order:tx1:charge            the same step, at the side it is at (invoke or compensate)
  order:tx1                   an execution; its newest run where the id was run again
  tx1                         the same, where only one workflow has this transaction
  01KBZ8                      a run id, or its beginning: four characters at least

Each may be shortened as long as it stays unique; where it does not, the command lists what it could
mean and ends with 2. A transaction id may hold colons: the workflow is before the first colon, step
and action after the last two. A command about a step also takes an execution with one waiting step.
"""


_CRON = """\
A schedule is a cron expression or an interval.

  0 3 * * *          five fields: minutes, hours, days of the month, months, weekdays
  */10 * * * * *     six fields: the first one is the seconds
  @daily             also @hourly, @weekly, @monthly, @yearly, @midnight, @annually
  @every 1h30m       an interval: s, m, h, d, counted from when it is first scheduled

A field is a list of these, separated by commas:

  *            all of them
  5            this one; months and weekdays have names, too: JAN, MON (0 and 7 are Sunday)
  9-17         from one to the other, both included
  */15         every 15th, counted anew with each hour (day, month, year): */7 is not even,
               and */90 minutes is hourly; @every keeps an even pace
  10/15        the same, from 10 on: minutes 10, 25, 40, 55; 59/15 is only 59, 6/1 is 6 to 59
  L, 15W       days of the month: the last one; the weekday (Monday to Friday) nearest the 15th
  FRI#2, L5    weekdays: the second Friday of the month; the last one

Where both days of the month and weekdays are named, a date fits where either does. Expressions that
never fire (0 0 31 2 *) or leave a number to chance (R, H) are refused.

Times are those of the schedule's time zone, UTC where none is named. When clocks are moved:

  An expression that names hours fires once for each time it names. A time that is missing, as
  clocks go forward, fires at the first moment after the gap; of one that comes twice, as clocks go
  back, the first counts.
  An expression for every hour keeps its pace: where an hour comes twice it fires in both, and where
  one is missing it has no fires.
  An interval notices nothing.

See when one fires: wfe schedules preview '0 3 * * *' --tz Europe/London
"""


_QUERY = """\
What `wfe executions list -q` takes: words, all of which have to be true.

  0042 order                 a bare word is part of the workflow, the transaction, the state or the
                             run id, in capitals or not
  state=failed,reverted      field=value is the whole value; one of several, separated by commas
  state!=done                not that value, or none at all
  error~timeout              a part of it, in capitals or not
  created>2h  attempts>=3    before or after it: > < >= <=
  error~"connection reset"   spaces, commas and operators in quotes mean themselves, as in a shell;
  "a=b"                      so this is a word

A shell takes quotes, spaces, > and < for itself: put all that belongs to -q in single quotes.

Fields:

  workflow, transaction, run
  state            as it is stored: not_started, invoking, waiting_to_compensate, compensating,
                   done, reverted, failed
  status           as the list shows it: running, waiting, sleeping, interrupted, done, reverted,
                   failed
  created, updated 2h or "2h ago": newer than that with >, older with <; or 2026-11-30,
                   2026-11-30T08:00Z, of which = takes the whole day, minute or second
  age              how long ago it was created: age>1d
  attempts         of the step that took most
  error            the name and the message of every failure
  step.NAME        the state of a step, of its undo, or running, waiting, sleeping, retrying
  input.PATH       what the execution was given: input.customer.id=42, input.items.0.sku~S1
  output.PATH      its result; or what a step returned: output.charge.id=ch_1

Numbers are compared as numbers. Children are listed with --all or --workflow.

  wfe executions list -q 'state=failed created>1d error~"connection reset" step.charge=failed'
"""


_LINT = """\
What `wfe workflows check` finds. An error cannot work and ends it with 2; a warning may be meant, and
counts with --strict alone.
"""


def _exit_codes() -> str:
    return "".join(f"{code:>4}  {meaning}\n" for code, meaning in MEANINGS.items())


def _keys() -> str:
    return _KEYS


def _cron() -> str:
    return _CRON


def _query() -> str:
    return _QUERY


def _lint() -> str:
    from textwrap import fill

    from wfe.lint.check import NOTICED, RULES

    known = [(code, "error", claim) for code, claim in NOTICED.items()]
    known += [(rule.code, str(rule.level), rule.claim) for rule in RULES]
    entries = [
        fill(claim, 99, initial_indent=f"  {code:<15} {level:<8} ", subsequent_indent=" " * 27)
        for code, level, claim in known
    ]
    return "\n".join([_LINT, *entries, ""])


def _environment() -> str:
    return guides.ENVIRONMENT


def _recording() -> str:
    return guides.RECORDING


#: Topic → what gives its text.
TOPICS = {
    "cron": _cron,
    "environment": _environment,
    "exit-codes": _exit_codes,
    "keys": _keys,
    "lint": _lint,
    "query": _query,
    "recording": _recording,
}


app = alone()


@command(app, "help")
def topic(
    session: Session,
    name: Annotated[
        str | None,
        typer.Argument(metavar="TOPIC", show_default=False, help="One of these. Else: list them."),
    ] = None,
) -> int:
    """Explain a topic: cron, environment, exit-codes, keys, lint, query or recording."""
    if name is None:
        print(f"Topics: {', '.join(TOPICS)}. Commands explain themselves with --help.")
        return ExitCode.OK
    if name not in TOPICS:
        near = get_close_matches(name, TOPICS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(TOPICS)}."
        raise UsageError(f"There is no topic {name!r}.", hint=hint)
    page = TOPICS[name]()
    if (width := width_of(sys.stdout)) is not None:
        page = text.fitted(page, width)
    print(page, end="")
    return ExitCode.OK
