"""Ways out: what can be done about an execution or a step, as command lines to be pasted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wfe.model import ExecutionKey, StepKey

#: Makes a command line of words: see `Session.command`.
Command = Callable[..., str]


class Way(NamedTuple):
    """What a command does, in a few words, and the command."""

    does: str
    command: str


def answer(command: Command, key: StepKey) -> tuple[Way, Way]:
    """Of a step that waits for an answer: both answers. Pasted as they are, they are refused or harmless:
    an answer that nobody gave would carry the execution on."""
    name = str(key)
    return (
        Way("it succeeded", command("step", "succeed", name, "--response", "JSON")),
        Way("it failed", command("step", "fail", name, "--error", "REASON")),
    )


def ask_again(command: Command, key: StepKey) -> Way:
    """Of a step that waits for an answer."""
    return Way("ask again", command("step", "retry", str(key)))


def try_again(command: Command, key: StepKey) -> tuple[Way, ...]:
    """Of a step between two attempts."""
    return (
        Way("try again now", command("step", "retry", str(key))),
        Way("go on without it", command("step", "skip", str(key))),
    )


def carry_on(command: Command, key: ExecutionKey) -> Way:
    """Of an execution that nobody has in hand."""
    return Way("carry it on", command("executions", "resume", str(key)))


def go_on(command: Command, key: ExecutionKey) -> str:
    """In a sentence: how an execution is carried on that this command leaves unfinished."""
    return f"It goes on where it was with: {command('run', key.workflow_id, '--tx', key.transaction_id)}"


def undo(command: Command, key: ExecutionKey) -> Way:
    """Of an execution that is not being undone."""
    return Way("undo it all", command("executions", "cancel", str(key)))


def watch(command: Command, key: ExecutionKey) -> Way:
    """Of an execution that another process drives."""
    return Way("watch it", command("executions", "watch", str(key)))


def run_again(command: Command, key: ExecutionKey) -> Way:
    """Of an execution that came to a bad end: a new run with the same input."""
    return Way("run it again", command("executions", "retry", str(key)))


def see(command: Command, key: ExecutionKey, *sections: str) -> Way:
    """Look at it."""
    return Way("see more", command("executions", "show", str(key), *sections))


def result(command: Command, key: ExecutionKey) -> Way:
    """Of an execution that is done."""
    return Way("its result", command("executions", "result", str(key)))
