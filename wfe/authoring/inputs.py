"""The arguments of one call in a body: kept as templates, resolved and converted when it runs.

What a body writes down literally is checked while composing: that it has a JSON form, that it fits
its annotation, that its references are of this very body.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wfe.authoring.conversion import Converter, Mismatch, type_name
from wfe.authoring.places import Place, place_of, refuse
from wfe.authoring.references import (
    Read,
    Reference,
    Values,
    depends_on,
    has_references,
    is_shared,
    reader,
    references_in,
    substitute,
)
from wfe.authoring.signatures import Signature
from wfe.errors import DefinitionError, InputMismatch, ReferenceMisuse
from wfe.plain import Unfit, plain, reduce

if TYPE_CHECKING:
    from wfe.authoring.composition import Composition


class Slot:
    """One argument: a template, and the parameter it goes to."""

    __slots__ = (
        "_argument",
        "_constant",
        "_convert",
        "_parameter",
        "_read",
        "_shared",
        "_signature",
        "_template",
        "_what",
    )

    def __init__(self, template: Any, signature: Signature, parameter: str, what: str) -> None:
        """`what` says whose parameter it is: `step 'charge'`."""
        self._template = template
        self._signature = signature
        self._parameter = parameter
        self._what = what
        self._argument = f"argument {parameter!r} of {what}"
        self._constant = not has_references(template)
        self._read: Read | None = (lambda _: template) if self._constant else reader(template)
        is_literal_object = self._constant and type(template) in (dict, list)
        self._shared = is_literal_object or is_shared(template)
        self._convert: Converter | None = self._convert_first

    @property
    def is_at_hand(self) -> bool:
        """Nothing has to be awaited for it."""
        return self._read is not None

    async def get(self, values: Values) -> Any:
        """The value to hand over.

        Raises:
            InputMismatch: it does not fit the parameter's annotation.
            NonSerializableValue: what a transform returned has no JSON form.
            Exception: what a transform raised.
        """
        if self._read is not None:
            return self.read(values)
        return self._own(await substitute(self._template, values))

    def read(self, values: Values) -> Any:
        """The value to hand over, where it is at hand. Raises what `get` raises."""
        assert self._read is not None
        value = self._read(values)
        if not self._shared and self._convert is None:
            return value
        return self._own(value)

    def _own(self, value: Any) -> Any:
        if self._shared:
            value = plain(value, what=self._argument)
        return value if self._convert is None else self.fit(value)

    def fit(self, value: Any) -> Any:
        """A JSON value as the parameter's annotation wants it.

        Raises:
            InputMismatch: it does not fit.
        """
        if self._convert is None:
            return value
        try:
            return self._convert(value)
        except Mismatch as mismatch:
            is_absent = value is None and not self._constant
            nothing = " (it was skipped, or returned nothing)" if is_absent else ""
            raise InputMismatch(
                mismatch.reason + nothing,
                what=self._what,
                parameter=self._parameter,
                path=mismatch.path,
                annotation=type_name(self._signature.annotation(self._parameter)),
            ) from None

    def check(self, place: Place) -> None:
        """Refuse a literal that does not fit, where the annotation is known already.

        Raises:
            DefinitionError: it does not fit.
        """
        if not self._constant or not self._signature.knows(self._parameter):
            return
        try:
            self._signature.converter(self._parameter)
        except NameError:
            return
        try:
            self.fit(self._template)
        except InputMismatch as mismatch:
            raise refuse(DefinitionError, mismatch.message, place=place) from None

    def _convert_first(self, value: Any) -> Any:
        """Stands in for the converter until the first value, when every annotation resolves."""
        try:
            self._convert = self._signature.converter(self._parameter)
        except NameError:
            self._convert = None
        return value if self._convert is None else self._convert(value)


class Inputs:
    """The arguments of one call, in the order and the way in which they are passed."""

    __slots__ = ("_context", "_keywords", "_positional", "are_at_hand", "depends")

    def __init__(
        self, signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, what: str
    ) -> None:
        """`args` and `kwargs` are templates.

        Raises:
            TypeError: they do not fit the signature.
        """
        bound = signature.bind(args, kwargs)
        self._context = signature.wants_context
        self._positional: list[Slot] = []
        self._keywords: list[tuple[str, Slot]] = []
        self.depends = depends_on([*args, *kwargs.values()])
        for name, value in bound.arguments.items():
            make = functools.partial(Slot, signature=signature, parameter=name, what=what)
            match signature.parameters.parameters[name].kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    self._positional += [make(item) for item in value]
                case inspect.Parameter.VAR_KEYWORD:
                    self._keywords += [(key, make(item)) for key, item in value.items()]
                case inspect.Parameter.KEYWORD_ONLY:
                    self._keywords.append((name, make(value)))
                case _:
                    self._positional.append(make(value))
        #: Whether nothing has to be awaited for them, and `read` does.
        self.are_at_hand = all(slot.is_at_hand for slot in self._slots())

    def check(self, place: Place) -> None:
        """Refuse literals that do not fit their annotations.

        Raises:
            DefinitionError: one does not fit.
        """
        for slot in self._slots():
            slot.check(place)

    def _slots(self) -> list[Slot]:
        return [*self._positional, *(slot for _, slot in self._keywords)]

    async def get(self, context: Any, values: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments, the context first where it is wanted.

        Raises:
            InputMismatch: a value does not fit its annotation.
            Exception: what a transform raised.
        """
        args = [context] if self._context else []
        for slot in self._positional:
            args.append(await slot.get(values))  # noqa: PERF401 a comprehension would be async
        kwargs = {}
        for name, slot in self._keywords:
            kwargs[name] = await slot.get(values)
        return tuple(args), kwargs

    def read(self, context: Any, values: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """As `get`, where all are at hand: most are, and a coroutine for each would cost more than
        the values do."""
        args = [context] if self._context else []
        for slot in self._positional:
            args.append(slot.read(values))  # noqa: PERF401 slower for the usual one or two
        kwargs = {}
        for name, slot in self._keywords:
            kwargs[name] = slot.read(values)
        return tuple(args), kwargs


def template(value: Any, body: Composition, *, what: str, place: Place | None = None) -> Any:
    """What a user wrote in a body, as a template. `place` is where, unless it is the caller's.

    Raises:
        DefinitionError: a part of it has no JSON form.
        ReferenceMisuse: a reference of another body.
    """
    try:
        reduced = reduce(value, leaf=Reference)
    except Unfit as unfit:
        raise refuse(
            DefinitionError,
            f"{what} cannot be handed over: {unfit.reason} at {unfit.path}.",
            hint=getattr(type(unfit.culprit), "_wfe_instead", _NO_JSON_FORM),
            place=place,
        ) from None
    for reference in references_in(reduced):
        if reference._wfe_body is not body:
            raise refuse(
                ReferenceMisuse,
                f"{what} uses {reference!r} of the workflow {reference._wfe_body.workflow_id!r}, "
                f"in the body of {body.workflow_id!r}.",
                hint="Hand the value over as the input of the workflow that needs it.",
                place=place,
            )
    return reduced


_NO_JSON_FORM = (
    "Values pass between steps as JSON; what is none (a client, a file, a function) is a resource: "
    "ctx.resolve(name)."
)


def refuse_captured(function: Callable[..., Any], *, what: str) -> None:
    """Refuse a function that will run later but holds references, which have no value then either.

    Raises:
        ReferenceMisuse: in a closure, in a default, or in a functools.partial.
    """
    for name, value in _captured(function):
        for reference in references_in(value):
            spelled = reference._wfe_source.spelling()
            raise refuse(
                ReferenceMisuse,
                f"{what} uses {name}, which holds the reference {spelled}: "
                "it runs later, and a reference has no value then either.",
                hint=f"Hand {spelled} over as an argument.",
                place=place_of(function),
            )


def _captured(function: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    while isinstance(function, functools.partial):
        found += [
            ("an argument of its partial", v) for v in (*function.args, *function.keywords.values())
        ]
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:
        return found
    found += [("a default", default) for default in function.__defaults__ or ()]
    found += [("a default", default) for default in (function.__kwdefaults__ or {}).values()]
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((repr(name), cell.cell_contents))
        except ValueError:  # assigned further down
            continue
    return found
