"""Errors → one sentence, the way out, an exit code; and one JSON document where JSON was asked for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from wfe.cli import text
from wfe.cli.exit_codes import ExitCode
from wfe.cli.telling import fitted
from wfe.errors import (
    DefinitionChanged,
    MalformedKey,
    ModuleFailed,
    StoreError,
    TransactionNotFound,
    WfeError,
)

if TYPE_CHECKING:
    from wfe.cli.session import Session


class Interrupted(Exception):
    """INT, where no execution had begun."""


class Failure:
    """What a command ends with when an error ends it."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        exit_code: int = ExitCode.ERROR,
        hint: str = "",
        key: str | None = None,
        details: str = "",
    ) -> None:
        self.message = message
        self.code = code
        self.exit_code = int(exit_code)
        self.hint = hint
        #: The execution or step that it is about.
        self.key = key
        #: More lines for a person: a user's own frames, or the steps that have changed.
        self.details = details

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """For any error; one that is not ours counts as internal, and says so."""
        if isinstance(error, WfeError):
            return cls(
                _located(error),
                code=error.code,
                exit_code=error.exit_code,
                hint=error.hint or _hint(error, "wfe"),
                key=_key(error),
                details=_details(error),
            )
        if isinstance(error, Interrupted):
            return cls("Interrupted.", code="interrupted", exit_code=ExitCode.INTERRUPTED)
        if isinstance(error, OSError) and error.filename is not None:
            return cls(f"{error.filename}: {error.strerror}.", code="os")
        if isinstance(error, OSError) and error.strerror:  # of a stream, which has no name
            return cls(f"Cannot read or write: {error.strerror}.", code="os")
        return cls(
            f"Unexpected internal error: {type(error).__name__}: {error}",
            code="internal",
            hint="Set WFE_DEBUG=1 to see where, and report it.",
        )

    def document(self) -> dict[str, Any]:
        """What `-o json` prints instead of a result."""
        error = {"code": self.code, "message": self.message, "hint": self.hint, "key": self.key}
        return {"ok": False, "error": error}

    def tell(self, *, color: bool, label: str = "error: ") -> None:
        """Write it to stderr, after a label."""
        message = fitted(text.shown(self.message), indent=len(label), is_begun=True)
        lines = [(f"\x1b[1;31m{label.rstrip()}\x1b[0m " if color and label else label) + message]
        if self.details:
            lines.append(text.seen(text.safe_lines(self.details)))
        if self.hint:
            lines.append(fitted(text.shown(self.hint), indent=2))
        print("\n".join(lines), file=sys.stderr)


def debugging() -> bool:
    """Whether tracebacks of our own are wanted."""
    return bool(os.environ.get("WFE_DEBUG"))


def _details(error: WfeError) -> str:
    match error:
        case ModuleFailed():
            return error.report
        case DefinitionChanged():
            return "\n".join(error.changes)
        case _:
            return ""


def _located(error: WfeError) -> str:
    file, line = getattr(error, "file", None), getattr(error, "line", None)
    is_told = not file or file in error.message
    return error.message if is_told else f"{file}:{line}: {error.message}"


def _key(error: WfeError) -> str | None:
    if isinstance(error, MalformedKey):
        return error.key
    parts = [getattr(error, name, None) for name in ("workflow_id", "transaction_id", "step")]
    known = [str(part) for part in parts[: parts.index(None) if None in parts else None]]
    if known and not known[0]:  # a transaction id alone was looked for
        known = known[1:]
    return ":".join(known) or None


def help_with(error: WfeError, command: str, session: Session | None) -> None:
    """Let `error`, which ends `command`, name the way out in full: with the flags that this one was
    given."""
    hint = error.hint or _hint(error, command)
    if session is not None and isinstance(error, (TransactionNotFound, MalformedKey)):
        hint = session.why_nothing_is_found() or hint
    error.hint = session.with_flags(hint) if session is not None else hint


def _hint(error: WfeError, command: str) -> str:
    """The command that helps, where the error names none itself."""
    match error.code:
        case "workflow_not_found":
            return "List what there is with: wfe workflows list"
        case "module_failed":
            return "Correct it, and look again with: wfe workflows list"
        case "store_busy":
            return "Another process holds the database; try again."
        case _ if isinstance(error, StoreError):
            return "Choose another file with --db PATH or WFE_DB."
        case _:
            return f"See: {command} --help"
