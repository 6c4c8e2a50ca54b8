"""`parallel`: steps that run together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from wfe.authoring.composition import Composition, Entry, the_body
from wfe.authoring.places import refuse
from wfe.authoring.references import OutputSource, Reference
from wfe.errors import DefinitionError, DuplicateStep
from wfe.model import StepKind

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
        body.merge(_names(members[0], body))
        return list(members[0])
    body.merge(_names(members, body))
    return members


def _names(members: Sequence[Any], body: Composition) -> list[str]:
    names: list[str] = []
    for member in members:
        source = member._wfe_source if type(member) is Reference else None
        if not isinstance(source, OutputSource):
            raise refuse(
                DefinitionError,
                f"parallel() takes steps, not {member!r}.",
                hint=_instead(member, body.latest(len(members))),
            )
        if source.step in names:
            raise refuse(DuplicateStep, f"{source.step!r} is given to parallel() twice.")
        names.append(source.step)
    return names


def _instead(member: Any, latest: Sequence[Entry]) -> str:
    """What to write where `member` is no step; `latest` are the steps that its siblings may be."""
    if member is None and any(entry.kind is StepKind.SLEEP for entry in latest):
        return (
            "A sleep rests before or after parallel(), on a line of its own. To rest beside other "
            "steps, put it into a workflow and write that one's .as_step() as a member."
        )
    if member is None:
        return "A function that gives None is no step: write @step above it, and call it here."
    return "Write parallel(a(x), b(y)), or when(...).then(lambda: step(...)) as a member."
