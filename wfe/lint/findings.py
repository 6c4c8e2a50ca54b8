"""What a lint is made of: findings, and the rules that give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from wfe.authoring.nodes import Node
    from wfe.authoring.places import Place
    from wfe.authoring.workflows import Workflow


class Level(StrEnum):
    """How bad it is: an error is what cannot work, a warning what may be meant."""

    ERROR = "error"
    WARNING = "warning"


class Finding(NamedTuple):
    """Something that a rule has found, and where."""

    code: str
    level: Level
    message: str
    #: What to write instead; empty where the message says it.
    hint: str = ""
    file: str | None = None
    line: int | None = None
    workflow: str | None = None
    step: str | None = None

    @property
    def sentence(self) -> str:
        """The message and what to write instead."""
        return f"{self.message} {self.hint}".rstrip()


class Said(NamedTuple):
    """What a rule says of a workflow; `step` and `place` where it is about one of its steps."""

    message: str
    hint: str = ""
    place: Place | None = None
    step: str | None = None


class Rule(NamedTuple):
    """One thing that is looked at. `look` is given a workflow and the moment of the lint."""

    code: str
    level: Level
    #: What it finds, for people, and why that matters.
    claim: str
    look: Callable[[Workflow[Any, Any], datetime], Iterator[Said]]
    #: Of one line of code it is said once, however many workflows use what stands there.
    once: bool = False


def seconds(number: float) -> str:
    """A duration as it would be written in an option."""
    return f"{number:g} second{'s' * (number != 1)}"


def of_step(node: Node, message: str, hint: str = "", *, place: Place | None = None) -> Said:
    """About a step, at the line that uses it unless `place` says another one."""
    return Said(message, hint, place or node.place, node.spec.name)
