"""The tables, as Peewee models. `migrations` creates and changes them; this file names them.

A checkpoint writes what changed and no more: the head of an execution is one row, each step that has
started is a row, and what never changes (the input, the flow) lies apart from what changes at every
step. `workflow_execution` has columns for what is searched, sorted or compared; the rest of a head is
the JSON object in `execution`. `execution_step` likewise, with `record`. Values of users (`input`,
`result`, `output`, `compensate_with`) and `error` are JSON texts, so that SQL can look into them:

    SELECT name, json_extract(output, '$.total') FROM execution_step WHERE execution_id = …

A moment is an INTEGER, in microseconds since 1970 in UTC. To read one:

    SELECT datetime(created_at / 1e6, 'unixepoch') FROM workflow_execution

In `workflow_execution`, `serial` counts rows in the order in which they came: the newest run of a key
is the one with the highest, whatever the clock did in between. `definition` is the hash of the flow's
shape; two flows of one shape may differ in options, so the row of `definition` is named by `flow`,
the digest of the whole text. A flow is kept once and for good: one small row for each change of the
workflow's code. `owner` names the engine that has the execution in hand, which counts as long as the
lease in the table `owner` does. `deleted_at` is for a soft delete; nothing sets it yet.

The models are bound to no database: a query is executed by the database it is handed to.
"""

from __future__ import annotations

from datetime import datetime

from peewee import AutoField, BlobField, CompositeKey, FloatField, IntegerField, Model, TextField

from wfe.store.moments import to_micros_or_none

#: The states in which nothing more happens, as SQL. SQLite uses a partial index only for a query
#: that repeats the index's condition word for word, so these are texts and not parameters.
FINISHED = "state IN ('done', 'reverted', 'failed')"
UNFINISHED = "state NOT IN ('done', 'reverted', 'failed')"


class MomentField(IntegerField):
    """Microseconds since 1970 in UTC. In a query it is compared with an aware datetime."""

    def db_value(self, value: datetime | None) -> int | None:
        return to_micros_or_none(value)


class Table(Model):
    class Meta:
        database = None
        legacy_table_names = False


class WorkflowExecution(Table):
    """A run of a workflow: its head."""

    serial = AutoField()
    id = TextField()
    workflow_id = TextField()
    transaction_id = TextField()
    run_id = TextField()
    state = TextField()
    version = IntegerField()
    definition = TextField()
    flow = TextField()
    recording = TextField()
    #: Seconds; REAL, so that what comes back equals what went in.
    retention_time = FloatField(null=True)
    expires_at = MomentField(null=True)
    created_at = MomentField()
    updated_at = MomentField()
    ended_at = MomentField(null=True)
    wake_at = MomentField(null=True)
    deleted_at = MomentField(null=True)
    running = IntegerField()
    awaiting = IntegerField()
    parent_step_idempotency_key = TextField(null=True)
    root = TextField(null=True)
    owner = TextField(null=True)
    token = IntegerField(null=True)
    execution = TextField()
    held = IntegerField()
    parked = IntegerField()


class ExecutionPayload(Table):
    """What an execution was given and what it came to."""

    execution_id = TextField(primary_key=True)
    input = TextField(null=True)
    result = TextField(null=True)


class Definition(Table):
    """A flow, shared by all the executions that run by it."""

    digest = TextField(primary_key=True)
    hash = TextField()
    workflow_id = TextField()
    flow = TextField()
    created_at = MomentField()


class ExecutionStep(Table):
    """A step that has been touched."""

    execution_id = TextField()
    name = TextField()
    stage = IntegerField()
    invoke = TextField()
    invoke_status = TextField()
    compensate = TextField()
    compensate_status = TextField()
    attempts = IntegerField()
    failures = IntegerField()
    awaiting = IntegerField()
    last_attempt_at = MomentField(null=True)
    output = TextField(null=True)
    compensate_with = TextField(null=True)
    error = TextField(null=True)
    record = TextField()

    class Meta:
        primary_key = CompositeKey("execution_id", "name")
        without_rowid = True


class ExecutionEvent(Table):
    """The timeline: what happened in the commit that made `version`, in order of `seq`."""

    execution_id = TextField()
    version = IntegerField()
    seq = IntegerField()
    kind = TextField()
    time = MomentField()
    step = TextField(null=True)
    action = TextField(null=True)
    attempt = IntegerField(null=True)
    error = TextField(null=True)
    detail = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("execution_id", "version", "seq")
        without_rowid = True


class Owner(Table):
    """The lease of an engine: see `wfe.store.owners`."""

    id = TextField(primary_key=True)
    since = MomentField()
    expires_at = MomentField()
    #: In seconds of the monotonic clock of the engine's host, which is told apart by its boot.
    beats_until = FloatField()


class ExecutionNotice(Table):
    """An end that somebody is to be told of: see `wfe.store.notices`."""

    execution_id = TextField(primary_key=True)
    #: Of the commit that ended it.
    version = IntegerField()
    owed_since = MomentField()
    owner = TextField(null=True)


class Signal(Table):
    """A command for an execution that another process has in hand."""

    id = AutoField()
    execution_id = TextField()
    kind = TextField()
    step = TextField(null=True)
    action = TextField(null=True)
    payload = TextField()
    sender = TextField(null=True)
    sent_at = MomentField()
    #: `pending`, `applied` or `refused`; the refusal is in `outcome`.
    state = TextField()
    outcome = TextField(null=True)
    settled_at = MomentField(null=True)


class Schedule(Table):
    """A schedule that was ever served: see `wfe.store.ledger`."""

    name = TextField(primary_key=True)
    workflow_id = TextField()
    origin = TextField()
    source = TextField(null=True)
    timing = TextField()
    definition = TextField()
    anchor = MomentField()
    accounted_until = MomentField()
    fired = IntegerField()
    paused_at = MomentField(null=True)
    resumed_at = MomentField(null=True)
    holder = TextField(null=True)
    #: Its last fires: a JSON list of moments, each with the version that computed it.
    fires = TextField()


class ScheduleTick(Table):
    """What became of a schedule at one of its moments."""

    schedule = TextField()
    scheduled_for = MomentField()
    kind = TextField()
    state = TextField()
    reason = TextField(null=True)
    transaction_id = TextField()
    execution_id = TextField(null=True)
    error = TextField(null=True)
    owner = TextField(null=True)
    is_open = IntegerField()
    decided_at = MomentField()

    class Meta:
        primary_key = CompositeKey("schedule", "scheduled_for")
        without_rowid = True


class SearchBlock(Table):
    """The ids of up to 4096 executions: see `wfe.store.queries.blocks_schema`."""

    block = IntegerField(primary_key=True)
    ids = BlobField()


class SchemaVersion(Table):
    """The migrations that have been applied."""

    version = IntegerField(primary_key=True)
    name = TextField()
    applied_at = MomentField()


ALL = (
    WorkflowExecution,
    ExecutionPayload,
    Definition,
    ExecutionStep,
    ExecutionEvent,
    ExecutionNotice,
    Owner,
    Signal,
    Schedule,
    ScheduleTick,
    SearchBlock,
    SchemaVersion,
)


def columns(table: type[Table]) -> tuple[str, ...]:
    """The column names of a table, in order."""
    return tuple(field.column_name for field in table._meta.sorted_fields)
