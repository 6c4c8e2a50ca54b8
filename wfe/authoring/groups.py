"""`parallel`: steps that run together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from wfe.authoring.composition import the_body
from wfe.authoring.places import refuse
from wfe.authoring.references import OutputSource, Reference
from wfe.errors import DefinitionError, DuplicateStep

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
T = TypeVar("T")


@overload
def parallel(members: list[T], /) -> list[T]: ...  # type: ignore[overload-overlap]  # no step is a list
@overload
def parallel(a: A, /) -> tuple[A]: ...
@overload
def parallel(a: A, b: B, /) -> tuple[A, B]: ...
@overload
def parallel(a: A, b: B, c: C, /) -> tuple[A, B, C]: ...
@overload
def parallel(a: A, b: B, c: C, d: D, /) -> tuple[A, B, C, D]: ...
@overload
def parallel(a: A, b: B, c: C, d: D, e: E, /) -> tuple[A, B, C, D, E]: ...
@overload
def parallel(a: A, b: B, c: C, d: D, e: E, f: F, /) -> tuple[A, B, C, D, E, F]: ...
@overload
def parallel(a: A, b: B, c: C, d: D, e: E, f: F, g: G, /) -> tuple[A, B, C, D, E, F, G]: ...
@overload
def parallel(
    a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, /
) -> tuple[A, B, C, D, E, F, G, H]: ...
@overload
def parallel(
    a: T, b: T, c: T, d: T, e: T, f: T, g: T, h: T, i: T, /, *more: T
) -> tuple[T, ...]: ...
def parallel(*members: Any) -> Any:
    """Run steps together: `stock, receipt = parallel(reserve(order), charge(order))`.

    Takes the steps one by one, or a list of them; gives their references in the same order and the
    same form. A member may be `when(...).then(lambda: one_step())`.

    Raises:
        DefinitionError: a member is no step, or was called before.
    """
    body = the_body("parallel()")
    if len(members) == 1 and type(members[0]) is list:
        body.merge(_names(members[0]))
        return list(members[0])
    body.merge(_names(members))
    return members


def _names(members: Iterable[Any]) -> list[str]:
    names: list[str] = []
    for member in members:
        source = member._wfe_source if type(member) is Reference else None
        if not isinstance(source, OutputSource):
            raise refuse(
                DefinitionError,
                f"parallel() takes steps, not {member!r}.",
                hint="Write parallel(a(x), b(y)), or when(...).then(lambda: step(...)) as a member.",
            )
        if source.step in names:
            raise refuse(DuplicateStep, f"{source.step!r} is given to parallel() twice.")
        names.append(source.step)
    return names
