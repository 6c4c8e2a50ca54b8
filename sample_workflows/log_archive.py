"""Log archive: pack old logs, store them elsewhere, and delete them only when the copy is proven good.

    mkdir -p out/logs && echo hello > out/logs/shop.log
    wfe run log-archive -p folder=out/logs -p days=0    into out/bucket, or the folder $LOG_BUCKET
    wfe run log-archive -p folder=out/logs              nothing is a week old: nothing is done

It takes the place of `find -mtime +7 | tar | upload && rm` in a crontab, with what that lacks: a step
that fails brings everything back, deleted logs included.

Worth a look:
- An undo that has to clean up after a step that was cut short belongs to the step before it: what that
  one returned is on record by then. So the undo of `choose-logs` clears away half an archive, and
  that of `verify-upload` restores what `delete-logs` has deleted, however far it came.
- `pack` may take long, so it is `async_`: it works in the background, and looks at `ctx.cancelled`
  to end early where its time is up or somebody cancels. A step in the foreground is waited for.
- `bucket` is a resource: put a client of a real one in its place, with these three methods.

When it fails, everything is as before: `wfe executions show log-archive:TX` says why; run it again.
Where somebody has written to a log meanwhile that stays, and the old one comes back as NAME.restored.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from wfe import (
    PermanentStepFailure,
    StepContext,
    StepResponse,
    resource,
    step,
    transform,
    when,
    workflow,
)


@dataclass(frozen=True)
class Request:
    folder: str
    #: Logs that nobody has written to for so many days.
    days: float = 7
    #: `**/*.log`: those in folders below as well.
    pattern: str = "*.log"


@dataclass(frozen=True)
class Log:
    #: Its path in the folder.
    name: str
    sha256: str


@dataclass(frozen=True)
class Plan:
    #: Absolute.
    folder: str
    logs: list[Log]
    #: The name of the archive in the bucket.
    archive: str

    @property
    def partial(self) -> Path:
        """Where the archive is made."""
        return Path(self.folder) / f".{self.archive}"


class FolderBucket:
    """A folder that stands for a bucket of some cloud."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, file: Path) -> None:
        """Under its name it is whole, or not there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f".{name}"
        try:
            shutil.copyfile(file, partial)
            partial.replace(self.folder / name)
        finally:
            partial.unlink(missing_ok=True)

    def open(self, name: str) -> IO[bytes]:
        return (self.folder / name).open("rb")

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)


@resource
def bucket() -> FolderBucket:
    return FolderBucket(Path(os.environ.get("LOG_BUCKET", "out/bucket")).absolute())


def digest(file: IO[bytes]) -> str:
    sha256 = hashlib.sha256()
    while portion := file.read(1 << 20):
        sha256.update(portion)
    return sha256.hexdigest()


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return digest(file)


@step("choose-logs")
def choose_logs(ctx: StepContext, request: Request) -> StepResponse[Plan]:
    folder, now = Path(request.folder).absolute(), datetime.now(UTC)
    if not folder.is_dir():
        raise PermanentStepFailure(f"there is no folder {folder}")
    latest = (now - timedelta(days=request.days)).timestamp()
    files = sorted(
        file
        for file in folder.glob(request.pattern)
        if file.is_file() and file.stat().st_mtime <= latest
    )
    if not files:
        return StepResponse.skip(f"no log in {folder} is {request.days:g} days old")
    logs = [Log(str(file.relative_to(folder)), digest_of(file)) for file in files]
    return StepResponse(Plan(str(folder), logs, f"{folder.name}-{now:%Y%m%d}-{ctx.run_id}.tar.gz"))


@choose_logs.compensate
def clear_away(plan: Plan | None) -> None:
    if plan is not None:  # None: no plan was made
        plan.partial.unlink(missing_ok=True)


@step(async_=True, timeout=3600, pure=True)  # undone by `clear_away`
def pack(ctx: StepContext, plan: Plan) -> str:
    """The SHA-256 of the archive."""
    with tarfile.open(plan.partial, "w:gz") as archive:
        for number, log in enumerate(plan.logs):
            if ctx.cancelled:
                raise PermanentStepFailure("given up")
            ctx.progress(number / len(plan.logs), log.name)
            archive.add(Path(plan.folder) / log.name, log.name)
    return digest_of(plan.partial)


def members(file: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    with tarfile.open(fileobj=file, mode="r:gz") as archive:
        for info in archive:
            data = archive.extractfile(info)
            if data is not None:
                yield info, data


@step(pure=True)
def verify(plan: Plan) -> None:
    """Every log is in the archive, as it was when it was chosen."""
    with plan.partial.open("rb") as file:
        packed = {info.name: digest(data) for info, data in members(file)}
    changed = [log.name for log in plan.logs if packed.get(log.name) != log.sha256]
    if changed:
        raise PermanentStepFailure(f"changed while it was packed: {', '.join(changed)}")


@step(max_retries=4, retry_interval=2, retry_backoff=2)
def upload(ctx: StepContext, plan: Plan) -> str:
    ctx.resolve("bucket").put(plan.archive, plan.partial)
    return plan.archive


@upload.compensate
def withdraw(ctx: StepContext, archive: str | None) -> None:
    if archive is not None:
        ctx.resolve("bucket").delete(archive)


@step("verify-upload", max_retries=4, retry_interval=2, retry_backoff=2)
def verify_upload(ctx: StepContext, plan: Plan, sha256: str) -> Plan:
    with ctx.resolve("bucket").open(plan.archive) as file:
        if digest(file) != sha256:
            raise PermanentStepFailure(f"{plan.archive} is another file in the bucket")
    return plan


@verify_upload.compensate
def restore(ctx: StepContext, plan: Plan | None) -> None:
    """The logs that `delete-logs` has deleted, however far it came."""
    if plan is None:
        return
    sha256 = {log.name: log.sha256 for log in plan.logs}
    with ctx.resolve("bucket").open(plan.archive) as file:
        for info, data in members(file):
            path = Path(plan.folder) / info.name
            if path.exists():
                if digest_of(path) == sha256[info.name]:
                    continue
                path = path.with_name(f"{path.name}.restored")
            with plan.partial.open("wb") as partial:
                shutil.copyfileobj(data, partial)
            plan.partial.chmod(info.mode)
            os.utime(plan.partial, (info.mtime, info.mtime))
            plan.partial.replace(path)


@step("delete-logs")
def delete_logs(plan: Plan) -> None:
    """The originals, and the archive beside them."""
    folder = Path(plan.folder)
    for log in plan.logs:
        path = folder / log.name
        if path.exists() and digest_of(path) != log.sha256:
            raise PermanentStepFailure(f"{path} was written to meanwhile")
    for log in plan.logs:
        (folder / log.name).unlink(missing_ok=True)
    plan.partial.unlink(missing_ok=True)


def summary(plan: Plan | None) -> dict[str, object]:
    return {"logs": len(plan.logs), "archive": plan.archive} if plan else {"logs": 0}


@workflow("log-archive", description="Pack and store old logs, then delete them")
def log_archive(request: Request) -> dict[str, object]:
    plan = choose_logs(request)
    with when(plan, name="old-logs"):
        sha256 = pack(plan)
        verify(plan)
        upload(plan)
        verify_upload(plan, sha256)
        delete_logs(plan)
    return transform(plan, fn=summary)
