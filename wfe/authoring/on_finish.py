"""`OnFinish`: who is told when an execution has ended, and of which ends.

It is part of a workflow's definition and of the settings, and never stored: a database says that
somebody is to be told, not what is to be run for that.
"""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr, replace

from wfe import endings
from wfe.authoring.places import refuse
from wfe.endings import WORKFLOW
from wfe.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfe.authoring.workflows import Workflow

#: What is told, and for how many seconds a command may run, where nobody says otherwise.
DEFAULT_STATES = ("reverted", "failed", "timed_out")
DEFAULT_TIMEOUT = 60.0


class OnFinish(msgspec.Struct, frozen=True):
    """Tell somebody that an execution has ended: `OnFinish("mail-the-team --urgent")`.

    A command gets one JSON document on its stdin, and no shell: a text is split into words as a shell
    would, nothing in it is replaced, and it has to be a program and its arguments. A list is those
    words. `OnFinish(["sh", "-c", "jq .key | mail ops"])` is how to have a shell. A workflow gets the
    document as its input; in a text it is named `workflow:ID`.

    What is None comes from the engine (`Engine(on_finish=...)`, the settings), or has a default.

    Raises:
        InvalidOption: a value of the wrong type or out of range, with file and line.
    """

    #: The words of a command, or `workflow:ID`.
    run: str | Sequence[str] | Workflow[Any, Any] | None = None
    #: Of which ends: any of `failed`, `reverted`, `timed_out`, `cancelled` and `done`, or `all`.
    states: str | Sequence[str] | None = None
    #: Seconds that a command may take; then it is killed, and has failed.
    timeout: float | None = None
    #: The folder that a command runs in. The default is the current one; for commands of `wfe`, the
    #: root of the project.
    folder: str | None = None

    def __post_init__(self) -> None:
        try:
            force_setattr(self, "run", _target(self.run))
            if self.states is not None:
                force_setattr(self, "states", endings.chosen(self.states))
        except ValueError as error:
            raise refuse(InvalidOption, f"on_finish: {error}.") from None
        timeout = self.timeout
        if timeout is not None and not (_is_number(timeout) and 0 < timeout < math.inf):
            raise refuse(
                InvalidOption, f"on_finish: timeout={timeout!r} is no number of seconds above 0."
            )
        folder: object = self.folder
        if folder is not None and not (isinstance(folder, str) and folder):
            raise refuse(InvalidOption, f"on_finish: folder={folder!r} is no path, as text.")

    @property
    def command(self) -> tuple[str, ...] | None:
        """The words of the command that is run."""
        return self.run if isinstance(self.run, tuple) else None

    @property
    def workflow_id(self) -> str | None:
        """The workflow that is run."""
        return self.run.removeprefix(WORKFLOW) if isinstance(self.run, str) else None

    @property
    def told(self) -> tuple[str, ...]:
        """The endings that are told, in order."""
        return DEFAULT_STATES if self.states is None else tuple(self.states)

    def over(self, base: OnFinish | None) -> OnFinish:
        """This, and what `base` says where this says nothing."""
        if base is None:
            return self
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}
        return replace(base, **given)

    def __str__(self) -> str:
        """Who is told, in words."""
        return self.run if isinstance(self.run, str) else shlex.join(self.command or ())


#: False: nobody is told, whatever others say.
Told = OnFinish | Literal[False] | None

#: What may be written for it.
Given: TypeAlias = "str | Sequence[str] | Workflow[Any, Any] | OnFinish | Literal[False] | None"


def on_finish(value: Any) -> Told:
    """What an option or argument `on_finish=` says.

    Raises:
        InvalidOption: it says nothing that could be done.
    """
    if value is None or value is False or isinstance(value, OnFinish):
        return value
    return OnFinish(value)


def _target(value: Any) -> str | tuple[str, ...] | None:
    from wfe.authoring.workflows import Workflow

    if value is None:
        return None
    return f"{WORKFLOW}{value.id}" if isinstance(value, Workflow) else endings.target(value)


def _is_number(value: object) -> bool:
    return type(value) in (int, float)
