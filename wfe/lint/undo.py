"""Steps that would be left done while everything around them is undone: they have no undo, or one that
cannot take what it receives."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, TypeVar, Union

from wfe.authoring.conversion import type_name
from wfe.authoring.nodes import Node
from wfe.authoring.places import place_in_code
from wfe.authoring.workflows import Workflow
from wfe.lint.findings import Said, of_step
from wfe.model import StepKind, StepSpec

#: What wfe itself does, which fails only where what it is given does.
_SAFE = frozenset({StepKind.SLEEP, StepKind.VALUE, StepKind.HOOK_RESULT})


def without_undo(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Steps that have no undo although another one may fail after them."""
    for name, node in workflow.nodes.items():
        culprit = next(_that_may_fail(workflow, node.spec), None)
        if culprit is None:
            continue
        for owner, left in _left_done(workflow, node):
            inside = "" if owner is workflow else f", which {workflow.id!r} runs as {name!r},"
            yield of_step(
                left,
                f"The step {left.spec.name!r} of {owner.id!r}{inside} has no undo, and {culprit!r} "
                "may fail after it.",
                f"Write @{_variable(left)}.compensate, or @step(pure=True) where there is nothing to undo.",
                place=place_in_code(left.handler.function),
            )


def pure_with_undo(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Steps that are said to leave nothing to undo, and have an undo."""
    for node in workflow.nodes.values():
        if node.spec.options.pure and node.spec.has_compensation:
            yield of_step(
                node,
                f"The step {node.spec.name!r} is pure, and has an undo.",
                "Leave out one of the two.",
            )


def cannot_take_none(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Undos that receive None where their step has left no response, and are not written for it. Any
    step may end so: it raises, or its time is up while it waits for an answer."""
    for node, parameter, wanted in _refusing_none(workflow):
        if node.spec.options.save_response:
            yield of_step(
                node,
                f"The undo of the step {node.spec.name!r} takes {wanted}, but receives None where the "
                "step has failed, or its time was up, before it returned.",
                f"Write {parameter}: {wanted} | None, and undo what can be there then.",
                place=None if node.handler.undo is None else place_in_code(node.handler.undo),
            )


def receives_nothing(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Undos that want the response of a step that does not keep it: once it is done, they receive
    None."""
    for node, _, wanted in _refusing_none(workflow):
        if not node.spec.options.save_response:
            yield of_step(
                node,
                f"The undo of the step {node.spec.name!r} takes {wanted}, but receives None: with "
                "save_response=False nothing is kept for it.",
                "Take out save_response=False, or write an undo that needs no value.",
            )


def _refusing_none(workflow: Workflow[Any, Any]) -> Iterator[tuple[Node, str, str]]:
    """The nodes whose undo says of its parameter that it is never None; its name and its annotation."""
    for node in workflow.nodes.values():
        parameter = node.handler.undo_parameter
        if parameter is None or parameter.default is None:
            continue
        if not _may_be_none(parameter.annotation):
            home = getattr(node.handler.undo, "__module__", "")
            yield node, parameter.name, type_name(parameter.annotation).replace(f"{home}.", "")


def _may_be_none(annotation: Any) -> bool:
    """Whether None fits an annotation. It does where nobody can say: there is none, or it does not
    resolve."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _may_be_none(args[0])
    if origin in (Union, types.UnionType):
        return any(map(_may_be_none, args))
    if origin is Literal:
        return None in args
    if annotation in (inspect.Parameter.empty, Any, None) or isinstance(annotation, TypeVar):
        return True
    if typing.is_typeddict(annotation):
        return False
    # Of `type X = ...`, which Python has had since 3.12.
    if (value := getattr(annotation, "__value__", None)) is not None:
        return _may_be_none(value)
    try:
        return isinstance(None, origin or annotation)
    except TypeError:
        return not isinstance(annotation, typing.NewType) or _may_be_none(annotation.__supertype__)


def _left_done(
    workflow: Workflow[Any, Any], node: Node
) -> Iterator[tuple[Workflow[Any, Any], Node]]:
    """What undoing this node leaves done: itself, or steps of the workflow that it runs."""
    if node.child is not None:
        for inner in node.child.nodes.values():
            yield from _left_done(node.child, inner)
        return
    has_own = node.spec.has_compensation or node.spec.options.pure
    if node.spec.kind is StepKind.STEP and not has_own:
        yield workflow, node


def _that_may_fail(workflow: Workflow[Any, Any], done: StepSpec) -> Iterator[str]:
    """Steps whose failure undoes `done`: later ones, those beside it, and those nobody waits for."""
    for other in workflow.flow.steps.values():
        is_later = other.stage >= done.stage or other.options.no_wait
        if other.name != done.name and is_later and _undoes_all(other):
            yield other.name


def _undoes_all(spec: StepSpec) -> bool:
    """Whether its failure is one of the workflow."""
    options = spec.options
    passed_over = options.continue_on_permanent_failure or options.skip_on_permanent_failure
    return spec.kind not in _SAFE and not passed_over


def _variable(node: Node) -> str:
    return getattr(node.handler.function, "__name__", "that_step")
