"""`transform`: a value computed from others, without being a step.

Computed when it is first needed, once per execution and process, and never stored: it must be pure.
It is not kept while a step that it looks at has not settled, since that may still change.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar, overload

from wfe.authoring.composition import Composition, current, the_body
from wfe.authoring.inputs import Inputs, refuse_captured, template
from wfe.authoring.nodes import settle
from wfe.authoring.places import caller, refuse
from wfe.authoring.references import Reference, Values
from wfe.authoring.shapes import UNKNOWN
from wfe.authoring.signatures import Signature, check_function
from wfe.errors import DefinitionError

P = ParamSpec("P")
R = TypeVar("R")


class ComputedSource:
    """What a function makes of its inputs."""

    shared = True
    #: Another step may be computing it.
    read = None

    def __init__(
        self, number: int, function: Callable[..., Any], inputs: Inputs, name: str
    ) -> None:
        #: Its place in `Values.cache`; the same whenever the body is composed.
        self.number = number
        self._function = function
        self._inputs = inputs
        self._name = name
        self.depends = inputs.depends

    async def value(self, values: Values) -> Any:
        cache = values.cache
        while self.number in cache:
            found = cache[self.number]
            if not isinstance(found, _UnderWay):
                return found
            await found.end()
        if not all(values.settled(step) for step in self.depends):
            return await self._compute(values)
        under_way = cache[self.number] = _UnderWay()
        try:
            computed = cache[self.number] = await self._compute(values)
        except BaseException:
            del cache[self.number]
            raise
        finally:
            under_way.is_over()
        return computed

    async def _compute(self, values: Values) -> Any:
        args, kwargs = await self._inputs.get(None, values)
        return await settle(self._function(*args, **kwargs))

    def spelling(self) -> str:
        return self._name


class _UnderWay:
    """Stands in the cache while somebody computes, so that others wait instead of doing it twice."""

    def __init__(self) -> None:
        import asyncio

        self._event = asyncio.Event()

    async def end(self) -> None:
        await self._event.wait()

    def is_over(self) -> None:
        self._event.set()


@overload
def transform(function: Callable[P, Awaitable[R]], /) -> Callable[P, R]: ...
@overload
def transform(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def transform(*values: object, fn: Callable[..., Awaitable[R]]) -> R: ...
@overload
def transform(*values: object, fn: Callable[..., R]) -> R: ...
def transform(*values: Any, fn: Callable[..., Any] | None = None) -> Any:
    """Compute a value: `label = transform(stock, receipt, fn=make_label)`, or `@transform` above a
    function that is then called in bodies. The function may be async, must be pure, and gets plain
    JSON values, converted where its parameters are annotated.

    Raises:
        DefinitionError: arguments that do not fit, or no function.
        ReferenceMisuse: the function holds a reference instead of taking it.
    """
    if fn is not None:
        return _computed(the_body("transform()"), fn, values, {})
    if len(values) != 1 or type(values[0]) is Reference or not callable(values[0]):
        raise refuse(
            DefinitionError,
            "transform() has no function to compute with.",
            hint="Write transform(a, b, fn=function).",
        )
    return _decorated(values[0])


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    check_function(function, what="A transform", instead="Write @transform above a function.")

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        body = current()
        return (
            function(*args, **kwargs) if body is None else _computed(body, function, args, kwargs)
        )

    return computed


def _computed(
    body: Composition, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Reference:
    check_function(function, what="fn", instead="Write transform(a, b, fn=function).")
    name = getattr(function, "__name__", type(function).__name__)
    what = "transform" if name == "<lambda>" else f"transform {name!r}"
    refuse_captured(function, what=f"The {what}")
    where = f"An argument of the {what}"
    templates = tuple(template(value, body, what=where) for value in args)
    named = {key: template(value, body, what=where) for key, value in kwargs.items()}
    try:
        inputs = Inputs(Signature(function, context=False), templates, named, what=f"the {what}")
    except TypeError as error:
        raise refuse(
            DefinitionError, f"The {what} gets arguments that do not fit: {error}."
        ) from None
    inputs.check(caller())
    source = ComputedSource(body.next_transform(), function, inputs, f"transform(fn={name})")
    # What it returns stays as it is for those who look into it: no attribute can be ruled out.
    return Reference(body, source, UNKNOWN)
