"""Facts about a scenario's workflows, read off their definition: which steps, in which stages.

A stage is what starts together: a step alone, or the members of a parallel group. Transforms are in
no stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One step of a workflow, as the scenario spells it out."""

    name: str
    stage: int
    node: Node
    #: Members of one parallel group, this step among them.
    siblings: int
    #: The conditions around it.
    guards: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def child(self) -> str | None:
        """The workflow that this step runs."""
        return self.node.get("workflow")


@dataclass(frozen=True)
class Shape:
    """A workflow's steps by name, in order."""

    workflow: str
    options: Mapping[str, Any]
    steps: Mapping[str, Step]

    def stage(self, step: str | None) -> int:
        """The stage of a step; -1 where the workflow has none of this name."""
        found = self.steps.get(step or "")
        return -1 if found is None else found.stage

    def after(self, step: str) -> list[Step]:
        """The steps of later stages."""
        return [other for other in self.steps.values() if other.stage > self.stage(step)]


def name_of(node: Node) -> str:
    """The name that a step node ends up with."""
    renamed = {**node.get("config", {}), **node.get("reconfig", {})}.get("name")
    if "workflow" in node:
        return str(renamed or f"{node['workflow']}-as-step")
    return str(renamed or node.get("step") or node["hook"])


def is_step_reference(value: Any) -> bool:
    """True where what a `when` returns is exactly a step of its block."""
    return (
        isinstance(value, dict)
        and set(value) == {"$ref"}
        and value["$ref"].startswith("steps.")
        and value["$ref"].count(".") == 1
    )


def _members(node: Node, guards: int) -> Iterator[list[tuple[str, Node, int]]]:
    """The stages that a node adds, each a list of (name, node, number of conditions around it)."""
    if "parallel" in node:
        yield [
            member
            for each in node["parallel"]
            for stage in _members(each, guards)
            for member in stage
        ]
    elif "when" in node:
        for each in node["then"]:
            yield from _members(each, guards + 1)
        if "returns" in node and not is_step_reference(node["returns"]):
            yield [(node["when"]["name"], node, guards + 1)]
    elif "hook" in node:
        yield [(node["hook"], node, guards)]
        if node.get("get_result"):
            yield [(f"get-{node['hook']}-result", {}, guards)]
    elif "step" in node or "workflow" in node:
        yield [(name_of(node), node, guards)]


def shape_of(workflow: Mapping[str, Any]) -> Shape:
    """The shape of one workflow of a scenario."""
    steps: dict[str, Step] = {}
    stages = [stage for node in workflow["body"] for stage in _members(node, 0)]
    for number, stage in enumerate(stages):
        for name, node, guards in stage:
            options = {**node.get("config", {}), **node.get("reconfig", {})}
            steps[name] = Step(name, number, node, len(stage), guards, options)
    return Shape(workflow["id"], workflow.get("options", {}), steps)


def shapes_of(scenario: Mapping[str, Any]) -> dict[str, Shape]:
    """The shapes of a scenario's workflows by id; the first where one is defined twice."""
    shapes: dict[str, Shape] = {}
    for workflow in scenario["workflows"]:
        shapes.setdefault(workflow["id"], shape_of(workflow))
    return shapes
