"""Deploy site: a new release on one server, and, if a person likes what they see, on the others.

    wfe run deploy-site --tx 7 --until waiting        docs/ to out/servers/canary, then a question
    wfe step succeed deploy-site:7:approve:invoke --response '{"approved": true, "by": "kim"}'
    wfe run deploy-site -p source=sample_workflows -p ask=false         nobody is asked

It takes the place of a script with `rsync` and `ln -sfn` for each server. Here a server is a folder
with `releases/` in it and a link `current` to one of them; `send` is the resource that copies to it.

Whatever goes wrong on any server, and where the answer is no or does not come within a day, every
server goes back to the release that it had. Answer while `wfe run` waits in another terminal, or
hours later: nothing has to run meanwhile.

Each server is a workflow of its own: `wfe executions list -w deploy-server` shows what became of it.
In it the undo belongs to the step before the one that it undoes: what that has put on record is
enough to clean up, be the next one done, failed or cut off half-way.

An application that runs this in an engine of its own hears of it by `Engine(event_sink=...)`: the
event `site.deployed` is released only when all is done.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wfe import (
    PermanentStepFailure,
    StepContext,
    StepResponse,
    WorkflowResponse,
    parallel,
    resource,
    sleep,
    step,
    when,
    workflow,
)

CANARY = "canary"
OTHERS = ["web-1", "web-2"]
DAY = 24 * 3600


@dataclass(frozen=True)
class Request:
    source: str = "docs"
    #: The folder with a folder for each server.
    servers: str = "out/servers"
    #: Seconds between the canary and what follows, after which it is looked at once more.
    soak: float = 2
    #: Whether a person has to say yes before the other servers follow.
    ask: bool = True


@dataclass(frozen=True)
class Plan:
    """A request as it was checked. Paths are absolute."""

    source: str
    servers: str
    release: str
    sha256: str


@dataclass(frozen=True)
class Target:
    plan: Plan
    server: str

    @property
    def link(self) -> Path:
        return Path(self.plan.servers) / self.server / "current"

    @property
    def folder(self) -> Path:
        return self.link.with_name("releases") / self.plan.release

    def switch_to(self, release: str) -> None:
        """In one moment: whoever reads sees the old release or the new one."""
        link = self.link.with_name(f".current.{self.plan.release}")
        link.unlink(missing_ok=True)
        link.symlink_to(release)
        try:
            link.replace(self.link)
        finally:
            link.unlink(missing_ok=True)


@dataclass(frozen=True)
class Kept:
    target: Target
    #: What `current` led to; None: there was none.
    before: str | None


@dataclass(frozen=True)
class Answer:
    approved: bool
    by: str = ""


@resource
def send() -> Callable[[Path, Path], object]:
    """How the content of a folder gets to a server; rsync, for instance."""
    return partial(shutil.copytree, dirs_exist_ok=True)


def digest(folder: Path) -> str:
    """Of the names and contents of all files in a folder."""
    sha256 = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            sha256.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0".encode())
            sha256.update(file.read_bytes())
    return sha256.hexdigest()


# --- one server ----------------------------------------------------------------------------------


@step("make-folder")
def make_folder(target: Target) -> Target:
    target.folder.mkdir(parents=True, exist_ok=True)
    return target


@make_folder.compensate
def remove_folder(target: Target | None) -> None:
    """With whatever `upload` has brought there, however far it came."""
    if target is not None:
        shutil.rmtree(target.folder, ignore_errors=True)


@step(max_retries=3, retry_interval=1, retry_backoff=2, pure=True)  # undone by `remove_folder`
def upload(ctx: StepContext, target: Target) -> None:
    ctx.resolve("send")(Path(target.plan.source), target.folder)


@step("keep-current")
def keep_current(target: Target) -> Kept:
    return Kept(target, str(target.link.readlink()) if target.link.is_symlink() else None)


@keep_current.compensate
def switch_back(kept: Kept | None) -> None:
    """Undoes what `switch` has done, if it came to that."""
    if kept is None:
        return
    if kept.before is not None:
        kept.target.switch_to(kept.before)
    elif kept.target.link.is_symlink():
        kept.target.link.unlink()


@step(pure=True)  # undone by `switch_back`
def switch(target: Target) -> None:
    target.switch_to(f"releases/{target.plan.release}")


@step(pure=True)
def check(target: Target) -> None:
    """The server shows what was to be deployed."""
    if digest(target.link.resolve()) != target.plan.sha256:
        raise PermanentStepFailure(
            f"{target.server} shows something else than {target.plan.source}"
        )


@workflow("deploy-server", description="One server of deploy-site")
def deploy_server(target: Target) -> str:
    make_folder(target)
    upload(target)
    keep_current(target)
    switch(target)
    check(target)
    return target.server


# --- all of them ---------------------------------------------------------------------------------


@step("make-plan", pure=True)
def make_plan(ctx: StepContext, request: Request) -> Plan:
    source, servers = Path(request.source).absolute(), Path(request.servers).absolute()
    if not source.is_dir():
        raise PermanentStepFailure(f"there is no folder {source}")
    return Plan(str(source), str(servers), ctx.run_id, digest(source))


@step(async_=True, timeout=DAY, pure=True)
def approve(plan: Plan) -> StepResponse[Answer]:
    """Waits for an answer such as {"approved": true, "by": "kim"}."""
    return StepResponse.awaiting()


@step("check-answer", pure=True)
def check_answer(answer: Answer) -> Answer:
    if not answer.approved:
        raise PermanentStepFailure(f"{answer.by or 'somebody'} did not approve the release")
    return answer


@step
def announce(ctx: StepContext, plan: Plan, answer: Answer | None) -> None:
    ctx.emit("site.deployed", {"release": plan.release, "by": answer.by if answer else None})


@workflow("deploy-site", description="One server, a question, the other servers; or all go back")
def deploy_site(request: Request) -> WorkflowResponse[dict[str, object]]:
    plan = make_plan(request)
    first = deploy_server.as_step.config(name=CANARY)(Target(plan, CANARY))
    sleep(request.soak, name="soak")
    check.config(name="check-canary")(Target(plan, CANARY))
    with when(request.ask, name="ask"):
        answer = check_answer(approve(plan))
    rest = parallel(
        [deploy_server.as_step.config(name=name)(Target(plan, name)) for name in OTHERS]
    )
    announce(plan, answer)
    return WorkflowResponse({"release": plan.release, "servers": [first, *rest]})
