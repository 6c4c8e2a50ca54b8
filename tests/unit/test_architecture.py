"""The rules of the house: who may import whom, and where the outside world may be touched."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "wfe"

#: Each room, and the rooms that it may know. What is not listed is unknown to it.
MAY_IMPORT = {
    "errors": set(),
    "clock": set(),
    "model": {"errors"},
    "plain": {"errors"},
    "durations": set(),
    "near": set(),
    "endings": {"model"},
    "engine": {"errors", "model"},
    "authoring": {"errors", "model", "plain", "near", "durations", "endings"},
    "store": {"errors", "model", "clock", "plain", "durations"},
    "runtime": {"errors", "clock", "model", "engine", "authoring", "store", "endings"},
    # It starts executions, through the engine's public face, and writes into the ledger. Nothing below
    # knows of it.
    "scheduling": {
        "errors",
        "clock",
        "durations",
        "model",
        "near",
        "authoring",
        "store",
        "runtime",
    },
    # Told from outside what happens, it reads the store, and nothing knows of it but who asks for it.
    "telemetry": {"errors", "clock", "model", "store", "runtime"},
    "importing": {"errors"},
    "glance": set(),
    "discover": {"errors", "model", "authoring", "importing", "config", "glance"},
    "reloading": {"errors", "discover", "importing"},
    "config": {"errors", "model", "durations", "near", "endings"},
    "doctor": {
        "errors",
        "endings",
        "model",
        "engine",
        "store",
        "scheduling",
        "discover",
        "config",
    },
    "lint": {"errors", "model", "near", "engine", "authoring", "scheduling", "discover"},
    "testing": {"errors", "clock", "model", "near", "engine", "authoring", "store", "runtime"},
    "cli": {
        "errors",
        "clock",
        "model",
        "endings",
        "authoring",
        "store",
        "runtime",
        "durations",
        "near",
        "scheduling",
        "discover",
        "reloading",
        "telemetry",
        "glance",
        "config",
        "lint",
        "doctor",
    },
}

#: Outside packages, and the only places that may know them.
ONLY_IN = {
    "peewee": ("store/",),
    "sqlite3": ("store/",),
    "typer": ("cli/",),
    "rich": ("cli/",),
    "croniter": ("scheduling/cron.py",),
    "watchfiles": ("cli/serving/reloads.py",),
    "prometheus_client": ("telemetry/metrics.py",),
    "opentelemetry": ("telemetry/traces.py", "telemetry/export.py"),
}

#: The machine is pure.
NOT_IN_ENGINE = {"asyncio", "time", "random", "peewee", "logging", "os", "threading", "sqlite3"}

#: The two ways back: the convenience `workflow.run()` reaches for an engine when it is called, and an
#: unusual schedule is read when its workflow is composed.
LAZY_EXCEPTIONS = {
    ("authoring/workflows.py", "runtime"),
    ("authoring/schedules.py", "scheduling"),
}


PATHS = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@functools.cache
def parsed(path: str) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text())


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in PATHS:
        yield path, parsed(path)


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


@pytest.mark.parametrize("path", PATHS)
def test_imports_point_one_way(path: str) -> None:
    room = room_of(path)
    if room == "__init__":
        return  # the public names: looked up when they are asked for
    assert room in MAY_IMPORT, f"{room} is a new room: draw its arrows here"
    for name in imports(parsed(path)):
        top, _, rest = name.partition(".")
        if top == "wfe" and rest:
            other = rest.split(".")[0]
            allowed = other == room or other in MAY_IMPORT[room] or other.startswith("__")
            assert allowed or (path, other) in LAZY_EXCEPTIONS, f"{path} imports {name}"
        if top in ONLY_IN:
            assert path.startswith(ONLY_IN[top]), f"{path} imports {name}"
        if room == "engine":
            assert top not in NOT_IN_ENGINE, f"{path} imports {name}"


def test_every_room_is_in_the_plan_of_the_house() -> None:
    plan = (ROOT / "ARCHITECTURE.md").read_text()
    for room in MAY_IMPORT:
        assert f"`wfe/{room}/`" in plan or f"`wfe/{room}.py`" in plan, room


def test_every_module_opens_with_its_charter() -> None:
    for path, tree in modules():
        if tree.body:
            assert ast.get_docstring(tree), f"{path} has no docstring"


def test_the_clock_is_read_in_one_place() -> None:
    for path, tree in modules():
        if path == "clock.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today"):
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                assert name not in ("datetime", "date"), f"{path}:{node.lineno} reads the clock"
