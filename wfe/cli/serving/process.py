"""Serving in the foreground: an engine, its schedules and its upkeep, until a signal says stop.

The first INT or TERM begins nothing more and lets running steps end (`grace`); the second leaves at
once. What is unfinished goes on with the next process that serves.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from wfe.cli.capture import stdout_kept
from wfe.cli.foreground import Interrupts, engine_of, leave_running_steps, log_shown, set_out
from wfe.cli.serving.journal import Journal, Reporter, doubts
from wfe.cli.serving.reloads import Listeners, Reloads
from wfe.cli.serving.supervisor import Supervisor, status_of
from wfe.cli.session import Session
from wfe.clock import SystemClock
from wfe.discover import Catalog
from wfe.errors import StoreError, UsageError
from wfe.reloading import Reloader
from wfe.runtime.engine import Engine
from wfe.runtime.subscriptions import Subscriber
from wfe.scheduling.loop import Scheduler
from wfe.scheduling.plan import Plan
from wfe.scheduling.upkeep import Upkeep
from wfe.store.database import absolute
from wfe.store.ledger import Tick
from wfe.store.sweep import Due, sweep

#: Seconds between two looks at whether there is anything left to serve, and between two sweeps.
_PACE = 0.25
_SWEEP = 1800.0

_FORMATS = ("text", "json")


def reporter(session: Session, log_format: str | None) -> Reporter:
    """The one that suits stderr, or was asked for.

    Raises:
        UsageError: there is no such format.
    """
    if log_format not in (None, *_FORMATS):
        raise UsageError(f"--log-format {log_format!r} is none of {', '.join(_FORMATS)}.")
    if log_format is None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from wfe.cli.serving.board import Board

        return Board(session)
    return Journal(as_json=log_format == "json")


class Beside:
    """What is wanted beside serving."""

    def __init__(self, *, watch: bool = False) -> None:
        #: Take over what changes in the modules.
        self.watch = watch
        #: Are told what happens to executions, and what becomes of ticks.
        self.events: list[Subscriber] = []
        self.ticks: list[Callable[[Tick], None]] = []
        #: Sentences for the person who watches.
        self.said: list[str] = []


def serve(
    session: Session,
    catalog: Catalog,
    shown: Reporter,
    plan: Plan | None = None,
    *,
    beside: Beside | None = None,
) -> int:
    """Serve all there is; or a plan alone, until it fires no more. The exit code.

    Raises:
        StoreError: the database cannot be used.
    """
    set_out()
    with stdout_kept(), shown.running(), log_shown(shown):
        number = asyncio.run(_serve(session, catalog, shown, plan, beside or Beside()))
    code = 0 if number is None else 128 + number
    leave_running_steps(code)
    return code


async def _serve(
    session: Session, catalog: Catalog, shown: Reporter, plan: Plan | None, beside: Beside
) -> int | None:
    """The signal that ended it; None: there was nothing left."""
    engine = engine_of(session, catalog)
    again = session.command("executions", "resume") if plan else session.command("serve")
    last_word = f"What is unfinished goes on with: {again}"
    listeners = Listeners(engine, (shown.on_event, *beside.events))

    def on_tick(tick: Tick) -> None:
        for told in (shown.on_tick, *beside.ticks):
            told(tick)

    with Interrupts(lambda: shown.leave(last_word)) as interrupts:
        async with AsyncExitStack() as stack:
            supervisor = stack.enter_context(Supervisor())
            await engine.start()
            stack.push_async_callback(_close, engine, session.config.grace, shown, interrupts)
            listeners.hear(catalog.registry)
            # First of all, so that what is dead is in no schedule's way.
            upkeep = Upkeep(engine, on_taken=shown.on_taken)
            if plan is None:
                await upkeep.start()
                stack.push_async_callback(upkeep.stop)
                stack.callback(_sweeping(session, engine, shown.say).cancel)
            scheduler = Scheduler(engine, own=plan is None, on_tick=on_tick)
            await scheduler.start()
            stack.push_async_callback(scheduler.stop)
            if plan is not None:
                await scheduler.add(plan)
            for name, error in scheduler.failures.items():
                shown.say(f"The schedule of {name} is not served: {error}")
            if beside.watch:
                reloader = Reloader(catalog, session.config.app, root=session.config.root)
                reloads = Reloads(reloader, engine, scheduler, upkeep, listeners, shown)
                await stack.enter_async_context(reloads.watching())
            shown.serving(engine, scheduler)
            told = [doubt for one in scheduler.upcoming for doubt in doubts(one.plan)]
            for sentence in (*told, *beside.said):
                shown.say(sentence)
            supervisor.ready(lambda: status_of(scheduler))
            stack.callback(supervisor.stopping)
            await _first_of(
                interrupts.arrived.wait(),
                scheduler.wait(),
                *([upkeep.wait()] if plan is None else [_until_over(engine, scheduler)]),
            )
        shown.say(last_word if interrupts.signal is not None else "It fires no more.")
        return interrupts.signal


async def _first_of(*events: Coroutine[Any, Any, object]) -> None:
    """Return when one of them has come; raises what it raises."""
    tasks = [asyncio.ensure_future(event) for event in events]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_over(engine: Engine, scheduler: Scheduler) -> None:
    while not (scheduler.is_over and engine.is_quiet):  # noqa: ASYNC110 nobody tells
        await asyncio.sleep(_PACE)


async def _close(engine: Engine, grace: float, shown: Reporter, interrupts: Interrupts) -> None:
    closing = asyncio.ensure_future(engine.shutdown(grace=grace))
    await asyncio.wait({closing}, timeout=_PACE)
    if not closing.done() and interrupts.signal is not None:
        shown.say("Stopping: running steps may end first. Ctrl-C leaves at once.")
    await closing


def _sweeping(session: Session, engine: Engine, say: Callable[[str], None]) -> asyncio.Task[None]:
    """Forget, every so often, what was kept long enough."""
    config = session.config

    async def keep_sweeping() -> None:
        while True:
            now = SystemClock().now()
            try:
                swept = await asyncio.to_thread(
                    sweep,
                    absolute(config.db),
                    Due(now),
                    now=now,
                    synchronous=config.synchronous,
                    busy_timeout=config.busy_timeout,
                )
                if config.retention is not None:
                    await engine.store.ledger.sweep(now - timedelta(seconds=config.retention))
                if swept.executions:
                    say(_gone(swept.executions))
            except StoreError as error:
                say(f"Nothing was swept: {error}")
            await asyncio.sleep(_SWEEP)

    return asyncio.get_running_loop().create_task(keep_sweeping(), name="wfe sweep")


def _gone(count: int) -> str:
    one_or_more = "1 execution was" if count == 1 else f"{count} executions were"
    return f"{one_or_more} kept long enough, and {'is' if count == 1 else 'are'} gone."
