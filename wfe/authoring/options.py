"""The options of steps and workflows, checked where they are written.

Static typing knows them from the TypedDicts; whoever has none is told at load.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

import msgspec

from wfe.authoring.on_finish import Given, OnFinish, Told, on_finish
from wfe.authoring.places import refuse
from wfe.authoring.schedules import Schedule, refuse_what_never_fires
from wfe.durations import CENTURY
from wfe.errors import InvalidName, InvalidOption
from wfe.model import StepOptions, WorkflowOptions, check_name
from wfe.near import near

#: Of a step that says nothing.
DEFAULTS = StepOptions()


class StepConfig(TypedDict, total=False):
    """Options of a step; what each means is told at `wfe.model.StepOptions`. Seconds, as floats."""

    max_retries: int
    retry_interval: float
    retry_backoff: float
    retry_max_interval: float | None
    retry_jitter: float
    auto_retry: bool
    async_: bool
    timeout: float | None
    retry_interval_awaiting: float | None
    max_awaiting_retries: int | None
    compensate_async: bool
    continue_on_permanent_failure: bool
    skip_on_permanent_failure: bool | str
    no_wait: bool
    save_response: bool
    store: bool | None
    pure: bool


class NamedStepConfig(StepConfig, total=False):
    """Options of one use of a step."""

    name: str


class WorkflowConfig(TypedDict, total=False):
    """Options of a workflow; what each means is told at `wfe.model.WorkflowOptions`, but for
    `schedule`: a cron expression, or a Schedule; and `on_finish`: who is told of its ends, as for
    OnFinish; False: nobody; None: whoever is told of others."""

    timeout: float | None
    retention_time: float | None
    idempotent: bool
    store: bool
    schedule: str | Schedule | None
    on_finish: Given
    description: str


class Written(NamedTuple):
    """The options of a workflow as they were written, by what they are for."""

    options: WorkflowOptions
    schedule: Schedule | None
    on_finish: Told


def step_options(given: Mapping[str, Any], *, base: StepOptions = DEFAULTS) -> StepOptions:
    """`base` with these options.

    Raises:
        InvalidOption: an unknown name, or a value of the wrong type or out of range.
    """
    return msgspec.structs.replace(base, **_checked(given, _STEP, "step"))


def workflow_options(given: Mapping[str, Any]) -> Written:
    """The options of a workflow, when it is to run by itself, and who is told of its ends.

    Raises:
        InvalidOption: an unknown name, or a value of the wrong type or out of range.
    """
    checked = _checked(given, _WORKFLOW, "workflow")
    schedule = checked.pop("schedule", None)
    if schedule is not None:
        refuse_what_never_fires(schedule)
    told = checked.pop("on_finish", None)
    return Written(WorkflowOptions(**checked), schedule, told)


def checked_name(name: object, *, what: str) -> str:
    """`name`, which may become part of a key.

    Raises:
        InvalidName: it is no text, or could not be part of a key.
    """
    if not isinstance(name, str):
        raise refuse(InvalidName, f"The name of a {what} is a text, not {name!r}.")
    reason = check_name(name)
    if reason is not None:
        raise refuse(InvalidName, f"{name!r} cannot be the name of a {what}: {reason}.")
    return name


# --- what is allowed -----------------------------------------------------------------------------


class _Rule(NamedTuple):
    """What an option may be: the type, and the range where it is a number."""

    wanted: str
    type: type[Any]
    least: float = 0.0
    most: float = sys.float_info.max
    optional: bool = False

    def checked(self, value: Any) -> Any:
        """The value, numbers of seconds as floats.

        Raises:
            ValueError: it is no such value.
        """
        if value is None and self.optional:
            return None
        if self.type is float and type(value) is int:
            value = float(value)
        if type(value) is not self.type:
            raise ValueError
        if self.type in (int, float) and not self.least <= value <= self.most:
            raise ValueError
        return value


_SWITCH = _Rule("True or False", bool)
_COUNT = _Rule("a whole number from 0 on", int)
_DURATION = _Rule("a number of seconds from 0 on", float)
_MAYBE_DURATION = _Rule("a number of seconds from 0 on, or None", float, optional=True)
_MAYBE_LIMIT = _Rule(
    "a number of seconds from 0 to a century, or None", float, most=CENTURY, optional=True
)

_STEP: Mapping[str, _Rule] = {
    "max_retries": _COUNT,
    "retry_interval": _DURATION,
    "retry_backoff": _Rule("a factor from 1 on", float, 1.0),
    "retry_max_interval": _MAYBE_DURATION,
    "retry_jitter": _Rule("a fraction from 0 on", float),
    "auto_retry": _SWITCH,
    "async_": _SWITCH,
    "timeout": _MAYBE_LIMIT,
    "retry_interval_awaiting": _MAYBE_LIMIT,
    "max_awaiting_retries": _Rule("a whole number from 0 on, or None", int, optional=True),
    "compensate_async": _SWITCH,
    "continue_on_permanent_failure": _SWITCH,
    "skip_on_permanent_failure": _Rule("True, False or the name of a later step", bool),
    "no_wait": _SWITCH,
    "save_response": _SWITCH,
    "store": _Rule("True, False or None", bool, optional=True),
    "pure": _SWITCH,
}

_WORKFLOW: Mapping[str, _Rule] = {
    "timeout": _MAYBE_LIMIT,
    "retention_time": _MAYBE_DURATION,
    "idempotent": _SWITCH,
    "store": _SWITCH,
    "schedule": _Rule(
        'a cron expression such as "0 3 * * *", or a Schedule', Schedule, optional=True
    ),
    "on_finish": _Rule("a command, a workflow, an OnFinish or False", OnFinish),
    "description": _Rule("a text", str),
}


def _checked(given: Mapping[str, Any], allowed: Mapping[str, _Rule], what: str) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if name not in allowed:
            raise refuse(
                InvalidOption,
                f"There is no option {name!r} of a {what}.",
                hint=near(name, allowed) or f"The options: {', '.join(allowed)}.",
            )
        if name == "skip_on_permanent_failure" and isinstance(value, str):
            checked[name] = value
            continue
        if name == "on_finish":
            checked[name] = on_finish(value)
            continue
        if name == "schedule" and isinstance(value, str):
            value = Schedule(cron=value)
        try:
            checked[name] = allowed[name].checked(value)
        except (ValueError, OverflowError):
            wanted = allowed[name].wanted
            raise refuse(InvalidOption, f"{name}={value!r}: it must be {wanted}.") from None
    return checked
