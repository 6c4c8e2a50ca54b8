"""`sleep`: a durable timer as a step."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wfe.authoring.composition import Entry, the_body
from wfe.authoring.nodes import Handler, Work
from wfe.authoring.options import checked_name
from wfe.authoring.steps import bind
from wfe.durations import CENTURY
from wfe.model import StepKind, StepOptions

Seconds = Annotated[float, msgspec.Meta(ge=0, le=CENTURY)]


async def _rest(seconds: Seconds) -> None:
    """Never called: whoever runs the step sets a timer. It lends the step its parameter."""


_TIMER = Handler(_rest)


def sleep(seconds: float, *, name: str = "sleep") -> None:
    """Let the execution rest for so many seconds, or for what a reference will say.

    The wake-up time is kept with the execution: meanwhile it costs nothing, and it survives a
    restart. Gives None, like any step that returns nothing.

    Raises:
        DefinitionError: a literal that is no number of seconds, or no body.
        InvalidName, DuplicateStep: the name is not free; two sleeps in a body need names.
    """
    body = the_body("sleep()")
    checked_name(name, what="step")
    inputs = bind(_TIMER, body, (seconds,), {}, what=f"step {name!r}")
    options = StepOptions(async_=True)
    body.add(Entry(name, StepKind.SLEEP, Work(_TIMER, inputs), options))
