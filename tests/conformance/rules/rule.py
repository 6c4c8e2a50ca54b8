"""What a rule is, and how one is registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..case import Case

Rewrite = Callable[[Case], None]


@dataclass(frozen=True)
class Rule:
    """One deliberate difference."""

    name: str
    summary: str
    rewrite: Rewrite
    #: The module that holds it, which says when it runs.
    module: str


REGISTERED: list[Rule] = []


def rule(*decisions: int) -> Callable[[Rewrite], Rewrite]:
    """Register a rule for these numbers of the list of decisions."""

    def register(rewrite: Rewrite) -> Rewrite:
        name = f"{'/'.join(map(str, decisions))} {rewrite.__name__}"
        summary = " ".join((rewrite.__doc__ or "").split())
        REGISTERED.append(Rule(name, summary, rewrite, rewrite.__module__))
        return rewrite

    return register
