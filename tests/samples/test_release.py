"""The release, on a repository of its own: a tag and files that belong together, or neither."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project
from wfe import StepContext
from wfe.testing import Run, VirtualEngine, crash_at, run_to_end

from .support import ROOT, module, sample

YES = {"approve": {"approved": True, "by": "kim"}}
NO = {"approve": {"approved": False, "by": "kim"}}
FILES = ["tiny-1.0-py3-none-any.whl", "tiny-1.0.tar.gz"]
WEEK = 7 * 24 * 3600

#: Stands for `python -m build --outdir`.
BUILD = 'mkdir -p "$1" && cp ready/* "$1"'
CHECK = "echo one; echo 42 passed"
#: Stands for `python workflows/_trial.py`.
TRIAL = 'ls "$1" && echo it works'


class Repository:
    """A project that is ready to be released as version 1.0, and a remote for it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.remote = root.with_name("remote.git")

    def make(self) -> None:
        self.root.mkdir()
        self.git("init", "--quiet")
        self.git("init", "--quiet", "--bare", str(self.remote))
        self.git("remote", "add", "origin", "../remote.git")
        self.write("pyproject.toml", '[project]\nname = "tiny"\nversion = "1.0"\n')
        self.write("CHANGELOG.md", "## [1.0] - today\n")
        self.write(".gitignore", "dist/\n.wfe/\n")
        self.build("1.0")
        self.commit()

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout

    def write(self, name: str, content: str) -> None:
        (self.root / name).write_text(content)

    def build(self, version: str) -> None:
        """Make the files that will be built; the wheel says to be of that version."""
        (self.root / "ready").mkdir(exist_ok=True)
        self.write(f"ready/{FILES[1]}", "source")
        with zipfile.ZipFile(self.root / "ready" / FILES[0], "w") as wheel:
            wheel.writestr("tiny-1.0.dist-info/METADATA", f"Name: tiny\nVersion: {version}\n")

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")

    def request(self, check: str = CHECK, **more: Any) -> dict[str, Any]:
        return {
            "version": "1.0",
            "repository": str(self.root),
            "check": ["sh", "-c", check],
            "build": ["sh", "-c", BUILD, "build"],
            "trial": ["sh", "-c", TRIAL, "trial"],
            **more,
        }

    def run(self, answers: Mapping[str, Any] = YES, **more: Any) -> Run:
        return run_to_end(sample("release"), self.request(**more), answers=answers)

    def look(self) -> tuple[str, str, list[str]]:
        """The tags here and at the remote, and what is in dist/."""
        pushed = self.git("ls-remote", "--tags", "origin")
        return self.git("tag"), pushed, sorted(str(file) for file in self.root.glob("dist/**/*"))


def meanwhile(repository: Repository, happens: Callable[[], object], **more: Any) -> Run:
    """A run, and what happens while it waits for the answer, which is yes."""
    with VirtualEngine() as engine:
        engine.run(sample("release"), repository.request(**more), transaction_id="1.0")
        engine.advance(0)
        happens()
        engine.answer("approve", YES["approve"])
        engine.advance(60)
        return engine.look(sample("release"), "1.0")


NOTHING: tuple[str, str, list[str]] = ("", "", [])


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "kim")
            patch.setenv(f"GIT_{role}_EMAIL", "kim@example.org")
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        made = tmp_path_factory.mktemp("release")
        Repository(made / "tiny").make()
        yield made


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return Repository(tmp_path / "tiny")


def test_an_approved_version_is_tagged_and_published(repository: Repository) -> None:
    run = repository.run()
    folder = repository.root / "dist" / "v1.0"
    files = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    assert run.result == {"tag": "v1.0", "files": files, "approved_by": "kim"}
    assert run.outputs["run-checks"] == "42 passed"
    assert run.outputs["try-out"] == "\n".join([*FILES, "it works"])
    assert "Version 1.0, approved by kim" in repository.git("tag", "-n", "--list", "v1.0")
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert [line.split() for line in lines] == [[files[name], name] for name in FILES]
    assert repository.look()[1] == ""


def test_the_tag_is_pushed_where_that_is_wanted(repository: Repository) -> None:
    assert repository.run(remote="origin").state == "done"
    assert "refs/tags/v1.0" in repository.look()[1]


def test_the_tag_is_on_the_commit_that_was_checked(repository: Repository) -> None:
    commit = repository.git("rev-parse", "HEAD")
    with VirtualEngine() as engine:
        engine.run(sample("release"), repository.request(), transaction_id="1.0")
        engine.advance(0)
        repository.build("1.1")
        repository.commit()
        assert engine.answer("approve", YES["approve"]).state == "done"
    assert repository.git("rev-parse", "v1.0^{commit}") == commit


# --- not ready -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("pyproject.toml", '[project]\nversion = "0.9"\n', "pyproject.toml says 0.9"),
        ("CHANGELOG.md", "## [Unreleased]\n", "CHANGELOG.md has no section for it"),
        ("new.txt", "new", "not everything is committed"),
    ],
)
def test_a_version_that_is_not_ready_is_refused_before_anything_is_made(
    repository: Repository, file: str, content: str, complaint: str
) -> None:
    repository.write(file, content)
    run = repository.run()
    assert run.timeline == ["make-plan!", "~make-plan"]
    assert run.errors[0].message.startswith("1.0 is not ready: ")
    assert complaint in run.errors[0].message


