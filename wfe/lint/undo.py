"""Steps that would be left done while everything around them is undone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from wfe.authoring.nodes import Node
from wfe.authoring.places import place_of
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
                place=place_of(left.handler.function),
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
