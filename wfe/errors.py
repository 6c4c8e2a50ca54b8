"""Every error that wfe raises, as one tree.

An error here tells three things: what was wrong (its message), where (its fields, so that a program
need not parse text) and the way out (`hint`, one sentence or command). `code` is the word that
`-o json` prints; `exit_code` is what the command line ends with when this error ends a command. One
long module, so that the tree is seen whole.

    WfeError                                  1   operational
    ├── DefinitionError                       2   a workflow is composed wrongly; found at load
    │   ├── ReferenceMisuse                       a reference used like a value inside a body
    │   ├── InvalidName                           a name that could not be part of a key
    │   ├── InvalidOption                         unknown option, or a value out of its range
    │   ├── DuplicateStep                         two uses of one step name in a body
    │   └── DuplicateWorkflow                     two different workflows under one name
    ├── UsageError                            2   the call itself is wrong
    │   ├── MalformedKey                          not workflow:transaction:step:action
    │   ├── InvalidInput                          a value that does not fit its annotation
    │   ├── InvalidTransactionId                  a transaction id that cannot be stored
    │   ├── InvalidSchedule                       a schedule that means nothing, or never fires
    │   └── ModuleFailed                          a user's module that does not import
    ├── NotFound                              3
    │   ├── WorkflowNotFound
    │   ├── TransactionNotFound
    │   │   └── TransactionFinished           4   known, but over
    │   └── StepNotFound
    ├── Refused                               4   a command that the state does not allow
    │   ├── StepNotWaiting
    │   ├── WrongAction
    │   ├── NotAllowed
    │   ├── DefinitionChanged
    │   ├── TransactionExists
    │   ├── HeldElsewhere                         another process drives the execution
    │   └── IdempotencyConflict
    ├── ExecutionError                            what an execution came to, raised to its caller
    │   ├── StepFailed                       10   the first error of the execution, as it is stored
    │   ├── ExecutionCancelled               13
    │   ├── TransactionTimeoutError          12   the workflow passed its `timeout`
    │   └── TransactionStepTimeoutError      12   a step passed its `timeout`
    ├── PermanentStepFailure                      raised by a step: do not retry
    │   ├── NonSerializableValue                  a value that JSON cannot hold
    │   └── InputMismatch                         a value that does not fit a parameter's annotation
    ├── SkipExecutionError                        a stale writer stops quietly; nothing was written
    │   ├── SkipStepAlreadyFinishedError
    │   └── SkipCancelledExecutionError
    ├── EngineClosed                              the engine was shut down before the answer
    └── StoreError                            1
        ├── StoreBusy                        75   locked beyond the timeout, or the disk is full
        ├── NotAccepted                      75   handed to another process, which has not answered
        ├── StoreUnusable                         not a database, unreadable, or damaged
        │   └── SchemaTooOld                      written by an older wfe, and only to be read
        └── SchemaTooNew                          written by a newer wfe
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class WfeError(Exception):
    """The root: catch it to catch everything that wfe itself raises."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    #: What to do about it: one sentence or one command. Empty where the message says it all.
    hint: str

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def message(self) -> str:
        """The sentence without the hint."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


# --- composing -----------------------------------------------------------------------------------


class DefinitionError(WfeError):
    """A workflow that cannot be composed. Raised while its module loads, before anything runs.

    `file` and `line` are the place in the user's own code; `hint` says what to write instead.
    """

    code = "definition"
    exit_code = 2

    def __init__(
        self, message: str, *, hint: str = "", file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}{super().__str__()}"


class ReferenceMisuse(DefinitionError):
    """A reference was used as if it were the value, which does not exist while composing."""

    code = "reference_misuse"


class InvalidName(DefinitionError):
    """A workflow id or step name that could not be part of an idempotency key."""

    code = "invalid_name"


class InvalidOption(DefinitionError):
    """An option that does not exist, or whose value is out of range."""

    code = "invalid_option"


class DuplicateStep(DefinitionError):
    """Two uses of one step name in a body: each needs a name of its own."""

    code = "duplicate_step"


class DuplicateWorkflow(DefinitionError):
    """Two workflows of one name with different steps."""

    code = "duplicate_workflow"


# --- the call itself -----------------------------------------------------------------------------


class UsageError(WfeError):
    """The call is wrong whatever the state: an argument that means nothing."""

    code = "usage"
    exit_code = 2


class MalformedKey(UsageError):
    """A text that is no idempotency key: `workflow:transaction:step:action`."""

    code = "malformed_key"

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(
            f"{key!r} is not an idempotency key: {reason}.",
            hint="A key reads workflow:transaction:step:action, for instance order:tx1:charge:invoke.",
        )
        self.key = key


class InvalidInput(UsageError):
    """A value that does not fit the annotation it is meant for. Nothing was stored.

    `path` is the place inside the value, such as `.lines[3].price`, where one is known.
    """

    code = "invalid_input"

    def __init__(
        self, message: str, *, hint: str = "", parameter: str | None = None, path: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.parameter = parameter
        self.path = path


class InvalidTransactionId(UsageError):
    """A transaction id that cannot be stored and found again as it was given."""

    code = "invalid_transaction_id"

    def __init__(self, transaction_id: str, reason: str) -> None:
        super().__init__(
            f"Transaction id {transaction_id!r} is refused: {reason}.",
            hint="Give it a name of printable characters, or none: then it gets a fresh one.",
        )
        self.transaction_id = transaction_id


class InvalidSchedule(UsageError):
    """A cron expression, interval or time zone that means nothing, or that would never fire."""

    code = "invalid_schedule"

    def __init__(self, expression: str, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"The schedule {expression!r} is refused: {reason}.",
            hint=hint or "See what may be written with: wfe help cron",
        )
        self.expression = expression
        self.reason = reason


class ModuleFailed(UsageError):
    """A user's module that could not be imported. `report` holds the user's own frames only; `place`
    is the file and line where that is known, which the message begins with."""

    code = "module_failed"

    def __init__(
        self,
        source: str,
        message: str,
        *,
        report: str = "",
        hint: str = "",
        place: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.report = report
        self.place = place


# --- not found -----------------------------------------------------------------------------------


def _near(names: Sequence[str]) -> str:
    return f" Did you mean {' or '.join(names)}?" if names else ""


class NotFound(WfeError):
    """Something that was named does not exist."""

    code = "not_found"
    exit_code = 3


class WorkflowNotFound(NotFound):
    """No workflow of this id is loaded. `near` lists ids that resemble it."""

    code = "workflow_not_found"

    def __init__(self, workflow_id: str, *, near: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(f"There is no workflow {workflow_id!r}.{_near(near)}", hint=hint)
        self.workflow_id = workflow_id
        self.near = tuple(near)


class TransactionNotFound(NotFound):
    """No execution of this workflow has this transaction id."""

    code = "transaction_not_found"

    def __init__(
        self, workflow_id: str, transaction_id: str, message: str = "", *, hint: str = ""
    ) -> None:
        super().__init__(
            message or f"Workflow {workflow_id!r} has no execution {transaction_id!r}.",
            hint=hint or "List what there is with: wfe executions list",
        )
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id


class TransactionFinished(TransactionNotFound):
    """The execution is over. `state` is its final state, None where it was not kept."""

    code = "transaction_finished"
    exit_code = 4

    def __init__(self, workflow_id: str, transaction_id: str, state: str | None) -> None:
        super().__init__(
            workflow_id,
            transaction_id,
            f"Execution {workflow_id}:{transaction_id} is finished"
            + (f" ({state})." if state else "."),
            hint=f"See what it did with: wfe executions show {workflow_id}:{transaction_id}",
        )
        self.state = state


class StepNotFound(NotFound):
    """The workflow of this execution has no step of this name."""

    code = "step_not_found"

    def __init__(
        self, workflow_id: str, transaction_id: str, step: str, *, near: Sequence[str] = ()
    ) -> None:
        super().__init__(
            f"Workflow {workflow_id!r} has no step {step!r}.{_near(near)}",
            hint=f"Its steps: wfe executions show {workflow_id}:{transaction_id}",
        )
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id
        self.step = step
        self.near = tuple(near)


# --- refused by the state ------------------------------------------------------------------------


class Refused(WfeError):
    """A command that the present state does not allow. It changed nothing."""

    code = "refused"
    exit_code = 4

    def __init__(
        self, message: str, *, workflow_id: str, transaction_id: str, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id


class StepNotWaiting(Refused):
    """The step does not wait for an answer (any more). `state` and `status` are the step's."""

    code = "step_not_waiting"

    def __init__(
        self,
        workflow_id: str,
        transaction_id: str,
        step: str,
        *,
        state: str,
        status: str,
        reason: str = "",
    ) -> None:
        super().__init__(
            f"Step {step!r} of {workflow_id}:{transaction_id} is {state} ({status})"
            + (f": {reason}." if reason else ", it does not wait for an answer."),
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint=f"See where it stands with: wfe executions show {workflow_id}:{transaction_id}",
        )
        self.step = step
        self.state = state
        self.status = status


