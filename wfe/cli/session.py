"""What surrounds one command: its settings, the flags it was given, and where its output goes."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from wfe.config import Config, load
from wfe.errors import WorkflowNotFound

if TYPE_CHECKING:
    from wfe.authoring.workflows import Workflow
    from wfe.discover import Catalog
    from wfe.model import Event
    from wfe.store.contract import Reader


class Session:
    """Made for each command from the flags that every command has."""

    def __init__(self, flags: Mapping[str, Any], output: str) -> None:
        self.config: Config = load(flags)
        #: `table`, `json`, …: what goes to stdout.
        self.output = output
        #: Is called when the command has ended and what it prints is out.
        self.afterwards: Callable[[], object] | None = None
        #: Hear what happens to executions that this command drives.
        self.listeners: list[Callable[[Event], None]] = []
        self._app = tuple(flags.get("app") or ())
        self._db = flags.get("db")

    # --- terminals -------------------------------------------------------------------------------

    def colors(self, stream: TextIO) -> bool:
        """Whether `stream` is to be coloured."""
        if self.config.color != "auto":
            return self.config.color == "always"
        return colors_by_default(stream)

    @property
    def for_people(self) -> bool:
        """Whether stdout is read by a person: a terminal, or colours were asked for by name."""
        return sys.stdout.isatty() or self.config.color == "always"

    # --- where things are ------------------------------------------------------------------------

    @contextlib.contextmanager
    def reader(self, *, to_write: bool = False) -> Iterator[Reader | None]:
        """The store, to be read; None where there is no database yet, which is not made. `to_write`:
        the command will write to it afterwards, so that an older schema may be brought up to date.

        Raises:
            StoreError: the database cannot be read.
        """
        if not self.config.db.exists():
            yield None
            return
        from wfe.errors import SchemaTooOld
        from wfe.store.database import absolute, open_for_writing, open_reader

        patience = self.config.busy_timeout
        try:
            opened = open_reader(self.config.db, busy_timeout=patience)
        except SchemaTooOld:
            if not to_write:
                raise
            open_for_writing(absolute(self.config.db), busy_timeout=patience).close()
            opened = open_reader(self.config.db, busy_timeout=patience)
        with opened as reader:
            yield reader

    def target(self, target: str) -> tuple[Workflow[Any, Any], Catalog]:
        """The workflow that TARGET means. See `wfe.discover.load_target`."""
        from wfe import discover

        discover.check_target(target)
        if not self.config.app and ":" not in target:
            raise self._without_workflows(target)
        with contextlib.redirect_stdout(sys.stderr):
            found = discover.load_target(target, self.config.app, root=self.config.root)
        self._remember(target.rpartition(":")[0])
        return found

    def catalog(self) -> Catalog:
        """All workflows, and what did not load."""
        from wfe import discover

        with contextlib.redirect_stdout(sys.stderr):
            return discover.load(self.config.app, root=self.config.root)

    def catalog_with(self, workflow_id: str) -> Catalog:
        """All workflows, among which this one is.

        Raises:
            WorkflowNotFound: it is not.
        """
        catalog = self.catalog()
        try:
            catalog.find(workflow_id)
        except WorkflowNotFound as error:
            error.hint = error.hint or "Name the module it is in: --app FILE."
            raise
        return catalog

    def why_no_workflows(self) -> str:
        """A sentence for a catalog that is empty, though nothing failed to load."""
        return f"No workflows: {self.where_workflows_are}. Name a file or module with --app."

    @property
    def where_workflows_are(self) -> str:
        """Where they are looked for, as a part of a sentence."""
        return ", ".join(self.config.app) or f"no folder workflows/ in {self.config.root}"

    def _without_workflows(self, target: str) -> WorkflowNotFound:
        return WorkflowNotFound(
            target,
            hint=f"There is no folder workflows/ in {self.config.root} or above it: "
            "name a file, folder or module with --app.",
        )

    def _remember(self, module: str) -> None:
        """A workflow that was named with its module is found again only with that module."""
        if module:
            self._app = (module,)

    @property
    def sender(self) -> str:
        """Who gives commands here, for the timeline: `kim@host`."""
        import getpass
        import platform

        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container's user may have no name
            user = str(os.getuid())
        return f"{user}@{platform.node()}"

    # --- what to type next -----------------------------------------------------------------------

    def command(self, *words: str) -> str:
        """The line that runs `wfe` with these words on the same database and modules."""
        return shlex.join(["wfe", *words, *self._flags()])

    def with_flags(self, hint: str) -> str:
        """A hint that ends with a command of ours, which is to use the same database and modules."""
        flags = shlex.join(self._flags())
        ends_with_command = ": wfe " in hint and not hint.endswith("--help")
        return f"{hint} {flags}" if flags and ends_with_command else hint

    def _flags(self) -> list[str]:
        flags = [part for app in self._app for part in ("--app", app)]
        return [*flags, "--db", self._db] if self._db else flags

    def why_nothing_is_found(self) -> str:
        """A sentence where there is no database to find anything in; else empty."""
        if self.config.db.exists():
            return ""
        return f"There is no database {self.config.db} yet. Another one: --db PATH."


def colors_by_default(stream: TextIO) -> bool:
    """What the environment and the kind of stream say about colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
