"""Where in the user's own code something happens, for errors that are found while a module loads.

A place is looked up only to report or to remember a definition, never while an execution runs.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from wfe.errors import DefinitionError

E = TypeVar("E", bound=DefinitionError)

_OURS = str(Path(__file__).parents[1]) + os.sep
_STDLIB = str(Path(os.__file__).parent) + os.sep
#: Of `site-packages` and `dist-packages`, which may lie below the standard library's folder.
_PACKAGES = f"-packages{os.sep}"


class Place(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Place:
    """Where the user's code called us: the innermost line that is neither ours nor the standard
    library's, nor, where it was called by the user's code in turn, an installed package's."""
    frame: FrameType | None = sys._getframe(1)
    found: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith((_OURS, "<frozen ")):
            if found is not None:
                break  # who called the user's code was we, or the import of a module
        elif _PACKAGES in file:
            found = frame
        elif not file.startswith(_STDLIB):
            found = frame
            break
        frame = frame.f_back
    found = found or sys._getframe(1)
    return Place(found.f_code.co_filename, found.f_lineno)


def place_of(function: Callable[..., Any]) -> Place:
    """Where `function` is defined; the caller's place for one without Python code."""
    return place_in_code(function) or caller()


def place_in_code(function: Callable[..., Any]) -> Place | None:
    """Where `function` is defined; None for one without Python code, such as a builtin."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Place(code.co_filename, code.co_firstlineno)


def names_around(function: Callable[..., Any]) -> dict[str, Any]:
    """The local names of the function in which `function` was just defined; empty where that is over."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or "<locals>" not in code.co_qualname:
        return {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        constants = frame.f_code.co_consts
        # Equal ones are found fast, and are hardly ever another one's.
        if code in constants and any(constant is code for constant in constants):
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}


def refuse(kind: type[E], message: str, *, hint: str = "", place: Place | None = None) -> E:
    """An error of that kind that tells its place: the given one, or where the user called us."""
    at = place or caller()
    return kind(message, hint=hint, file=at.file, line=at.line)