def test_a_version_is_released_once(repository: Repository) -> None:
    repository.run()
    before = repository.look()
    assert repository.run().errors[0].message == "1.0 is not ready: there is one already"
    assert repository.look() == before


# --- each step fails -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "more", "complaint"),
    [
        ("run-checks", {"check": "echo 1 failed; exit 2"}, "ended with 2: 1 failed"),
        ("build", {"build": ["sh", "-c", "echo no compiler >&2; exit 1"]}, "no compiler"),
        ("build", {"build": ["no-such-program"]}, "no-such-program"),
        ("build", {"check": "echo more > CHANGELOG.md"}, "has changed since v1.0 was planned"),
        ("build", {"build": ["sh", "-c", "echo on stdout; exit 1"]}, "on stdout"),
        ("inspect", {"build": ["mkdir", "-p"]}, "not a wheel and a source archive"),
        ("try-out", {"trial": ["sh", "-c", "echo no such module >&2; exit 1"]}, "no such module"),
    ],
)
def test_a_step_that_fails_leaves_neither_tag_nor_files(
    repository: Repository, step: str, more: dict[str, Any], complaint: str
) -> None:
    run = repository.run(**more)
    assert run.state == "reverted"
    assert run.errors[0].action == step
    assert complaint in run.errors[0].message
    assert repository.look() == NOTHING


