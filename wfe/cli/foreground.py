"""Driving an execution in the foreground: an engine for as long as one command takes.

The first INT or TERM claims nothing new and lets running steps end (`grace`); the second leaves at
once. The database is whole at every instant, so nothing has to be tidied.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Literal, NamedTuple, Protocol, TypeVar

from wfe.authoring.on_finish import OnFinish
from wfe.authoring.registry import Registry
from wfe.cli import ways
from wfe.cli.afterwards import Afterwards
from wfe.cli.capture import stdout_kept
from wfe.cli.live import Watcher
from wfe.cli.session import Session
from wfe.config import OFF, Config
from wfe.discover import Catalog
from wfe.errors import EngineClosed, WfeError
from wfe.model import CommandResult, Event, ExecutionKey, Recording, StepKey
from wfe.runtime.engine import Engine
from wfe.store.sqlite import SQLiteStore

#: Seconds between two looks at the execution while it moves, and at most between two at all.
_PACE = 0.1
_LONGEST = 1.0

_Result = TypeVar("_Result")

Command = Callable[[Engine, Callable[[Event], None]], Awaitable[CommandResult]]


class Driven(NamedTuple):
    """What driving led to."""

    #: What the command returned; None where it was left before it did.
    result: CommandResult | None
    #: The execution, as soon as something happened to it.
    key: ExecutionKey | None
    #: The signal that ended it.
    signal: int | None


def drive(
    session: Session,
    catalog: Catalog,
    command: Command,
    watcher: Watcher,
    *,
    key: ExecutionKey | None = None,
    timeout: float | None = None,
    is_answer: bool = False,
) -> Driven:
    """Run `command` on an engine until it returns, a signal arrives, or `timeout` seconds are over.
    `key` names the execution where that is known before anything happens to it. `is_answer`: the
    command may be refused for what it says, so that nothing is shown before something comes of it.

    Raises:
        WfeError: what the command, or opening the database, raises.
    """
    afterwards = session.afterwards = Afterwards(session, catalog, tells_all=False)
    set_out()
    with stdout_kept(), watcher.running(), log_shown(watcher):
        view = functools.partial(_View, watcher=watcher, key=key, looks_at_once=not is_answer)
        return asyncio.run(_drive(session, catalog, command, watcher, view, timeout, afterwards))


def drive_many(
    session: Session,
    catalog: Catalog,
    work: Callable[[Engine], Awaitable[_Result]],
    *,
    tells_all: bool = False,
) -> tuple[_Result | None, int | None]:
    """Let `work` command an engine until it returns, or a signal arrives: what it returned, and the
    signal. Raises as `drive`. `tells_all`: afterwards tell of every end that is owed a notice, not
    only of those that came here."""
    afterwards = session.afterwards = Afterwards(session, catalog, tells_all=tells_all)
    set_out()
    with stdout_kept():
        return asyncio.run(_drive_many(session, catalog, work, afterwards))


def set_out() -> None:
    """Make this process one that drives executions, until it ends."""
    gc.enable()  # which a command that only reads does without
    sys.setswitchinterval(0.001)  # a commit beside a busy thread waits that long for the GIL


async def _drive_many(
    session: Session,
    catalog: Catalog,
    work: Callable[[Engine], Awaitable[_Result]],
    afterwards: Afterwards,
) -> tuple[_Result | None, int | None]:
    engine = engine_of(session, catalog)
    engine.hold_notices()
    with Interrupts(lambda: None) as interrupts:
        await engine.start()
        working = asyncio.ensure_future(work(engine))
        arrived = asyncio.create_task(interrupts.arrived.wait())
        try:
            await asyncio.wait({working, arrived}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await engine.shutdown(grace=session.config.grace)
            for task in (working, arrived):  # what it may wait for beside the engine comes no more
                task.cancel()
            await asyncio.gather(working, arrived, return_exceptions=True)
            afterwards.owed = engine.hold_notices()
        is_cut_off = working.cancelled() or working.exception() is not None
        if interrupts.signal is not None and is_cut_off:
            return None, interrupts.signal
        return working.result(), interrupts.signal


def engine_of(session: Session, catalog: Catalog | None = None) -> Engine:
    """The engine that the settings describe."""
    config = session.config
    engine = Engine(
        store=SQLiteStore(
            config.db, synchronous=config.synchronous, busy_timeout=config.busy_timeout
        ),
        registry=Registry() if catalog is None else catalog.registry,
        recording=Recording.EVERY_STEP,
        retention_time=config.retention,
        accept_timeout=config.accept_timeout,
        on_finish=told_by(config),
    )
    for workflow_id in engine.registry.ids():
        for listener in session.listeners:
            engine.subscribe(workflow_id, listener)
    return engine


def told_by(config: Config) -> OnFinish | Literal[False]:
    """Who is told of ends, as far as the settings say."""
    if config.on_finish == OFF:
        return False
    return OnFinish(
        config.on_finish,
        states=config.on_finish_for,
        timeout=config.on_finish_timeout,
        folder=str(config.root),
    )


async def _drive(
    session: Session,
    catalog: Catalog,
    command: Command,
    watcher: Watcher,
    view_of: Callable[[Engine], _View],
    patience: float | None,
    afterwards: Afterwards,
) -> Driven:
    config = session.config
    engine = engine_of(session, catalog)
    engine.hold_notices()
    view = view_of(engine)

    def leave() -> None:
        watcher.leave(ways.go_on(session.command, view.key) if view.key is not None else "")

    with Interrupts(leave) as interrupts:
        await engine.start()
        working = asyncio.ensure_future(command(engine, view.on_event))
        others = asyncio.create_task(view.keep()), asyncio.create_task(interrupts.arrived.wait())
        try:
            await asyncio.wait(
                {working, others[1]}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            closing = asyncio.ensure_future(engine.shutdown(grace=config.grace))
            if not working.done():
                await _say_why_it_takes_long(closing, watcher)
            await closing
            for task in others:
                task.cancel()
            await asyncio.gather(working, *others, return_exceptions=True)
            afterwards.owed = engine.hold_notices()
        result = working.result()
        if isinstance(result.acknowledgement.reason, EngineClosed):
            return Driven(None, view.key, interrupts.signal)
        if result.execution is not None:
            watcher.on_change(result.execution)
        return Driven(result, view.key, interrupts.signal)


async def _say_why_it_takes_long(closing: asyncio.Future[None], watcher: Watcher) -> None:
    await asyncio.wait({closing}, timeout=_PACE)
    if not closing.done():
        watcher.say("Stopping: running steps may end first. Ctrl-C leaves at once.")


class _View:
    """Keeps a watcher's picture of the execution up to date."""

    def __init__(
        self, engine: Engine, watcher: Watcher, key: ExecutionKey | None, *, looks_at_once: bool
    ) -> None:
        self._engine = engine
        self._watcher = watcher
        self._changed = asyncio.Event()
        self.key = key
        if key is not None and looks_at_once:
            self._changed.set()

    def on_event(self, event: Event) -> None:
        if self.key is None:
            self.key = ExecutionKey(event.workflow_id, event.transaction_id)
        self._watcher.on_event(event)
        self._changed.set()

    async def keep(self) -> None:
        """Look at the execution whenever something has happened to it; and now and then all the same,
        for nobody tells that a step has begun to sleep."""
        while True:
            # No wait_for: that of Python 3.11 loses a cancel that comes at the moment of the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LONGEST):
                    await self._changed.wait()
            self._changed.clear()
            if self.key is None:
                continue
            with contextlib.suppress(WfeError):  # it is not there yet, or the store is busy
                self._watcher.on_change(
                    await self._engine.get_running_transaction(
                        self.key.workflow_id, self.key.transaction_id
                    )
                )
            await asyncio.sleep(_PACE)


