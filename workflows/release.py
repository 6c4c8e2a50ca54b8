"""Release: check, build, try out, ask, tag, publish; or leave no tag and no file behind.

    wfe run release -p version=0.1.0 --tx 0.1.0 --until waiting        up to the question, exit code 20
    wfe step succeed release:0.1.0:approve:invoke --response '{"approved": true, "by": "kim"}'
    wfe run release -p version=0.1.0 -p remote=origin                  the tag is pushed there, too

Before: the version is in pyproject.toml, CHANGELOG.md has a section for it, everything is committed.
Building needs the package `build` (the extra `dev`). The files and their checksums go to dist/.

When it fails, everything is as before; `wfe executions show release:0.1.0` says why. Run it again.
An answer of no, or none within a week, undoes it as well. What others have made under the same name,
a tag here or at the remote, or a folder in dist/, is neither taken for ours nor removed.

As in the samples, an undo belongs to the step before the one that it undoes, so that it cleans up after
one that was cut off half-way, too: that of `make-plan` removes what was built, that of `check-answer`
what others could see.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

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
    #: Tells what this release has made from what another one of the version has.
    run_id: str

    @property
    def ref(self) -> str:
        """The tag, as git names it in full."""
        return f"refs/tags/{self.tag}"

    @property
    def target(self) -> Path:
        """The folder that is published."""
        return Path(self.repository) / self.request.folder / self.tag

    @property
    def built(self) -> Path:
        """The same before it is published."""
        return self.target.with_name(f".{self.tag}.{self.run_id}")


@dataclass(frozen=True)
class Answer:
    approved: bool
    by: str = ""


@dataclass(frozen=True)
class Approved:
    """What may be seen by others. `files`: name → SHA-256."""

    plan: Plan
    files: dict[str, str]
    by: str


def run(folder: str, *command: str) -> str:
    """What a program prints. RuntimeError: it failed; the last that it has said."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        last = "\n".join(said[-10:])
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {last}")
    return ended.stdout.strip()


def works(folder: str, *command: str) -> bool:
    try:
        run(folder, *command)
    except RuntimeError:
        return False
    return True


# --- before anything can be seen -----------------------------------------------------------------


@step("make-plan")
def make_plan(ctx: StepContext, request: Request) -> Plan:
    root = str(Path(request.repository).absolute())
    commit = run(root, "git", "rev-parse", "HEAD")
    plan = Plan(request, root, commit, f"v{request.version}", ctx.run_id)
    complaints = list(complaints_of(plan))
    if complaints:
        raise PermanentStepFailure(f"{request.version} is not ready: {'; '.join(complaints)}")
    return plan


def complaints_of(plan: Plan) -> Iterator[str]:
    """Why it cannot be released, as far as that can be seen before an hour of checks."""
    root, request = plan.repository, plan.request
    version = tomllib.loads(Path(root, "pyproject.toml").read_text())["project"]["version"]
    if version != request.version:
        yield f"pyproject.toml says {version}"
    if f"## [{request.version}]" not in Path(root, "CHANGELOG.md").read_text():
        yield "CHANGELOG.md has no section for it"
    if tag_id(plan) or plan.target.exists():
        yield "there is one already"
    if request.remote and remote_tag_id(plan):
        yield f"there is one already at {request.remote}"
    if run(root, "git", "status", "--porcelain"):
        yield "not everything is committed"
    if not works(root, "git", "var", "GIT_COMMITTER_IDENT"):
        yield "git does not know who makes the tag: git config user.email"
    python, *rest = request.build
    if rest[:2] == ["-m", "build"] and not works(root, python, "-c", "import build.__main__"):
        yield f"the package build is missing: {python} -m pip install build"


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
        Thread(target=end_where_cancelled, args=(ctx, process), daemon=True).start()
        assert process.stdout is not None
        for line in process.stdout:
            ctx.progress(None, line.strip())
    if process.returncode:
        command = " ".join(plan.request.check)
        raise PermanentStepFailure(f"{command} ended with {process.returncode}: {line.strip()}")
    return line.strip()


