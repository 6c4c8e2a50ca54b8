"""A terminal with one command in it, of which a test says what it waits for, and what it types."""

from __future__ import annotations

import os
import pty
import signal
import termios
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
from pexpect.fdpexpect import fdspawn  # type: ignore[import-untyped]  # it has no types

from tests.forking import BIN, Forked, forking

#: Seconds that anything may take to come about.
PATIENCE = 20
#: What a command finds in its environment.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}


def installed(
    *arguments: str, folder: Path, lines: int = 30, columns: int = 100, **environ: str
) -> Any:
    """A terminal in which the installed command has been started."""
    return pexpect.spawn(
        str(BIN / "wfe"),
        list(arguments),
        cwd=str(folder),
        env={"LANG": "C.UTF-8", **ENVIRONMENT, **environ},
        dimensions=(lines, columns),
        encoding="utf-8",
        timeout=PATIENCE,
    )


class Terminal(fdspawn):  # type: ignore[misc]  # it has no types
    """Like `pexpect.spawn`, but for a command that is forked: it is in control of it."""

    def __init__(
        self, *arguments: str, folder: Path, lines: int = 30, columns: int = 100, **environ: str
    ) -> None:
        """In the environment is nothing else, but for what Python reads when it starts."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (lines, columns))
        self.process = Forked(
            arguments,
            is_on_terminal=True,
            cwd=folder,
            env={**forking().starting, **ENVIRONMENT, **environ},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        super().__init__(ours, encoding="utf-8", timeout=PATIENCE)

    def sendintr(self) -> None:
        """Press Ctrl-C."""
        self.send("\x03")

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self, force: bool = False) -> None:
        """Hang up, and wait for its end; `force` is for what may not have ended."""
        if force:
            self.process.kill()
        super().close()
        self.exitstatus = self.process.wait(PATIENCE)
