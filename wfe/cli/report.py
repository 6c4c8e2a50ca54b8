"""One execution in full: for people on a terminal, and as tab-separated lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from wfe.cli import documents, family, output, text, timeline, tree, ways
from wfe.model import ErrorRecord, Execution, Json, StepStatus, TimelineEvent

if TYPE_CHECKING:
    from wfe.cli.render import Screen
    from wfe.cli.session import Session


class View(NamedTuple):
    """What is shown of an execution: how it stands at a moment, and what happened until then."""

    execution: Execution
    moment: datetime
    #: Empty where nobody asked for it.
    timeline: Sequence[TimelineEvent]
    #: It stood so then; how it stands now is another matter.
    is_past: bool
    #: Those whose steps are shown as well.
    children: family.Children = family.NONE

    @property
    def status(self) -> str:
        """The derived status."""
        if not self.is_past:
            return documents.status(self.execution)
        from wfe.store.contract import status_in_hand

        return status_in_hand(self.execution.head)


#: What is shown where no section is named.
USUAL = frozenset({"head", "steps", "waiting", "errors", "input", "result"})


def print_plain(session: Session, view: View, sections: Set[str] = USUAL) -> None:
    """Lines for scripts: `name<TAB>value`, then one line for each step, waiting key, error, output and
    entry of the timeline."""
    for names, lines in _PLAIN:
        if names & sections:
            for line in lines(session, view):
                output.print_tabbed(line)


def _plain_head(session: Session, view: View) -> Iterator[PlainLine]:
    head, facts = view.execution.head, documents.outcome(view.execution)
    yield ["key", facts["key"]]
    yield ["status", view.status]
    for name in ("state", "workflow", "transaction", "run"):
        yield [name, facts[name]]
    for name, moment in (("created", head.created_at), ("ended", head.ended_at)):
        yield [name, text.iso(moment)]


def _plain_steps(session: Session, view: View) -> Iterator[PlainLine]:
    for row in tree.rows(view.execution, view.moment, is_past=view.is_past):
        record = view.execution.step(row.step)
        sides = [side.word if side else "" for side in (row.invoke, row.compensate)]
        moments = text.iso(record.started_at), text.iso(record.ended_at)
        yield ["step", row.step, *sides, *moments, *row.notes]


def _plain_waiting(session: Session, view: View) -> Iterator[PlainLine]:
    if not view.is_past:
        for key in tree.waiting_keys(view.execution):
            answers = ways.answer(session.command, key)
            yield ["waiting", str(key), *(way.command for way in answers)]
        for step, child in tree.waiting_children(view.execution):
            yield ["child", str(child), step]


def _plain_errors(session: Session, view: View) -> Iterator[PlainLine]:
    for error in view.execution.head.errors:
        line = ["error", error.action, error.handler_type, error.name, error.message]
        raised = frames(error)
        yield [*line, raised] if raised else line


def _plain_input(session: Session, view: View) -> Iterator[PlainLine]:
    yield ["input", _json(view.execution.input)]


def _plain_outputs(session: Session, view: View) -> Iterator[PlainLine]:
    for name, value in outputs_of(view.execution):
        yield ["output", name, _json(value)]


def _plain_result(session: Session, view: View) -> Iterator[PlainLine]:
    yield ["result", _json(view.execution.result)]


def _plain_timeline(session: Session, view: View) -> Iterator[PlainLine]:
    for line in timeline.lines(view.execution.head.key, view.timeline):
        yield ["entry", *line]


PlainLine = list[Any]

#: In which sections which lines are printed.
_PLAIN: tuple[tuple[Set[str], Callable[[Session, View], Iterator[PlainLine]]], ...] = (
    ({"head"}, _plain_head),
    ({"steps"}, _plain_steps),
    ({"waiting"}, _plain_waiting),
    ({"errors"}, _plain_errors),
    ({"input"}, _plain_input),
    ({"outputs"}, _plain_outputs),
    ({"result", "outputs"}, _plain_result),
    ({"timeline"}, _plain_timeline),
)


def draw(screen: Screen, session: Session, view: View, sections: Set[str] = USUAL) -> None:
    """The same for a person."""
    execution = view.execution
    _draw_head(screen, view, whole="head" in sections)
    if "steps" in sections:
        screen.line()
        rows = tree.rows(execution, view.moment, is_past=view.is_past, children=view.children)
        for line in screen.steps(rows):
            screen.line(line)
    if "waiting" in sections and not view.is_past:
        draw_waiting(screen, session, execution)
    if "timeline" in sections:
        screen.line()
        screen.title("Timeline")
        timeline.draw(screen, execution, view.timeline)
    if "errors" in sections:
        errors = errors_of(execution)
        draw_errors(screen, errors)
        if not errors and sections != USUAL:
            screen.line("   no errors")
    if "input" in sections:
        draw_value(screen, "Input", execution.input)
    if "outputs" in sections:
        for name, value in outputs_of(execution):
            draw_value(screen, f"Output of {name}", value)
    if sections & {"result", "outputs"}:
        draw_value(screen, "Result", execution.result)


def errors_of(execution: Execution) -> tuple[ErrorRecord, ...]:
    """Those of the execution, and those of attempts after which a step is tried again."""
    records = (execution.step(name) for name in execution.active)
    for_now = [record.error for record in records if record.status is StepStatus.TEMP_FAILURE]
    return (*execution.head.errors, *(error for error in for_now if error is not None))


def outputs_of(execution: Execution) -> list[tuple[str, Json]]:
    """What the steps returned, in the order of the flow."""
    records = [execution.step(name) for name in execution.flow.steps]
    return [(record.name, record.output) for record in records if record.output is not None]


def draw_value(screen: Screen, name: str, value: Json | None) -> None:
    """A value under its name; nothing where there is none."""
    if value is not None:
        screen.line()
        screen.title(text.safe(name))
        screen.line(_indented(text.safe_json(_pretty(value))))


def _json(value: Json | None) -> str:
    return "" if value is None else value.decode()


def draw_waiting(screen: Screen, session: Session, execution: Execution) -> None:
    """The commands that answer what waits, to be pasted."""
    keys, children = tree.waiting_keys(execution), tree.waiting_children(execution)
    if keys:
        screen.line()
        screen.title("Waits for an answer")
    for key in keys:
        for way in ways.answer(session.command, key):
            screen.line(f"  {way.command}")
    if children:
        screen.line()
        screen.title("Waits for a child")
    for _, child in children:
        screen.line(f"  {session.command('executions', 'why', str(child))}")


def draw_errors(screen: Screen, errors: tuple[ErrorRecord, ...]) -> None:
    """Every error, with the user's own frames."""
    if errors:
        screen.line()
        screen.title("Errors")
    for record in errors:
        side = "undo of " if str(record.handler_type) == "compensate" else ""
        where = f"{side}{record.action}" if record.action else "result"
        failure = text.shown(text.failure(record.name, record.message))
        screen.paragraph(f"{where}: {failure}", indent="  ")
        if record.attempts is not None and record.attempts > 1:
            screen.dim(f"    after {record.attempts} attempts")
        if record.origin is not None:
            screen.dim(f"    it came from {text.safe(record.origin)}")
        if found := frames(record):
            screen.dim(_indented(text.safe_lines(found), by=4))


