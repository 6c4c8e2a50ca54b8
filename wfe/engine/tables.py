"""The transition tables: every change of state that exists, as data.

`move_*` is one lookup. A change that is not in its table raises IllegalTransition, and since the
machine works on a draft, nothing has changed then. The diagrams of the documentation are drawn from
these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from wfe.model import ExecutionState as X
from wfe.model import StepState as S
from wfe.model import StepStatus as T

_State = TypeVar("_State", bound=StrEnum)

#: A kept `done` execution may be cancelled: the one way out of a final state.
EXECUTION: Mapping[X, frozenset[X]] = {
    X.NOT_STARTED: frozenset({X.INVOKING}),
    X.INVOKING: frozenset({X.DONE, X.WAITING_TO_COMPENSATE}),
    X.WAITING_TO_COMPENSATE: frozenset({X.COMPENSATING}),
    X.COMPENSATING: frozenset({X.REVERTED, X.FAILED}),
    X.DONE: frozenset({X.WAITING_TO_COMPENSATE}),
    X.REVERTED: frozenset(),
    X.FAILED: frozenset(),
}

#: The `invoke` side of a step. A retry stays `invoking`; its status tells the attempts apart.
INVOKE: Mapping[S, frozenset[S]] = {
    S.NOT_STARTED: frozenset({S.INVOKING, S.SKIPPED_FAILURE}),
    S.INVOKING: frozenset({S.DONE, S.FAILED, S.TIMEOUT, S.SKIPPED}),
    S.DONE: frozenset(),
    S.FAILED: frozenset(),
    S.TIMEOUT: frozenset(),
    S.SKIPPED: frozenset(),
    S.SKIPPED_FAILURE: frozenset(),
}

#: The `compensate` side. `not_started → reverted` is a step that has no undo.
COMPENSATE: Mapping[S, frozenset[S]] = {
    S.DORMANT: frozenset({S.NOT_STARTED}),
    S.NOT_STARTED: frozenset({S.COMPENSATING, S.REVERTED}),
    S.COMPENSATING: frozenset({S.REVERTED, S.FAILED}),
    S.REVERTED: frozenset(),
    S.FAILED: frozenset(),
}

STATUS: Mapping[T, frozenset[T]] = {
    T.IDLE: frozenset({T.WAITING_RESPONSE}),
    T.WAITING_RESPONSE: frozenset({T.WAITING_RESPONSE, T.OK, T.TEMP_FAILURE, T.PERMANENT_FAILURE}),
    T.TEMP_FAILURE: frozenset({T.WAITING_RESPONSE, T.PERMANENT_FAILURE}),
    T.OK: frozenset(),
    T.PERMANENT_FAILURE: frozenset(),
}


class IllegalTransition(Exception):
    """The machine asked for a change of state that does not exist: a defect of the machine."""


def move(table: Mapping[_State, frozenset[_State]], old: _State, new: _State) -> _State:
    """`new`, where `table` lets `old` become it.

    Raises:
        IllegalTransition: it does not.
    """
    if new not in table.get(old, ()):
        raise IllegalTransition(f"{old} does not become {new}")
    return new
