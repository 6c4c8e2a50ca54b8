"""The timeline of an execution: what happened, entry by entry, as lines and for people.

Entries are numbered from 1; a number once given to an entry stays its own, and is what `--at` takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wfe.cli import documents, output, text
from wfe.model import Action, EventKind, Execution, ExecutionKey, TimelineEvent

if TYPE_CHECKING:
    from rich.text import Text

    from wfe.cli.render import Screen
    from wfe.cli.session import Session

#: Before a note that has a line of its own.
_INDENT = 17

#: Cells of the longest state, with its symbol.
_WORD = 14

#: What happens to a step, as a state that a screen knows.
_WORDS = {
    EventKind.STEP_BEGIN: "running",
    EventKind.STEP_SUCCESS: "done",
    EventKind.STEP_FAILURE: "failed",
    EventKind.STEP_AWAITING: "waiting",
    EventKind.STEP_SKIPPED: "skipped",
    EventKind.COMPENSATE_STEP_SUCCESS: "reverted",
    EventKind.COMPENSATE_STEP_FAILURE: "failed",
    EventKind.TIMEOUT: "timeout",
    EventKind.BEGIN: "running",
    EventKind.RESUME: "running",
    EventKind.COMPENSATE_BEGIN: "compensating",
    EventKind.NOTICE: "done",
}
#: What happens to the execution as a whole, in words.
_WHOLE = {
    EventKind.BEGIN: "it begins",
    EventKind.RESUME: "it goes on",
    EventKind.COMPENSATE_BEGIN: "all that was done is undone",
    EventKind.TIMEOUT: "it has run out of time",
    EventKind.FINISH: "it ends",
    EventKind.NOTICE: "its end is told",
}


def lines(key: ExecutionKey, timeline: Sequence[TimelineEvent], first: int = 1) -> list[list[Any]]:
    """Number, time, kind, key, attempt and what there is to say; `first` is the number of the first."""
    return [line(documents.entry(key, n, event)) for n, event in enumerate(timeline, first)]


def line(entry: documents.Entry) -> list[Any]:
    """The same of one entry."""
    attempt = f"attempt {entry['attempt']}" if entry["attempt"] else ""
    return [entry["number"], entry["time"], entry["kind"], entry["key"], attempt, _said(entry)]


def _said(entry: documents.Entry) -> str:
    error = entry["error"]
    said = text.failure(error["error"]["name"], error["error"]["message"]) if error else ""
    return "; ".join(part for part in (said, entry["detail"]) if part)


def draw(
    screen: Screen, execution: Execution, timeline: Sequence[TimelineEvent], first: int = 1
) -> None:
    """The entries, with the time since the execution began."""
    head_key = execution.head.key
    begin = execution.head.started_at or execution.head.created_at
    rows = [_cells(screen, number, event, begin) for number, event in enumerate(timeline, first)]
    # As wide in every part of a timeline, which may be drawn as it comes.
    names = [len(f"undo of {name}") for name in execution.flow.steps]
    heads = screen.rows(rows, least={2: _WORD, 3: max(names, default=0)})
    for head, event in zip(heads, timeline, strict=True):
        screen.with_note(head, text.safe(_note(head_key, event)), indent=_INDENT)


def _since(begin: datetime, moment: datetime) -> str:
    """In milliseconds as long as that is what tells entries apart."""
    length = text.seconds(begin, moment) or 0.0
    return f"+{length:.3f}s" if length < 60 else f"+{text.elapsed(length)}"


def _cells(screen: Screen, number: int, event: TimelineEvent, begin: datetime) -> list[Text]:
    word = event.detail or "" if event.kind is EventKind.FINISH else _WORDS[event.kind]
    if event.kind is EventKind.NOTICE and event.error is not None:
        word = "failed"
    what = event.step or _WHOLE[event.kind]
    if event.action is Action.COMPENSATE:
        what = f"undo of {what}"
        word = "compensating" if event.kind is EventKind.STEP_BEGIN else word
    return [
        screen.text(f"{number:>4}"),
        screen.text(f"{_since(begin, event.time):>8}"),
        screen.state(word),
        screen.text(what),
    ]


def _note(key: ExecutionKey, event: TimelineEvent) -> str:
    tries = f"attempt {event.attempt}" if (event.attempt or 1) > 1 else ""
    said = "" if event.kind is EventKind.FINISH else _said(documents.entry(key, 0, event))
    return "; ".join(part for part in (tries, said) if part)


# --- entries as they come ------------------------------------------------------------------------

#: Prints entries of an execution, of which the first has this number.
Printer = Callable[[Execution, Sequence[TimelineEvent], int], None]


def printer(session: Session) -> Printer:
    """Prints entries in the session's format, whenever there are some."""
    is_plain = session.output in ("table", "wide")
    if is_plain and session.for_people:
        return _for_people(session)

    def show(execution: Execution, entries: Sequence[TimelineEvent], first: int) -> None:
        key = execution.head.key
        found = [documents.entry(key, number, event) for number, event in enumerate(entries, first)]
        if is_plain:
            for one in found:
                output.print_tabbed(line(one))
        else:
            output.print_list(found, session.output, (), is_more=first > 1)
        sys.stdout.flush()

    return show


def _for_people(session: Session) -> Printer:
    from wfe.cli.render import Screen

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))

    def show(execution: Execution, entries: Sequence[TimelineEvent], first: int) -> None:
        if first == 1:
            screen.title(str(execution.head.key))
        draw(screen, execution, entries, first)

    return show
