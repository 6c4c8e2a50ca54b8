"""Release: check, build, try out, ask, tag, publish; or leave no tag and no file behind.

    wfe run release -p version=0.1.0 --tx 0.1.0 --until waiting        up to the question, exit code 20
    wfe step succeed release:0.1.0:approve:invoke --response '{"approved": true, "by": "kim"}'
    wfe run release -p version=0.1.0 -p remote=origin                  the tag is pushed there, too

Before: the version is in pyproject.toml, CHANGELOG.md has a section for it, everything is committed.
Building needs the package `build` (the extra `dev`). The files and their checksums go to dist/.

When it fails, everything is as before; `wfe executions show release:0.1.0` says why. Run it again.
An answer of no, or none within a week, undoes it as well.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from wfe import PermanentStepFailure, StepContext, StepResponse, step, when, workflow

WEEK = 7 * 24 * 3600


@dataclass(frozen=True)
class Request:
    version: str
    repository: str = "."
    #: Where the files go, in the repository.
    folder: str = "dist"
    #: Where the tag is pushed to, such as origin. Empty: nowhere.
    remote: str = ""
    check: list[str] = field(default_factory=lambda: ["make", "check"])
    #: Is given the folder to build in.
    build: list[str] = field(default_factory=lambda: [sys.executable, "-m", "build", "--outdir"])
    #: Is given that folder when the files are in it.
    trial: list[str] = field(
        default_factory=lambda: [sys.executable, str(Path(__file__).with_name("_trial.py"))]
    )


@dataclass(frozen=True)
class Plan:
    """Decided before anything is made. Paths are absolute."""

    request: Request
    repository: str
    commit: str
    tag: str

    @property
    def target(self) -> Path:
        """The folder that is published."""
        return Path(self.repository) / self.request.folder / self.tag

    @property
    def built(self) -> Path:
        """The same before it is published."""
        return self.target.with_name(f".{self.tag}")


@dataclass(frozen=True)
class Answer:
    approved: bool
    by: str = ""


def run(folder: str, *command: str) -> str:
    """What a program prints. RuntimeError: it failed."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr.strip()}")
    return ended.stdout.strip()


# --- before anything can be seen -----------------------------------------------------------------


def has_tag(plan: Plan) -> bool:
    return bool(run(plan.repository, "git", "tag", "--list", plan.tag))


@step("make-plan")
def make_plan(request: Request) -> Plan:
    root = Path(request.repository).absolute()
    plan = Plan(
        request, str(root), run(str(root), "git", "rev-parse", "HEAD"), f"v{request.version}"
    )
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    complaints = []
    if version != request.version:
        complaints.append(f"pyproject.toml says {version}")
    if f"## [{request.version}]" not in (root / "CHANGELOG.md").read_text():
        complaints.append("CHANGELOG.md has no section for it")
    if has_tag(plan) or plan.target.exists():
        complaints.append("there is one already")
    if run(plan.repository, "git", "status", "--porcelain"):
        complaints.append("not everything is committed")
    if complaints:
        raise PermanentStepFailure(f"{request.version} is not ready: {'; '.join(complaints)}")
    return plan


@make_plan.compensate
def clear_away(plan: Plan | None) -> None:
    """What was built, however far it came."""
    if plan is not None:
        shutil.rmtree(plan.built, ignore_errors=True)


