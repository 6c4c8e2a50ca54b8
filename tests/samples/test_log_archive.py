"""The log archive: logs are in the folder or in the bucket, whole, whatever fails and when."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project, project_in
from wfe import PermanentStepFailure, StepContext
from wfe.testing import Run, VirtualEngine, crash_everywhere, run_to_end

from .support import ROOT, module, sample

LOGS = {"api.log": b"\x00 binary \xff\n", "shop.log": b"one\ntwo\n", "web.log": b""}


class Place:
    """A folder of logs, and a bucket."""

    def __init__(self, folder: Path) -> None:
        self.logs = folder / "logs"
        self.bucket = folder / "bucket"
        self.fill()

    def fill(self) -> None:
        for folder in (self.logs, self.bucket):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for name, content in LOGS.items():
            self.write(name, content)
        self.write("new.log", b"of today", age=0)
        self.write("notes.txt", b"no log")

    def write(self, name: str, content: bytes, *, age: float = 8) -> None:
        file = self.logs / name
        file.write_bytes(content)
        file.chmod(0o640)
        changed = file.stat().st_mtime - age * 86400
        os.utime(file, (changed, changed))

    def run(self, bucket: Any = None, **more: Any) -> Run:
        resources = {"bucket": bucket or self.make_bucket()}
        return run_to_end(sample("log-archive"), self.request(**more), resources=resources)

    def request(self, **more: Any) -> dict[str, Any]:
        return {"folder": str(self.logs), **more}

    def make_bucket(self, **methods: Callable[..., Any]) -> Any:
        """A bucket of which some methods are others."""
        made = module("sample_workflows.log_archive").FolderBucket(self.bucket)
        vars(made).update(methods)
        return made

    def look(self) -> Any:
        """Every file of both folders: name, content, mode and time of change."""
        return {
            str(file): (file.read_bytes(), file.stat().st_mode, file.stat().st_mtime)
            for folder in (self.logs, self.bucket)
            for file in folder.iterdir()
        }

    def archived(self) -> dict[str, bytes]:
        """What is in the one archive of the bucket."""
        [archive] = self.bucket.iterdir()
        with tarfile.open(archive) as tar:
            return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]  # all are files


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_old_logs_are_in_the_bucket_and_no_longer_in_the_folder(place: Place) -> None:
    run = place.run()
    assert run.result == {"logs": 3, "archive": next(place.bucket.iterdir()).name}
    assert place.archived() == LOGS
    assert {file.name for file in place.logs.iterdir()} == {"new.log", "notes.txt"}


def test_logs_in_folders_below_keep_their_paths(place: Place) -> None:
    for folder in ("shop", "folder.log"):
        (place.logs / folder).mkdir()
    place.write("shop/web.log", b"deep")
    run = place.run(pattern="**/*.log")
    assert place.archived() == {**LOGS, "shop/web.log": b"deep"}
    assert list((place.logs / "shop").iterdir()) == []
    place.write("shop/web.log", b"new")
    archive = module("sample_workflows.log_archive")
    logs = [archive.Log(**log) for log in run.outputs["choose-logs"]["logs"]]
    plan = archive.Plan(str(place.logs), logs, run.result["archive"])
    archive.restore(StepContext(resolve={"bucket": place.make_bucket()}), plan)
    assert (place.logs / "shop" / "web.log.restored").read_bytes() == b"deep"


def test_nothing_is_done_where_no_log_is_old(place: Place) -> None:
    before = place.look()
    run = place.run(days=9)
    assert run.result == {"logs": 0}
    assert run.timeline[0] == "(choose-logs)"
    assert place.look() == before


def test_a_folder_that_is_not_there_is_named(place: Place) -> None:
    run = place.run(folder=f"{place.logs}/none")
    assert run.state == "reverted"
    assert run.errors[0].message == f"there is no folder {place.logs}/none"


# --- each step fails -----------------------------------------------------------------------------


def refuse(*_: Any) -> None:
    raise ConnectionError("no route to the bucket")


def test_a_bucket_that_does_not_answer_for_a_while_is_asked_again(place: Place) -> None:
    bucket = place.make_bucket()
    puts = iter([refuse, refuse, bucket.put])
    run = place.run(place.make_bucket(put=lambda *args: next(puts)(*args)))
    assert run.state == "done"
    assert run.seconds == 2 + 4


@pytest.mark.parametrize("method", ["put", "open"])
def test_a_bucket_that_stays_away_leaves_everything_as_it_was(place: Place, method: str) -> None:
    before = place.look()
    run = place.run(place.make_bucket(**{method: refuse}))
    assert run.state == "reverted"
    assert run.errors[0].message == "no route to the bucket"
    assert place.look() == before


def test_a_bucket_that_keeps_something_else_is_found_out(place: Place) -> None:
    before = place.look()
    bucket = place.make_bucket()
    spoilt = place.make_bucket(put=lambda name, file: bucket.put(name, place.logs / "notes.txt"))
    run = place.run(spoilt)
    assert run.state == "reverted"
    assert "is another file in the bucket" in run.errors[0].message
    assert place.look() == before


def test_a_log_that_is_written_to_again_is_not_deleted(place: Place) -> None:
    bucket = place.make_bucket()

    def put(name: str, file: Path) -> None:
        bucket.put(name, file)
        place.write("shop.log", b"one\ntwo\nthree\n")

    run = place.run(place.make_bucket(put=put))
    assert run.state == "reverted"
    assert run.errors[0].message == f"{place.logs}/shop.log was written to meanwhile"
    assert (place.logs / "shop.log").read_bytes() == b"one\ntwo\nthree\n"
    assert list(place.bucket.iterdir()) == []


def test_logs_that_are_deleted_already_are_restored_where_one_cannot_be(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.look()
    unlink = Path.unlink

    def stubborn(path: Path, missing_ok: bool = False) -> None:
        if path.name == "web.log":
            raise PermissionError(f"{path.name} is not yours")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", stubborn)
    run = place.run()
    assert run.errors[0].message == "web.log is not yours"
    assert run.timeline[-4:] == ["delete-logs!", "~verify-upload", "~upload", "~choose-logs"]
    assert place.look() == before


def test_a_log_that_changes_while_it_is_packed_is_found_out(place: Place) -> None:
    archive = module("sample_workflows.log_archive")
    log = archive.Log("shop.log", "0" * 64)
    before = place.look()
    plan = archive.Plan(str(place.logs), [log], "some.tar.gz")
    archive.pack.function(StepContext(), plan)
    with pytest.raises(PermanentStepFailure, match=r"changed while it was packed: shop\.log"):
        archive.verify(plan)
    archive.clear_away(plan)
    assert place.look() == before


def test_packing_ends_early_where_it_is_cancelled(place: Place) -> None:
    archive = module("sample_workflows.log_archive")
    told: list[str] = []
    ctx = StepContext(
        is_cancelled=lambda: len(told) == 1, progress=lambda _, message: told.append(message)
    )
    plan = archive.Plan(str(place.logs), [archive.Log(name, "") for name in LOGS], "some.tar.gz")
    with pytest.raises(PermanentStepFailure, match="given up"):
        archive.pack.function(ctx, plan)
    assert told == ["api.log"]


# --- undone, and crashed -------------------------------------------------------------------------


def test_undoing_a_finished_archive_restores_the_logs(place: Place) -> None:
    before = place.look()
    with VirtualEngine(resources={"bucket": place.make_bucket()}) as engine:
        engine.run(sample("log-archive"), place.request(), transaction_id="t", until="finished")
        assert len(list(place.logs.iterdir())) == 2
        assert engine.cancel(sample("log-archive"), "t").state == "reverted"
    assert place.look() == before


def test_a_crash_at_any_point_archives_each_log_once(place: Place) -> None:
    def fresh() -> dict[str, Any]:
        place.fill()
        return {"bucket": place.make_bucket()}

    for run in crash_everywhere(sample("log-archive"), place.request(), resources=fresh):
        assert run.state == "done", run.point
        assert place.archived() == LOGS, run.point
        assert {f.name for f in place.logs.iterdir()} == {"new.log", "notes.txt"}, run.point


def test_a_crash_at_any_point_of_an_archive_that_fails_leaves_everything(place: Place) -> None:
    before: dict[str, Any] = {}

    def fresh() -> dict[str, Any]:
        place.fill()
        before.update(place.look())
        bucket = place.make_bucket()
        spoil = place.make_bucket(put=lambda name, _: bucket.put(name, place.logs / "notes.txt"))
        return {"bucket": spoil}

    for run in crash_everywhere(sample("log-archive"), place.request(), resources=fresh):
        assert run.state == "reverted", run.point
        assert place.look() == before, run.point


def test_restoring_twice_is_restoring_once_and_spares_what_is_new(place: Place) -> None:
    before = place.look()
    archive = module("sample_workflows.log_archive")
    run = place.run()
    logs = [archive.Log(**log) for log in run.outputs["choose-logs"]["logs"]]
    plan = archive.Plan(str(place.logs), logs, run.result["archive"])
    place.write("web.log", b"new")
    ctx = StepContext(resolve={"bucket": place.make_bucket()})
    for _ in range(2):
        archive.restore(ctx, plan)
    archive.withdraw(ctx, plan.archive)
    assert (place.logs / "web.log").read_bytes() == b"new"
    (place.logs / "web.log.restored").rename(place.logs / "web.log")
    assert place.look() == before


# --- from the shell ------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        shutil.copy(ROOT / "sample_workflows" / "log_archive.py", tmp_path / "workflows")
        yield made


def test_the_installed_command_archives_a_folder(project: Project) -> None:
    project.write("out/logs/shop.log", "hello\n")
    none = project.execute("run", "log-archive", "-p", "folder=out/logs")
    assert (none.code, none.document) == (0, {"logs": 0})
    one = project.execute("run", "log-archive", "-p", "folder=out/logs", "-p", "days=0")
    assert (one.code, one.document["logs"]) == (0, 1)
    assert (project.root / "out" / "bucket" / one.document["archive"]).exists()
    assert list((project.root / "out" / "logs").iterdir()) == []
