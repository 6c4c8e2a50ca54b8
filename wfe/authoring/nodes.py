"""Nodes and guards: the parts of a composed workflow that hold the user's functions.

The machine knows steps by their StepSpec; whoever runs them finds the function, its undo and its
arguments here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from wfe.authoring.inputs import Inputs, Slot
from wfe.authoring.people import refuse_misfit
from wfe.authoring.places import Place
from wfe.authoring.references import Template, Values, depends_on
from wfe.authoring.signatures import Signature, is_coroutine_function
from wfe.model import StepSpec

if TYPE_CHECKING:
    from wfe.authoring.context import StepContext
    from wfe.authoring.workflows import Workflow


class Handler:
    """A function of the user's and, where there is one, its undo. Shared by all uses of a step."""

    __slots__ = (
        "_undo_parameter",
        "_undo_signature",
        "function",
        "is_coroutine",
        "signature",
        "undo",
    )

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.signature = Signature(function, context=True)
        self.is_coroutine = is_coroutine_function(function)
        self.undo: Callable[..., Any] | None = None
        self._undo_signature = self.signature
        self._undo_parameter: str | None = None

    def set_undo(self, function: Callable[..., Any]) -> None:
        """Give it its undo.

        Raises:
            TypeError: it takes more than, beside the context, one value.
        """
        signature = Signature(function, context=True)
        if not (takes_one := signature.takes(1)) and not signature.takes(0):
            raise TypeError("it takes more than one value")
        self.undo = function
        self._undo_signature = signature
        self._undo_parameter = next(iter(signature.parameters.parameters)) if takes_one else None

    @property
    def undo_parameter(self) -> inspect.Parameter | None:
        """What the undo receives its value in, its annotation resolved (`empty` where that cannot be);
        None where it takes none, or there is no undo."""
        signature, name = self._undo_signature, self._undo_parameter
        if name is None:
            return None
        return signature.parameters.parameters[name].replace(annotation=signature.annotation(name))

    def undo_arguments(
        self, context: StepContext, compensate_with: Any, *, what: str
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the undo is called with. None always fits its parameter: it says that the step failed
        without any response.

        Raises:
            InputMismatch: the value does not fit its parameter.
        """
        signature, parameter = self._undo_signature, self._undo_parameter
        args: list[Any] = [context] if signature.wants_context else []
        if parameter is not None:
            fits = compensate_with is None
            slot = Slot(None, signature, parameter, what)
            args.append(compensate_with if fits else slot.fit(compensate_with))
        return tuple(args), {}


class Work:
    """What a node does: a handler with the arguments of this use. A hook's is set when its handler
    is registered."""

    __slots__ = ("handler", "inputs")

    def __init__(self, handler: Handler, inputs: Inputs) -> None:
        self.handler = handler
        self.inputs = inputs


class Node:
    """One step of a body."""

    __slots__ = ("_work", "child", "place", "spec")

    def __init__(
        self, spec: StepSpec, work: Work, place: Place, child: Workflow[Any, Any] | None = None
    ) -> None:
        self.spec = spec
        self._work = work
        #: Where the body uses the step.
        self.place = place
        #: The workflow that a step of kind `workflow` runs.
        self.child = child

    @property
    def handler(self) -> Handler:
        """The function that does the step, and its undo."""
        return self._work.handler

    def check_answer(self, answer: Any) -> None:
        """Accept an answer from outside, plain JSON, in place of what the function would return.

        Raises:
            InvalidInput: the function's return annotation says that it would never return that.
        """
        what = f"step {self.spec.name!r}"
        refuse_misfit(answer, self.handler.signature.returns, what=what)

    @property
    def compensation(self) -> Callable[..., Any] | None:
        return self._work.handler.undo

    @property
    def compensation_is_coroutine(self) -> bool:
        undo = self._work.handler.undo
        return undo is not None and is_coroutine_function(undo)

    def arguments(
        self, context: StepContext | None, values: Values
    ) -> Coroutine[Any, Any, tuple[tuple[Any, ...], dict[str, Any]]]:
        """What the handler's function is called with: resolved and converted, the context first if
        wanted.

        Raises:
            InputMismatch: a value does not fit its parameter.
            Exception: what a transform raised.
        """
        return self._work.inputs.get(context, values)

    def arguments_at_hand(
        self, context: StepContext | None, values: Values
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """As `arguments`, without a coroutine; None where one is needed."""
        inputs = self._work.inputs
        return inputs.read(context, values) if inputs.are_at_hand else None

    def compensation_arguments(
        self, context: StepContext, compensate_with: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What `compensation` is called with; there must be one.

        Raises:
            InputMismatch: the value does not fit its parameter.
        """
        return self._work.handler.undo_arguments(
            context, compensate_with, what=f"the compensation of step {self.spec.name!r}"
        )

    def __repr__(self) -> str:
        return f"<node {self.spec.name!r} of kind {self.spec.kind}>"


class Guard:
    """The condition of a `when`."""

    __slots__ = ("_condition", "_inputs", "_predicate", "depends", "name")

    def __init__(
        self,
        name: str,
        condition: Any,
        predicate: Callable[..., Any] | None = None,
        inputs: Inputs | None = None,
    ) -> None:
        """`condition` is a template; with a predicate, `inputs` hand it over."""
        self.name = name
        self._condition = Template(condition)
        self._predicate = predicate
        self._inputs = inputs
        #: The steps whose output decides.
        self.depends = depends_on(condition)

    async def evaluate(self, values: Values) -> bool:
        """Whether the condition holds.

        Raises:
            InputMismatch: the value does not fit the predicate's parameter.
            Exception: what the predicate, or a transform, raised.
        """
        if self._predicate is None or self._inputs is None:
            return bool(await self._condition.resolve(values))
        args, kwargs = await self._inputs.get(None, values)
        return bool(await settle(self._predicate(*args, **kwargs)))


async def settle(value: Any) -> Any:
    """What a function of the user's came to, be it async or not."""
    return await value if inspect.isawaitable(value) else value