class HearsLogs(Protocol):
    """Whoever shows what is logged."""

    def on_log(self, key: StepKey | None, message: str) -> None: ...


class Interrupts:
    """INT and TERM, while the context lasts; and until the process ends, once one has arrived: the next
    one may come while Python takes itself apart, which would be a traceback."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._previous: dict[int, signal.Handlers | Callable[..., object] | int | None] = {}
        self.arrived = asyncio.Event()
        #: The first that arrived.
        self.signal: int | None = None

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.signal is not None:
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            self._loop.call_soon_threadsafe(self.arrived.set)
            return
        self._leave()
        os._exit(128 + number)


def leave_running_steps(exit_code: int) -> None:
    """End the process here where steps still run in threads, which Python would wait for."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("wfe-step")]
    for thread in threads:
        thread.join(0.1)  # one that is idle ends by itself
    if any(thread.is_alive() for thread in threads):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


@contextlib.contextmanager
def log_shown(watcher: HearsLogs) -> Iterator[None]:
    """Let what steps log reach the person who watches."""
    handler = _ToWatcher(watcher)
    logger = logging.getLogger("wfe")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _ToWatcher(logging.Handler):
    def __init__(self, watcher: HearsLogs) -> None:
        super().__init__()
        self._watcher = watcher

    def emit(self, record: logging.LogRecord) -> None:
        key = getattr(record, "idempotency_key", None)
        self._watcher.on_log(StepKey.parse(key) if key else None, self.format(record))
