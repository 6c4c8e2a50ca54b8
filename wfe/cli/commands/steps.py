"""`wfe step list|show`: steps that are under way, and one step in full. Reads the store alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.parameters import Key
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from wfe.cli.render import Screen
    from wfe.model import Execution, StepKey, StepRecord, TimelineEvent
    from wfe.store.contract import Reader, WaitingStep

#: What a tab-separated line of a list holds.
_COLUMNS = ("key", "state", "since", "attempts")

#: Executions that are looked into at a time.
_PAGE = 200


def list_(
    session: Session,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only those that wait for an answer from outside.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="At most so many; 0: all.")
    ] = 50,
) -> int:
    """List the steps that are under way, those of the newest executions first; with --waiting those
    that wait for an answer, the oldest first.

    In a pipe: key, state, since when, and attempts, separated by tabs.

    \b
    wfe step list --waiting
    wfe step list -o key
    """
    from wfe.cli import output

    if limit < 0:
        raise UsageError("--limit is a whole number from 0 (all) on.")
    with session.reader() as reader:
        steps = iter(()) if reader is None else (_waiting if waiting else _under_way)(reader, limit)
        found = list(islice(steps, limit + 1 if limit else None))
    shown = found[:limit] if limit else found
    if session.output in ("table", "wide") and session.for_people:
        _draw_list(session, shown)
    else:
        output.print_list(shown, session.output, _COLUMNS)
    if len(found) > len(shown):
        tell(f"There are more than {limit}: see --limit.")
    elif not found and session.for_people:
        tell(session.why_nothing_is_found() or "No such steps.")
    elif waiting and session.for_people:
        answer = session.command("step", "succeed", "KEY", "--response", "JSON")
        tell(f"Answer one with: {answer}")
    return ExitCode.OK


def show(
    session: Session,
    key: Key,
) -> int:
    """Show one step: its state, attempts and times, what it returned or failed with, what happened to
    it, and the commands that help. A step that waits is found by its execution, too.

    \b
    wfe step show release:2026.12:approve
    wfe step show release:2026.12:approve -o json
    """
    from wfe.cli import keys, output
    from wfe.clock import SystemClock

    now = SystemClock().now()
    with session.reader() as reader:
        step = keys.find_step(reader, key)
        assert reader is not None
        execution = reader.load(step.execution)
        assert execution is not None
        entries = [
            (number, entry)
            for number, entry in enumerate(reader.timeline(execution.head.execution_id), 1)
            if entry.step == step.step
        ]
        view = _View(session, reader, execution, step, now, entries)
    match session.output:
        case "json":
            output.print_json(view.document())
        case "key":
            output.write_line(str(step))
        case _ if session.for_people:
            view.draw()
        case _:
            view.print_plain()
    return ExitCode.OK


# --- lists ---------------------------------------------------------------------------------------


def _waiting(reader: Reader, limit: int) -> Iterator[dict[str, Any]]:
    """Steps that a person can answer: one that runs another workflow is answered by that."""
    from wfe.model import StepKind

    size = 4 * limit
    steps = reader.steps_waiting(limit=size or None)
    done = 0
    while True:
        for step in steps[done:]:
            key = _key(step)
            execution = reader.load(key.execution, step.run_id)
            if execution is None or key.step not in execution.flow.steps:
                continue
            if execution.flow.steps[key.step].kind is not StepKind.WORKFLOW:
                yield _document(key, step.run_id, "waiting", step.since, step.attempts)
        if not size or len(steps) < size:
            return
        done, size = len(steps), 4 * size
        steps = reader.steps_waiting(limit=size)


def _key(step: WaitingStep) -> StepKey:
    from wfe.model import StepKey

    return StepKey(step.workflow_id, step.transaction_id, step.step, step.action)


def _under_way(reader: Reader, limit: int) -> Iterator[dict[str, Any]]:
    from wfe.clock import SystemClock
    from wfe.model import FINAL_STATES, ExecutionState
    from wfe.store.contract import Query

    unfinished = [str(state) for state in ExecutionState if state not in FINAL_STATES]
    where, now, offset = {"state": {"$in": unfinished}}, SystemClock().now(), 0
    while page := reader.list(Query(where=where, limit=_PAGE, offset=offset)):
        for summary in page:
            execution = reader.load(summary.key, summary.run_id)
            if execution is not None:
                yield from _active(execution, now)
        offset += len(page)


def _active(execution: Execution, now: datetime) -> Iterator[dict[str, Any]]:
    from wfe.cli import tree
    from wfe.model import StepKey

    head = execution.head
    sides = {row.step: row.compensate or row.invoke for row in tree.rows(execution, now)}
    for name in execution.active:
        record = execution.step(name)
        key = StepKey(head.workflow_id, head.transaction_id, name, record.action)
        side = sides[name]
        assert side is not None
        yield _document(key, head.run_id, side.word, record.last_attempt_at, record.attempts)


def _document(
    key: StepKey, run: str, state: str, since: datetime | None, attempts: int
) -> dict[str, Any]:
    from wfe.cli import text

    return {
        "key": str(key),
        "state": state,
        "since": text.iso(since) or None,
        "attempts": attempts,
        "workflow": key.workflow_id,
        "transaction": key.transaction_id,
        "run": run,
        "step": key.step,
        "action": str(key.action),
    }


def _draw_list(session: Session, found: Sequence[dict[str, Any]]) -> None:
    from datetime import datetime

    from wfe.cli import text
    from wfe.cli.render import Screen
    from wfe.clock import SystemClock

    if not found:
        return
    now = SystemClock().now()
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    rows = []
    for one in found:
        since = None if one["since"] is None else datetime.fromisoformat(one["since"])
        cells = (text.age(since, now), str(one["attempts"]), one["key"])
        rows.append([screen.state(one["state"]), *map(screen.text, cells)])
    screen.table(["STATE", "SINCE", "ATTEMPTS", "KEY"], rows)


# --- one -----------------------------------------------------------------------------------------


class _View:
    """What there is to say of one step."""

    def __init__(
        self,
        session: Session,
        reader: Reader,
        execution: Execution,
        key: StepKey,
        now: datetime,
        entries: Sequence[tuple[int, TimelineEvent]],
    ) -> None:
        from wfe.cli import causes, tree, ways

        self._session, self._execution, self._key, self._now = session, execution, key, now
        self._entries = entries
        self._spec = execution.flow.steps[key.step]
        self._record: StepRecord = execution.step(key.step)
        self._row = next(row for row in tree.rows(execution, now) if row.step == key.step)
        why = causes.explain(reader, execution, now, session.command)
        self._cause = next((one for one in why.causes if one.key.step == key.step), None)
        self._ways = self._cause.ways if self._cause is not None else ()
        if not self._ways:
            self._ways = (ways.see(session.command, key.execution),)

    def document(self) -> dict[str, Any]:
        """All of it, as JSON."""
        from wfe.cli import documents, tree

        head, record, key = self._execution.head, self._record, self._key
        whole = documents.execution(self._execution)
        side = self._row.compensate or self._row.invoke
        return {
            "key": str(key),
            "workflow": key.workflow_id,
            "transaction": key.transaction_id,
            "run": head.run_id,
            "step": key.step,
            "action": str(record.action),
            "word": side.word if side is not None else None,
            "kind": str(self._spec.kind),
            "child": self._spec.child,
            "when": {name: head.guards.get(name) for name in self._spec.guards},
            "has_compensation": self._spec.has_compensation,
            "options": tree.given(self._spec.options),
            **whole["execution"]["steps"][key.step],
            "output": whole["context"]["invoke"].get(key.step, {}).get("output"),
            "compensate_with": whole["context"]["invoke"].get(key.step, {}).get("compensate_with"),
            "why": self._cause.sentence if self._cause is not None else None,
            "timeline": [documents.entry(key.execution, *entry) for entry in self._entries],
            "commands": [way._asdict() for way in self._ways],
            "stage": record.stage,
        }

    def print_plain(self) -> None:
        """Lines for scripts: a name and its values."""
        from wfe.cli import documents, output, text, timeline

        document = self.document()
        for name in ("key", "word", "kind", "attempts", "failures"):
            output.print_tabbed([name, document[name]])
        for name in ("started", "last_attempt", "ended", "undone", "retry"):
            output.print_tabbed([name, document[name]])
        for name in ("output", "compensate_with", "why"):
            output.print_tabbed([name, document[name]])
        if (error := self._record.error) is not None:
            output.print_tabbed(["error", text.failure(error.name, error.message)])
        for entry in self._entries:
            line = timeline.line(documents.entry(self._key.execution, *entry))
            output.print_tabbed(["entry", *line])
        for way in self._ways:
            output.print_tabbed(["command", *way])

    def draw(self) -> None:
        """The same for a person."""
        from wfe.cli import report, text, timeline
        from wfe.cli.render import Screen

        screen = Screen(sys.stdout, colors=self._session.colors(sys.stdout))
        screen.title(str(self._key))
        for line in screen.steps([self._row._replace(bracket="", depth=0)]):
            screen.line(line)
        for name, fact in self._facts(screen):
            screen.paragraph(text.shown(fact), indent="   ", label=f"{name:<10}")
        if self._cause is not None:
            screen.line()
            screen.paragraph(text.shown(self._cause.sentence), indent="   ")
        if self._entries:
            screen.line()
            screen.title("Timeline")
        for number, entry in self._entries:
            timeline.draw(screen, self._execution, [entry], number)
        report.draw_errors(screen, (self._record.error,) if self._record.error else ())
        report.draw_value(screen, "Output", self._record.output)
        if self._record.compensate_with != self._record.output:
            report.draw_value(screen, "Its undo is given", self._record.compensate_with)
        screen.line()
        screen.choices(self._ways, indent="   ")

    def _facts(self, screen: Screen) -> Iterator[tuple[str, str]]:
        from wfe.cli import text, tree

        record, spec, stages = self._record, self._spec, len(self._execution.flow.stages)
        runs = f", runs {spec.child}" if spec.child else ""
        yield (
            "is",
            f"{str(spec.kind).replace('_', ' ')} in stage {spec.stage + 1} of {stages}{runs}",
        )
        if options := tree.told_options(spec.options):
            yield "options", screen.joined(options)
        yield "undo", "it has one" if spec.has_compensation else "it has none"
        for name, moment in (
            ("began", record.started_at),
            ("tried last", record.last_attempt_at if record.attempts > 1 else None),
            ("ended", record.ended_at),
            ("undone", record.undone_at),
        ):
            if moment is not None:
                yield name, text.ago(moment, self._now)