class WrongAction(Refused):
    """The key names the other side of the step: invoke while it is being undone, or the reverse."""

    code = "wrong_action"

    def __init__(
        self, workflow_id: str, transaction_id: str, step: str, *, action: str, current: str
    ) -> None:
        super().__init__(
            f"Step {step!r} of {workflow_id}:{transaction_id} is at its {current}, not at {action!r}.",
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint=f"Its key is now {workflow_id}:{transaction_id}:{step}:{current}",
        )
        self.step = step
        self.action = action
        self.current = current


class NotAllowed(Refused):
    """The execution is in a state in which this command means nothing. `state` says which."""

    code = "not_allowed"

    def __init__(self, workflow_id: str, transaction_id: str, *, command: str, state: str) -> None:
        super().__init__(
            f"Execution {workflow_id}:{transaction_id} is {state}: it cannot be {command} now.",
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint=f"See where it stands with: wfe executions show {workflow_id}:{transaction_id}",
        )
        self.command = command
        self.state = state


class DefinitionChanged(Refused):
    """The workflow has other steps than when the execution began, up to the point it has reached.

    `changes` lists the steps up to there, a line each: `  kept`, `- gone`, `+ added`, `~ changed: how`,
    `! in the way: why`. `way_out` is what `Engine.run` would have to be given beside the transaction
    id to go on all the same: `renames`, `allow_changed`; None: nothing helps.
    """

    code = "definition_changed"

    def __init__(
        self,
        workflow_id: str,
        transaction_id: str,
        *,
        changes: Sequence[str] = (),
        way_out: Mapping[str, Any] | None = None,
    ) -> None:
        listed = _named(changes, "-+~") or _named(changes, "!")
        back, cancel = "Bring the steps back", "cancel the execution with the code that began it"
        if way_out is not None:
            command = _to_go_on(workflow_id, transaction_id, **way_out)
            hint = f"{back}, {cancel}, or go on all the same: {command}"
        elif _named(changes, "+"):
            hint = f"{back}, say which of them have a new name (--rename OLD=NEW), or {cancel}."
        else:
            hint = f"{back}, or {cancel}."
        super().__init__(
            f"Workflow {workflow_id!r} has other steps than when execution "
            f"{workflow_id}:{transaction_id} began{': ' if listed else ''}{listed}.",
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint=hint,
        )
        self.changes = tuple(changes)
        self.way_out = way_out

    def __str__(self) -> str:
        return "\n".join([self.message, *self.changes, self.hint])


