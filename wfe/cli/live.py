"""What a person sees while an execution is driven: a tree that moves on a terminal, lines elsewhere.

Everything here goes to stderr. A watcher that cannot write (nobody reads any more) falls silent: the
execution goes on.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wfe.cli import family, text, tree, ways
from wfe.cli.capture import another, lines_of_output
from wfe.clock import SystemClock
from wfe.model import Action, Event, EventKind, Execution, StepKey

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from wfe.cli.session import Session

#: Lines of the screen that the tree leaves to what stands above and below it.
_MARGIN = 4


class Watcher(Protocol):
    """Is told what happens, in order, and shows it."""

    def running(self) -> contextlib.AbstractContextManager[None]:
        """Show until the context ends."""
        ...

    def on_event(self, event: Event) -> None:
        """Something has happened."""
        ...

    def on_change(self, execution: Execution) -> None:
        """This is how the execution stands now."""
        ...

    def on_log(self, key: StepKey | None, message: str) -> None:
        """A step, or wfe itself, has logged something."""
        ...

    def say(self, sentence: str) -> None:
        """A sentence for the person who watches."""
        ...

    def leave(self, sentence: str) -> None:
        """The process ends now, within a signal: leave the terminal usable, and say a last word."""
        ...


def watcher(session: Session, *, answers: bool) -> Watcher:
    """The one that suits stderr. `answers`: say how to answer a step as soon as it waits."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return LiveTree(session, answers=answers)
    return Lines(session, answers=answers)


class Waiting(NamedTuple):
    """A step that waits, for an answer or for a child."""

    #: Of the step, or of the child.
    key: str
    kind: str
    sentence: str
    #: What helps.
    commands: tuple[str, ...]


class _Announced:
    """The waiting steps that the person who watches has been told of."""

    def __init__(self, session: Session, *, wanted: bool) -> None:
        self._session = session
        self._wanted = wanted
        self._told: set[str] = set()

    def news(self, execution: Execution) -> list[Waiting]:
        """Those that have not been told yet; none where nobody wants to know."""
        waiting = list(self._waiting(execution)) if self._wanted else []
        new = [one for one in waiting if one.key not in self._told]
        self._told = {one.key for one in waiting}
        return new

    def _waiting(self, execution: Execution) -> Iterator[Waiting]:
        for key in tree.waiting_keys(execution):
            answers = ways.answer(self._session.command, key)
            commands = tuple(way.command for way in answers)
            yield Waiting(str(key), "answer", f"{key.step} waits for an answer:", commands)
        for step, child in tree.waiting_children(execution):
            why = self._session.command("executions", "why", str(child))
            yield Waiting(str(child), "child", f"{step} waits for {child}:", (why,))


class Lines:
    """One line for each event: time, kind, key, attempt, and what there is to say."""

    def __init__(self, session: Session, *, answers: bool) -> None:
        self._session = session
        self._announced = _Announced(session, wanted=answers)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        yield

    def on_event(self, event: Event) -> None:
        attempt = f"attempt {event.attempt}" if event.attempt else ""
        self._write(text.iso(event.time), str(event.kind), _key_of(event), attempt, _detail(event))

    def on_change(self, execution: Execution) -> None:
        for waiting in self._announced.news(execution):
            for command in waiting.commands:
                now = text.iso(SystemClock().now())
                self._write(now, waiting.kind, waiting.key, "", command)

    def on_log(self, key: StepKey | None, message: str) -> None:
        self._write(text.iso(SystemClock().now()), "log", str(key or ""), "", message)

    def leave(self, sentence: str) -> None:
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), text.last_word(sentence))

    def say(self, sentence: str) -> None:
        self._write(text.iso(SystemClock().now()), "note", sentence)

    def _write(self, *fields: str) -> None:
        with contextlib.suppress(OSError):
            print("\t".join(map(text.safe, fields)).rstrip("\t"), file=sys.stderr, flush=True)


class LiveTree:
    """The steps of the execution as a tree, redrawn as they change, with those of its children."""

    def __init__(self, session: Session, *, answers: bool) -> None:
        from wfe.cli.render import Screen

        self._session = session
        self._announced = _Announced(session, wanted=answers)
        self._terminal = another(sys.stderr)
        self._screen = Screen(self._terminal, colors=session.colors(sys.stderr))
        self._execution: Execution | None = None
        self._onlooker = family.Onlooker(session)
        self._progress: dict[str, tree.Progress] = {}
        self._frame = 0
        self._key = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with (
            self._terminal,
            contextlib.closing(self._onlooker),
            self._screen.live(self._draw),
            lines_of_output(self.say),
        ):
            yield

    def on_event(self, event: Event) -> None:
        self._begin(f"{event.workflow_id}:{event.transaction_id}")
        if event.kind is EventKind.PROGRESS and event.step is not None:
            self._progress[event.step] = tree.Progress(event.fraction, event.message)
        elif event.step is not None:
            self._progress.pop(event.step, None)

    def on_change(self, execution: Execution) -> None:
        self._begin(str(execution.head.key))
        self._execution = execution
        for waiting in self._announced.news(execution):
            self._screen.line(waiting.sentence)
            for command in waiting.commands:
                self._screen.line(f"  {command}")

    def _begin(self, key: str) -> None:
        if not self._key:
            self._key = key
            self._screen.title(key)

    def on_log(self, key: StepKey | None, message: str) -> None:
        self.say(f"{key.step}: {message}" if key else message)

    def leave(self, sentence: str) -> None:
        self._screen.abandon(sentence)

    def say(self, sentence: str) -> None:
        self._screen.line(text.safe(sentence))

    def _draw(self) -> list[Text]:
        execution, self._frame = self._execution, self._frame + 1
        if execution is None:
            return []
        self._screen.fit(os.get_terminal_size(self._terminal.fileno()))
        now, children = SystemClock().now(), self._onlooker.children(execution)
        height = room = max(self._screen.height - _MARGIN, 3)
        lines = self._lines(execution, children, now, room)
        while len(lines) > height and room > 1:  # notes that have a line of their own
            room = max(room - (len(lines) - height), 1)
            lines = self._lines(execution, children, now, room)
        return [*lines, self._screen.summary(execution, now)]

    def _lines(
        self, execution: Execution, children: family.Children, now: datetime, room: int
    ) -> list[Text]:
        part = tree.part(execution, now, self._progress, room, children)
        return self._screen.part(part, frame=self._frame)


def _key_of(event: Event) -> str:
    if event.step is None:
        return f"{event.workflow_id}:{event.transaction_id}"
    return str(_step_key(event))


def _step_key(event: Event) -> StepKey:
    assert event.step is not None
    action = event.action or Action.INVOKE
    return StepKey(event.workflow_id, event.transaction_id, event.step, action)


def _detail(event: Event) -> str:
    if event.error is not None:
        return text.failure(event.error.name, event.error.message)
    if event.kind is EventKind.PROGRESS:
        return str(tree.Progress(event.fraction, event.message))
    return str(event.state or event.scope or "")
