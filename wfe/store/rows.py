"""Records as rows and back.

Which fields of a record have a column of their own is written here once (`HEAD_FIELDS`,
`STEP_FIELDS`). All others go, by name, into one JSON column, where defaults are left out; a field that
is added to the model is kept there without a change here.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec

from wfe.model import (
    Action,
    ErrorRecord,
    EventKind,
    ExecutionState,
    Flow,
    Head,
    Json,
    Recording,
    StepRecord,
    StepState,
    StepStatus,
    TimelineEvent,
)
from wfe.store.moments import (
    expires_at,
    from_micros,
    from_micros_or_none,
    to_micros,
    to_micros_or_none,
)

Row = tuple[Any, ...]

#: Fields of a head that have a column.
HEAD_FIELDS = (
    "execution_id",
    "workflow_id",
    "transaction_id",
    "run_id",
    "state",
    "version",
    "definition",
    "recording",
    "retention_time",
    "created_at",
    "updated_at",
    "ended_at",
    "wake_at",
    "running",
    "awaiting",
    "parent_step_idempotency_key",
    "root",
    "owner",
    "token",
    "held",
    "parked",
)

#: Fields of a step record that have a column.
STEP_FIELDS = (
    "name",
    "stage",
    "invoke",
    "invoke_status",
    "compensate",
    "compensate_status",
    "attempts",
    "failures",
    "awaiting",
    "last_attempt_at",
    "output",
    "compensate_with",
    "error",
)

_encode = msgspec.json.Encoder().encode


def _rest(record: type[msgspec.Struct], having_columns: Sequence[str]) -> Any:
    """A struct of the fields that have no column, and the function that takes them from a record."""
    fields = [f for f in msgspec.structs.fields(record) if f.name not in having_columns]
    fields.sort(key=lambda f: not f.required)  # those without a default must come first
    rest = msgspec.defstruct(
        f"{record.__name__}Rest",
        [(f.name, f.type, _default(f)) for f in fields],
        frozen=True,
        omit_defaults=True,
    )
    return rest, attrgetter(*(f.name for f in fields))


def _default(info: msgspec.structs.FieldInfo) -> Any:
    if info.default is not msgspec.NODEFAULT:
        return msgspec.field(default=info.default)
    if info.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=info.default_factory)
    return msgspec.field()


HeadRest, _head_rest = _rest(Head, HEAD_FIELDS)
StepRest, _step_rest = _rest(StepRecord, STEP_FIELDS)


# --- heads ---------------------------------------------------------------------------------------

#: Columns that a commit may write without touching an index: see `rests`.
QUIET_COLUMNS = (
    "version",
    "flow",
    "updated_at",
    "running",
    "owner",
    "token",
    "held",
    "parked",
    "execution",
)

#: Columns that any commit may write: all but the four ids and what is not ours to write.
MOVING_COLUMNS = (
    *QUIET_COLUMNS,
    "state",
    "definition",
    "recording",
    "retention_time",
    "expires_at",
    "created_at",
    "ended_at",
    "wake_at",
    "awaiting",
    "parent_step_idempotency_key",
    "root",
)

INSERT_COLUMNS = ("id", "workflow_id", "transaction_id", "run_id", *MOVING_COLUMNS)

_columns_that_move = attrgetter(
    "state",
    "definition",
    "recording",
    "retention_time",
    "created_at",
    "ended_at",
    "wake_at",
    "awaiting",
    "parent_step_idempotency_key",
    "root",
)


def rests(before: Head, after: Head) -> bool:
    """Whether only QUIET_COLUMNS differ. SQLite rewrites the entries of every index that has a column
    in the SET clause, changed or not: three times the cost of the row itself."""
    return bool(_columns_that_move(before) == _columns_that_move(after))


def quiet_row(head: Head, flow: str) -> Row:
    return (
        head.version,
        flow,
        to_micros(head.updated_at),
        head.running,
        head.owner,
        head.token,
        head.held,
        head.parked,
        _encode(HeadRest(*_head_rest(head))).decode(),
    )


def moving_row(head: Head, flow: str) -> Row:
    return (
        *quiet_row(head, flow),
        str(head.state),
        head.definition,
        str(head.recording),
        head.retention_time,
        expires_at(head),
        to_micros(head.created_at),
        to_micros_or_none(head.ended_at),
        to_micros_or_none(head.wake_at),
        head.awaiting,
        head.parent_step_idempotency_key,
        head.root,
    )


def insert_row(head: Head, flow: str) -> Row:
    return (
        head.execution_id,
        head.workflow_id,
        head.transaction_id,
        head.run_id,
        *moving_row(head, flow),
    )


#: The columns that `head_of` takes, in its order.
HEAD_COLUMNS = ("id", *HEAD_FIELDS[1:], "execution")

_decode_head_rest = msgspec.json.Decoder(HeadRest).decode


def head_of(row: Row) -> Head:
    values = dict(zip(HEAD_FIELDS, row, strict=False))
    values["state"] = ExecutionState(values["state"])
    values["recording"] = Recording(values["recording"])
    for name in ("created_at", "updated_at", "ended_at", "wake_at"):
        values[name] = from_micros_or_none(values[name])
    values["token"] = values["token"] or 0
    rest = _decode_head_rest(row[len(HEAD_FIELDS)])
    return Head(**values, **msgspec.structs.asdict(rest))


# --- steps ---------------------------------------------------------------------------------------

STEP_COLUMNS = ("execution_id", *STEP_FIELDS, "record")


def step_row(execution_id: str, step: StepRecord) -> Row:
    return (
        execution_id,
        step.name,
        step.stage,
        str(step.invoke),
        str(step.invoke_status),
        str(step.compensate),
        str(step.compensate_status),
        step.attempts,
        step.failures,
        int(step.awaiting),
        to_micros_or_none(step.last_attempt_at),
        text(step.output),
        text(step.compensate_with),
        None if step.error is None else _encode(step.error).decode(),
        _encode(StepRest(*_step_rest(step))).decode(),
    )


#: A step's columns as one JSON array, for `steps_of`.
STEP_AS_JSON = (
    "json_array("
    + ", ".join(f"json({c})" if c in ("error", "record") else c for c in STEP_COLUMNS[1:])
    + ")"
)

_JsonStep = tuple[
    str,
    int,
    StepState,
    StepStatus,
    StepState,
    StepStatus,
    int,
    int,
    int,
    int | None,
    str | None,
    str | None,
    ErrorRecord | None,
    StepRest,  # type: ignore[valid-type]  # made above, at import
]

_decode_step = msgspec.json.Decoder(_JsonStep).decode
_decode_steps = msgspec.json.Decoder(list[_JsonStep]).decode


def step_of(array: str) -> StepRecord:
    """The record of a STEP_AS_JSON."""
    return _step(_decode_step(array))


def steps_of(arrays: str) -> list[StepRecord]:
    """The records of a JSON array of STEP_AS_JSON."""
    return [_step(values) for values in _decode_steps(arrays)]


def _step(values: Any) -> StepRecord:
    fields = dict(zip(STEP_FIELDS, values, strict=False))
    fields["awaiting"] = bool(fields["awaiting"])
    fields["last_attempt_at"] = from_micros_or_none(fields["last_attempt_at"])
    fields["output"] = json_of(fields["output"])
    fields["compensate_with"] = json_of(fields["compensate_with"])
    return StepRecord(**fields, **msgspec.structs.asdict(values[-1]))


# --- the timeline --------------------------------------------------------------------------------

EVENT_COLUMNS = (
    "execution_id",
    "version",
    "seq",
    "kind",
    "time",
    "step",
    "action",
    "attempt",
    "error",
    "detail",
)


def event_values(event: TimelineEvent) -> Row:
    """Its columns from `kind` on."""
    return (
        str(event.kind),
        to_micros(event.time),
        event.step,
        None if event.action is None else str(event.action),
        event.attempt,
        None if event.error is None else _encode(event.error).decode(),
        event.detail,
    )


_decode_error = msgspec.json.Decoder(ErrorRecord).decode


def event_of(row: Row) -> TimelineEvent:
    """The event of its columns from `kind` on."""
    kind, time, step, action, attempt, error, detail = row
    return TimelineEvent(
        kind=EventKind(kind),
        time=from_micros(time),
        step=step,
        action=None if action is None else Action(action),
        attempt=attempt,
        error=None if error is None else _decode_error(error),
        detail=detail,
    )


# --- flows and values ----------------------------------------------------------------------------

_decode_flow = msgspec.json.Decoder(Flow).decode


def flow_text(flow: Flow) -> tuple[str, str]:
    """A flow's digest and its JSON text."""
    encoded = _encode(flow)
    return blake2b(encoded, digest_size=16).hexdigest(), encoded.decode()


def flow_of(flow: str) -> Flow:
    return _decode_flow(flow)


def text(value: Json | None) -> str | None:
    """JSON as SQLite keeps it: its json functions take texts, no blobs."""
    return None if value is None else value.decode()


def json_of(value: str | None) -> Json | None:
    return None if value is None else value.encode()
