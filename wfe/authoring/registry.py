"""Where workflows and resources are found by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from wfe.authoring.places import Place, refuse
from wfe.errors import DefinitionError, DuplicateWorkflow, NotFound, WorkflowNotFound
from wfe.near import near, near_names

if TYPE_CHECKING:
    from wfe.authoring.resources import Resource
    from wfe.authoring.workflows import Workflow


class Registry:
    """Workflows by id, and resources by name.

    While modules load, the registry that is current (`scope`, else `default`) takes what they
    define.
    """

    def __init__(self) -> None:
        self._workflows: dict[str, Workflow[Any, Any]] = {}
        self._resources: dict[str, Resource] = {}

    def add(self, workflow: Workflow[Any, Any]) -> None:
        """Take a workflow; one that was loaded from the same place before is replaced.

        Raises:
            DuplicateWorkflow: its id belongs to another one; the message names both places.
        """
        known = self._workflows.get(workflow.id)
        if known is not None and not _is_same(known, workflow):
            raise refuse(
                DuplicateWorkflow,
                f"Two workflows are called {workflow.id!r}: {Place(*known.source)} and "
                f"{Place(*workflow.source)}.",
                hint="Rename one of them.",
                place=Place(*workflow.source),
            )
        self._workflows[workflow.id] = workflow

    def get(self, workflow_id: str) -> Workflow[Any, Any]:
        """
        Raises:
            WorkflowNotFound: there is none of this id; near ids are named.
        """
        found = self._workflows.get(workflow_id)
        if found is None:
            raise WorkflowNotFound(workflow_id, near=near_names(workflow_id, self._workflows))
        return found

    def ids(self) -> Sequence[str]:
        """All ids, sorted."""
        return sorted(self._workflows)

    def remove(self, workflow_id: str) -> None:
        """
        Raises:
            WorkflowNotFound: there is none of this id.
        """
        self.get(workflow_id)
        del self._workflows[workflow_id]

    def add_resource(self, resource: Resource) -> None:
        """Take a resource; one that was loaded from the same place before is replaced.

        Raises:
            DefinitionError: its name belongs to another one; the message names both places.
        """
        known = self._resources.get(resource.name)
        if known is not None and _real(known.place) != _real(resource.place):
            raise refuse(
                DefinitionError,
                f"Two resources are called {resource.name!r}: {known.place} and {resource.place}.",
                hint="Rename one of them.",
                place=resource.place,
            )
        self._resources[resource.name] = resource

    def resource(self, name: str) -> Resource:
        """
        Raises:
            NotFound: there is none of this name; near names are told.
        """
        found = self._resources.get(name)
        if found is None:
            raise NotFound(
                f"There is no resource {name!r}. {near(name, self._resources)}".rstrip(),
                hint="Give it to the engine (resources=...) or write a @resource factory.",
            )
        return found

    @property
    def resource_count(self) -> int:
        """How many resources there are."""
        return len(self._resources)

    def resource_names(self) -> Sequence[str]:
        """All names of resources, sorted."""
        return sorted(self._resources)

    def become(self, other: Registry) -> None:
        """Hold what another one holds, and nothing else."""
        self._workflows = dict(other._workflows)
        self._resources = dict(other._resources)

    @contextmanager
    def scope(self) -> Iterator[Registry]:
        """Make this registry the current one."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)


#: What modules register in, where nobody has made another registry current.
default = Registry()

_current: ContextVar[Registry] = ContextVar("wfe_registry", default=default)


def current() -> Registry:
    """The registry that takes what is being defined."""
    return _current.get()


def _is_same(one: Workflow[Any, Any], other: Workflow[Any, Any]) -> bool:
    """Loaded twice from one place and unchanged, or one and the same object."""
    return one is other or (
        one.flow.hash == other.flow.hash
        and _real(Place(*one.source)) == _real(Place(*other.source))
    )


def _real(place: Place) -> Place:
    return Place(os.path.realpath(place.file), place.line)
