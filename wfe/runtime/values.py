"""What references resolve to: the values of one execution, decoded anew for each reader.

Everybody gets a copy of their own, made from the text that is stored. So a step cannot change what
another step sees, and a first run sees what a resumed run sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wfe.model import Execution, Json, StepRecord, StepState
from wfe.store import codec

_UNSETTLED = frozenset({StepState.NOT_STARTED, StepState.INVOKING})


class ExecutionValues:
    """The values of an execution as it is, or as it will be with `changed` records."""

    __slots__ = ("_changed", "_execution", "cache")

    def __init__(
        self,
        execution: Execution,
        cache: dict[int, Any],
        changed: Mapping[str, StepRecord] | None = None,
    ) -> None:
        self._execution = execution
        self._changed = changed or {}
        #: Transforms that were computed, by their number in the body.
        self.cache = cache

    def input(self) -> Any:
        return decoded(self._execution.input)

    def output(self, step: str) -> Any:
        record = self._changed.get(step) or self._execution.steps.get(step)
        return None if record is None or record.output is None else codec.decode(record.output)

    def settled(self, step: str) -> bool:
        record = self._changed.get(step) or self._execution.step(step)
        return record.invoke not in _UNSETTLED

    def guard(self, name: str) -> bool | None:
        return self._execution.head.guards.get(name)


class Outputs(Mapping[str, Any]):
    """The outputs of the steps so far, by step name, read-only, each decoded when it is asked for."""

    __slots__ = ("_execution",)

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def __getitem__(self, step: str) -> Any:
        record = self._execution.steps[step]
        if record.invoke in _UNSETTLED:
            raise KeyError(step)
        return decoded(record.output)

    def __iter__(self) -> Iterator[str]:
        for name, record in self._execution.steps.items():
            if record.invoke not in _UNSETTLED:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


def decoded(value: Json | None) -> Any:
    """The value; None where there is none."""
    return None if value is None else codec.decode(value)
