"""A diagram: the steps of a workflow or of an execution as boxes in stages, whatever draws it.

Stages follow each other, the boxes of one stage run together. A box whose step runs another workflow
holds the diagram of that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from wfe.cli import documents, family, text, tree
from wfe.model import Execution, Flow, Head, StepSpec

if TYPE_CHECKING:
    from wfe.authoring.workflows import Workflow
    from wfe.store.contract import Reader

#: How many levels of children of an execution are drawn.
_DEEPEST = 8

#: Words that are of an undo by themselves; one that has failed has to be told from its step.
_OF_UNDOS = ("compensating", "reverted")


class Label(NamedTuple):
    """A line of a box: the word of a state, or none, and more to say."""

    text: str
    word: str = ""


class Box(NamedTuple):
    """A step."""

    name: str
    labels: tuple[Label, ...] = ()
    inner: Diagram | None = None

    @property
    def word(self) -> str:
        """The state that it is in; empty for a step of a workflow. That it failed is what counts, even
        where it was undone since."""
        words = [label.word for label in self.labels if label.word]
        wrong = [word for word in words if word in ("failed", "timeout")]
        return (wrong or words[-1:] or [""])[0]


class Diagram(NamedTuple):
    """What runs after what."""

    title: str
    #: What is true of the whole.
    subtitle: Label
    stages: tuple[tuple[Box, ...], ...]


# --- of an execution -----------------------------------------------------------------------------


def of_execution(reader: Reader, execution: Execution, now: datetime, *, depth: int = 0) -> Diagram:
    """What an execution has come to at `now`, with the executions that are steps of it."""
    rows = {row.step: row for row in tree.rows(execution, now)}
    over, steps = tree.settled(execution)
    head = execution.head
    took = text.elapsed(text.seconds(head.started_at or head.created_at, head.ended_at or now))
    stages = []
    for stage in execution.flow.stages:
        boxes = []
        for name in stage:
            spec, child = execution.flow.steps[name], None
            if depth < _DEEPEST:
                child = family.child_of(reader, execution, name)
            inner = None
            if child is not None:
                inner = of_execution(reader, child, now, depth=depth + 1)
            boxes.append(Box(name, tuple(_labels(head, spec, rows[name], inner)), inner))
        stages.append(tuple(boxes))
    status = documents.status(execution)
    subtitle = Label(f"{status}, {over} of {steps} steps, {took}", status)
    return Diagram(str(head.key), subtitle, tuple(stages))


def _labels(head: Head, spec: StepSpec, row: tree.Row, inner: Diagram | None) -> Iterator[Label]:
    for guard in spec.guards:
        yield Label(tree.guard(head, guard))
    if spec.child is not None and inner is None:
        yield Label(f"runs {spec.child}")
    for side in (row.invoke, row.compensate):
        if side is not None:
            took = text.elapsed(side.seconds)
            is_undo = side is row.compensate and side.word not in _OF_UNDOS
            yield Label(f"{'undo ' * is_undo}{side.word} {took}".rstrip(), side.word)


# --- of a workflow -------------------------------------------------------------------------------


def of_workflow(workflow: Workflow[Any, Any]) -> Diagram:
    """The steps of a workflow, with those of the workflows that are steps of it: each at the first step
    that runs it, of which the others tell."""
    return _of_flow(workflow.flow, workflow, {})


def _of_flow(
    flow: Flow, workflow: Workflow[Any, Any], drawn: dict[str, str], within: str = ""
) -> Diagram:
    """`drawn`: the steps that hold the diagrams of workflows, by the ids of these."""
    stages = []
    for stage in flow.stages:
        boxes = []
        for name in stage:
            child, inner, path = workflow.nodes[name].child, None, f"{within}{name}"
            if child is not None and drawn.setdefault(child.id, path) == path:
                inner = _of_flow(child.flow, child, drawn, f"{path}/")
            boxes.append(Box(name, tuple(_outline(flow.steps[name], inner, drawn)), inner))
        stages.append(tuple(boxes))
    count = len(flow.steps)
    subtitle = Label(f"{count} step" if count == 1 else f"{count} steps")
    return Diagram(flow.workflow_id, subtitle, tuple(stages))


def _outline(spec: StepSpec, inner: Diagram | None, drawn: Mapping[str, str]) -> Iterator[Label]:
    for guard in spec.guards:
        yield Label(f"when {guard}")
    if spec.child is not None and inner is None:
        yield Label(f"runs {spec.child}: see {drawn[spec.child]}")
    if spec.options.async_ and spec.child is None:
        yield Label("async")
    if spec.has_compensation and spec.child is None:
        yield Label("has an undo")
