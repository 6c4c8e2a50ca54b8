"""docs/reference/states.md: the diagrams of states, drawn from the transition tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wfe.engine import tables

_INTRODUCTION = """\
# States

Drawn from the tables in `wfe/engine/tables.py`, which know every change of state there is: what no
arrow shows cannot happen. A double end is final. A step has an *invoke* side and a *compensate* side,
each with a state of its own and a status, which tells the attempts apart.
"""

#: Title → what is to be said, and the table.
_SECTIONS: Mapping[str, tuple[str, Mapping[Any, frozenset[Any]]]] = {
    "An execution": (
        """`waiting_to_compensate`: it has turned, and waits for what is in flight. A kept `done` execution may
be cancelled: the one way out of a final state.""",
        tables.EXECUTION,
    ),
    "A step, invoking": (
        """A retry stays `invoking`. `skipped`: a condition did not hold, or the step said so;
`skipped_failure`: a step before it failed and was passed over.""",
        tables.INVOKE,
    ),
    "A step, compensating": (
        "`dormant`: there was nothing to undo so far. A step without an undo is `reverted` at once.",
        tables.COMPENSATE,
    ),
    "The status of either side": (
        """`waiting_response`: its handler is at work, or an answer from outside is waited for;
`temp_failure`: the next attempt is to come.""",
        tables.STATUS,
    ),
}


def write() -> str:
    parts = [_INTRODUCTION]
    for title, (words, table) in _SECTIONS.items():
        diagram = "\n".join(["stateDiagram-v2", "    direction LR", *_arrows(table)])
        parts.append(f"## {title}\n\n{words}\n\n```mermaid\n{diagram}\n```\n")
    return "\n".join(parts)


def _arrows(table: Mapping[Any, frozenset[Any]]) -> Iterator[str]:
    """In the order of the table, so that the page is the same each time."""
    states = list(table)
    yield f"    [*] --> {states[0]}"
    for state, following in table.items():
        for other in sorted(following, key=states.index):
            yield f"    {state} --> {other}"
        if not following:
            yield f"    {state} --> [*]"
