"""Glancing at modules: the names of the workflows in them, as far as their text tells.

Nothing is imported and nothing runs, so that it may be done while somebody types. A name that is
computed, or a module that is no Python, is passed over: whoever has to be sure loads the modules
(`wfe.discover`).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def python_files(folder: Path) -> Iterator[Path]:
    """The modules of a folder, in order: recursively, but for names that begin with `_` or `test_`."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", "test_", ".")))
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith(("_", "test_", ".")):
                yield Path(parent, name)


def names(sources: Iterable[str]) -> list[str]:
    """The names of the workflows in files and folders, sorted. Dotted modules are passed over: to find
    one is to import what is around it."""
    found: set[str] = set()
    for source in map(Path, sources):
        files = python_files(source) if source.is_dir() else [source]
        for file in files:
            found.update(_names_in(file))
    return sorted(found)


def _names_in(file: Path) -> Iterator[str]:
    try:
        text = file.read_bytes()
        if b"workflow" not in text:
            return
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                yield from _name(decorator, node.name)


def _name(decorator: ast.expr, function: str) -> Iterator[str]:
    """What `@workflow`, `@workflow("name", ...)` and `@wfe.workflow(...)` call a function."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
    if name != "workflow":
        return
    if not isinstance(decorator, ast.Call):
        yield function
        return
    first = next(iter(decorator.args), None)
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value
