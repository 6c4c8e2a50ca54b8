"""`other_workflow.as_step(input)`: a workflow as one step of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from wfe.authoring.composition import Entry, the_body
from wfe.authoring.inputs import Inputs, template
from wfe.authoring.nodes import Handler, Work
from wfe.authoring.options import DEFAULTS, NamedStepConfig, checked_name, step_options
from wfe.authoring.places import refuse
from wfe.authoring.references import has_references
from wfe.authoring.shapes import shape_of_return
from wfe.errors import DefinitionError, InvalidInput
from wfe.model import StepKind, StepOptions

if TYPE_CHECKING:
    from wfe.authoring.workflows import Workflow

I = TypeVar("I")  # noqa: E741 the input, everywhere in this room
R_co = TypeVar("R_co", covariant=True)


async def _child(*args: Any) -> None:
    """Never called: whoever runs the step runs the child, and cancels it to undo the step."""


_CHILD = Handler(_child)
_CHILD.set_undo(_child)


class NestedStep(Generic[I, R_co]):
    """A workflow as a step, to be called in bodies with its input."""

    _wfe_instead = "A nested workflow is called: other_workflow.as_step(...)."

    def __init__(
        self, workflow: Workflow[I, R_co], name: str, options: StepOptions = DEFAULTS
    ) -> None:
        self._workflow = workflow
        self.name = name
        self.options = options

    def config(self, **options: Unpack[NamedStepConfig]) -> NestedStep[I, R_co]:
        """The same with other options, or under another name, for the use that follows.

        Raises:
            InvalidOption, InvalidName: as for `step`.
        """
        given: dict[str, Any] = dict(options)
        name = checked_name(given.pop("name", self.name), what="step")
        return NestedStep(self._workflow, name, step_options(given, base=self.options))

    @overload
    def __call__(self: NestedStep[None, R_co]) -> R_co: ...
    @overload
    def __call__(self, input: I, /) -> R_co: ...
    def __call__(self, *given: Any) -> Any:
        """Add the step; a reference to the workflow's result.

        It is async where the workflow has async steps, or this body has some already.

        Raises:
            DefinitionError: outside of a body, or an input that the workflow does not take.
            DuplicateStep: the name is taken.
        """
        body = the_body(f"{self._workflow.id}.as_step()")
        what = f"step {self.name!r}"
        if len(given) > 1:
            raise refuse(
                DefinitionError, f"A workflow has one input; {what} is given {len(given)}."
            )
        templates = tuple(template(value, body, what=f"The input of {what}") for value in given)
        self._check(templates)
        options = self.options
        if body.has_async_steps or self._workflow.flow.has_async_steps:
            options = step_options({"async_": True}, base=options)
        work = Work(_CHILD, Inputs(_CHILD.signature, templates, {}, what=what))
        entry = Entry(self.name, StepKind.WORKFLOW, work, options, self._workflow)
        return body.add(entry, shape_of_return(self._workflow.returns))

    def _check(self, templates: tuple[Any, ...]) -> None:
        if has_references(templates):
            return
        try:
            self._workflow.check_input(*(templates or (None,)))
        except InvalidInput as error:
            raise refuse(DefinitionError, error.message, hint=error.hint) from None

    def __repr__(self) -> str:
        return f"<workflow {self._workflow.id!r} as step {self.name!r}>"
