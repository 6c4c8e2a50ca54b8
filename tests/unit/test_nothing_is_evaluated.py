"""Nothing that a person typed or that is stored is ever run as code: no text becomes a program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("wfe", "workflows", "sample_workflows", "benchmarks")

#: Built-in functions that take a text for a program.
FUNCTIONS = {"eval", "exec", "compile", "__import__"}

#: Modules that make objects, and with them code, of bytes; and those that hand a text to a shell.
MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "jsonpickle",
    "yaml",
    "code",
    "pty",
}
METHODS = {
    ("os", "system"),
    ("os", "popen"),
    ("subprocess", "getoutput"),
    ("subprocess", "getstatusoutput"),
    ("asyncio", "create_subprocess_shell"),
}


def faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each place that could run what it is given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = {alias.name for alias in node.names}
            tops = {name.partition(".")[0] for name in named}
            if isinstance(node, ast.ImportFrom):
                tops = {(node.module or "").partition(".")[0]}
                for module, method in METHODS:
                    if node.module == module and method in named:
                        yield node.lineno, f"{module}.{method}"
            for name in tops & MODULES:
                yield node.lineno, name
        elif isinstance(node, ast.Call):
            yield from _faults_of_call(node)


def _faults_of_call(call: ast.Call) -> Iterator[tuple[int, str]]:
    function = call.func
    if isinstance(function, ast.Name) and function.id in FUNCTIONS:
        yield call.lineno, function.id
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if (owner, function.attr) in METHODS or (owner, function.attr) == ("builtins", "eval"):
            yield call.lineno, f"{owner}.{function.attr}"
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg == "shell" and not (
            isinstance(value, ast.Constant) and value.value is False
        ):
            yield call.lineno, "shell="


def sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_no_module_runs_what_it_is_given() -> None:
    assert len(sources()) > 50
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sources()
        for line, what in faults(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "eval(x)",
        "exec('x = 1')",
        "compile(x, y, 'exec')",
        "__import__(x)",
        "import pickle",
        "from pickle import loads",
        "import os, marshal",
        "import yaml",
        "os.system(x)",
        "from os import popen",
        "subprocess.run(x, shell=True)",
        "subprocess.run(x, shell=y)",
        "asyncio.create_subprocess_shell(x)",
    ],
)
def test_such_a_place_would_be_found(text: str) -> None:
    assert len(list(faults(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text", ["re.compile(x)", "model.eval()", "run(x, shell=False)", "import code_"]
)
def test_what_only_looks_alike_is_not(text: str) -> None:
    assert list(faults(ast.parse(text))) == []
