"""The samples as `wfe` finds them, and one way to run them: in memory, recorded as by `wfe run`."""

from __future__ import annotations

import asyncio
import importlib
from functools import cache
from pathlib import Path
from typing import Any

from wfe import Engine
from wfe.authoring.workflows import Workflow
from wfe.discover import Catalog, load
from wfe.model import CommandResult, Event, EventKind, Recording

ROOT = Path(__file__).parents[2]
FOLDERS = ("sample_workflows", "workflows")

#: The transaction id of every run below.
TX = "t1"
#: Stands for "nobody answers".
SILENCE: Any = object()


@cache
def catalog() -> Catalog:
    found = load([str(ROOT / folder) for folder in FOLDERS], root=ROOT)
    assert found.failures == []
    return found


def sample(workflow_id: str) -> Workflow[Any, Any]:
    return catalog().find(workflow_id)


def module(name: str) -> Any:
    """A module of the samples, such as `sample_workflows.order`."""
    catalog()
    return importlib.import_module(name)


def run(
    workflow: Workflow[Any, Any],
    input: Any,
    *,
    answer: Any = SILENCE,
    cancel: bool = False,
    told: list[Event] | None = None,
    run_id: str | None = None,
) -> CommandResult:
    """Run it to its end, or to its question where nobody answers. `cancel`: cancel it then."""

    async def main() -> CommandResult:
        registry = catalog().registry
        async with Engine(registry=registry, recording=Recording.EVERY_STEP) as engine:
            result = await engine.run(
                workflow,
                input,
                transaction_id=TX,
                run_id=run_id,
                until="waiting",
                throw_on_error=False,
                events=told.append if told is not None else None,
            )
            if answer is not SILENCE:
                key = f"{workflow.id}:{TX}:approve-anomalies:invoke"
                result = await engine.set_step_success(
                    key, answer, until="finished", throw_on_error=False
                )
            if cancel:
                result = await engine.cancel(workflow, TX, wait=True, throw_on_error=False)
            return result

    return asyncio.run(main())


def state(result: CommandResult) -> str:
    assert result.execution is not None
    return str(result.execution.head.state)


def undone(told: list[Event]) -> list[str | None]:
    """The steps whose undo was called, in the order in which the undos ended."""
    return [event.step for event in told if event.kind is EventKind.COMPENSATE_STEP_SUCCESS]
