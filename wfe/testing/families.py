"""Families: a workflow and those that run as steps of it, as an engine of a test knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wfe.authoring import registry as registries
from wfe.authoring.registry import Registry
from wfe.authoring.workflows import Workflow


def family(workflow: Workflow[Any, Any]) -> Iterator[Workflow[Any, Any]]:
    """A workflow and all that run as steps of it, once each."""
    found: dict[str, Workflow[Any, Any]] = {}
    waiting = [workflow]
    while waiting:
        each = waiting.pop()
        if each.id not in found:
            found[each.id] = each
            waiting += [node.child for node in each.nodes.values() if node.child is not None]
    return iter(found.values())


def registry_of(workflow: Workflow[Any, Any]) -> Registry:
    """A registry of this family and nothing else, with the resources of the current one."""
    own = Registry()
    for each in family(workflow):
        own.add(each)
    known = registries.current()
    for name in known.resource_names():
        own.add_resource(known.resource(name))
    return own
