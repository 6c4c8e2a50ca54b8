"""The examination of the workflows that are here against the executions that need them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from wfe.discover import Catalog
from wfe.doctor.results import quoted, result
from wfe.engine.redefinition import carried_over
from wfe.errors import DefinitionChanged, WfeError
from wfe.model import ExecutionKey
from wfe.store import standing
from wfe.store.checkup import Result
from wfe.store.connection import Connection
from wfe.store.invariants import Finding
from wfe.store.reader import SQLiteReader

#: Executions of one changed workflow that are looked into.
_LOOKED_INTO = 100


def modules(catalog: Catalog) -> Result:
    """What does not load."""
    errors: list[WfeError] = [*catalog.failures, *catalog.conflicts.values()]
    findings = [Finding(error.message, mend="wfe workflows check") for error in errors]
    count = len(catalog.registry.ids())
    claim = f"every module loads: {count} workflow{'s' * (count != 1)}"
    return result("modules", claim, findings)


def needed(
    catalog: Catalog, connection: Connection, reader: SQLiteReader, now: datetime
) -> Iterator[Result]:
    """What unfinished executions and schedules need, and do not find."""
    groups = standing.unfinished(connection)
    here = set(catalog.registry.ids())
    yield result(
        "workflows",
        "unfinished executions find their workflow",
        [_missing(group) for group in groups if group.workflow_id not in here],
    )
    changed = [
        finding
        for group in groups
        if group.workflow_id in here
        and group.definition != catalog.registry.get(group.workflow_id).flow.hash
        for key in standing.unfinished_of(connection, group, limit=_LOOKED_INTO)
        for finding in _changed(catalog, reader, key, now)
    ]
    yield result(
        "definitions",
        "unfinished executions can go on by the present steps of their workflow",
        changed,
    )
    yield result(
        "schedules",
        "every schedule finds its workflow",
        [
            Finding(
                f"The schedule {name!r} runs {workflow!r}, which no module here defines.",
                mend=f"wfe schedules delete {quoted(name)} -y",
            )
            for name, workflow in standing.schedules(connection)
            if workflow not in here
        ],
    )


def _missing(group: standing.Group) -> Finding:
    many = group.number != 1
    return Finding(
        f"{group.number} unfinished execution{'s' * many} of {group.workflow_id!r}, such as "
        f"{group.example}: no module here defines it. Bring it back, or name its module.",
        mend=f"wfe executions resume {quoted(group.example)} --app FILE",
    )


def _changed(
    catalog: Catalog, reader: SQLiteReader, key: ExecutionKey, now: datetime
) -> Iterator[Finding]:
    execution = reader.load(key)
    if execution is None:
        return
    try:
        carried_over(execution, catalog.registry.get(key.workflow_id).flow, now)
    except DefinitionChanged as error:
        ways, _, command = error.hint.rpartition(": ")
        is_command = command.startswith("wfe ")
        message = f"{error.message} {ways if is_command else error.hint}".rstrip()
        yield Finding(message, mend=command if is_command else None)
