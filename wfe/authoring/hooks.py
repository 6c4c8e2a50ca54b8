"""`hook`: a named point of a workflow at which others may do something.

A hook is a step. Until a handler is registered it does nothing; the handler may be registered any
time before the workflow runs, from another module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, Union, overload

from wfe.authoring.composition import Composition, Entry, the_body
from wfe.authoring.conversion import converter
from wfe.authoring.inputs import Inputs, refuse_captured, template
from wfe.authoring.nodes import Handler, Work
from wfe.authoring.options import checked_name
from wfe.authoring.places import Place, place_of, refuse
from wfe.authoring.references import OutputSource, Reference
from wfe.authoring.shapes import Shape
from wfe.authoring.signatures import check_function
from wfe.authoring.steps import set_undo
from wfe.errors import DefinitionError
from wfe.model import StepKind, StepOptions
from wfe.near import near

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


async def _nothing() -> None:
    return None


def _idle_handler() -> Handler:
    handler = Handler(_nothing)
    handler.set_undo(_nothing)
    return handler


class Hook:
    """A hook of a body; later, as `workflow.hooks.NAME`, what registers its handler."""

    _wfe_instead = "A hook is no value: what its handler returned is hook.result()."

    def __init__(self, body: Composition, name: str, value: Any) -> None:
        self.name = name
        self._body = body
        self._value = value
        self._place: Place | None = None
        self._undo_place: Place | None = None
        handler = _idle_handler()
        self.work = Work(handler, Inputs(handler.signature, (), {}, what=f"hook {name!r}"))

    @overload
    def result(self) -> Any: ...
    @overload
    def result(self, type: type[T]) -> T: ...
    def result(self, type: Any = None) -> Any:
        """A reference to what the handler returned; None where nobody registered one.

        Adds the step `get-NAME-result`. With a type, what is no such value fails that step.

        Raises:
            DefinitionError: outside of the body that the hook is of.
            DuplicateStep: it was asked for before; keep the reference in a variable.
        """
        self._body.check_current(f"The hook {self.name!r}")
        handler = Handler(_reader(type))
        handler.set_undo(_nothing)
        name = f"get-{self.name}-result"
        reference = Reference(self._body, OutputSource(self.name), Shape())
        inputs = Inputs(handler.signature, (reference,), {}, what=f"step {name!r}")
        entry = Entry(name, StepKind.HOOK_RESULT, Work(handler, inputs), StepOptions())
        return self._body.add(entry, Shape(type))

    def __call__(self, function: Callable[P, R_co]) -> HookHandler[P, R_co]:
        """Register the handler: `@place_order.hooks.validated`. It takes the context, if it asks for
        it, and the hook's value, or nothing.

        Raises:
            DefinitionError: there is one already, or the function cannot be one.
        """
        what = f"The handler of hook {self.name!r}"
        check_function(function, what=what, instead="Write @workflow.hooks.NAME above a function.")
        refuse_captured(function, what=what)
        place = place_of(function)
        if self._place is not None:
            raise refuse(
                DefinitionError,
                f"The hook {self.name!r} has a handler already, at {self._place}.",
                hint="A hook has one handler.",
                place=place,
            )
        handler = Handler(function)
        handler.set_undo(_nothing)
        self.work.inputs = self._inputs(handler, place)
        self.work.handler = handler
        self._place = place
        return HookHandler(self, function)

    def compensate(self, function: F) -> F:
        """Register the undo of the handler.

        Raises:
            DefinitionError: there is no handler, or an undo already, or the function cannot be one.
        """
        what = f"the handler of hook {self.name!r}"
        if self._place is None:
            raise refuse(
                DefinitionError,
                f"The hook {self.name!r} has no handler, so nothing is to be undone.",
            )
        set_undo(self.work.handler, function, earlier=self._undo_place, what=what)
        self._undo_place = place_of(function)
        return function

    def _inputs(self, handler: Handler, place: Place) -> Inputs:
        signature = handler.signature
        if not signature.takes(1) and not signature.takes(0):
            raise refuse(
                DefinitionError,
                f"The handler of hook {self.name!r} takes more than the context and one value.",
                hint="All that the hook tells is in its one value.",
                place=place,
            )
        args = (self._value,) if signature.takes(1) else ()
        inputs = Inputs(signature, args, {}, what=f"the handler of hook {self.name!r}")
        inputs.check(place)
        return inputs

    def __repr__(self) -> str:
        return f"<hook {self.name!r}>"


class HookHandler(Generic[P, R_co]):
    """A registered handler: the function itself, and where its undo is registered."""

    def __init__(self, hook: Hook, function: Callable[P, R_co]) -> None:
        self._hook = hook
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self.function(*args, **kwargs)

    def compensate(self, function: F) -> F:
        """Register its undo, as `Hook.compensate` does."""
        return self._hook.compensate(function)


class Hooks(Mapping[str, Hook]):
    """The hooks of a workflow, as attributes and by name."""

    def __init__(self, workflow_id: str, hooks: Mapping[str, Hook]) -> None:
        self._workflow_id = workflow_id
        self._hooks = hooks

    def __getattr__(self, name: str) -> Hook:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Hook:
        if name not in self._hooks:
            names = f"Its hooks: {', '.join(self._hooks)}." if self._hooks else "It has none."
            raise refuse(
                DefinitionError,
                f"The workflow {self._workflow_id!r} has no hook {name!r}.",
                hint=near(name, self._hooks) or names,
            )
        return self._hooks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hooks)

    def __len__(self) -> int:
        return len(self._hooks)


def hook(name: str, value: object = None) -> Hook:
    """Offer a point at which others may do something with `value`, which may hold references.

    Raises:
        InvalidName, DuplicateStep: the name cannot be a step's.
        DefinitionError: the value has no JSON form, or this is no body.
    """
    body = the_body("hook()")
    checked_name(name, what="hook")
    made = Hook(body, name, template(value, body, what=f"The value of hook {name!r}"))
    body.add(Entry(name, StepKind.HOOK, made.work, StepOptions()))
    body.hooks[name] = made
    return made


def _reader(type_: Any) -> Callable[..., Any]:
    """A function whose annotation makes its argument fit; None, of a hook without handler, fits."""

    async def read(value: Any) -> Any:
        return value

    if type_ is not None and converter(type_) is not None:
        read.__annotations__["value"] = Union[type_, None]  # noqa: UP007 it may be any annotation
    return read
