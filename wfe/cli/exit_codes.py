"""What a command ends with. One table; `wfe help exit-codes` prints it."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from wfe.endings import CODES, ending_of

if TYPE_CHECKING:
    from wfe.model import Execution


class ExitCode(IntEnum):
    """The codes that a command may end with."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    REVERTED = 10
    FAILED = 11
    TIMED_OUT = 12
    CANCELLED = 13
    WAITING = 20
    BUSY = 75
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


MEANINGS = {
    ExitCode.OK: "done, or accepted (failures that the workflow ignores included)",
    ExitCode.ERROR: "operational error",
    ExitCode.USAGE: "wrong usage, input that does not fit, a module that does not load",
    ExitCode.NOT_FOUND: "no such workflow, execution or step",
    ExitCode.REFUSED: "the present state does not allow it, or a conflict",
    ExitCode.REVERTED: "the execution failed, and all it had done was undone",
    ExitCode.FAILED: "the execution failed, and so did an undo: a person is needed",
    ExitCode.TIMED_OUT: "a timeout passed, and all was undone",
    ExitCode.CANCELLED: "the execution was cancelled, and all was undone",
    ExitCode.WAITING: "not finished: it waits for an answer, or was no longer watched",
    ExitCode.BUSY: "the database is busy: try again",
    ExitCode.INTERRUPTED: "interrupted (INT)",
    ExitCode.BROKEN_PIPE: "the reader of the output went away (PIPE)",
    ExitCode.TERMINATED: "terminated (TERM)",
}


def of_run(execution: Execution) -> ExitCode:
    """What a command that started or resumed `execution` ends with, where it stands now."""
    ending = ending_of(execution.head)
    return ExitCode.WAITING if ending is None else ExitCode(CODES[ending])


def of_answer(execution: Execution) -> ExitCode:
    """What a command whose answer was accepted ends with: only a failed undo is its failure."""
    return ExitCode.FAILED if str(execution.head.state) == "failed" else ExitCode.OK
