"""`wfe executions why`: what an execution waits for, or how it ended, and what can be done now."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wfe.cli.exit_codes import ExitCode
from wfe.cli.parameters import Key
from wfe.cli.session import Session

if TYPE_CHECKING:
    from datetime import datetime

    from wfe.cli.causes import Cause, Explanation
    from wfe.cli.render import Screen
    from wfe.cli.ways import Way
    from wfe.model import ErrorRecord


def why(
    session: Session,
    key: Key,
) -> int:
    """Explain why an execution is where it is: what it waits for, since when, who has it in hand,
    what comes next by itself, and the commands that help.

    In a pipe: a word and its values, separated by tabs. A step that runs another workflow is followed
    down to what that one waits for.

    \b
    wfe executions why release:2026.12
    wfe executions why order-0042 -o json
    """
    from wfe.cli import causes, keys, output
    from wfe.clock import SystemClock

    now = SystemClock().now()
    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
        assert reader is not None
        found = causes.explain(reader, execution, now, session.command)
    match session.output:
        case "json":
            output.print_json(document(found))
        case "key":
            output.write_line(str(execution.head.key))
        case _ if session.for_people:
            from wfe.cli.render import Screen

            _draw(Screen(sys.stdout, colors=session.colors(sys.stdout)), found, now)
        case _:
            for line in _lines(found):
                output.print_tabbed(line)
    return ExitCode.OK


# --- as a document -------------------------------------------------------------------------------


def document(found: Explanation) -> dict[str, Any]:
    """An explanation, and those of the children that it waits for, as JSON."""
    from wfe.cli import documents, text

    head = found.execution.head
    return {
        "key": str(head.key),
        "run": head.run_id,
        "state": str(head.state),
        "status": documents.status(found.execution),
        "why": [*found.sentences, *(cause.sentence for cause in found.causes)],
        "waits": [_cause_document(cause) for cause in found.causes],
        "held_by": found.held_by or None,
        "is_held": found.execution.holder is not None,
        "timers": [{"at": text.iso(timer.at), "what": timer.what} for timer in found.timers],
        "error": documents.error(found.error) if found.error is not None else None,
        "commands": _ways_document(found.ways),
        "parent": head.parent_step_idempotency_key,
    }


def _cause_document(cause: Cause) -> dict[str, Any]:
    from wfe.cli import text

    return {
        "kind": cause.kind,
        "key": str(cause.key),
        "why": cause.sentence,
        "since": text.iso(cause.since) or None,
        "until": text.iso(cause.until) or None,
        "commands": _ways_document(cause.ways),
        "child": document(cause.child) if cause.child is not None else None,
    }


def _ways_document(ways: tuple[Way, ...]) -> list[dict[str, str]]:
    return [way._asdict() for way in ways]


# --- as lines ------------------------------------------------------------------------------------


def _lines(found: Explanation) -> Iterator[list[str]]:
    from wfe.cli import documents, text

    yield ["key", str(found.execution.head.key)]
    yield ["status", documents.status(found.execution)]
    for sentence in found.sentences:
        yield ["why", sentence]
    for cause in found.causes:
        yield ["waits", cause.kind, str(cause.key), text.iso(cause.since), text.iso(cause.until)]
        yield ["why", cause.sentence]
        for way in cause.ways:
            yield ["command", *way]
        if cause.child is not None:
            yield from _lines(cause.child)
    if found.held_by:
        yield ["held", found.held_by]
    for timer in found.timers:
        yield ["timer", text.iso(timer.at), timer.what]
    if found.error is not None:
        yield ["error", found.error.action or "", _said(found.error)]
    for way in found.ways:
        yield ["command", *way]


def _said(error: ErrorRecord) -> str:
    from wfe.cli import text

    return text.failure(error.name, error.message)


# --- for a person --------------------------------------------------------------------------------


def _draw(
    screen: Screen, found: Explanation, now: datetime, *, indent: str = "", is_child: bool = False
) -> None:
    from wfe.cli import text

    if is_child:
        screen.line(indent, str(found.execution.head.key))
    else:
        screen.title(str(found.execution.head.key))
    screen.line(indent, screen.summary(found.execution, now))
    for sentence in found.sentences:
        screen.paragraph(text.safe(sentence), indent=f"{indent}   ")
    for cause in found.causes:
        screen.line()
        screen.paragraph(text.safe(cause.sentence), indent=f"{indent}   ")
        screen.choices(cause.ways, indent=f"{indent}     ")
        if cause.child is not None:
            screen.line()
            _draw(screen, cause.child, now, indent=f"{indent}    ", is_child=True)
    facts = _facts(found, now)
    if facts:
        screen.line()
    for name, fact in facts:
        screen.paragraph(text.safe(fact), indent=f"{indent}   ", label=f"{name:<12}")
    if found.ways and not is_child:
        screen.line()
        screen.choices(found.ways, indent=f"{indent}   ")


def _facts(found: Explanation, now: datetime) -> list[tuple[str, str]]:
    from wfe.cli import text

    facts = [("held by", found.held_by)] if found.held_by else []
    for word, timer in zip(("next", "then", "then"), found.timers, strict=False):
        facts.append((word, f"{text.to(timer.at, now)}: {timer.what}"))
    if found.error is not None and found.causes:
        facts.append(("last error", f"{found.error.action}: {_said(found.error)}"))
    return facts
