"""Every example that `--help` shows is one that works."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tests.project import Project
from wfe.cli.app import whole

ORDER = """
from wfe import WorkflowResponse, step, workflow

@step
def take(order: dict) -> dict:
    return order

@workflow("order")
def order(order: dict):
    return WorkflowResponse(take(order))
"""

RELEASE = """
from wfe import WorkflowResponse, step, workflow

@step(async_=True)
def approve(version: str) -> None:
    return None

@workflow("release")
def release(version: str):
    return WorkflowResponse(approve(version))
"""


def commands(command: object, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command there is."""
    for name, inner in getattr(command, "commands", {}).items():
        yield (*path, name)
        yield from commands(inner, *path, name)


def test_every_example_runs(project: Project) -> None:
    project.write("workflows/order.py", ORDER)
    project.write("workflows/release.py", RELEASE)
    project.write("order.json", '{"gift": true}')
    for tx in ("2026.11", "2026.12"):
        project.wfe("run", "release", "--tx", tx, "-i", '"1"', "--until", "waiting")
    examples = [
        line.strip()
        for words in commands(whole())
        for line in project.wfe(*words, "--help").lines
        if line.startswith("  wfe ")
    ]
    assert len(examples) >= 9
    for example in examples:
        ended = project.wfe(*shlex.split(example)[1:])
        expected = 20 if "--until waiting" in example else 0
        assert ended.code == expected, f"{example}\n{ended.err}"