def _named(changes: Sequence[str], marks: str) -> str:
    """The steps of a listing that have one of these marks; at most five."""
    found = [line.partition(":")[0] for line in changes if line[0] in marks]
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return ", ".join(found[:5]) + more


def _to_go_on(
    workflow_id: str,
    transaction_id: str,
    *,
    renames: Mapping[str, str] | None = None,
    allow_changed: bool = False,
) -> str:
    import shlex  # nobody else needs it

    flags = [word for old, new in (renames or {}).items() for word in ("--rename", f"{old}={new}")]
    flags += ["--allow-changed"] if allow_changed else []
    return shlex.join(["wfe", "run", workflow_id, "--tx", transaction_id, *flags])


class TransactionExists(Refused):
    """An execution of this id is unfinished, and the caller asked not to be attached to it."""

    code = "transaction_exists"

    def __init__(self, workflow_id: str, transaction_id: str, *, state: str) -> None:
        super().__init__(
            f"Execution {workflow_id}:{transaction_id} already exists and is {state}.",
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint='Choose another transaction id, or attach to it (on_conflict="attach").',
        )
        self.state = state


class HeldElsewhere(Refused):
    """Another engine has the execution in hand, and lives. `owner` says which, in words."""

    code = "held_elsewhere"

    def __init__(self, workflow_id: str, transaction_id: str, *, owner: str) -> None:
        super().__init__(
            f"Execution {workflow_id}:{transaction_id} is in the hand of {owner}.",
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint=f"Watch it with: wfe executions watch {workflow_id}:{transaction_id}",
        )
        self.owner = owner


class IdempotencyConflict(Refused):
    """The transaction id is taken by an execution with another input."""

    code = "idempotency_conflict"

    def __init__(self, workflow_id: str, transaction_id: str) -> None:
        super().__init__(
            f"Execution {workflow_id}:{transaction_id} exists with another input.",
            workflow_id=workflow_id,
            transaction_id=transaction_id,
            hint="Choose another transaction id, or give the input it was started with (or none).",
        )


# --- what an execution came to -------------------------------------------------------------------


class ExecutionError(WfeError):
    """What an execution came to. Raised to the caller of `run`, never inside the engine."""

    code = "execution"


class StepFailed(ExecutionError):
    """The first error of an execution, as it is stored.

    `name` and `message` are those of the exception the step raised (None and text where an answer
    from outside reported the failure); `stack` its traceback. `__cause__` is the exception itself
    where it was raised in this process.
    """

    code = "step_failed"
    exit_code = 10

    def __init__(
        self,
        *,
        workflow_id: str,
        transaction_id: str,
        step: str | None,
        handler_type: str,
        name: str | None,
        text: str,
        stack: str | None = None,
    ) -> None:
        what = f"{name}: {text}" if name else text
        super().__init__(
            f"Step {step!r} failed: {what}" if step else what,
            hint="",
        )
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id
        self.step = step
        self.handler_type = handler_type
        self.name = name
        self.text = text
        self.stack = stack


