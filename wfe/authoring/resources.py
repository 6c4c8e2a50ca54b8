"""`resource`: what steps need that is no JSON, such as clients and connections."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from wfe.authoring.options import checked_name
from wfe.authoring.places import Place, place_of, refuse
from wfe.authoring.registry import current
from wfe.authoring.signatures import is_coroutine_function
from wfe.errors import DefinitionError

F = TypeVar("F", bound=Callable[..., Any])


class Resource:
    """A named factory. Who opens a generator's resource runs it on to its end to close it."""

    __slots__ = ("factory", "is_async", "is_generator", "name", "place")

    def __init__(self, name: str, factory: Callable[[], Any]) -> None:
        self.name = name
        self.factory = factory
        self.place: Place = place_of(factory)
        #: Opening it gives something to await, or an async generator.
        self.is_async = is_coroutine_function(factory) or inspect.isasyncgenfunction(factory)
        #: It yields the resource, and what follows the `yield` closes it.
        self.is_generator = inspect.isgeneratorfunction(factory) or inspect.isasyncgenfunction(
            factory
        )

    def __repr__(self) -> str:
        return f"<resource {self.name!r}>"


@overload
def resource(factory: F, /) -> F: ...
@overload
def resource(name: str, /) -> Callable[[F], F]: ...
def resource(name_or_factory: Any, /) -> Any:
    """Make a factory known: `@resource` or `@resource("payments")`; steps say
    `ctx.resolve("payments")`.

    The factory takes nothing and may be a function or a generator, async or not. It is called when
    the resource is first asked for.

    Raises:
        DefinitionError: it takes parameters, or another resource has the name.
        InvalidName: a name that cannot be printed.
    """
    if isinstance(name_or_factory, str):
        return lambda factory: _register(name_or_factory, factory)
    return _register(getattr(name_or_factory, "__name__", ""), name_or_factory)


def _register(name: str, factory: Any) -> Any:
    if not callable(factory):
        raise refuse(DefinitionError, f"A resource is made by a function, not by {factory!r}.")
    if inspect.signature(factory).parameters:
        raise refuse(
            DefinitionError,
            f"The factory of resource {name!r} takes parameters, which nobody could give.",
            hint="Read settings inside the factory.",
            place=place_of(factory),
        )
    current().add_resource(Resource(checked_name(name, what="resource"), factory))
    return factory
