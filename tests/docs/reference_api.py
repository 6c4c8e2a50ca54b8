"""docs/reference/api.md, made of the public names and their docstrings."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from datetime import datetime
from types import MappingProxyType
from typing import Any

import wfe
import wfe.errors
import wfe.testing
from tests.docs.markdown import described, fence, page, prose, table
from wfe.authoring.options import WorkflowConfig
from wfe.authoring.responses import NOT_GIVEN
from wfe.model import StepOptions, WorkflowOptions

INTRO = """\
Made from the docstrings by `make docs`. Everything public is a name of `wfe` or of `wfe.testing`; the store for
a file is `wfe.store.sqlite.SQLiteStore`. How it is used is told in [Write workflows](../write-workflows.md),
[Embed the engine](../embed-the-engine.md) and [Test your workflows](../test-your-workflows.md)."""

ERRORS = """\
Each is a `WfeError`, with a `message`, a `hint`, a `code` and an `exit_code`: what `-o json` prints, and what a
command ends with that it ends."""

#: The beginning of a module's name → the heading under which its names stand; the first that fits.
HEADINGS = {
    "wfe.authoring": "Writing workflows",
    "wfe.errors": "Errors",
    "wfe.model": "Values",
    "": "Running them",
}


def write() -> str:
    """The page."""
    public = {heading: sorted(_names(heading), key=str.lower) for heading in HEADINGS.values()}
    return page(
        [
            "# Reference: Python",
            INTRO,
            "## Writing workflows",
            *_entries(wfe, public["Writing workflows"]),
            "## Options of a step",
            "Of `@step(...)` and of `.config(...)` for one use, which takes `name` as well. Seconds everywhere.",
            _fields(StepOptions),
            "## Options of a workflow",
            f'Of `@workflow("name", ...)`, beside {_others()}.',
            _fields(WorkflowOptions),
            "## Running them",
            *_entries(wfe, public["Running them"]),
            *_entry("wfe.store.sqlite.SQLiteStore", _store()),
            "## Values",
            *_entries(wfe, public["Values"]),
            "## Errors",
            ERRORS,
            table(["error", "kind of", "code", "exit code", "meaning"], _errors()),
            "## Testing",
            prose(wfe.testing.__doc__),
            *_entries(wfe.testing, list(wfe.testing.__all__)),
        ]
    )


def _names(heading: str) -> Iterator[str]:
    for name in wfe.__all__:
        home = wfe._HOME_OF[name]
        if next(told for start, told in HEADINGS.items() if home.startswith(start)) == heading:
            yield name


def _others() -> str:
    """The options of a workflow that are no plain values."""
    others = [
        name
        for name in WorkflowConfig.__annotations__
        if name not in WorkflowOptions.__struct_fields__
    ]
    return " and ".join(f"`{name}`" for name in others)


def _store() -> Any:
    from wfe.store.sqlite import SQLiteStore

    return SQLiteStore


def _entries(module: Any, names: list[str]) -> Iterator[str]:
    for name in names:
        yield from _entry(name, getattr(module, name))


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}"
    if isinstance(value, enum.EnumMeta):
        yield prose(value.__doc__)
        yield ", ".join(f"`{name}.{member}`" for member in value.__members__)
    elif inspect.isclass(value):
        yield from _class(name.rpartition(".")[2], value)
    elif callable(value):
        yield fence(_signature(name, value))
        yield prose(value.__doc__)
    else:
        yield f"`{value!r}`"


def _class(name: str, value: type[Any]) -> Iterator[str]:
    is_struct = hasattr(value, "__struct_fields__")
    if not is_struct and "__init__" in vars(value):
        yield fence(_signature(name, value))
    yield prose(value.__doc__)
    yield _fields(value) if is_struct else _attributes(value)
    methods = ([_shown(name, member), _first(member)] for name, member in _members(value))
    yield table(["member", "what it gives"], methods)


def _members(value: type[Any]) -> Iterator[tuple[str, Any]]:
    """Those that say what they are for; others are what the store's contract asks of it."""
    for name, member in vars(value).items():
        is_own = isinstance(member, property | staticmethod | classmethod) or inspect.isfunction(
            member
        )
        if is_own and not name.startswith("_") and member.__doc__:
            yield name, member


def _shown(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"`{name}`"
    function = getattr(member, "__func__", member)
    word = "await " if inspect.iscoroutinefunction(function) else ""
    return f"`{word}{_signature(name, function)}`"


def _first(member: Any) -> str:
    """All of the docstring, on one line."""
    return prose(inspect.getdoc(member)).replace("\n\n", " ")


def _signature(name: str, function: Any) -> str:
    found = inspect.signature(function)
    parameters = [
        p.replace(
            annotation=p.empty, default=_Default(p.default) if p.default is not p.empty else p.empty
        )
        for p in found.parameters.values()
        if p.name not in ("self", "cls")
    ]
    return f"{name}{found.replace(parameters=parameters, return_annotation=found.empty)}"


class _Default:
    """A default as a reader would write it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        match self._value:
            case enum.Enum() if self._value is not NOT_GIVEN:
                return str(self._value.__class__.__name__) + "." + self._value.name
            case str() | int() | float() | None | tuple():
                return repr(self._value)
            case MappingProxyType():
                return "{}"
            case type():
                return self._value.__name__
            case datetime():
                return "EPOCH"
            case _:  # left out; or a function that does nothing
                return "..."


def _fields(value: type[Any]) -> str:
    """Those of a struct, as they are declared in its class."""
    rows: dict[str, list[str]] = {}
    for base in value.__mro__:
        if hasattr(base, "__struct_fields__") and base.__module__.startswith("wfe."):
            for name, declared, told in described(inspect.getsource(base)):
                rows.setdefault(name, [f"`{name}`", f"`{declared}`", told])
    return table(
        ["field", "type and default", "meaning"],
        [rows[name] for name in value.__struct_fields__],
    )


def _attributes(value: type[Any]) -> str:
    """Those that a constructor sets."""
    if "__init__" not in vars(value):
        return ""
    source = inspect.getsource(value.__init__)
    rows = {name: why for name, _, why in described(source, prefix="self.")}
    return table(["attribute", "what it is"], ([f"`{name}`", why] for name, why in rows.items()))


def _errors() -> Iterator[list[str]]:
    for name, error in vars(wfe.errors).items():
        if inspect.isclass(error) and issubclass(error, wfe.WfeError):
            known = name if name in wfe.__all__ else f"wfe.errors.{name}"
            told = re.split(r"\n\n", inspect.cleandoc(error.__doc__ or ""))[0]
            base = error.__bases__[0].__name__
            yield [f"`{known}`", f"`{base}`", f"`{error.code}`", str(error.exit_code), told]
