"""Back up a SQLite database: copy, check, publish, forget the oldest.

    wfe run backup-database                              wfe's own database, into backups/ beside it
    wfe run backup-database -p source=shop.db -p folder=/backups -p keep=30

The source may be in use; it is by default, for it is the database that records this very run (in the
copy, this run is unfinished). A backup appears under its name only when it is whole and checked, and
older ones are deleted only after that.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wfe import PermanentStepFailure, StepContext, WorkflowResponse, config, step, workflow
from wfe.store import backup, private

NAME = re.compile(r"wfe-\d{8}T\d{6}Z\.db")


@dataclass(frozen=True)
class Request:
    #: Default: the database that wfe itself uses here.
    source: str | None = None
    #: Default: `backups` in the folder of the source.
    folder: str | None = None
    #: How many backups stay in the folder, the new one included.
    keep: int = 7


@dataclass(frozen=True)
class Plan:
    """Decided once, so that a step that runs again works on the same files. Absolute paths."""

    source: str
    #: The copy while it is made and checked, and its final name in the same folder.
    partial: str
    target: str
    keep: int


@step("plan", max_retries=3, retry_interval=0.5, pure=True)
def make_plan(ctx: StepContext, request: Request) -> Plan:
    """A second backup within the same second waits for the next one."""
    if request.keep < 1:
        raise PermanentStepFailure(f"keep must be at least 1, not {request.keep}")
    source = Path(request.source or config.load().db).absolute()
    if not source.is_file():
        raise PermanentStepFailure(f"there is no database {source}")
    folder = Path(request.folder).absolute() if request.folder else source.parent / "backups"
    target = folder / f"wfe-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db"
    if target.exists():
        raise FileExistsError(f"{target} exists")
    partial = folder / f".{target.name}.{ctx.run_id}"
    return Plan(str(source), str(partial), str(target), request.keep)


@step("copy-database")
def copy_database(plan: Plan) -> Plan:
    """Waits for an hour where somebody holds the source locked."""
    partial = Path(plan.partial)
    try:
        partial.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        private.make_file(partial)
        backup.copy_into(partial, Path(plan.source), patience=3600)
    except (OSError, sqlite3.Error) as error:
        raise PermanentStepFailure(f"{plan.source} cannot be copied: {error}", plan) from error
    return plan


@copy_database.compensate
def remove_partial(plan: Plan | None) -> None:
    if plan is not None and Path(plan.partial).exists():
        Path(plan.partial).unlink()


@step("check-copy", pure=True)
def check_copy(plan: Plan) -> None:
    if found := backup.damage(Path(plan.partial)):
        raise PermanentStepFailure(f"{plan.source} is damaged: {found}")


@step
def publish(plan: Plan) -> Plan:
    partial, target = Path(plan.partial), Path(plan.target)
    # An attempt that a crash cut short may have renamed it already. The name survives a power cut
    # before older backups go.
    backup.publish(partial if partial.exists() else target, target)
    return plan


@publish.compensate
def withdraw(plan: Plan | None) -> None:
    if plan is not None:
        Path(plan.target).unlink(missing_ok=True)


@step(continue_on_permanent_failure=True)
def rotate(plan: Plan) -> list[str]:
    """The names it deleted. An old backup that will not go is no reason to undo the new one."""
    new = Path(plan.target)
    others = sorted(
        (file for file in new.parent.iterdir() if NAME.fullmatch(file.name) and file != new),
        reverse=True,
    )
    for file in others[plan.keep - 1 :]:
        file.unlink(missing_ok=True)
    return [file.name for file in others[plan.keep - 1 :]]


@workflow("backup-database", description="Copy a database, check the copy, keep the newest few")
def backup_database(request: Request) -> WorkflowResponse[dict[str, object]]:
    copied = copy_database(make_plan(request))
    check_copy(copied)
    published = publish(copied)
    deleted = rotate(published)
    return WorkflowResponse({"backup": published.target, "deleted": deleted})
