"""`--events`: every event as a line of JSON, in a file or on stdout."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from wfe.cli import documents, output, text
from wfe.cli.capture import stdout_as_it_is
from wfe.cli.live import Watcher
from wfe.model import Event
from wfe.store import private


@contextlib.contextmanager
def recording(destination: str | None, watcher: Watcher) -> Iterator[Watcher]:
    """A watcher that writes what it is told, and passes it on; `watcher` itself where there is no
    destination.

    Raises:
        OSError: the file cannot be written.
    """
    if destination is None:
        yield watcher
    elif destination == "-" and sys.stdout.isatty() and sys.stderr.isatty():
        yield _Recorder(sys.stdout, watcher)  # lines that are printed stand above the tree
    elif destination == "-":
        with stdout_as_it_is() as out:  # for meanwhile it leads to where steps print
            yield _Recorder(out, watcher)
    else:
        with private.open_file(Path(destination)) as file:
            yield _Recorder(file, watcher)


class _Recorder:
    def __init__(self, stream: TextIO, watcher: Watcher) -> None:
        self._stream: TextIO | None = stream
        self._watcher = watcher
        self.running = watcher.running
        self.on_change = watcher.on_change
        self.on_log = watcher.on_log
        self.say = watcher.say
        self.leave = watcher.leave

    def on_event(self, event: Event) -> None:
        if self._stream is not None:
            try:
                self._stream.write(output.json_text(_document(event)) + "\n")
                self._stream.flush()
            except OSError:
                self._stream = None  # nobody reads any more; the execution goes on
        self._watcher.on_event(event)


def _document(event: Event) -> dict[str, Any]:
    """The event without what its kind does not have."""
    document = {
        "kind": str(event.kind),
        "time": text.iso(event.time),
        "workflow": event.workflow_id,
        "transaction": event.transaction_id,
        "run": event.run_id,
        "step": event.step,
        "action": event.action,
        "attempt": event.attempt,
        "response": event.response,
        "error": documents.error(event.error) if event.error is not None else None,
        "errors": [documents.error(record) for record in event.errors] or None,
        "state": event.state,
        "result": event.result,
        "scope": event.scope,
        "fraction": event.fraction,
        "message": event.message,
    }
    return {name: value for name, value in document.items() if value is not None}
