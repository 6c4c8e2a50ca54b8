"""The schema, as numbered migrations. Each is applied in one transaction together with its record in
`schema_version`, so that a file is at a version or it is not.

A migration that has been released is never edited: it is a text of its time, while `tables` moves on.
(Creating tables from the models would let the first migration change under the feet of those after
it.) A test holds that all of them together make what `tables` names.

Before the first migration of a file that has executions, the file is copied to `<file>.backup-vN`,
where N is the version it has. The copy is made under the write lock, so that no other process can
have migrated it in between, and gets its name when it is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from wfe.errors import SchemaTooNew, StoreUnusable
from wfe.store import backup, private
from wfe.store.connection import Connection
from wfe.store.queries import blocks_schema
from wfe.store.tables import SchemaVersion, WorkflowExecution

#: Marks a SQLite file as ours, in its header ("wfe1").
APPLICATION_ID = 0x77666531


class Migration(NamedTuple):
    version: int
    name: str
    statements: tuple[str, ...]


_CREATE = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """
    CREATE TABLE definition (
        digest TEXT NOT NULL PRIMARY KEY,
        hash TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        flow TEXT NOT NULL,
        created_at INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE workflow_execution (
        serial INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        workflow_id TEXT NOT NULL,
        transaction_id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        state TEXT NOT NULL,
        version INTEGER NOT NULL,
        definition TEXT NOT NULL,
        flow TEXT NOT NULL REFERENCES definition (digest),
        recording TEXT NOT NULL,
        retention_time REAL,
        expires_at INTEGER,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        ended_at INTEGER,
        wake_at INTEGER,
        deleted_at INTEGER,
        running INTEGER NOT NULL,
        awaiting INTEGER NOT NULL,
        parent_step_idempotency_key TEXT,
        root TEXT,
        owner TEXT,
        token INTEGER,
        execution TEXT NOT NULL
    )
    """,
    # A run is there once, and of a key one run at most is unfinished.
    """
    CREATE UNIQUE INDEX workflow_execution_run
    ON workflow_execution (workflow_id, transaction_id, run_id)
    WHERE deleted_at IS NULL
    """,
    """
    CREATE UNIQUE INDEX workflow_execution_unfinished
    ON workflow_execution (workflow_id, transaction_id)
    WHERE state NOT IN ('done', 'reverted', 'failed') AND deleted_at IS NULL
    """,
    # Lists, newest first. Only what is not deleted: a count then needs the index alone.
    """
    CREATE INDEX workflow_execution_newest
    ON workflow_execution (created_at, id) WHERE deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_state
    ON workflow_execution (state, created_at, id) WHERE deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_workflow
    ON workflow_execution (workflow_id, created_at, id) WHERE deleted_at IS NULL
    """,
    # Keys that a person shortens to a transaction id or to the beginning of a run id.
    """
    CREATE INDEX workflow_execution_transaction
    ON workflow_execution (transaction_id) WHERE deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_run_id
    ON workflow_execution (run_id) WHERE deleted_at IS NULL
    """,
    # Children, which go when their root goes.
    """
    CREATE INDEX workflow_execution_root ON workflow_execution (root) WHERE root IS NOT NULL
    """,
    # What is unfinished, due, waiting for an answer, or may go: few of many.
    """
    CREATE INDEX workflow_execution_open
    ON workflow_execution (created_at, id)
    WHERE state NOT IN ('done', 'reverted', 'failed') AND deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_wake
    ON workflow_execution (wake_at)
    WHERE wake_at IS NOT NULL AND state NOT IN ('done', 'reverted', 'failed')
      AND deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_awaiting
    ON workflow_execution (created_at, id) WHERE awaiting > 0 AND deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_expiry
    ON workflow_execution (expires_at) WHERE expires_at IS NOT NULL AND deleted_at IS NULL
    """,
    """
    CREATE TABLE execution_payload (
        execution_id TEXT NOT NULL PRIMARY KEY
            REFERENCES workflow_execution (id) ON DELETE CASCADE,
        input TEXT,
        result TEXT
    )
    """,
    """
    CREATE TABLE execution_step (
        execution_id TEXT NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        stage INTEGER NOT NULL,
        invoke TEXT NOT NULL,
        invoke_status TEXT NOT NULL,
        compensate TEXT NOT NULL,
        compensate_status TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        awaiting INTEGER NOT NULL,
        last_attempt_at INTEGER,
        output TEXT,
        compensate_with TEXT,
        error TEXT,
        record TEXT NOT NULL,
        PRIMARY KEY (execution_id, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE INDEX execution_step_awaiting
    ON execution_step (last_attempt_at, execution_id, name) WHERE awaiting
    """,
    """
    CREATE TABLE execution_event (
        execution_id TEXT NOT NULL REFERENCES workflow_execution (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        time INTEGER NOT NULL,
        step TEXT,
        action TEXT,
        attempt INTEGER,
        error TEXT,
        detail TEXT,
        PRIMARY KEY (execution_id, version, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE schema_version (
        version INTEGER NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        applied_at INTEGER NOT NULL
    )
    """,
)

_PROCESSES = (
    """
    CREATE TABLE owner (
        id TEXT NOT NULL PRIMARY KEY,
        since INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        beats_until REAL NOT NULL
    ) WITHOUT ROWID
    """,
    # Numbers are never used again: who waits for the outcome of one must not find another's.
    """
    CREATE TABLE signal (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        execution_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        step TEXT,
        action TEXT,
        payload TEXT NOT NULL,
        sender TEXT,
        sent_at INTEGER NOT NULL,
        state TEXT NOT NULL,
        outcome TEXT,
        settled_at INTEGER
    )
    """,
    "CREATE INDEX signal_pending ON signal (execution_id) WHERE state = 'pending'",
    "CREATE INDEX signal_execution ON signal (execution_id)",
    "ALTER TABLE workflow_execution ADD COLUMN held INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE workflow_execution ADD COLUMN parked INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE workflow_execution
    SET owner = json_extract(execution, '$.owner'), execution = json_remove(execution, '$.owner')
    WHERE json_extract(execution, '$.owner') IS NOT NULL
    """,
)

_LEDGER = (
    """
    CREATE TABLE schedule (
        name TEXT NOT NULL PRIMARY KEY,
        workflow_id TEXT NOT NULL,
        origin TEXT NOT NULL,
        source TEXT,
        timing TEXT NOT NULL,
        definition TEXT NOT NULL,
        anchor INTEGER NOT NULL,
        accounted_until INTEGER NOT NULL,
        fired INTEGER NOT NULL,
        paused_at INTEGER,
        resumed_at INTEGER,
        holder TEXT
    )
    """,
    """
    CREATE TABLE schedule_tick (
        schedule TEXT NOT NULL REFERENCES schedule (name) ON DELETE CASCADE,
        scheduled_for INTEGER NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        transaction_id TEXT NOT NULL,
        execution_id TEXT,
        error TEXT,
        owner TEXT,
        is_open INTEGER NOT NULL,
        decided_at INTEGER NOT NULL,
        PRIMARY KEY (schedule, scheduled_for)
    ) WITHOUT ROWID
    """,
    # What is to be begun, what goes on, and what may be forgotten.
    "CREATE INDEX schedule_tick_due ON schedule_tick (scheduled_for) WHERE state = 'due'",
    "CREATE INDEX schedule_tick_open ON schedule_tick (schedule) WHERE is_open",
    "CREATE INDEX schedule_tick_decided ON schedule_tick (decided_at)",
)

_NOTICES = (
    """
    CREATE TABLE execution_notice (
        execution_id TEXT NOT NULL PRIMARY KEY
            REFERENCES workflow_execution (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        owed_since INTEGER NOT NULL,
        owner TEXT
    ) WITHOUT ROWID
    """,
    "ALTER TABLE schedule ADD COLUMN fires TEXT NOT NULL DEFAULT '[]'",
)

MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "executions", _CREATE),
    Migration(2, "leases and signals", _PROCESSES),
    Migration(3, "search", blocks_schema.STATEMENTS),
    Migration(4, "schedules", _LEDGER),
    Migration(5, "notices", _NOTICES),
)


_NEWEST = "SELECT max(version) FROM schema_version"


def schema_version(connection: Connection) -> int:
    """The version of a file; 0 where it is empty.

    Raises:
        StoreUnusable: it holds tables that are not ours.
    """
    if not _is_ours(connection):
        if connection.raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            return 0
        # Another process may have made it ours between these two looks.
        if not _is_ours(connection):
            raise StoreUnusable(
                f"{connection.path} is the database of another program.",
                hint="Nothing was changed; name another file with --db PATH.",
            )
    # As text: every command asks, and most of the time would go into making it of the model.
    return int(connection.raw.execute(_NEWEST).fetchone()[0] or 0)


def _is_ours(connection: Connection) -> bool:
    return bool(connection.pragma("application_id") == APPLICATION_ID)


def check_not_newer(version: int, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """
    Raises:
        SchemaTooNew: this program does not know that version.
    """
    if version > migrations[-1].version:
        raise SchemaTooNew(
            f"{path} was written by a newer wfe (schema {version}, this one knows"
            f" {migrations[-1].version}).",
            hint="Nothing was changed; use that version, or another file with --db PATH.",
        )


class Migrated(NamedTuple):
    """What bringing a file up to date came to."""

    #: The version it had; 0: it was empty.
    before: int
    after: int
    #: The copy of the file as it was; None: nothing was due, or there was nothing to lose.
    backup: Path | None


def migrate(
    connection: Connection, *, now: datetime, migrations: Sequence[Migration] = MIGRATIONS
) -> Migrated:
    """Apply what is missing, one transaction each. Costs one query where nothing is.

    Several processes may do this at once: each looks again under the write lock.

    Raises:
        StoreUnusable: the file is another program's.
        SchemaTooNew: a newer version wrote it. In both cases nothing is changed.
    """
    backed_up: Path | None = None
    first: int | None = None
    while True:
        version = schema_version(connection)
        first = version if first is None else first
        check_not_newer(version, connection.path, migrations)
        due = [migration for migration in migrations if migration.version > version]
        if not due:
            return Migrated(first, version, backed_up)
        with connection.transaction():
            if schema_version(connection) != version:
                continue
            if backed_up is None and version > 0 and _has_rows(connection):
                backed_up = _back_up(connection.path, version)
            _apply(connection, due[0], now)


def _has_rows(connection: Connection) -> bool:
    return (
        connection.run(WorkflowExecution.select(WorkflowExecution.id).limit(1)).fetchone()
        is not None
    )


def _apply(connection: Connection, migration: Migration, now: datetime) -> None:
    for statement in migration.statements:
        connection.raw.execute(statement)
    record = {"version": migration.version, "name": migration.name, "applied_at": now}
    connection.run(SchemaVersion.insert(record))


def _back_up(path: Path, version: int) -> Path:
    """A copy of the file as it is; what an earlier attempt left is replaced."""
    target = path.with_name(f"{path.name}.backup-v{version}")
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        private.make_file(part)
        backup.copy_into(part, path)
        backup.publish(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return target
