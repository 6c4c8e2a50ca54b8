"""Resources: what steps ask for by name, opened when it is first asked for, closed at shutdown.

A step asks without awaiting, so what is opened by awaiting is opened before the first step that could
ask runs; a factory that fails then fails the steps that ask for its resource, and no others. Once one
has asked, it is tried again before the next step.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from wfe.authoring.registry import Registry
from wfe.authoring.resources import Resource

logger = logging.getLogger("wfe")


class _Opened(msgspec.Struct, frozen=True):
    resource: Resource
    value: Any = None
    generator: Any = None
    error: Exception | None = None


class Resources:
    """The resources of one engine: those it was given, then those that factories make."""

    def __init__(self, given: Mapping[str, Any], registry: Registry) -> None:
        self._given = given
        self._registry = registry
        self._opened: dict[str, _Opened] = {}
        #: Made by factories that have been replaced: steps that asked for them may use them still.
        self._replaced: list[_Opened] = []
        #: What `open_async` has dealt with.
        self._looked_at: set[str] = set()
        self._opening = asyncio.Lock()
        #: Steps in threads may ask at the same moment.
        self._lock = threading.RLock()

    def get(self, name: str) -> Any:
        """A resource, opened where it was not yet.

        Raises:
            NotFound: there is none of this name. Exception: what its factory raised.
        """
        if name in self._given:
            return self._given[name]
        with self._lock:
            opened = self._opened.get(name)
            if opened is None:
                opened = self._opened[name] = _open(self._registry.resource(name))
        if opened.error is not None:
            self._looked_at.discard(name)
            raise opened.error
        return opened.value

    @property
    def are_to_be_opened(self) -> bool:
        """There may be some that `open_async` would open."""
        return self._registry.resource_count > len(self._looked_at)

    async def open_async(self) -> None:
        """Open what is opened by awaiting, and is not open."""
        async with self._opening:
            for name in self._registry.resource_names():
                resource = self._registry.resource(name)
                if name not in self._looked_at and resource.is_async and name not in self._given:
                    self._opened[name] = await _open_async(resource)
                self._looked_at.add(name)

    def renew(self) -> None:
        """Factories were loaded anew: who asks from now on gets what the new ones make."""
        present = [self._registry.resource(name) for name in self._registry.resource_names()]
        with self._lock:
            for name, opened in tuple(self._opened.items()):
                if opened.resource not in present:
                    self._replaced.append(self._opened.pop(name))
            self._looked_at = {one.name for one in present if one.name in self._opened}

    async def close(self) -> None:
        """Close everything, the latest first. What fails to close is logged."""
        for opened in reversed((*self._replaced, *self._opened.values())):
            if opened.generator is None:
                continue
            try:
                if opened.resource.is_async:
                    await anext(opened.generator, None)
                else:
                    next(opened.generator, None)
            except Exception:
                logger.exception("Resource %r failed to close", opened.resource.name)
        self._opened.clear()


def _open(resource: Resource) -> _Opened:
    made = resource.factory()
    if resource.is_generator:
        return _Opened(resource, next(made), made)
    return _Opened(resource, made)


async def _open_async(resource: Resource) -> _Opened:
    factory: Callable[[], Any] = resource.factory
    try:
        made = factory()
        if resource.is_generator:
            return _Opened(resource, await anext(made), made)
        awaitable: Awaitable[Any] = made
        return _Opened(resource, await awaitable)
    except Exception as error:
        return _Opened(resource, error=error)