def frames(record: ErrorRecord) -> str:
    """Where the error was raised: the user's own frames, without what its message says anyway.
    Empty for a failure that was meant: where it was raised helps nobody."""
    if record.name == "PermanentStepFailure":
        return ""
    stack = (record.stack or "").rstrip()
    told = text.failure(record.name, record.message).rstrip()
    if stack.endswith(told):  # after the module of the error's type
        stack = stack.removesuffix(told).rpartition("\n")[0]
    lines = stack.splitlines()
    return "\n".join(line for line in lines if line != "Traceback (most recent call last):")


def _draw_head(screen: Screen, view: View, *, whole: bool) -> None:
    head, now = view.execution.head, view.moment
    screen.title(str(head.key))
    if view.is_past:
        screen.line(f" as it was at entry {len(view.timeline)}, {text.iso(now)}")
    screen.line(screen.summary(view.execution, now, status=view.status))
    facts = {
        "run": head.run_id,
        "created": _ago(head.created_at, now),
        "ended": _ago(head.ended_at, now),
        "cancelled": _ago(head.cancelled_at, now),
        "wakes": "" if head.is_final else text.iso(head.wake_at),
        "parent": head.parent_step_idempotency_key or "",
    }
    for name, fact in facts.items():
        if fact and whole:
            screen.line(f"   {name:<10}", fact)


def _ago(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{text.iso(moment)}  {text.age(moment, now)} ago"


def _pretty(value: bytes) -> str:
    import msgspec

    return msgspec.json.format(value, indent=2).decode()


def _indented(lines: str, *, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in lines.split("\n"))