def test_a_build_that_cannot_be_is_found_out_before_the_checks(
    repository: Repository, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    run = repository.run(build=[str(python), "-m", "build", "--outdir"])
    assert run.timeline == ["make-plan!", "~make-plan"]
    assert "the package build is missing" in run.errors[0].message


def test_who_makes_the_tag_has_to_be_known_before_the_checks(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_COMMITTER_EMAIL")
    monkeypatch.delenv("EMAIL", raising=False)
    repository.git("config", "user.useConfigOnly", "true")
    run = repository.run()
    assert run.timeline == ["make-plan!", "~make-plan"]
    assert "git does not know who makes the tag" in run.errors[0].message


def test_a_wheel_of_another_version_is_found_out(repository: Repository) -> None:
    repository.build("1.1")
    repository.commit()
    run = repository.run()
    assert run.errors[0].message == f"{FILES[0]} is not of version 1.0"
    assert repository.look() == NOTHING


def test_an_answer_of_no_leaves_neither_tag_nor_files(repository: Repository) -> None:
    run = repository.run(NO)
    assert run.errors[0].message == "kim did not approve the release"
    assert repository.look() == NOTHING


def test_no_answer_within_a_week_leaves_neither_tag_nor_files(repository: Repository) -> None:
    run = repository.run({})
    assert (run.state, run.seconds) == ("reverted", WEEK)
    assert repository.look() == NOTHING


def test_a_remote_that_comes_back_gets_the_tag(repository: Repository) -> None:
    away = repository.remote.with_name("away")
    with VirtualEngine() as engine:
        request = repository.request(remote="origin")
        engine.run(sample("release"), request, transaction_id="1.0")
        engine.advance(0)
        repository.remote.rename(away)
        engine.answer("approve", YES["approve"])
        assert engine.timeline[-1] == "push-tag!"
        away.rename(repository.remote)
        engine.advance(10)
        assert engine.look(sample("release"), "1.0").state == "done"
    assert "refs/tags/v1.0" in repository.look()[1]


def test_a_remote_that_stays_away_needs_a_person(repository: Repository) -> None:
    """Whether the tag has got there nobody can know: the rest is undone, and the end is `failed`."""
    run = meanwhile(
        repository,
        lambda: repository.git("remote", "set-url", "origin", "/nowhere"),
        remote="origin",
    )
    assert run.state == "failed"
    assert run.timeline[-3:] == ["~push-tag!", "~check-answer", "~make-plan"]
    assert repository.git("tag") == ""


def test_a_remote_that_is_not_there_is_found_out_at_once(repository: Repository) -> None:
    run = repository.run(remote="orign")
    assert run.timeline == ["make-plan!", "~make-plan"]
    assert "orign" in run.errors[0].message


# --- what others have made -----------------------------------------------------------------------


def test_a_tag_of_somebody_else_is_neither_used_nor_removed(repository: Repository) -> None:
    run = meanwhile(repository, lambda: repository.git("tag", "v1.0"))
    assert run.errors[0].message == "somebody else has made the tag v1.0"
    assert repository.look() == ("v1.0\n", "", [])


def test_a_tag_at_the_remote_is_seen_before_anything_is_made(repository: Repository) -> None:
    repository.git("push", "origin", "HEAD:refs/tags/v1.0")
    run = repository.run(remote="origin")
    assert run.errors[0].message == "1.0 is not ready: there is one already at origin"


def test_a_tag_that_comes_to_the_remote_meanwhile_stays_there(repository: Repository) -> None:
    run = meanwhile(
        repository,
        lambda: repository.git("push", "origin", "HEAD:refs/tags/v1.0"),
        remote="origin",
    )
    assert run.state == "reverted"
    tag, pushed, files = repository.look()
    assert (tag, "refs/tags/v1.0" in pushed, files) == ("", True, [])


def test_two_releases_of_one_version_do_not_disturb_each_other(repository: Repository) -> None:
    run = meanwhile(repository, repository.run)
    assert run.errors[0].message == "somebody else has made the tag v1.0"
    tag, _, files = repository.look()
    assert (tag, len(files)) == ("v1.0\n", 4)


def test_files_are_published_as_they_were_approved(repository: Repository) -> None:
    def change() -> None:
        [wheel] = repository.root.glob("dist/.v1.0.*/*.whl")
        wheel.write_bytes(b"")

    run = meanwhile(repository, change)
    assert run.errors[0].message.endswith("has changed since it was approved")
    assert repository.look() == NOTHING


def test_files_that_are_gone_are_no_release(repository: Repository) -> None:
    run = meanwhile(repository, lambda: shutil.rmtree(repository.root / "dist"))
    assert run.errors[0].message.startswith("somebody has removed ")
    assert repository.look() == NOTHING


def test_a_folder_of_somebody_else_stays(repository: Repository) -> None:
    own = repository.root / "dist" / "v1.0"
    run = meanwhile(repository, own.mkdir)
    assert run.errors[0].message == f"somebody else has made {own}"
    assert repository.look() == ("", "", [str(own)])


@pytest.mark.parametrize("said", [[], ["one", "two"]])
def test_checks_end_where_they_are_cancelled(repository: Repository, said: list[str]) -> None:
    """Also those that hang, and so say nothing more."""
    release = module("workflows.release")
    check = "".join(f"echo {word}; " for word in said) + "exec sleep 60"
    request = release.Request(**repository.request(check))
    plan = release.make_plan.function(StepContext(run_id="r1"), request)
    told: list[str] = []
    ctx = StepContext(
        is_cancelled=lambda: told == said,
        progress=lambda _, message: told.append(message),
    )
    with pytest.raises(release.PermanentStepFailure, match="ended with -15"):
        release.run_checks.function(ctx, plan)


# --- undone, and crashed -------------------------------------------------------------------------


def test_undoing_a_release_removes_tag_and_files_everywhere(repository: Repository) -> None:
    with VirtualEngine() as engine:
        request = repository.request(remote="origin")
        engine.run(sample("release"), request, transaction_id="1.0")
        engine.advance(0)
        assert engine.answer("approve", YES["approve"]).state == "done"
        assert engine.cancel(sample("release"), "1.0").state == "reverted"
    assert repository.look() == NOTHING


@pytest.mark.parametrize("step", ["build", "try-out", "make-tag", "publish"])
def test_a_release_that_was_cut_short_goes_on(repository: Repository, step: str) -> None:
    request = repository.request(remote="origin")
    crash_at(f"after {step}", sample("release"), request, answers=YES)
    tag, pushed, files = repository.look()
    assert (tag, len(pushed.splitlines()), len(files)) == ("v1.0\n", 2, 4)


@pytest.mark.parametrize("step", ["~push-tag", "~check-answer"])
def test_an_undo_that_was_cut_short_goes_on(repository: Repository, step: str) -> None:
    hook = repository.remote / "hooks" / "update"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    request = repository.request(remote="origin")
    run = crash_at(f"after {step}", sample("release"), request, answers=YES)
    assert run.state == "reverted"
    assert repository.look() == NOTHING


@pytest.mark.parametrize("last", ["build", "make_tag", "publish"])
def test_what_was_made_and_never_recorded_is_undone(repository: Repository, last: str) -> None:
    """Whatever becomes of a step that a crash has cut off: the undos before it know."""
    release = module("workflows.release")
    request = release.Request(**repository.request())
    plan = release.make_plan.function(StepContext(run_id="r1"), request)
    files = release.build.function(plan)
    approved = release.check_answer.function(plan, files, release.Answer(True, "kim"))
    for step in ("make_tag", "publish")[: ("build", "make_tag", "publish").index(last)]:
        getattr(release, step).function(approved)
    assert repository.look() != NOTHING
    release.withdraw(approved)
    release.clear_away(plan)
    assert repository.look() == NOTHING


# --- from the shell ------------------------------------------------------------------------------


def test_the_installed_command_asks_and_takes_the_answer(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.root)
    monkeypatch.setenv("WFE_APP", str(ROOT / "workflows"))
    project = Project(repository.root)
    request = json.dumps(repository.request(repository="."))
    asked = project.execute("run", "release", "--tx", "1.0", "--until", "waiting", "-i", request)
    assert (asked.code, asked.out) == (20, "release:1.0:approve:invoke\n")
    answer = json.dumps(YES["approve"])
    done = project.execute("step", "succeed", asked.lines[0], "--response", answer)
    assert (done.code, done.document["tag"]) == (0, "v1.0")
