"""`wfe serve --watch`: modules that change are imported anew, and served as they are by then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

from wfe.authoring.registry import Registry
from wfe.cli import text
from wfe.cli.serving.journal import Reporter, doubts
from wfe.discover import shown
from wfe.reloading import Reloaded, Reloader
from wfe.runtime.engine import Engine
from wfe.runtime.subscriptions import Subscriber
from wfe.scheduling.loop import Scheduler
from wfe.scheduling.served import Upcoming
from wfe.scheduling.upkeep import Upkeep

logger = logging.getLogger("wfe")


class Listeners:
    """Those who hear what happens to executions, also of workflows that come later."""

    def __init__(self, engine: Engine, listeners: Sequence[Subscriber]) -> None:
        self._engine = engine
        self._listeners = listeners

    def hear(self, registry: Registry) -> None:
        """Hear of these workflows; those that are gone may have executions at work."""
        for workflow_id in registry.ids():
            for number, listener in enumerate(self._listeners):
                self._engine.subscribe(workflow_id, listener, subscriber_id=f"wfe serve {number}")


class Reloads:
    """Keeps what is served up to date with its modules."""

    def __init__(
        self,
        reloader: Reloader,
        engine: Engine,
        scheduler: Scheduler,
        upkeep: Upkeep,
        listeners: Listeners,
        told: Reporter,
    ) -> None:
        self._reloader = reloader
        self._engine = engine
        self._scheduler = scheduler
        self._upkeep = upkeep
        self._listeners = listeners
        self._told = told
        self._reloading = asyncio.Lock()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Take over what changes, until the context ends."""
        deep, flat = self._reloader.folders()
        tasks = [
            asyncio.ensure_future(self._watch(folders, recursive=folders is deep))
            for folders in (deep, flat)
            if folders
        ]
        await asyncio.sleep(0)  # each has asked for the first change: none is missed from here on
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, folders: Sequence[str], *, recursive: bool) -> None:
        from watchfiles import PythonFilter, awatch

        try:
            async for changes in awatch(
                *folders,
                recursive=recursive,
                watch_filter=PythonFilter(),
                ignore_permission_denied=True,
            ):
                async with self._reloading:
                    await self._take({file for _, file in changes})
        except (OSError, RuntimeError) as error:
            self._told.say(f"Changes of modules are not noticed any more: {error}")

    async def _take(self, files: Collection[str]) -> None:
        try:
            # In a thread: ticks are not late because a module takes long to import.
            reloaded = await asyncio.to_thread(self._reloader.reload, files)
        except Exception:
            logger.exception("Importing modules anew failed")
            return
        if reloaded is None:
            return
        before = self._served()
        self._engine.renew(reloaded.catalog.registry)
        self._listeners.hear(reloaded.catalog.registry)
        await self._scheduler.renew()
        self._upkeep.renew()
        for sentence in (*_of_modules(reloaded), *self._of_schedules(before)):
            self._told.say(sentence)

    def _served(self) -> dict[str, Upcoming]:
        """The schedules that have a workflow, by name."""
        workflows = self._engine.registry.ids()
        upcoming = self._scheduler.upcoming
        return {one.plan.name: one for one in upcoming if one.plan.workflow_id in workflows}

    def _of_schedules(self, before: Mapping[str, Upcoming]) -> Iterator[str]:
        after = self._served()
        errors = {one.plan.name for one in self._scheduler.upcoming} - after.keys()
        for name, error in self._scheduler.failures.items():
            yield f"The schedule of {name} is not served: {error}"
        for name, one in after.items():
            known = before.get(name)
            if known is None or known.plan.registration != one.plan.registration:
                yield f"Schedule {name}: {one.plan.timing}, next {text.iso(one.next)}"
                yield from doubts(one.plan)
        for name in sorted(before.keys() - after.keys()):
            if name in errors:
                yield f"Schedule {name} has no workflow any more: its ticks are errors."
            else:
                yield f"Schedule {name} is served no more."


def _of_modules(reloaded: Reloaded) -> Iterator[str]:
    if reloaded.files:
        yield f"Loaded anew: {', '.join(map(shown, reloaded.files))}"
    for failure in reloaded.failures:
        yield f"{failure.message.rstrip('.')}. What it had defined before stays."
    for conflict in reloaded.catalog.conflicts.values():
        yield conflict.message
