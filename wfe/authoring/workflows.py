"""`workflow`: a body, composed once, and what the rest of wfe needs to know of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Unpack, overload

from wfe.authoring import registry
from wfe.authoring.composition import Composition, composing, current
from wfe.authoring.hooks import Hooks
from wfe.authoring.inputs import Slot, template
from wfe.authoring.nesting import NestedStep
from wfe.authoring.nodes import Guard, Node
from wfe.authoring.on_finish import Told
from wfe.authoring.options import WorkflowConfig, Written, checked_name, workflow_options
from wfe.authoring.people import refuse_strays
from wfe.authoring.places import place_of, refuse
from wfe.authoring.references import InputSource, Reference, Template, Values
from wfe.authoring.responses import NOT_GIVEN, WorkflowResponse
from wfe.authoring.schedules import Schedule
from wfe.authoring.shapes import Shape
from wfe.authoring.signatures import Signature, check_function, is_coroutine_function
from wfe.errors import (
    DefinitionError,
    InputMismatch,
    InvalidInput,
    NonSerializableValue,
    UsageError,
)
from wfe.model import Flow, WorkflowOptions
from wfe.plain import plain

if TYPE_CHECKING:
    from wfe.authoring.references import Source

I = TypeVar("I")  # noqa: E741 the input, everywhere in this room
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Input:
    """What a workflow takes: one value, or nothing."""

    def __init__(self, body: Callable[..., Any], workflow_id: str) -> None:
        """
        Raises:
            DefinitionError: the body takes something else.
        """
        self._signature = Signature(body, context=False)
        parameters = list(self._signature.parameters.parameters.values())
        if len(parameters) > 1 or any(not _is_input(parameter) for parameter in parameters):
            raise refuse(
                DefinitionError,
                f"The body of {workflow_id!r} takes {self._signature.parameters}: a body has one "
                "parameter, its input, or none.",
                hint="Make the input one dataclass or dict; its fields may have defaults.",
                place=place_of(body),
            )
        self.parameter = parameters[0].name if parameters else None
        self._slot: Slot | None = None
        if self.parameter is not None:
            what = f"workflow {workflow_id!r}"
            self._slot = Slot(None, self._signature, self.parameter, what)

    @property
    def annotation(self) -> Any:
        """None where there is none that resolves."""
        if self.parameter is None:
            return None
        found = self._signature.annotation(self.parameter)
        return None if found is inspect.Parameter.empty else found

    def source(self) -> Source:
        """What the reference that the body is given stands for."""
        assert self.parameter is not None
        is_plain = self._signature.knows(self.parameter) and self.annotation in (None, Any)
        return InputSource(self.parameter, None if is_plain else self.fit)

    def fit(self, value: Any) -> Any:
        """A JSON value as the annotation wants it. An input that was left out is an empty object
        where that fits: where all fields have defaults.

        Raises:
            InputMismatch: it does not fit.
        """
        if self._slot is None:
            return value
        try:
            return self._slot.fit(value)
        except InputMismatch:
            if value is not None:
                raise
            try:
                return self._slot.fit({})
            except InputMismatch:
                pass
            raise


class Workflow(Generic[I, R_co]):
    """A composed workflow. I is the type of its input (None: it takes none), R of its result."""

    _wfe_instead = "A workflow is used in another one as a step: other_workflow.as_step(...)."

    def __init__(
        self,
        body: Callable[..., Any],
        workflow_id: str,
        options: WorkflowOptions,
        schedule: Schedule | None = None,
        on_finish: Told = None,
    ) -> None:
        """Compose the body. See `workflow`."""
        self.id = workflow_id
        self.options = options
        #: When it is to run by itself; None: only when somebody runs it.
        self.schedule = schedule
        #: Who is told of its ends; None: whoever is told of others. False: nobody.
        self.on_finish = on_finish
        place = place_of(body)
        #: File and line of the body.
        self.source: tuple[str, int] = (place.file, place.line)
        self._input = Input(body, workflow_id)
        self.returns: Any = self._input._signature.returns
        composition = Composition(workflow_id, place)
        with composing(composition):
            self._result = Template(_composed(body, self._input, composition))
        self.flow: Flow
        self.nodes: Mapping[str, Node]
        self.flow, self.nodes = composition.finish(options)
        #: Whether other workflows run as steps of it.
        self.has_children = any(node.child is not None for node in self.nodes.values())
        self.guards: Mapping[str, Guard] = composition.guards
        #: Where handlers are registered: `@place_order.hooks.validated`.
        self.hooks = Hooks(workflow_id, composition.hooks)

    @property
    def as_step(self) -> NestedStep[I, R_co]:
        """This workflow as one step of another: `other.as_step(input)` in a body."""
        return NestedStep(self, f"{self.id}-as-step")

    def __call__(self, *_: object, **__: object) -> Any:
        """
        Raises:
            DefinitionError: always; a workflow is run, or used as a step.
        """
        raise refuse(
            DefinitionError,
            f"The workflow {self.id!r} cannot be called.",
            hint=f"In the body of another workflow write {_variable(self.id)}.as_step(input); "
            f"elsewhere run it: {_variable(self.id)}.run_sync(input).",
        )

    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the input; empty where anything goes."""
        from wfe.authoring.schema import schema_of

        if self._input.parameter is None:
            return {"type": "null"}
        return schema_of(self._input.annotation)

    def check_input(self, value: Any) -> None:
        """Accept an input, be it plain JSON or typed; None stands for one that was left out.

        Raises:
            InvalidInput: it does not fit the annotation of the body's parameter.
        """
        parameter = self._input.parameter
        if parameter is None:
            if value is None or value == {}:
                return
            raise InvalidInput(
                f"The workflow {self.id!r} takes no input.", hint="Run it without one."
            )
        try:
            given = plain(value, what="input")
            fitted = self._input.fit(given)
            if type(given) in (dict, list):
                refuse_strays(given, fitted, what=f"The input of {self.id!r}")
        except InputMismatch as mismatch:
            missing = "" if value is not None else f"The workflow {self.id!r} needs an input. "
            raise InvalidInput(
                missing + mismatch.message,
                hint=f"See what it takes with: wfe workflows show {self.id}",
                parameter=parameter,
                path=mismatch.path,
            ) from None
        except NonSerializableValue as error:
            raise InvalidInput(error.message, parameter=parameter) from None

    async def result(self, values: Values) -> Any:
        """What the body returned, with values in place of references.

        Raises:
            Exception: what a transform raised.
        """
        return await self._result.resolve(values)

    async def run(self, input: Any = NOT_GIVEN, **options: Any) -> Any:
        """Run it to its end in an engine of its own, which keeps nothing; its result, as JSON.

        `options` are those of `Engine.run`.

        Raises:
            ExecutionError: the first error, where it did not end well.
            InvalidInput: an input that does not fit.
        """
        from wfe.runtime.engine import Engine

        given = {} if input is NOT_GIVEN else {"input": input}
        async with Engine() as engine:
            outcome = await engine.run(self, **{"until": "finished", **given, **options})
        return outcome.result

    def run_sync(self, input: Any = NOT_GIVEN, **options: Any) -> Any:
        """As `run`, for code without an event loop.

        Raises:
            DefinitionError: in a body, where nothing runs.
            UsageError: in a coroutine.
        """
        import asyncio

        if current() is not None:
            self()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(input, **options))
        raise UsageError(
            f"run_sync() of {self.id!r} would block the event loop it is called in.",
            hint=f"Write `await {_variable(self.id)}.run(...)`.",
        )

    def __repr__(self) -> str:
        return f"<workflow {self.id!r}>"


