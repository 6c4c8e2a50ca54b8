"""What a step is told about the execution it works for, and what it may say back.

The runtime builds one per attempt; in a test of a step's function it is built by hand, with as much
of it as the function looks at. It may be used from a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wfe.errors import NotFound

if TYPE_CHECKING:
    import logging

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def _ignore(*_: object) -> None:
    return None


def _never() -> bool:
    return False


class StepContext:
    """The first parameter of a step that asks for it."""

    __slots__ = (
        "_emit",
        "_heartbeat",
        "_is_cancelled",
        "_logger",
        "_progress",
        "_resolve",
        "action",
        "attempt",
        "event_group_id",
        "idempotency_key",
        "metadata",
        "outputs",
        "parent_step_idempotency_key",
        "run_id",
        "scheduled_for",
        "step_name",
        "transaction_id",
        "workflow_id",
    )

    def __init__(
        self,
        *,
        workflow_id: str = "",
        transaction_id: str = "",
        run_id: str = "",
        step_name: str = "",
        action: str = "invoke",
        idempotency_key: str = "",
        attempt: int = 1,
        event_group_id: str | None = None,
        parent_step_idempotency_key: str | None = None,
        scheduled_for: datetime | None = None,
        metadata: Mapping[str, Any] = _NOTHING,
        outputs: Mapping[str, Any] = _NOTHING,
        logger: logging.LoggerAdapter[logging.Logger] | logging.Logger | None = None,
        resolve: Callable[[str], Any] | Mapping[str, Any] = _NOTHING,
        is_cancelled: Callable[[], bool] = _never,
        heartbeat: Callable[[], None] = _ignore,
        progress: Callable[[float | None, str], None] = _ignore,
        emit: Callable[[str, Any], None] = _ignore,
    ) -> None:
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id
        self.run_id = run_id
        self.step_name = step_name
        #: "invoke" or "compensate".
        self.action = action
        #: The same at every attempt, and in every run of the transaction id (`run_id` tells the runs
        #: apart): hand it on, so that what happened already is recognised.
        self.idempotency_key = idempotency_key
        #: From 1.
        self.attempt = attempt
        self.event_group_id = event_group_id
        #: Of the step that runs this execution as its child; None: nobody does.
        self.parent_step_idempotency_key = parent_step_idempotency_key
        #: The tick that a schedule started this execution for.
        self.scheduled_for = scheduled_for
        self.metadata = metadata
        #: What the steps before returned, by name, as it was stored. Read-only.
        self.outputs = outputs
        self._logger = logger
        self._resolve = resolve
        self._is_cancelled = is_cancelled
        self._heartbeat = heartbeat
        self._progress = progress
        self._emit = emit

    @property
    def cancelled(self) -> bool:
        """Whether the step should give up, because the execution was cancelled or took too long, or
        this attempt was overtaken. A `def` step, which nobody can interrupt, looks here. What it
        returns after a cancel still counts: its undo receives it."""
        return self._is_cancelled()

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger] | logging.Logger:
        """A logger whose records carry the step's key."""
        if self._logger is None:
            import logging

            self._logger = logging.LoggerAdapter(
                logging.getLogger("wfe.step"), {"idempotency_key": self.idempotency_key}
            )
        return self._logger

    def resolve(self, name: str) -> Any:
        """A resource: of the engine's `resources`, or of a `@resource` factory.

        Raises:
            NotFound: there is none of this name.
        """
        if isinstance(self._resolve, Mapping):
            if name not in self._resolve:
                raise NotFound(
                    f"There is no resource {name!r}.",
                    hint="Give it to the engine (resources=...) or write a @resource factory.",
                )
            return self._resolve[name]
        return self._resolve(name)

    def heartbeat(self) -> None:
        """Say that the step is alive."""
        self._heartbeat()

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Say how far the step is: a fraction from 0 to 1, or None where that is unknown."""
        self._progress(fraction, message)

    def emit(self, name: str, data: Any = None) -> None:
        """Collect a domain event, which is released when the outermost execution ends `done`: at most
        once, for a process may die between the end and the release."""
        self._emit(name, data)
