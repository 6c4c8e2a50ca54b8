"""The words of the machine, bound to names of their own.

A member of an enum is looked up anew each time it is written `StepState.DONE`; before Python 3.12 that
costs a quarter of a microsecond, and the machine does it thirty times a step.
"""

from __future__ import annotations

from typing import Final

from wfe.model import Action, EventKind, ExecutionState, StepState, StepStatus

COMPENSATE: Final = Action.COMPENSATE
INVOKE: Final = Action.INVOKE

EXECUTION_COMPENSATING: Final = ExecutionState.COMPENSATING
EXECUTION_DONE: Final = ExecutionState.DONE
EXECUTION_FAILED: Final = ExecutionState.FAILED
EXECUTION_INVOKING: Final = ExecutionState.INVOKING
EXECUTION_REVERTED: Final = ExecutionState.REVERTED
EXECUTION_WAITING_TO_COMPENSATE: Final = ExecutionState.WAITING_TO_COMPENSATE

STEP_COMPENSATING: Final = StepState.COMPENSATING
STEP_DONE: Final = StepState.DONE
STEP_FAILED: Final = StepState.FAILED
STEP_INVOKING: Final = StepState.INVOKING
STEP_NOT_STARTED: Final = StepState.NOT_STARTED
STEP_REVERTED: Final = StepState.REVERTED
STEP_SKIPPED: Final = StepState.SKIPPED
STEP_SKIPPED_FAILURE: Final = StepState.SKIPPED_FAILURE
STEP_TIMEOUT: Final = StepState.TIMEOUT

STATUS_OK: Final = StepStatus.OK
STATUS_PERMANENT_FAILURE: Final = StepStatus.PERMANENT_FAILURE
STATUS_TEMP_FAILURE: Final = StepStatus.TEMP_FAILURE
STATUS_WAITING_RESPONSE: Final = StepStatus.WAITING_RESPONSE

EVENT_BEGIN: Final = EventKind.BEGIN
EVENT_COMPENSATE_BEGIN: Final = EventKind.COMPENSATE_BEGIN
EVENT_COMPENSATE_STEP_FAILURE: Final = EventKind.COMPENSATE_STEP_FAILURE
EVENT_COMPENSATE_STEP_SUCCESS: Final = EventKind.COMPENSATE_STEP_SUCCESS
EVENT_FINISH: Final = EventKind.FINISH
EVENT_RESUME: Final = EventKind.RESUME
EVENT_STEP_AWAITING: Final = EventKind.STEP_AWAITING
EVENT_STEP_BEGIN: Final = EventKind.STEP_BEGIN
EVENT_STEP_FAILURE: Final = EventKind.STEP_FAILURE
EVENT_STEP_SKIPPED: Final = EventKind.STEP_SKIPPED
EVENT_STEP_SUCCESS: Final = EventKind.STEP_SUCCESS
EVENT_TIMEOUT: Final = EventKind.TIMEOUT