def end_where_cancelled(ctx: StepContext, process: subprocess.Popen[str]) -> None:
    """Also a process that says nothing any more, for which its reader waits."""
    while process.poll() is None:
        if ctx.cancelled:
            process.terminate()
        time.sleep(0.2)


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder, by name."""
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


@step(pure=True)  # undone by `clear_away`
def build(plan: Plan) -> dict[str, str]:
    """The digests of the files, which are made out of the very commit that was checked."""
    shutil.rmtree(plan.built, ignore_errors=True)
    run(plan.repository, *plan.request.build, str(plan.built))
    head = run(plan.repository, "git", "rev-parse", "HEAD")
    if head != plan.commit or run(plan.repository, "git", "status", "--porcelain"):
        raise PermanentStepFailure(f"{plan.repository} has changed since {plan.tag} was planned")
    return digests(plan.built)


@step(pure=True)
def inspect(plan: Plan, files: dict[str, str]) -> None:
    """There is a wheel that says the right version of itself, and a source archive."""
    if [Path(file).suffix for file in files] != [".whl", ".gz"]:
        raise PermanentStepFailure(f"not a wheel and a source archive: {', '.join(files)}")
    name, archive = files
    version = plan.request.version
    with zipfile.ZipFile(plan.built / name) as wheel:
        [metadata] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        if f"Version: {version}" not in wheel.read(metadata).decode().splitlines():
            raise PermanentStepFailure(f"{name} is not of version {version}")
    if not archive.endswith(f"-{version}.tar.gz"):
        raise PermanentStepFailure(f"{archive} is not of version {version}")


@step("try-out", pure=True)
def try_out(plan: Plan) -> str:
    """What the trial says: the files work where there is nothing else."""
    return run(plan.repository, *plan.request.trial, str(plan.built))


@step(async_=True, timeout=WEEK, pure=True)
def approve(plan: Plan, files: dict[str, str], tried: str) -> StepResponse[Answer]:
    """Waits for an answer such as {"approved": true, "by": "kim"}."""
    return StepResponse.awaiting()


@step("check-answer")
def check_answer(plan: Plan, files: dict[str, str], answer: Answer) -> Approved:
    by = answer.by or "somebody"
    if not answer.approved:
        raise PermanentStepFailure(f"{by} did not approve the release")
    return Approved(plan, files, by)


# --- what others see -----------------------------------------------------------------------------


@check_answer.compensate
def withdraw(approved: Approved | None) -> None:
    """The files and the tag, however far they came."""
    if approved is None or not is_own_tag(approved.plan):  # files come after the tag
        return
    plan = approved.plan
    if not plan.built.exists():  # else what bears the name was not renamed by us
        shutil.rmtree(plan.target, ignore_errors=True)
    run(plan.repository, "git", "tag", "--delete", plan.tag)


@step("make-tag", pure=True)  # undone by `withdraw`
def make_tag(approved: Approved) -> str:
    """Its id, which is the same wherever it is pushed to."""
    plan = approved.plan
    if not tag_id(plan):  # else an attempt that a crash cut short has made it
        title = f"Version {plan.request.version}, approved by {approved.by}"
        words = ("-m", title, "-m", mark(plan), plan.tag, plan.commit)
        run(plan.repository, "git", "tag", "-a", *words)
    if not is_own_tag(plan):
        raise PermanentStepFailure(f"somebody else has made the tag {plan.tag}")
    return tag_id(plan)


@step(pure=True)  # undone by `withdraw`
def publish(approved: Approved) -> None:
    """The files as they were approved, with their checksums, in one moment."""
    plan, files = approved.plan, approved.files
    if plan.built.exists():
        sums = plan.built / "SHA256SUMS"
        sums.unlink(missing_ok=True)
        if digests(plan.built) != files:
            raise PermanentStepFailure(f"{plan.built} has changed since it was approved")
        if plan.target.exists():
            raise PermanentStepFailure(f"somebody else has made {plan.target}")
        sums.write_text("".join(f"{digest}  {name}\n" for name, digest in files.items()))
        plan.built.rename(plan.target)
    elif not plan.target.exists():  # where it does, a crash came after the renaming
        raise PermanentStepFailure(f"somebody has removed {plan.built}")


@step("push-tag", max_retries=3, retry_interval=10)
def push_tag(plan: Plan) -> None:
    run(plan.repository, "git", "push", plan.request.remote, plan.ref)


@push_tag.compensate
def delete_pushed_tag(ctx: StepContext) -> None:
    """Also where the push has failed: the tag may have got there all the same."""
    known = ctx.outputs["make-plan"]
    plan = Plan(**{**known, "request": Request(**known["request"])})
    if remote_tag_id(plan) == ctx.outputs["make-tag"]:
        run(plan.repository, "git", "push", "--delete", plan.request.remote, plan.ref)


# --- tags ----------------------------------------------------------------------------------------


def mark(plan: Plan) -> str:
    """Stands in the tag that this release makes, and in no other."""
    return f"Made by the run {plan.run_id} of the workflow release."


def tag_id(plan: Plan) -> str:
    """Empty: there is no such tag."""
    return run(plan.repository, "git", "for-each-ref", "--format=%(objectname)", plan.ref)


def remote_tag_id(plan: Plan) -> str:
    """Empty: it is not at the remote."""
    return run(plan.repository, "git", "ls-remote", plan.request.remote, plan.ref).partition("\t")[
        0
    ]


def is_own_tag(plan: Plan) -> bool:
    message = run(plan.repository, "git", "for-each-ref", "--format=%(contents)", plan.ref)
    return mark(plan) in message.splitlines()


@workflow("release", description="Check, build, ask, tag and publish a version, or none of it")
def release(request: Request) -> dict[str, object]:
    plan = make_plan(request)
    run_checks(plan)
    files = build(plan)
    inspect(plan, files)
    answer = approve(plan, files, try_out(plan))
    approved = check_answer(plan, files, answer)
    make_tag(approved)
    publish(approved)
    with when(request.remote, name="remote"):
        push_tag(plan)
    return {"tag": plan.tag, "files": files, "approved_by": approved.by}
