"""Announcement: what somebody who is told of an end gets, as one JSON document and a few variables."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wfe.endings import CODES, ending_of, error_document
from wfe.model import Execution, ExecutionState
from wfe.runtime.values import decoded


def announcement(execution: Execution, database: str | os.PathLike[str] | None) -> dict[str, Any]:
    """What a finished execution came to. `database` is the file that it is kept in, where it is."""
    head = execution.head
    ending = ending_of(head)
    assert ending is not None
    return {
        "key": str(head.key),
        "workflow": head.workflow_id,
        "transaction": head.transaction_id,
        "run": head.run_id,
        "id": head.execution_id,
        "state": str(head.state),
        "ending": ending,
        "exit_code": CODES[ending],
        "result": decoded(execution.result) if head.state is ExecutionState.DONE else None,
        "errors": [error_document(record) for record in head.errors],
        "created": _iso(head.created_at),
        "started": _iso(head.started_at),
        "ended": _iso(head.ended_at),
        "scheduled_for": _iso(head.scheduled_for),
        "metadata": dict(head.metadata),
        "show": _command(str(head.key), database),
    }


def variables(document: Mapping[str, Any]) -> dict[str, str]:
    """What a command finds in its environment. In its turn it tells nobody: a command that runs a
    workflow which fails would have itself run for ever."""
    return {
        "WFE_EXECUTION": document["key"],
        "WFE_STATE": document["state"],
        "WFE_ENDING": document["ending"],
        "WFE_ON_FINISH": "off",
    }


def _command(key: str, database: str | os.PathLike[str] | None) -> str | None:
    """What shows more; None where nothing is kept that a command could show."""
    if database is None:
        return None
    return shlex.join(["wfe", "executions", "show", key, "--db", os.fspath(database)])


def _iso(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
