"""Hints for a shell that completes a word: keys in a database that begin so.

A person waits for them with a finger on the key. So they are read with SQLite alone, a few of them,
along indexes; and where that does not succeed at once (there is no database, it is locked, or another
schema) there are none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from wfe.clock import monotonic

#: How many are given.
LIMIT = 100

#: Seconds that a lock, and that an answer is waited for.
_PATIENCE = 0.2

#: Behind whatever a text may go on with.
_END = "\U0010ffff"

#: Jumps from one workflow to the next, however many executions each has.
_WORKFLOWS = """
WITH RECURSIVE known (id) AS (
    SELECT min(workflow_id) FROM workflow_execution WHERE deleted_at IS NULL
    UNION ALL
    SELECT (SELECT min(workflow_id) FROM workflow_execution
            WHERE workflow_id > known.id AND deleted_at IS NULL)
    FROM known WHERE known.id IS NOT NULL
)
SELECT id FROM known WHERE id IS NOT NULL
"""

_NEWEST = f"""
SELECT workflow_id || ':' || transaction_id FROM workflow_execution
WHERE deleted_at IS NULL ORDER BY created_at DESC, id DESC LIMIT {10 * LIMIT}
"""

_NEWEST_OF_WORKFLOW = f"""
SELECT workflow_id || ':' || transaction_id FROM workflow_execution
WHERE workflow_id = ? AND deleted_at IS NULL ORDER BY created_at DESC, id DESC LIMIT {LIMIT}
"""

_OF_WORKFLOW = f"""
SELECT DISTINCT workflow_id || ':' || transaction_id FROM workflow_execution
WHERE workflow_id = ? AND transaction_id >= ? AND transaction_id < ? AND deleted_at IS NULL
ORDER BY transaction_id LIMIT {LIMIT}
"""

_TRANSACTIONS = f"""
SELECT DISTINCT transaction_id FROM workflow_execution
WHERE transaction_id >= ? AND transaction_id < ? AND deleted_at IS NULL
ORDER BY transaction_id LIMIT {LIMIT}
"""

_STEPS = """
SELECT name FROM execution_step WHERE execution_id = (
    SELECT id FROM workflow_execution
    WHERE workflow_id = ? AND transaction_id = ? AND deleted_at IS NULL
    ORDER BY serial DESC LIMIT 1
) ORDER BY stage, name
"""

_WAITING_KEY = """
SELECT e.workflow_id || ':' || e.transaction_id || ':' || s.name || ':' ||
       CASE s.compensate WHEN 'dormant' THEN 'invoke' ELSE 'compensate' END
"""

_WAITING = f"""
{_WAITING_KEY}
FROM execution_step s JOIN workflow_execution e ON e.id = s.execution_id
WHERE s.awaiting AND e.deleted_at IS NULL
ORDER BY s.last_attempt_at LIMIT {10 * LIMIT}
"""

_WAITING_OF_WORKFLOW = f"""
{_WAITING_KEY}
FROM workflow_execution e CROSS JOIN execution_step s ON s.execution_id = e.id
WHERE e.workflow_id = ? AND e.transaction_id >= ? AND e.transaction_id < ?
  AND e.deleted_at IS NULL AND s.awaiting
LIMIT {10 * LIMIT}
"""


def workflows(database: Path, beginning: str) -> Sequence[str]:
    """Workflows that have executions."""
    return _beginning_so(beginning, _texts(database, _WORKFLOWS))


def executions(database: Path, beginning: str) -> Sequence[str]:
    """Keys of executions, the newest first; transaction ids, too, where one begins so."""
    workflow, colon, transaction = beginning.partition(":")
    if colon:
        ends = (transaction, transaction + _END)
        found = (
            _texts(database, _OF_WORKFLOW, workflow, *ends)
            if transaction
            else _texts(database, _NEWEST_OF_WORKFLOW, workflow)
        )
        return _beginning_so(beginning, found)
    newest = _beginning_so(beginning, _texts(database, _NEWEST))
    if not beginning:
        return newest
    alone = _texts(database, _TRANSACTIONS, beginning, beginning + _END)
    return [*newest, *alone][:LIMIT]


def steps(database: Path, beginning: str) -> Sequence[str]:
    """Keys of the steps of an execution that `beginning` names, with a colon behind it."""
    execution, colon, _ = beginning.rpartition(":")
    workflow, also, transaction = execution.partition(":")
    if not (colon and also):
        return []
    names = _texts(database, _STEPS, workflow, transaction)
    return _beginning_so(beginning, [f"{execution}:{name}" for name in names])


def waiting(database: Path, beginning: str) -> Sequence[str]:
    """Keys of steps that wait for an answer, those first that have waited longest."""
    workflow, colon, rest = beginning.partition(":")
    if not colon:
        return _beginning_so(beginning, _texts(database, _WAITING))
    transaction = rest.partition(":")[0]  # its beginning, where it has colons itself
    found = _texts(database, _WAITING_OF_WORKFLOW, workflow, transaction, transaction + _END)
    return _beginning_so(beginning, found)


def schedules(database: Path, beginning: str) -> Sequence[str]:
    """Schedules that were ever served."""
    return _beginning_so(beginning, _texts(database, "SELECT name FROM schedule ORDER BY name"))


def _beginning_so(beginning: str, texts: Sequence[str]) -> Sequence[str]:
    found = dict.fromkeys(text for text in texts if text.startswith(beginning))
    return list(found)[:LIMIT]


def _texts(database: Path, question: str, *values: str) -> Sequence[str]:
    with suppress(sqlite3.Error, OSError, ValueError), _opened(database) as connection:
        return [text for (text,) in connection.execute(question, values)]
    return []


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    uri = f"{database.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE)) as connection:
        deadline = monotonic() + _PATIENCE
        connection.set_progress_handler(lambda: monotonic() > deadline, 10_000)
        yield connection
