"""What steps and bodies may return beside a plain value."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, TypeVar

from wfe.errors import PermanentStepFailure

if TYPE_CHECKING:
    from wfe.authoring.hooks import Hook

T_co = TypeVar("T_co", covariant=True)


class NotGiven(Enum):
    """The type of NOT_GIVEN."""

    NOT_GIVEN = "not given"


#: An argument was left out where None would mean something.
NOT_GIVEN: Final = NotGiven.NOT_GIVEN


class StepResponse(Generic[T_co]):
    """A step's answer: its output, and what its undo will receive.

    Where `compensate_with` is left out (NOT_GIVEN) the undo receives the output, be it this one or
    the answer from outside.
    """

    __slots__ = ("compensate_with", "kind", "output", "reason")

    kind: Literal["output", "awaiting", "skip"]
    output: T_co
    compensate_with: Any
    #: Why it was skipped.
    reason: str

    def __init__(self, output: T_co, compensate_with: Any = NOT_GIVEN) -> None:
        self.kind = "output"
        self.output = output
        self.compensate_with = compensate_with
        self.reason = ""

    @staticmethod
    def awaiting(compensate_with: Any = NOT_GIVEN) -> StepResponse[Any]:
        """The async step waits for an answer from outside; what its undo needs is known already."""
        response: StepResponse[Any] = StepResponse(None, compensate_with)
        response.kind = "awaiting"
        return response

    @staticmethod
    def skip(reason: str = "") -> StepResponse[Any]:
        """The step ends `skipped`; its output is None and there is nothing to undo."""
        response: StepResponse[Any] = StepResponse(None)
        response.kind = "skip"
        response.reason = reason
        return response

    @staticmethod
    def permanent_failure(message: str, compensate_with: Any = None) -> NoReturn:
        """End the step without further retries; its undo receives `compensate_with`.

        Raises:
            PermanentStepFailure: always.
        """
        raise PermanentStepFailure(message, compensate_with)

    def __repr__(self) -> str:
        return f"StepResponse({self.kind}, {self.output!r})"


class WorkflowResponse(Generic[T_co]):
    """What a body returns: the workflow's result, and the hooks that it offers."""

    __slots__ = ("hooks", "result")

    def __init__(self, result: T_co, hooks: Sequence[Hook] = ()) -> None:
        self.result = result
        self.hooks = tuple(hooks)

    def __repr__(self) -> str:
        return f"WorkflowResponse({self.result!r})"
