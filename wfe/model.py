"""The values that every room shares: what a workflow is, what an execution has come to, and keys.

Values are frozen msgspec Structs: cheap to change by replacement, safe to hand to another thread.
Moments are aware datetimes in UTC; durations are seconds (float); a user's value is kept as `Json`,
the UTF-8 text it was reduced to, so that nobody can change it and everybody decodes a copy.

`Execution` alone is mutable, in one place: `take`, after its changes are safe.

Long, because every room meets here: what is in it is read one class at a time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

import msgspec

from wfe.errors import InvalidTransactionId, MalformedKey

#: The JSON text of one value, in UTF-8.
Json = bytes


# --- vocabulary: stored, printed and filtered exactly so -----------------------------------------


class ExecutionState(StrEnum):
    NOT_STARTED = "not_started"
    INVOKING = "invoking"
    WAITING_TO_COMPENSATE = "waiting_to_compensate"
    COMPENSATING = "compensating"
    DONE = "done"
    REVERTED = "reverted"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in FINAL_STATES


FINAL_STATES = frozenset({ExecutionState.DONE, ExecutionState.REVERTED, ExecutionState.FAILED})


class StepState(StrEnum):
    DORMANT = "dormant"
    NOT_STARTED = "not_started"
    INVOKING = "invoking"
    COMPENSATING = "compensating"
    DONE = "done"
    REVERTED = "reverted"
    FAILED = "failed"
    SKIPPED = "skipped"
    SKIPPED_FAILURE = "skipped_failure"
    TIMEOUT = "timeout"


class StepStatus(StrEnum):
    IDLE = "idle"
    OK = "ok"
    WAITING_RESPONSE = "waiting_response"
    TEMP_FAILURE = "temp_failure"
    PERMANENT_FAILURE = "permanent_failure"


class Action(StrEnum):
    INVOKE = "invoke"
    COMPENSATE = "compensate"


class StepKind(StrEnum):
    """What stands behind a step's name."""

    STEP = "step"
    VALUE = "value"  #: the extra step that a `when` block returning a value adds
    HOOK = "hook"
    HOOK_RESULT = "hook_result"
    WORKFLOW = "workflow"
    SLEEP = "sleep"


class Recording(StrEnum):
    """When an execution is written down: see docs/adr for why there are two."""

    EVERY_STEP = "every-step"
    REFERENCE = "reference"


# --- keys ----------------------------------------------------------------------------------------


def check_name(name: str) -> str | None:
    """Why `name` may not be a workflow id or step name; None where it may."""
    if not name:
        return "it is empty"
    if ":" in name:
        return "':' separates the parts of a key"
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        return "it holds a control character"
    if name != name.strip():
        return "it begins or ends with a space"
    return None


#: The longest transaction id, in characters.
MAX_TRANSACTION_ID = 1000


def check_transaction_id(transaction_id: str) -> str:
    """`transaction_id` as given. It may hold colons, spaces and any script.

    Raises:
        InvalidTransactionId: it is empty, too long, or holds control characters or lone surrogates,
            which no terminal would print as they are.
    """
    if not transaction_id:
        raise InvalidTransactionId(transaction_id, "it is empty")
    if len(transaction_id) > MAX_TRANSACTION_ID:
        raise InvalidTransactionId(
            transaction_id[:40] + "…", f"it is longer than {MAX_TRANSACTION_ID} characters"
        )
    for character in transaction_id:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            raise InvalidTransactionId(
                transaction_id, f"it holds the control character U+{ord(character):04X}"
            )
    return transaction_id


class ExecutionKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """Names an execution: `workflow:transaction`; its newest run where an id was run again."""

    workflow_id: str
    transaction_id: str

    def __str__(self) -> str:
        return f"{self.workflow_id}:{self.transaction_id}"


class StepKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """An idempotency key: `workflow:transaction:step:action`.

    The workflow stands before the first colon, step and action after the last two, so that a
    transaction id may hold colons; workflow ids and step names may not.
    """

    workflow_id: str
    transaction_id: str
    step: str
    action: Action = Action.INVOKE

    def __str__(self) -> str:
        return f"{self.workflow_id}:{self.transaction_id}:{self.step}:{self.action}"

    @property
    def execution(self) -> ExecutionKey:
        return ExecutionKey(self.workflow_id, self.transaction_id)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The key that `text` spells out in full.

        Raises:
            MalformedKey: fewer than four parts, an empty part, or an unknown action.
        """
        workflow_id, colon, rest = text.partition(":")
        parts = rest.rsplit(":", 2)
        if not colon or len(parts) < 3:
            raise MalformedKey(text, "it has fewer than four parts")
        transaction_id, step, action = parts
        if not (workflow_id and transaction_id and step):
            raise MalformedKey(text, "one of its parts is empty")
        if action not in (Action.INVOKE, Action.COMPENSATE):
            raise MalformedKey(text, f"its action {action!r} is neither invoke nor compensate")
        return cls(workflow_id, transaction_id, step, Action(action))


# --- the definition of a workflow ----------------------------------------------------------------


class StepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a step is tried, waited for and passed over. Durations are seconds.

    Raises nothing itself: `authoring` checks ranges where the user wrote them.
    """

    #: Retries after the first attempt, for ordinary exceptions.
    max_retries: int = 0
    #: Seconds between attempts; 0: at once.
    retry_interval: float = 0.0
    #: The n-th wait is retry_interval * retry_backoff ** (n - 1).
    retry_backoff: float = 1.0
    #: The longest wait that backoff may reach; None: no limit.
    retry_max_interval: float | None = None
    #: A wait w becomes a random one in [w, w * (1 + retry_jitter)].
    retry_jitter: float = 0.0
    #: False: after a temporary failure the step parks until `retry_step`.
    auto_retry: bool = True
    #: The workflow does not hold its caller for the step, which may be completed from outside.
    async_: bool = False
    #: Seconds from its first start; None: no limit.
    timeout: float | None = None
    #: Invoke a step that still waits for an answer again after so many seconds; None: never.
    retry_interval_awaiting: float | None = None
    #: How often at most; None: no limit.
    max_awaiting_retries: int | None = None
    #: The compensation, too, may be completed from outside.
    compensate_async: bool = False
    #: Failed for good: go on all the same.
    continue_on_permanent_failure: bool = False
    #: Failed for good: True skips every later step, a name skips until that step.
    skip_on_permanent_failure: bool | str = False
    #: The next stage does not wait for this step; only the end of the workflow does.
    no_wait: bool = False
    #: False: the output is not kept, later steps and the compensation see None.
    save_response: bool = True
    #: True: a durable checkpoint around this step; None: as the other options imply.
    store: bool | None = None
    #: There is nothing to undo: it changes nothing outside of the workflow, or the undo of another
    #: step takes it back. Nothing but `wfe workflows check` looks at it.
    pure: bool = False

    @property
    def has_deadlines(self) -> bool:
        """Whether the step may become due at a later moment."""
        return (
            self.timeout is not None
            or self.retry_interval > 0
            or self.retry_interval_awaiting is not None
        )

    @property
    def outlives_call(self) -> bool:
        """Whether the step may go on when the call that began it has returned."""
        return self.async_ or self.compensate_async or self.retry_interval > 0


class WorkflowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a whole workflow. Durations are seconds."""

    #: Seconds from the start until everything is undone; None: no limit.
    timeout: float | None = None
    #: Seconds that a finished execution is kept; None: as the recording says.
    retention_time: float | None = None
    #: A finished execution answers a second run of its id with the stored result.
    idempotent: bool = False
    store: bool = False
    description: str = ""


class StepSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a flow, as the machine sees it: no functions, no user values."""

    name: str
    stage: int
    kind: StepKind = StepKind.STEP
    options: StepOptions = StepOptions()
    #: False: undoing the step is no call; it ends `reverted` at once.
    has_compensation: bool = False
    #: Names of the `when` conditions around it, outermost first.
    guards: tuple[str, ...] = ()
    #: The workflow that a `workflow` step runs.
    child: str | None = None


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a workflow: stages one after the other, the steps of a stage together."""

    workflow_id: str
    stages: tuple[tuple[str, ...], ...]
    #: By name, in order of stages.
    steps: Mapping[str, StepSpec]
    options: WorkflowOptions = WorkflowOptions()
    #: Identifies the shape (stages, names, kinds, guards, children); options do not count.
    hash: str = ""
    #: Whether anything in it may become due at a later moment, whether a step in it may be parked
    #: until a `retry_step`, and whether one may outlive the call that began it; and, by name, the
    #: record of each step as long as nothing has happened to it. All follow from the rest.
    has_deadlines: bool = False
    has_parking: bool = False
    has_lasting_steps: bool = False
    untouched: Mapping[str, StepRecord] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        found = self.options.timeout is not None or any(
            spec.kind is StepKind.SLEEP or spec.options.has_deadlines
            for spec in self.steps.values()
        )
        msgspec.structs.force_setattr(self, "has_deadlines", found)
        parking = any(not spec.options.auto_retry for spec in self.steps.values())
        msgspec.structs.force_setattr(self, "has_parking", parking)
        lasting = any(spec.options.outlives_call for spec in self.steps.values())
        msgspec.structs.force_setattr(self, "has_lasting_steps", lasting)
        untouched = {
            name: StepRecord(name=name, stage=spec.stage) for name, spec in self.steps.items()
        }
        msgspec.structs.force_setattr(self, "untouched", untouched)

    @property
    def has_async_steps(self) -> bool:
        return any(spec.options.async_ for spec in self.steps.values())


# --- what an execution has come to ---------------------------------------------------------------


class DomainEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a step told the world by `ctx.emit`: released when the outermost execution is done."""

    name: str
    data: Any
    event_group_id: str
    workflow_id: str
    transaction_id: str
    step: str


class ErrorRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One failure, as it is stored, printed and returned."""

    #: The step; None where the result of the workflow could not be computed.
    action: str | None
    handler_type: Action
    #: The exception's class name; None where a failure was reported from outside as a plain value.
    name: str | None
    message: str
    #: The traceback, the user's own frames; None where there is none.
    stack: str | None = None
    #: How many attempts there were when the step failed for good; None: it has not.
    attempts: int | None = None
    #: The idempotency key of the child's step that it comes from; None: it is of this execution.
    origin: str | None = None


# Members of an enum are looked up slowly (see engine/names.py).
_DORMANT, _INVOKE, _COMPENSATE = StepState.DORMANT, Action.INVOKE, Action.COMPENSATE
_ACTIVE_STATUSES = frozenset({StepStatus.WAITING_RESPONSE, StepStatus.TEMP_FAILURE})


class StepRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What has happened to one step. A step that was never touched has the defaults."""

    name: str
    stage: int
    invoke: StepState = StepState.NOT_STARTED
    invoke_status: StepStatus = StepStatus.IDLE
    compensate: StepState = StepState.DORMANT
    compensate_status: StepStatus = StepStatus.IDLE
    #: Of the present action, from 1; both counters start again when the step is to be undone.
    attempts: int = 0
    failures: int = 0
    #: A handler of ours is at work on the present attempt (or still on one that was overtaken).
    running: bool = False
    #: The next attempt is wanted, but not begun: an overtaken handler has to end first, or the
    #: process was about to end.
    held: bool = False
    #: Waits for an answer from outside.
    awaiting: bool = False
    #: A durable timer runs: the step is done when `retry_at` has come.
    sleeping: bool = False
    #: How often it was invoked again because no answer came.
    awaiting_retries: int = 0
    #: Flagged to be undone when execution goes backwards.
    undo: bool = False
    #: First start of invoke, which `timeout` counts from.
    started_at: datetime | None = None
    #: Start of the newest attempt, invoke or compensate.
    last_attempt_at: datetime | None = None
    #: End of invoke, and of compensate.
    ended_at: datetime | None = None
    undone_at: datetime | None = None
    #: When the next attempt is due.
    retry_at: datetime | None = None
    output: Json | None = None
    #: What the compensation receives.
    compensate_with: Json | None = None
    #: What the attempt that succeeded has emitted, and, of a nested workflow, its steps.
    emitted: tuple[DomainEvent, ...] = ()
    #: The newest failure.
    error: ErrorRecord | None = None
    #: Why the step was skipped, where a reason was given.
    reason: str | None = None

    @property
    def is_active(self) -> bool:
        """The present side has begun and not settled, is about to begin, or an overtaken handler is
        still at work."""
        if self.running or self.held:
            return True
        forward = self.compensate is _DORMANT
        return (self.invoke_status if forward else self.compensate_status) in _ACTIVE_STATUSES

    @property
    def action(self) -> Action:
        """The side that the step is at."""
        return _INVOKE if self.compensate is _DORMANT else _COMPENSATE

    @property
    def state(self) -> StepState:
        """The state of that side."""
        return self.invoke if self.compensate is _DORMANT else self.compensate

    @property
    def status(self) -> StepStatus:
        """The status of that side."""
        if self.compensate is _DORMANT:
            return self.invoke_status
        return self.compensate_status