@step("run-checks", async_=True, timeout=3600, pure=True)
def run_checks(ctx: StepContext, plan: Plan) -> str:
    """The last line that the checks print. In the background: whoever cancels need not wait."""
    line = ""
    with subprocess.Popen(
        plan.request.check,
        cwd=plan.repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            ctx.progress(None, line.strip())
            if ctx.cancelled:
                process.terminate()
    if process.returncode:
        command = " ".join(plan.request.check)
        raise PermanentStepFailure(f"{command} ended with {process.returncode}: {line.strip()}")
    return line.strip()


@step(pure=True)  # undone by `clear_away`
def build(plan: Plan) -> list[str]:
    """The names of the files, out of the very commit that was checked."""
    shutil.rmtree(plan.built, ignore_errors=True)
    run(plan.repository, *plan.request.build, str(plan.built))
    head = run(plan.repository, "git", "rev-parse", "HEAD")
    if head != plan.commit or run(plan.repository, "git", "status", "--porcelain"):
        raise PermanentStepFailure(f"{plan.repository} has changed since {plan.tag} was planned")
    return sorted(file.name for file in plan.built.iterdir())


@step(pure=True)
def inspect(plan: Plan, files: list[str]) -> None:
    """There is a wheel that says the right version of itself, and a source archive."""
    if [Path(file).suffix for file in files] != [".whl", ".gz"]:
        raise PermanentStepFailure(f"not a wheel and a source archive: {', '.join(files)}")
    with zipfile.ZipFile(plan.built / files[0]) as wheel:
        [metadata] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        if f"Version: {plan.request.version}" not in wheel.read(metadata).decode().splitlines():
            raise PermanentStepFailure(f"{files[0]} is not of version {plan.request.version}")


@step("try-out", pure=True)
def try_out(plan: Plan) -> str:
    """What the trial says: the files work where there is nothing else."""
    return run(plan.repository, *plan.request.trial, str(plan.built))


@step(async_=True, timeout=WEEK, pure=True)
def approve(plan: Plan, files: list[str], tried: str) -> StepResponse[Answer]:
    """Waits for an answer such as {"approved": true, "by": "kim"}."""
    return StepResponse.awaiting()


@step("check-answer", pure=True)
def check_answer(answer: Answer) -> Answer:
    if not answer.approved:
        raise PermanentStepFailure(f"{answer.by or 'somebody'} did not approve the release")
    return answer


# --- what others see -----------------------------------------------------------------------------


@step("make-tag")
def make_tag(plan: Plan, answer: Answer) -> Plan:
    message = f"Version {plan.request.version}, approved by {answer.by or 'somebody'}"
    if not has_tag(plan):  # else an attempt that a crash cut short has made it
        run(plan.repository, "git", "tag", "-a", "-m", message, plan.tag, plan.commit)
    return plan


@make_tag.compensate
def delete_tag(plan: Plan | None) -> None:
    if plan is not None and has_tag(plan):
        run(plan.repository, "git", "tag", "--delete", plan.tag)


@step
def publish(plan: Plan, files: list[str]) -> Plan:
    if plan.built.exists():  # else a crash came after the renaming
        digests = [hashlib.sha256((plan.built / name).read_bytes()).hexdigest() for name in files]
        lines = [f"{digest}  {name}\n" for digest, name in zip(digests, files, strict=True)]
        (plan.built / "SHA256SUMS").write_text("".join(lines))
        plan.built.rename(plan.target)
    return plan


@publish.compensate
def withdraw(plan: Plan | None) -> None:
    if plan is not None:
        shutil.rmtree(plan.target, ignore_errors=True)


@step("push-tag", max_retries=3, retry_interval=10)
def push_tag(plan: Plan, remote: str) -> None:
    run(plan.repository, "git", "push", remote, plan.tag)


@push_tag.compensate
def delete_pushed_tag(ctx: StepContext) -> None:
    """Also where the push has failed: the tag may have got there all the same."""
    plan = ctx.outputs["make-plan"]
    remote, tag = plan["request"]["remote"], plan["tag"]
    if run(plan["repository"], "git", "ls-remote", remote, f"refs/tags/{tag}"):
        run(plan["repository"], "git", "push", "--delete", remote, tag)


@workflow("release", description="Check, build, ask, tag and publish a version, or none of it")
def release(request: Request) -> dict[str, object]:
    plan = make_plan(request)
    run_checks(plan)
    files = build(plan)
    inspect(plan, files)
    answer = check_answer(approve(plan, files, try_out(plan)))
    make_tag(plan, answer)
    publish(plan, files)
    with when(request.remote, name="remote"):
        push_tag(plan, request.remote)
    return {"tag": plan.tag, "files": files, "approved_by": answer.by}
