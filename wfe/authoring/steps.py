"""`step`: a function that becomes one step of the workflows that use it.

A call in a body adds a step and gives a reference to what it will return; typed, it has the type of
the output. Outside of a body a call is a call of the plain function and returns what that returns (a
coroutine where it is async, a StepResponse where it gives one); a test that wants its exact type, or
passes a context, calls `that_step.function`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

from wfe.authoring.composition import Composition, Entry, current
from wfe.authoring.context import StepContext
from wfe.authoring.inputs import Inputs, refuse_captured, template
from wfe.authoring.nodes import Handler, Work
from wfe.authoring.options import NamedStepConfig, StepConfig, checked_name, step_options
from wfe.authoring.places import Place, caller, place_of, refuse
from wfe.authoring.references import references_in
from wfe.authoring.responses import StepResponse
from wfe.authoring.shapes import Shape, shape_of_return
from wfe.authoring.signatures import check_function
from wfe.errors import DefinitionError, ReferenceMisuse
from wfe.model import StepKind, StepOptions

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
#: Bound, so that a first parameter of type `object` is not taken for the context.
C = TypeVar("C", bound=StepContext)
F = TypeVar("F", bound=Callable[..., Any])


class Definition:
    """What all uses of a step share: its function and its undo."""

    __slots__ = ("handler", "place", "shape", "undo_place", "used_by")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.handler = Handler(function)
        self.shape: Shape = shape_of_return(self.handler.signature.returns)
        self.place = place_of(function)
        self.undo_place: Place | None = None
        #: The first workflow that uses it.
        self.used_by: str | None = None


class Step(Generic[P, T_co]):
    """A step, to be called in bodies. P are its parameters without the context, T its output."""

    __slots__ = ("_definition", "name", "options")

    _wfe_instead = "A step is called: my_step(...)."

    def __init__(self, definition: Definition, name: str, options: StepOptions) -> None:
        self._definition = definition
        #: The name that its next use will have.
        self.name = name
        self.options = options

    @property
    def function(self) -> Callable[..., Any]:
        """The plain function, as it was written."""
        return self._definition.handler.function

    @property
    def compensation(self) -> Callable[..., Any] | None:
        """The plain function that undoes it; None: there is nothing to undo."""
        return self._definition.handler.undo

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        """In a body: add the step. Outside: call the function.

        Raises:
            DefinitionError: in a body, arguments that do not fit or have no JSON form.
            DuplicateStep: in a body, the name is taken.
            ReferenceMisuse: a reference of another body, or outside of any.
        """
        body = current()
        if body is None:
            for reference in references_in([args, kwargs]):
                raise refuse(
                    ReferenceMisuse,
                    f"Step {self.name!r} is called with {reference!r} outside of a body.",
                    hint="A reference means something only in the body of the workflow it is of.",
                )
            returned: T_co = self.function(*args, **kwargs)
            return returned
        self._definition.used_by = self._definition.used_by or body.workflow_id
        returning: T_co = self._add(body, args, kwargs)
        return returning

    def _add(self, body: Composition, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        what = f"step {self.name!r}"
        inputs = bind(self._definition.handler, body, args, kwargs, what=what)
        work = Work(self._definition.handler, inputs)
        return body.add(Entry(self.name, StepKind.STEP, work, self.options), self._definition.shape)

    def config(self, **options: Unpack[NamedStepConfig]) -> Step[P, T_co]:
        """The same step with other options, or under another name, for the use that follows.

        Raises:
            InvalidOption, InvalidName: as for `step`.
        """
        given: dict[str, Any] = dict(options)
        name = checked_name(given.pop("name", self.name), what="step")
        return Step(self._definition, name, step_options(given, base=self.options))

    def compensate(self, function: F) -> F:
        """Register the undo; it receives what the step's response says (`compensate_with`).

        Raises:
            DefinitionError: there is one already, a workflow uses the step already, or the function
                takes more than the context and one value.
        """
        definition = self._definition
        set_undo(
            definition.handler, function, earlier=definition.undo_place, what=f"step {self.name!r}"
        )
        if definition.used_by is not None:
            raise refuse(
                DefinitionError,
                f"The workflow {definition.used_by!r} uses the step {self.name!r} already.",
                hint="Write its undo above the body of the workflow.",
                place=place_of(function),
            )
        definition.undo_place = place_of(function)
        return function

    def __repr__(self) -> str:
        return f"<step {self.name!r}>"


def bind(
    handler: Handler, body: Composition, args: tuple[Any, ...], kwargs: dict[str, Any], *, what: str
) -> Inputs:
    """The arguments of a call in a body, checked as far as they are known.

    Raises:
        DefinitionError: they do not fit the function, or have no JSON form.
    """
    where = f"An argument of {what}"
    templates = tuple(template(value, body, what=where) for value in args)
    named = {name: template(value, body, what=where) for name, value in kwargs.items()}
    try:
        inputs = Inputs(handler.signature, templates, named, what=what)
    except TypeError as error:
        function = getattr(handler.function, "__name__", what)
        raise refuse(
            DefinitionError,
            f"{what} is called with arguments that do not fit: {error}.",
            hint=f"Its parameters: {function}{handler.signature.parameters}.",
        ) from None
    inputs.check(caller())
    return inputs


def set_undo(
    handler: Handler, function: Callable[..., Any], *, earlier: Place | None, what: str
) -> None:
    """Give a handler its undo. `earlier` is where one was registered before.

    Raises:
        DefinitionError: it has one, or the function cannot be one.
    """
    check_function(function, what=f"The undo of {what}", instead="Write @that_step.compensate.")
    if earlier is not None:
        raise refuse(
            DefinitionError,
            f"The undo of {what} is registered twice, here and at {earlier}.",
            hint="One undo per step: do all of it in one function.",
            place=place_of(function),
        )
    refuse_captured(function, what=f"The undo of {what}")
    try:
        handler.set_undo(function)
    except TypeError:
        raise refuse(
            DefinitionError,
            f"The undo of {what} takes the context and one value at most.",
            hint="It receives what the step gave as compensate_with: put all it needs in there.",
            place=place_of(function),
        ) from None


class StepDecorator(Protocol):
    """What `@step("name", ...)` does to a function."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[C, P], Awaitable[StepResponse[T]]], /
    ) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[C, P], StepResponse[T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[C, P], Awaitable[T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[C, P], T], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[StepResponse[T]]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, StepResponse[T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Step[P, T]: ...


@overload
def step(function: Callable[Concatenate[C, P], Awaitable[StepResponse[T]]], /) -> Step[P, T]: ...
@overload
def step(function: Callable[Concatenate[C, P], StepResponse[T]], /) -> Step[P, T]: ...
@overload
def step(function: Callable[Concatenate[C, P], Awaitable[T]], /) -> Step[P, T]: ...
@overload
def step(function: Callable[Concatenate[C, P], T], /) -> Step[P, T]: ...
@overload
def step(function: Callable[P, Awaitable[StepResponse[T]]], /) -> Step[P, T]: ...
@overload
def step(function: Callable[P, StepResponse[T]], /) -> Step[P, T]: ...
@overload
def step(function: Callable[P, Awaitable[T]], /) -> Step[P, T]: ...
@overload
def step(function: Callable[P, T], /) -> Step[P, T]: ...
@overload
def step(name: str | None = None, /, **options: Unpack[StepConfig]) -> StepDecorator: ...
def step(name_or_function: Any = None, /, **options: Any) -> Any:
    """Make a step of a function: `@step`, `@step("name")`, `@step(max_retries=3)`.

    A `def` runs in a worker thread, an `async def` on the loop. A first parameter annotated
    StepContext (or named `ctx`) receives the context. The name is the function's where none is
    given.

    Raises:
        InvalidName, InvalidOption, DefinitionError: what cannot be a step, with its place.
    """
    if isinstance(name_or_function, str) or name_or_function is None:
        checked = step_options(options)
        if name_or_function is not None:
            checked_name(name_or_function, what="step")
        return lambda function: _make(function, name_or_function, checked)
    return _make(name_or_function, None, step_options(options))


def _make(function: Any, name: str | None, options: StepOptions) -> Step[..., Any]:
    check_function(
        function, what="A step", instead='Write @step or @step("name") above a function.'
    )
    name = getattr(function, "__name__", "<lambda>") if name is None else name
    if name == "<lambda>":
        raise refuse(
            DefinitionError,
            "A function without a name of its own becomes a step only under a given one.",
            hint='Write step("name")(function).',
        )
    refuse_captured(function, what=f"Step {name!r}")
    definition = Definition(function)
    _check_parameters(definition, name)
    return Step(definition, checked_name(name, what="step"), options)


def _check_parameters(definition: Definition, name: str) -> None:
    parameters = definition.handler.signature.parameters.parameters
    for parameter in parameters:
        if definition.handler.signature.annotation(parameter) is StepContext:
            raise refuse(
                DefinitionError,
                f"Step {name!r} takes its context as {parameter!r}, which is not its first parameter.",
                hint="Put the context first: def my_step(ctx: StepContext, ...).",
                place=definition.place,
            )
    if next(iter(parameters), None) == "self":
        raise refuse(
            DefinitionError,
            f"Step {name!r} is a method: nobody could say later on which object to call it.",
            hint="Write a function; what the object held is a resource: ctx.resolve(name).",
            place=definition.place,
        )
