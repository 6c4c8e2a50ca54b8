"""Bodies for tests, the values their references resolve to, and the places of errors."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest

from wfe import DefinitionError, Registry, StepContext, Workflow, workflow


class Told:
    """The values of an execution: an input, and the outputs of the steps that have settled."""

    def __init__(self, input: Any = None, **outputs: Any) -> None:
        self.cache: dict[int, Any] = {}
        self._input = input
        self.outputs = outputs

    def input(self) -> Any:
        return copy.deepcopy(self._input)

    def output(self, step: str) -> Any:
        return copy.deepcopy(self.outputs.get(step))

    def settled(self, step: str) -> bool:
        return step in self.outputs

    def guard(self, name: str) -> bool | None:
        return None


def composed(body: Callable[..., Any], **options: Any) -> Workflow[Any, Any]:
    """The body as the workflow `w`."""
    with Registry().scope():
        made: Workflow[Any, Any] = workflow("w", **options)(body)
    return made


def result(body: Callable[..., Any], input: Any = None, **outputs: Any) -> Any:
    """The result of the body as a workflow, once its steps have returned these outputs."""
    return asyncio.run(composed(body).result(Told(input, **outputs)))


def arguments(made: Workflow[Any, Any], step: str, values: Told) -> tuple[tuple[Any, ...], Any]:
    """What a step of the workflow would be called with."""
    return asyncio.run(made.nodes[step].arguments(CONTEXT, values))


def argument(body: Callable[..., Any], input: Any = None, **outputs: Any) -> Any:
    """The one argument of the last step of the body."""
    made = composed(body)
    (value,), _ = arguments(made, list(made.nodes)[-1], Told(input, **outputs))
    return value


CONTEXT = StepContext(workflow_id="w", transaction_id="t", idempotency_key="w:t:s:invoke")


def refused(
    function: Callable[[], object], kind: type[DefinitionError] = DefinitionError
) -> DefinitionError:
    """The error that the function is refused with."""
    with pytest.raises(kind) as caught:
        function()
    assert type(caught.value) is kind
    return caught.value


def line_of(function: Callable[..., Any], offset: int = 0) -> tuple[str, int]:
    """The place of a function's first line, or of one further down."""
    code = function.__code__
    return code.co_filename, code.co_firstlineno + offset


def place(error: DefinitionError) -> tuple[str | None, int | None]:
    return error.file, error.line
