"""wfe: workflows that undo themselves, on one machine, with nothing to operate.

Everything public is a name of this package; `import wfe` itself loads nothing, each name is loaded when
it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` has its price
if TYPE_CHECKING:
    from typing import Any

    from wfe.authoring.conditions import when
    from wfe.authoring.context import StepContext
    from wfe.authoring.groups import parallel
    from wfe.authoring.hooks import hook
    from wfe.authoring.on_finish import OnFinish
    from wfe.authoring.registry import Registry
    from wfe.authoring.resources import resource
    from wfe.authoring.responses import (
        StepResponse,
        WorkflowResponse,
    )
    from wfe.authoring.schedules import Schedule
    from wfe.authoring.sleeping import sleep
    from wfe.authoring.steps import (
        Step,
        step,
    )
    from wfe.authoring.transforms import transform
    from wfe.authoring.workflows import (
        Workflow,
        workflow,
    )
    from wfe.errors import (
        DefinitionChanged,
        DefinitionError,
        DuplicateStep,
        DuplicateWorkflow,
        ExecutionCancelled,
        ExecutionError,
        IdempotencyConflict,
        InputMismatch,
        InvalidInput,
        InvalidName,
        InvalidOption,
        InvalidSchedule,
        InvalidTransactionId,
        MalformedKey,
        NonSerializableValue,
        NotAllowed,
        NotFound,
        PermanentStepFailure,
        ReferenceMisuse,
        Refused,
        SchemaTooNew,
        StepFailed,
        StepNotFound,
        StepNotWaiting,
        StoreBusy,
        StoreError,
        StoreUnusable,
        TransactionExists,
        TransactionFinished,
        TransactionNotFound,
        TransactionStepTimeoutError,
        TransactionTimeoutError,
        UsageError,
        WfeError,
        WorkflowNotFound,
        WrongAction,
    )
    from wfe.model import (
        Acknowledgement,
        Action,
        CommandResult,
        ErrorRecord,
        Event,
        EventKind,
        Execution,
        ExecutionKey,
        ExecutionState,
        Recording,
        StepKey,
        StepState,
        StepStatus,
    )
    from wfe.runtime.engine import Engine
    from wfe.scheduling.loop import Scheduler

#: Module → the public names in it.
_HOMES = {
    "wfe.authoring.conditions": ("when",),
    "wfe.authoring.context": ("StepContext",),
    "wfe.authoring.groups": ("parallel",),
    "wfe.authoring.hooks": ("hook",),
    "wfe.authoring.on_finish": ("OnFinish",),
    "wfe.authoring.registry": ("Registry",),
    "wfe.authoring.resources": ("resource",),
    "wfe.authoring.responses": (
        "StepResponse",
        "WorkflowResponse",
    ),
    "wfe.authoring.schedules": ("Schedule",),
    "wfe.authoring.sleeping": ("sleep",),
    "wfe.authoring.steps": (
        "Step",
        "step",
    ),
    "wfe.authoring.transforms": ("transform",),
    "wfe.authoring.workflows": (
        "Workflow",
        "workflow",
    ),
    "wfe.errors": (
        "DefinitionChanged",
        "DefinitionError",
        "DuplicateStep",
        "DuplicateWorkflow",
        "ExecutionCancelled",
        "ExecutionError",
        "IdempotencyConflict",
        "InputMismatch",
        "InvalidInput",
        "InvalidName",
        "InvalidOption",
        "InvalidSchedule",
        "InvalidTransactionId",
        "MalformedKey",
        "NonSerializableValue",
        "NotAllowed",
        "NotFound",
        "PermanentStepFailure",
        "ReferenceMisuse",
        "Refused",
        "SchemaTooNew",
        "StepFailed",
        "StepNotFound",
        "StepNotWaiting",
        "StoreBusy",
        "StoreError",
        "StoreUnusable",
        "TransactionExists",
        "TransactionFinished",
        "TransactionNotFound",
        "TransactionStepTimeoutError",
        "TransactionTimeoutError",
        "UsageError",
        "WfeError",
        "WorkflowNotFound",
        "WrongAction",
    ),
    "wfe.model": (
        "Acknowledgement",
        "Action",
        "CommandResult",
        "ErrorRecord",
        "Event",
        "EventKind",
        "Execution",
        "ExecutionKey",
        "ExecutionState",
        "Recording",
        "StepKey",
        "StepState",
        "StepStatus",
    ),
    "wfe.runtime.engine": ("Engine",),
    "wfe.scheduling.loop": ("Scheduler",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Acknowledgement",
    "Action",
    "CommandResult",
    "DefinitionChanged",
    "DefinitionError",
    "DuplicateStep",
    "DuplicateWorkflow",
    "Engine",
    "ErrorRecord",
    "Event",
    "EventKind",
    "Execution",
    "ExecutionCancelled",
    "ExecutionError",
    "ExecutionKey",
    "ExecutionState",
    "IdempotencyConflict",
    "InputMismatch",
    "InvalidInput",
    "InvalidName",
    "InvalidOption",
    "InvalidSchedule",
    "InvalidTransactionId",
    "MalformedKey",
    "NonSerializableValue",
    "NotAllowed",
    "NotFound",
    "OnFinish",
    "PermanentStepFailure",
    "Recording",
    "ReferenceMisuse",
    "Refused",
    "Registry",
    "Schedule",
    "Scheduler",
    "SchemaTooNew",
    "Step",
    "StepContext",
    "StepFailed",
    "StepKey",
    "StepNotFound",
    "StepNotWaiting",
    "StepResponse",
    "StepState",
    "StepStatus",
    "StoreBusy",
    "StoreError",
    "StoreUnusable",
    "TransactionExists",
    "TransactionFinished",
    "TransactionNotFound",
    "TransactionStepTimeoutError",
    "TransactionTimeoutError",
    "UsageError",
    "WfeError",
    "Workflow",
    "WorkflowNotFound",
    "WorkflowResponse",
    "WrongAction",
    "hook",
    "parallel",
    "resource",
    "sleep",
    "step",
    "transform",
    "when",
    "workflow",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
