"""What a user's function takes: whether it wants the context, its parameters, their converters.

Everything is decided where the function is defined; only annotations that cannot be resolved there
(a class defined further down) are tried once more when the first value arrives.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from wfe.authoring.context import StepContext
from wfe.authoring.conversion import Converter, converter
from wfe.authoring.places import names_around, place_of, refuse
from wfe.errors import DefinitionError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_UNRESOLVED = object()


class Signature:
    """The parameters of one function of the user's."""

    __slots__ = (
        "_annotations",
        "_converters",
        "_function",
        "parameters",
        "returns",
        "wants_context",
    )

    def __init__(self, function: Callable[..., Any], *, context: bool) -> None:
        """`context`: a first parameter annotated StepContext, or named `ctx`, is not one of its
        parameters but receives the context."""
        self._function = function
        signature = _signature_of(function)
        parameters = list(signature.parameters.values())
        local_names = names_around(function)
        annotations = {
            parameter.name: _resolve(parameter.annotation, function, local_names)
            for parameter in parameters
        }
        self.wants_context = (
            context and bool(parameters) and _is_context(parameters[0], annotations)
        )
        if self.wants_context:
            del annotations[parameters.pop(0).name]
        self.parameters = inspect.Signature(parameters)
        self._annotations = annotations
        self._converters: dict[str, Converter | None] = {}
        returns = _resolve(signature.return_annotation, function, local_names)
        #: The annotation of what it returns; None where there is none that resolves.
        self.returns = None
        if returns is not _UNRESOLVED and returns is not inspect.Signature.empty:
            self.returns = returns

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """
        Raises:
            TypeError: the function cannot be called so; the message says why.
        """
        return self.parameters.bind(*args, **kwargs)

    def takes(self, count: int) -> bool:
        """Whether it can be called with so many positional arguments."""
        try:
            self.parameters.bind(*(None,) * count)
        except TypeError:
            return False
        return True

    def annotation(self, parameter: str) -> Any:
        """Its resolved annotation; `inspect.Parameter.empty` where there is none that resolves."""
        found = self._annotations[parameter]
        if found is _UNRESOLVED:
            raw = self.parameters.parameters[parameter].annotation
            found = _resolve(raw, self._function, {})
        return inspect.Parameter.empty if found is _UNRESOLVED else found

    def knows(self, parameter: str) -> bool:
        """Whether its annotation, where it has one, could be resolved so far."""
        return self._annotations[parameter] is not _UNRESOLVED

    def converter(self, parameter: str) -> Converter | None:
        """What makes a JSON value fit the parameter; None: it takes plain JSON values.

        Raises:
            NameError: a field's annotation names something that is not there (yet).
        """
        if parameter not in self._converters:
            annotation = self.annotation(parameter)
            self._converters[parameter] = (
                None if annotation is inspect.Parameter.empty else converter(annotation)
            )
        return self._converters[parameter]


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        # Builtins such as `str` tell no signature: anything may be handed to them.
        return inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )


def check_function(function: object, *, what: str, instead: str) -> None:
    """Refuse what is no function that may be called many times: generators, methods, references.

    Raises:
        DefinitionError: with the place of the function.
    """
    ours = getattr(type(function), "_wfe_instead", None)
    if not callable(function) or ours is not None:
        message = f"{what} is a function, not {function!r}."
        raise refuse(DefinitionError, message, hint=ours or instead)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise refuse(
            DefinitionError,
            f"{what} returns its value; this function has `yield` in it.",
            hint=instead,
            place=place_of(function),
        )


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await; sees through partials and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    # A callable object: its class tells, `callable` would only say that it is one.
    return not inspect.isroutine(function) and inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004
    )


def _is_context(parameter: inspect.Parameter, annotations: Mapping[str, Any]) -> bool:
    if parameter.kind not in _POSITIONAL:
        return False
    if parameter.name == "ctx" or annotations[parameter.name] is StepContext:
        return True
    # A name that is imported for type checkers alone does not resolve.
    text = str(parameter.annotation).strip("'\"")
    return text.rsplit(".", 1)[-1] == StepContext.__name__


def _resolve(annotation: Any, function: Callable[..., Any], local_names: Mapping[str, Any]) -> Any:
    """The annotation with its names looked up; `_UNRESOLVED` where one of them is not there."""
    if annotation is inspect.Parameter.empty:
        return annotation
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    enclosed = zip(
        getattr(getattr(function, "__code__", None), "co_freevars", ()),
        getattr(function, "__closure__", None) or (),
        strict=True,
    )
    names = {
        **local_names,
        **{name: cell.cell_contents for name, cell in enclosed if _is_filled(cell)},
    }
    global_names = getattr(function, "__globals__", {})
    if isinstance(annotation, str) and annotation.isidentifier():
        # Most are the name of a class, and nothing has to be compiled for that.
        for known in (names, global_names, vars(builtins)):
            if annotation in known:
                if isinstance(known[annotation], type):
                    return known[annotation]
                break
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        hints = typing.get_type_hints(holder, global_names, names, include_extras=True)
    except Exception:  # a name that is not there, or an expression that makes no sense (yet)
        return _UNRESOLVED
    return hints["it"]


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 looking is the test
    except ValueError:
        return False
    return True