class WorkflowDecorator(Protocol):
    """What `@workflow("name", ...)` does to a body."""

    @overload
    def __call__(self, body: Callable[[], WorkflowResponse[R]], /) -> Workflow[None, R]: ...
    @overload
    def __call__(self, body: Callable[[], R], /) -> Workflow[None, R]: ...
    @overload
    def __call__(self, body: Callable[[I], WorkflowResponse[R]], /) -> Workflow[I, R]: ...
    @overload
    def __call__(self, body: Callable[[I], R], /) -> Workflow[I, R]: ...


@overload
def workflow(body: Callable[[], WorkflowResponse[R]], /) -> Workflow[None, R]: ...
@overload
def workflow(body: Callable[[], R], /) -> Workflow[None, R]: ...
@overload
def workflow(body: Callable[[I], WorkflowResponse[R]], /) -> Workflow[I, R]: ...
@overload
def workflow(body: Callable[[I], R], /) -> Workflow[I, R]: ...
@overload
def workflow(name: str, /, **options: Unpack[WorkflowConfig]) -> WorkflowDecorator: ...
def workflow(name_or_body: Any, /, **options: Any) -> Any:
    """Compose a workflow from its body: `@workflow("place-order", timeout=60)`, or `@workflow`.

    The body is called once, here. It takes the input or nothing, and returns the result: a value
    with references in it, a WorkflowResponse, or nothing.

    Raises:
        DefinitionError: whatever is wrong with the body, with file and line.
        DuplicateWorkflow: another workflow has the name.
    """
    if isinstance(name_or_body, str):
        checked = workflow_options(options)
        checked_name(name_or_body, what="workflow")
        return lambda body: _make(body, name_or_body, checked)
    check_function(name_or_body, what="A body", instead='Write @workflow("name") above a function.')
    name = checked_name(getattr(name_or_body, "__name__", ""), what="workflow")
    return _make(name_or_body, name, workflow_options(options))


def _make(
    body: Callable[..., Any],
    workflow_id: str,
    written: Written,
) -> Workflow[Any, Any]:
    check_function(body, what="A body", instead="Write @workflow above a function.")
    outer = current()
    if outer is not None:
        raise refuse(
            DefinitionError,
            f"The workflow {workflow_id!r} is defined in the body of {outer.workflow_id!r}.",
            hint="Define it on its own and use it as a step: other_workflow.as_step(...).",
        )
    if is_coroutine_function(body):
        raise refuse(
            DefinitionError,
            f"The body of {workflow_id!r} is `async def`, but a body is composed, not run.",
            hint="Write `def`, and leave out every `await`: steps may be async, calling them is not.",
            place=place_of(body),
        )
    made: Workflow[Any, Any] = Workflow(body, workflow_id, *written)
    registry.current().add(made)
    return made


def _composed(body: Callable[..., Any], input: Input, composition: Composition) -> Any:
    """The template of the result."""
    if input.parameter is None:
        returned = body()
    else:
        returned = body(Reference(composition, input.source(), Shape(input.annotation)))
    place = composition.place
    if type(returned) is WorkflowResponse:
        for hook in returned.hooks:
            if not any(hook is known for known in composition.hooks.values()):
                raise refuse(
                    DefinitionError,
                    f"WorkflowResponse(hooks=...) holds {hook!r}, which is no hook of this body.",
                    hint='A hook is made in the body: validated = hook("validated", value).',
                    place=place,
                )
        returned = returned.result
    return template(
        returned, composition, what=f"The result of {composition.workflow_id!r}", place=place
    )


def _is_input(parameter: inspect.Parameter) -> bool:
    is_positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return is_positional and (parameter.default is parameter.empty or parameter.default is None)


def _variable(workflow_id: str) -> str:
    return workflow_id.replace("-", "_")


__all__ = ["Guard", "Node", "Workflow", "WorkflowDecorator", "workflow"]
