"""Afterwards: what a command that drove executions does when its result is out.

Who waits for the result waits neither for those who are told of ends (`on_finish`) nor for the daily
sweep. Nothing that goes wrong here changes what the command ends with.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.discover import Catalog
from wfe.errors import WfeError
from wfe.model import ExecutionKey, StepKey

#: Seconds until a person who waits is told what for.
_PATIENCE = 1.0


class Afterwards:
    """Called when the result is out. `tells_all`: tell of every end that is owed a notice."""

    def __init__(self, session: Session, catalog: Catalog, *, tells_all: bool) -> None:
        self._session = session
        self._catalog = catalog
        self._tells_all = tells_all
        #: Whose ends were committed by this command, and are owed a notice.
        self.owed: Sequence[ExecutionKey] = ()

    def __call__(self) -> None:
        if self.owed or self._tells_all:
            self._tell()
        self._sweep()

    def _tell(self) -> None:
        from wfe.cli.capture import stdout_kept
        from wfe.cli.foreground import log_shown

        try:
            with stdout_kept(), log_shown(self):
                is_told = asyncio.run(self._told())
        except WfeError as error:
            tell(f"Nobody was told of the end: {error}")
            is_told = False
        if not is_told:
            resume = self._session.command("executions", "resume")
            tell(f"wfe serve tells, or: {resume}")

    def on_log(self, key: StepKey | None, message: str) -> None:
        """What is logged meanwhile."""
        tell(message)

    async def _told(self) -> bool:
        """Tell, as long as nobody interrupts."""
        from wfe.cli.foreground import Interrupts, engine_of

        engine = engine_of(self._session, self._catalog)
        keys = None if self._tells_all else self.owed
        with Interrupts(lambda: None) as interrupts:
            await engine.start()
            telling = asyncio.ensure_future(engine.send_notices(keys))
            arrived = asyncio.ensure_future(interrupts.arrived.wait())
            tasks = (telling, arrived)
            try:
                done, _ = await asyncio.wait(
                    tasks, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    if sys.stderr.isatty():
                        tell("on_finish is being told. Ctrl-C leaves it to others.")
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await engine.shutdown(grace=0 if not telling.done() else self._session.config.grace)
                arrived.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        if interrupts.signal is None:
            telling.result()
        return interrupts.signal is None

    def _sweep(self) -> None:
        """Once a day: forget some of what was kept long enough."""
        from wfe.clock import SystemClock
        from wfe.store.database import absolute
        from wfe.store.sweep import sweep_on_the_side

        config = self._session.config
        now = SystemClock().now()
        sweep_on_the_side(absolute(config.db), now=now, synchronous=config.synchronous)
