"""What can be seen of `on_finish`: whether whoever is to be told of an end is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wfe.authoring.workflows import Workflow
from wfe.lint.findings import Finding, Level
from wfe.near import near

CODE = "on-finish"


def of_ends(workflow: Workflow[Any, Any], known: Mapping[str, Workflow[Any, Any]]) -> list[Finding]:
    """A workflow that is told of the ends of this one, and is not among the `known`; or that is told
    of by this one in its turn."""
    target = _told(workflow)
    if target is None:
        return []
    if target not in known:
        message = f"on_finish of {workflow.id!r} names {target!r}, which no module here defines."
        return [_finding(workflow, message, near(target, known))]
    line = [workflow.id]
    follower: str | None = target
    while follower is not None and follower not in line:
        line.append(follower)
        follower = _told(known[follower]) if follower in known else None
    if follower != workflow.id:
        return []
    message = f"on_finish of {workflow.id!r} leads back to it: {' → '.join([*line, follower])}."
    hint = "Of the end of what tells of another nobody is told: take one of them out."
    return [_finding(workflow, message, hint)]


def _told(workflow: Workflow[Any, Any]) -> str | None:
    """The workflow that is told of the ends of this one."""
    return workflow.on_finish.workflow_id if workflow.on_finish else None


def _finding(workflow: Workflow[Any, Any], message: str, hint: str) -> Finding:
    return Finding(CODE, Level.ERROR, message, hint, *workflow.source, workflow=workflow.id)
