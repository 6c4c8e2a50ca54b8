"""The heartbeat: one thread of an open store, which renews leases and notices what others write.

It has a connection of its own, so that neither a step that blocks the event loop nor a long commit
makes it miss a beat. At each beat it asks SQLite whether the file has changed, and wakes the loop only
where it has. Where the system tells that somebody writes (`bell`), it rests until then, and looks a few
times, because a commit counts a little later than it is written; where it does not, it looks twenty times
a second, ten times where nothing has happened for a while: waking up costs a thread about 0.1 ms of its
processor, whatever it is for. A process that needs neither has no such thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from wfe.clock import monotonic
from wfe.errors import StoreBusy, StoreError
from wfe.store import signals, trouble
from wfe.store.bell import Bell
from wfe.store.connection import Connection
from wfe.store.owners import RENEWAL

logger = logging.getLogger("wfe")

#: Seconds between two beats; where nobody tells, between two of which none of the last `PATIENCE` has
#: found a change.
INTERVAL = 0.05
LONG_INTERVAL = 0.1  # no signal is to lie there for longer
PATIENCE = 200

#: Where somebody tells: seconds from that to the first beat, how many beats after the last change are an
#: `INTERVAL` apart, and how long it rests otherwise, should nobody have told after all.
PROMPTLY = 0.01
LINGERING = 4
REST = 1.0

#: Called on the event loop: others may have written; or the database is out of reach for good.
OnChange = Callable[[StoreError | None], None]


class Heartbeat:
    """Begins with the first lease or watcher, and beats until it is stopped."""

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self._path = path
        self._file = trouble.identity(path)
        self._busy_timeout = busy_timeout
        self._holding: set[str] = set()
        #: The version of the file that the watcher knows of.
        self._seen = -1
        self._watcher: tuple[asyncio.AbstractEventLoop, OnChange] | None = None
        #: When the leases are to be renewed next.
        self._renew_at = 0.0
        self._is_stopping = self._is_beating = False
        self._working: tuple[threading.Thread, Bell] | None = None

    def hold(self, owner: str) -> None:
        """Renew this lease, which has just been taken out."""
        self._holding.add(owner)
        self._begin()

    def drop(self, owner: str) -> None:
        """Renew it no longer."""
        self._holding.discard(owner)

    def watch(self, on_change: OnChange) -> None:
        """Call `on_change` on the running loop, once soon and whenever others may have written."""
        self._watcher = (asyncio.get_running_loop(), on_change)
        self._seen = -1
        self._begin()

    def unwatch(self) -> None:
        self._watcher = None

    def stop(self) -> None:
        """Returns when the thread has ended."""
        if self._working is not None:
            thread, bell = self._working
            self._is_stopping = True
            bell.ring()
            thread.join()
            bell.close()
            self._working = None

    def _begin(self) -> None:
        if self._working is not None:
            _, bell = self._working
            if self._is_beating:
                bell.ring()
            return
        self._is_stopping = self._is_beating = False
        bell = Bell(self._path.parent)
        thread = threading.Thread(
            target=self._run, args=(bell,), name="wfe-store-beat", daemon=True
        )
        self._working = thread, bell
        thread.start()

    # --- in the thread ---

    def _run(self, bell: Bell) -> None:
        self._renew_at = monotonic() + RENEWAL
        while True:
            bell.wait(INTERVAL, deaf=True)
            if self._is_stopping:
                return
            try:
                with trouble.translated(self._path):
                    self._check_place()
                    with closing(self._open()) as connection:
                        self._beat(connection, bell)
            except StoreBusy:
                continue  # at the next beat
            except StoreError as error:
                # What SQLite says of a file that has just been taken away is an error of the disk.
                self._tell(error if self._is_in_place() else trouble.gone(self._path))
                return

    def _beat(self, connection: Connection, bell: Bell) -> None:
        """Until it is stopped."""
        self._seen = -1  # each connection counts anew: what another one counted says nothing
        ask = connection.raw.cursor().execute
        self._is_beating = True
        unchanged = 0
        while not self._is_stopping:
            self._check_place()
            if monotonic() >= self._renew_at:
                self._renew(connection)
                self._renew_at = monotonic() + RENEWAL
            (version,) = ask("PRAGMA data_version").fetchone()
            unchanged += 1
            if version != self._seen:
                self._seen = version
                self._tell(None)
                unchanged = 0
            if unchanged < LINGERING:
                bell.wait(INTERVAL, deaf=True)
            elif not bell.listens():
                bell.wait(INTERVAL if unchanged < PATIENCE else LONG_INTERVAL)
            elif bell.wait(REST):
                bell.wait(PROMPTLY, deaf=True)
                unchanged = 0

    def _check_place(self) -> None:
        if not self._is_in_place():
            raise trouble.gone(self._path)

    def _is_in_place(self) -> bool:
        return trouble.identity(self._path) == self._file

    def _open(self) -> Connection:
        return Connection(self._path, mode="mode=rw", busy_timeout=self._busy_timeout, pragmas={})

    def _renew(self, connection: Connection) -> None:
        holding = list(self._holding)
        if holding:
            with connection.transaction():
                signals.renew(connection, holding)

    def _tell(self, error: StoreError | None) -> None:
        watcher = self._watcher
        if watcher is not None:
            loop, on_change = watcher
            with suppress(RuntimeError):  # a loop that is closed has nobody to tell
                loop.call_soon_threadsafe(on_change, error)
