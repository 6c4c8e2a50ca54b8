"""`wfe executions events`, `watch` and `result`: an execution while others drive it. Reads the store
alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.parameters import Key
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.cli.failures import Failure
    from wfe.cli.live import Watcher
    from wfe.model import Event, Execution, TimelineEvent


def events(
    session: Session,
    key: Key,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the execution is finished.")
    ] = False,
) -> int:
    """Print what happened to an execution, a line for each entry of its timeline.

    In a pipe: number, time, kind, key, attempt and what there is to say, separated by tabs.

    \b
    wfe executions events order-0042
    wfe executions events order-0042 -f -o jsonl
    """
    from wfe.cli import keys, timeline
    from wfe.cli.follow import follow as followed

    if follow and session.output == "json":
        raise UsageError(
            "-o json is one document, and -f prints as it goes.", hint="Print lines: -o jsonl"
        )
    show = timeline.printer(session)
    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
        assert reader is not None
        shown = 0
        try:
            for moment in followed(reader, execution) if follow else [execution]:
                entries = reader.timeline(moment.head.execution_id, after=shown)
                show(moment, entries, shown + 1)
                shown += len(entries)
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
    return ExitCode.OK


def watch(session: Session, key: Key) -> int:
    """Watch an execution that another process drives, as `wfe run` shows its own; until it is finished.

    Ends with what the execution came to: see wfe help exit-codes.

    \b
    wfe executions watch order-0042
    """
    from wfe.cli import endings, exit_codes, keys, live
    from wfe.cli.follow import ending_in_order, follow

    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
        assert reader is not None
        watcher, shown = live.watcher(session, answers=True), 0
        try:
            with ending_in_order(), watcher.running():
                told = _Nobody(session, watcher)
                for moment in follow(reader, execution):
                    entries = reader.timeline(moment.head.execution_id, after=shown)
                    for entry in entries:
                        watcher.on_event(_event(moment, entry))
                    shown += len(entries)
                    watcher.on_change(moment)
                    told.look(moment)
                    execution = moment
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
    failure = endings.failure_of(execution, session.command)
    if failure is not None:
        failure.tell(color=session.colors(sys.stderr))
    return exit_codes.of_run(execution)


def result(
    session: Session,
    key: Key,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait until the execution is finished.")
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Wait no longer than that: 90s, 15m."),
    ] = None,
) -> int:
    """Print the result of an execution, as JSON. One that is not finished ends the command with 20, one
    that failed with what it came to: see wfe help exit-codes.

    \b
    wfe executions result order-0042
    wfe executions result order-0042 --wait --timeout 15m
    """
    import msgspec

    from wfe.cli import documents, endings, exit_codes, inputs, keys, output
    from wfe.cli.follow import follow

    patience = inputs.seconds(timeout, "--timeout")
    if patience is not None and not wait:
        raise UsageError("--timeout says how long to --wait.")
    with session.reader() as reader:
        execution = keys.find_execution(reader, key)
        assert reader is not None
        if wait:
            for moment in follow(reader, execution, patience):
                execution = moment
    failure = endings.failure_of(execution, session.command)
    if not execution.head.is_final:
        failure = _not_finished(session, execution)
    if session.output == "json":
        head = failure.document() if failure is not None else {"ok": True}
        output.print_json({**head, **documents.outcome(execution)})
    elif session.output == "key":
        output.write_line(str(execution.head.key))
    elif failure is None:
        output.print_json(msgspec.Raw(execution.result or b"null"))
    if failure is not None:
        failure.tell(color=session.colors(sys.stderr))
    return exit_codes.of_run(execution)


def _not_finished(session: Session, execution: Execution) -> Failure:
    from wfe.cli import documents
    from wfe.cli.failures import Failure

    key = str(execution.head.key)
    return Failure(
        f"{key} has no result yet: it is {documents.status(execution)}.",
        code="not_finished",
        exit_code=ExitCode.WAITING,
        hint=f"What it waits for: {session.command('executions', 'why', key)}",
        key=key,
    )


class _Nobody:
    """Says once, each time that an execution is left by everybody, how it is carried on."""

    def __init__(self, session: Session, watcher: Watcher) -> None:
        self._session = session
        self._watcher = watcher
        self._was_left = False

    def look(self, execution: Execution) -> None:
        from wfe.cli import documents, ways

        is_left = documents.status(execution) == "interrupted"
        if is_left and not self._was_left:
            way = ways.carry_on(self._session.command, execution.head.key)
            self._watcher.say(f"Nobody drives it. To carry it on: {way.command}")
        self._was_left = is_left


def _event(execution: Execution, entry: TimelineEvent) -> Event:
    """An entry of the timeline as it was told when it happened."""
    from wfe.model import EventKind, ExecutionState, event_told

    head, is_end = execution.head, entry.kind is EventKind.FINISH
    state = ExecutionState(entry.detail) if is_end and entry.detail else None
    return event_told(head, entry, state=state)
