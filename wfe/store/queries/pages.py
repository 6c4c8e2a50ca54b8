"""Places in the list of executions, newest first: where the next page begins.

A page that goes on behind an execution, and not after so many of them, holds what it would have held if
nothing had begun or gone in between.
"""

from __future__ import annotations

import re

from wfe.errors import UsageError
from wfe.store.contract import ExecutionSummary
from wfe.store.moments import from_micros, to_micros
from wfe.store.queries.conditions import All, Condition, Either, Operator, Test, well_formed


def place(item: ExecutionSummary) -> str:
    """The place of an execution, as a text for whoever asks for what is behind it."""
    return f"{to_micros(item.created_at)}.{item.execution_id}"


def behind(place: str) -> Condition:
    """What is behind that place.

    Raises:
        UsageError: it is none.
    """
    match = re.fullmatch(r"(-?\d{1,18})\.(.+)", well_formed(place), re.ASCII | re.DOTALL)
    try:
        moment = from_micros(int(match[1])) if match is not None else None
    except OverflowError:
        moment = None
    if match is None or moment is None:
        raise UsageError(
            f"{place!r} is no place in a list.", hint="The end of a page names where it goes on."
        )
    # In this form SQLite begins to read at that place.
    older = Test("created_at", Operator.LESS, moment)
    same = Test("execution_id", Operator.LESS, match[2])
    return All((Test("created_at", Operator.AT_MOST, moment), Either((older, same))))