class ExecutionCancelled(ExecutionError):
    """The execution was cancelled, and what it had done was undone."""

    code = "cancelled"
    exit_code = 13

    def __init__(self, workflow_id: str, transaction_id: str) -> None:
        super().__init__(f"Execution {workflow_id}:{transaction_id} was cancelled.")
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id


class TransactionTimeoutError(ExecutionError):
    """The execution took longer than its workflow's `timeout`."""

    code = "timed_out"
    exit_code = 12


class TransactionStepTimeoutError(ExecutionError):
    """A step took longer than its `timeout`."""

    code = "step_timed_out"
    exit_code = 12


# --- raised by steps -----------------------------------------------------------------------------


class PermanentStepFailure(WfeError):
    """Raised by a step that must not be tried again.

    `compensate_with` is what the compensation of this very step receives; without it, None.
    """

    code = "permanent_failure"
    exit_code = 10

    def __init__(self, message: str, compensate_with: Any = None) -> None:
        super().__init__(message)
        self.compensate_with = compensate_with


class NonSerializableValue(PermanentStepFailure):
    """A value that JSON cannot hold. `path` is the place inside it, such as `$.lines[3].price`."""

    code = "non_serializable"

    def __init__(self, reason: str, *, path: str = "$", what: str = "value") -> None:
        super().__init__(f"The {what} cannot be stored: {reason} at {path}.")
        self.path = path
        self.reason = reason


class InputMismatch(PermanentStepFailure):
    """A value that does not fit the annotation of the parameter it is handed to.

    `path` is the place inside the parameter's value, such as `.lines[3].price`; empty: all of it.
    """

    code = "input_mismatch"

    def __init__(
        self, reason: str, *, what: str, parameter: str, path: str = "", annotation: str = ""
    ) -> None:
        super().__init__(
            f"Parameter {parameter!r} ({annotation}) of {what}: {reason} at {parameter}{path}."
        )
        self.parameter = parameter
        self.path = path
        self.reason = reason


# --- stale writers -------------------------------------------------------------------------------


class SkipExecutionError(WfeError):
    """Another writer has gone on with this execution. Nothing was written; stop quietly."""

    code = "stale"

    def __init__(self, message: str = "Another process has gone on with this execution.") -> None:
        super().__init__(message)


class SkipStepAlreadyFinishedError(SkipExecutionError):
    """The step was finished by another writer."""

    def __init__(self) -> None:
        super().__init__("Another process has finished this step.")


class SkipCancelledExecutionError(SkipExecutionError):
    """The execution was cancelled by another writer."""

    def __init__(self) -> None:
        super().__init__("Another process has cancelled this execution.")


class EngineClosed(WfeError):
    """The engine was shut down while somebody waited. What was recorded is kept."""

    code = "engine_closed"

    def __init__(self) -> None:
        super().__init__(
            "The engine was shut down before the execution came to that point.",
            hint="It goes on when it is run again under its transaction id.",
        )


# --- the store -----------------------------------------------------------------------------------


class StoreError(WfeError):
    """The database could not be used. Nothing that was accepted is lost."""

    code = "store"


class StoreBusy(StoreError):
    """Locked beyond the timeout, or no space left. Trying again may succeed."""

    code = "store_busy"
    exit_code = 75


class NotAccepted(StoreError):
    """A command was handed to the engine that has the execution in hand, and that has not said
    anything for so long. The command stays: it is applied as soon as somebody looks at it."""

    code = "not_accepted"
    exit_code = 75

    def __init__(self, workflow_id: str, transaction_id: str, *, owner: str, waited: float) -> None:
        super().__init__(
            f"The command for {workflow_id}:{transaction_id} was handed to {owner}, which has not "
            f"taken it for {waited:g} s. It is kept, and taken as soon as that process goes on.",
            hint=f"See what became of it with: wfe executions why {workflow_id}:{transaction_id}",
        )
        self.workflow_id = workflow_id
        self.transaction_id = transaction_id
        self.owner = owner


class StoreUnusable(StoreError):
    """Not a database, not readable or writable, or damaged."""

    code = "store_unusable"


class SchemaTooOld(StoreUnusable):
    """The database was written by an older version of wfe, and whoever reads changes nothing."""

    code = "schema_too_old"


class SchemaTooNew(StoreError):
    """The database was written by a newer version of wfe."""

    code = "schema_too_new"