class Head(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is true of an execution as a whole. One row of the store, rewritten at each commit."""

    execution_id: str
    workflow_id: str
    transaction_id: str
    run_id: str
    #: `Flow.hash` of the definition it runs by.
    definition: str = ""
    state: ExecutionState = ExecutionState.NOT_STARTED
    #: Raised by one with each commit; a writer names the version it has seen.
    version: int = 0
    recording: Recording = Recording.EVERY_STEP
    retention_time: float | None = None
    idempotent: bool = False
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    #: When the workflow's `timeout` passes.
    times_out_at: datetime | None = None
    cancelled_at: datetime | None = None
    #: The workflow's `timeout` has passed.
    timed_out: bool = False
    #: The next moment at which something is due; None: nothing is.
    wake_at: datetime | None = None
    #: The engine that has it in hand: its handlers are at work, or it waits for the end of it. None:
    #: whoever comes may take it. It counts only as long as that engine's lease does.
    owner: str | None = None
    #: How often an engine has taken it in hand.
    token: int = 0
    parent_step_idempotency_key: str | None = None
    #: The run of the parent that this execution is a step of.
    parent_run_id: str | None = None
    #: `workflow:transaction` of the outermost execution; None: this one is.
    root: str | None = None
    event_group_id: str | None = None
    #: The tick that a schedule started it for; None: no schedule did.
    scheduled_for: datetime | None = None
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: Invoke and compensate failures in the order in which they happened.
    errors: tuple[ErrorRecord, ...] = ()
    #: Conditions that have been evaluated.
    guards: Mapping[str, bool] = msgspec.field(default_factory=dict)
    #: The frontier: the open stage (-1: none yet), how many of its members are still waited for,
    #: and how many `no_wait` members of any opened stage have not settled.
    stage: int = -1
    open: int = 0
    loose: int = 0
    #: Handlers at work, and steps that wait for an answer.
    running: int = 0
    awaiting: int = 0
    #: How many entries its timeline has, notices not counted.
    entries: int = 0
    #: Steps that are held back until somebody takes the execution up, and steps that wait for a
    #: `retry_step`. Counted when nothing runs.
    held: int = 0
    parked: int = 0
    #: Going backwards: the stage being undone, and how many of its members are not yet undone.
    undo_stage: int = -1
    undo_open: int = 0
    #: A compensation has failed for good: the execution will end `failed`.
    undo_failed: bool = False
    has_failed_steps: bool = False
    has_skipped_steps: bool = False
    has_skipped_on_failure_steps: bool = False
    has_reverted_steps: bool = False

    @property
    def key(self) -> ExecutionKey:
        return ExecutionKey(self.workflow_id, self.transaction_id)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


class Changes(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What one commit changes: whole new records, and only those that changed."""

    head: Head
    steps: Mapping[str, StepRecord]
    #: The timeline's new entries, in order.
    events: tuple[TimelineEvent, ...] = ()
    #: The workflow's result, in the commit that makes it `done`.
    result: Json | None = None
    #: It ends the execution, and somebody is to be told: see `wfe.store.notices`.
    owes_notice: bool = False


class EventKind(StrEnum):
    """What subscribers and the timeline are told."""

    BEGIN = "begin"
    RESUME = "resume"
    COMPENSATE_BEGIN = "compensate_begin"
    FINISH = "finish"
    TIMEOUT = "timeout"
    STEP_BEGIN = "step_begin"
    STEP_SUCCESS = "step_success"
    STEP_FAILURE = "step_failure"
    STEP_AWAITING = "step_awaiting"
    STEP_SKIPPED = "step_skipped"
    COMPENSATE_STEP_SUCCESS = "compensate_step_success"
    COMPENSATE_STEP_FAILURE = "compensate_step_failure"
    PROGRESS = "progress"  #: told to those who watch, never kept
    NOTICE = "notice"  #: kept, never told: it happens when the execution is over


class TimelineEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One thing that happened to an execution."""

    kind: EventKind
    time: datetime
    step: str | None = None
    action: Action | None = None
    attempt: int | None = None
    error: ErrorRecord | None = None
    #: The state an execution finished in, the scope of a timeout (`step` or `workflow`), or who was
    #: told of the end.
    detail: str | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What a subscriber receives. Fields that a kind does not have are None or empty."""

    kind: EventKind
    workflow_id: str
    transaction_id: str
    run_id: str
    time: datetime
    step: str | None = None
    action: Action | None = None
    attempt: int | None = None
    #: The decoded output of a step that succeeded.
    response: Any = None
    #: The failure of a step that failed.
    error: ErrorRecord | None = None
    #: `finish`: every error of the execution, its final state, and its decoded result.
    errors: tuple[ErrorRecord, ...] = ()
    state: ExecutionState | None = None
    result: Any = None
    #: `timeout`: `step` or `workflow`.
    scope: str | None = None
    #: `progress`: a fraction from 0 to 1 (None: unknown) and a text.
    fraction: float | None = None
    message: str | None = None
    #: Of an execution that is a step of another one: that step, and the run that it belongs to.
    parent_step_idempotency_key: str | None = None
    parent_run_id: str | None = None


def event_told(head: Head, entry: TimelineEvent, **told: Any) -> Event:
    """What an entry of the timeline says, of an execution with this head; `told` are the fields that the
    entry does not have."""
    return Event(
        kind=entry.kind,
        workflow_id=head.workflow_id,
        transaction_id=head.transaction_id,
        run_id=head.run_id,
        time=entry.time,
        step=entry.step,
        action=entry.action,
        attempt=entry.attempt,
        error=entry.error,
        scope=entry.detail if entry.kind is EventKind.TIMEOUT else None,
        message=entry.detail if entry.kind is EventKind.STEP_SKIPPED else None,
        **told,
    )


class Acknowledgement(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How a command was received, and where the execution stands at its return."""

    workflow_id: str
    transaction_id: str
    run_id: str | None = None
    parent_step_idempotency_key: str | None = None
    has_finished: bool = False
    #: Of run and answers: ended reverted or failed; of cancel: failed only.
    has_failed: bool = False
    exists: bool = True
    #: False: the command was refused and changed nothing; `reason` is the refusal.
    accepted: bool = True
    reason: Exception | None = None


class Execution:
    """An execution in memory: its flow, its head, and the records of the steps that were touched.

    `take` is the only mutation. Whoever holds an execution may read it between two takes.
    """

    __slots__ = ("active", "flow", "has_signals", "head", "holder", "input", "result", "steps")

    def __init__(
        self,
        flow: Flow,
        head: Head,
        *,
        input: Json | None = None,
        steps: Iterable[StepRecord] = (),
        result: Json | None = None,
        holder: str | None = None,
        has_signals: bool = False,
    ) -> None:
        self.flow = flow
        self.head = head
        #: The engine that has it in hand, and lives, as far as was known when this was made.
        self.holder = holder
        #: Commands that other processes have sent for it wait in the store, as far as was known then.
        self.has_signals = has_signals
        self.input = input
        self.result = result
        self.steps: dict[str, StepRecord] = {}
        #: Steps that have begun and not settled, in the order in which they began.
        self.active: dict[str, None] = {}
        for record in steps:
            self.steps[record.name] = record
            if record.is_active:
                self.active[record.name] = None

    def step(self, name: str) -> StepRecord:
        """The record of a step of the flow; one with the defaults where it was never touched.

        Raises:
            KeyError: the flow has no such step.
        """
        return self.steps.get(name) or self.flow.untouched[name]

    def copy(self) -> Execution:
        """The execution as it is now, which later takes leave alone."""
        copy = Execution(
            self.flow, self.head, input=self.input, result=self.result, holder=self.holder
        )
        copy.steps = self.steps.copy()
        copy.active = self.active.copy()
        return copy

    def take(self, changes: Changes) -> None:
        """Make `changes` true."""
        self.head = changes.head
        active = self.active
        for name, record in changes.steps.items():
            self.steps[name] = record
            if record.running or record.is_active:
                active[name] = None
            else:
                active.pop(name, None)
        if changes.result is not None:
            self.result = changes.result

    def errors(self, handler_type: Action | None = Action.INVOKE) -> tuple[ErrorRecord, ...]:
        """The errors of that side; of both where None."""
        if handler_type is None or not self.head.errors:
            return self.head.errors
        return tuple(e for e in self.head.errors if e.handler_type is handler_type)


class CommandResult(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What every command of the engine returns."""

    acknowledgement: Acknowledgement
    #: The workflow's decoded result; None unless the state is `done`.
    result: Any = None
    #: Invoke errors.
    errors: tuple[ErrorRecord, ...] = ()
    #: A snapshot at the return; None where there is no such execution.
    execution: Execution | None = None
