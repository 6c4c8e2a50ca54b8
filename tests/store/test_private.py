"""What is made is its owner's alone, and what is not is told with the command that mends it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.support import fill, mode
from wfe.store import private


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database in a folder of its own."""
    file = tmp_path / ".wfe" / "wfe.db"
    fill(file, "t1")
    return file


@pytest.mark.usefixtures("umask")
def test_new_files_and_folders_are_their_owners_whatever_the_umask(tmp_path: Path) -> None:
    private.make_folder(tmp_path / "folder")
    private.make_file(tmp_path / "folder" / "file")
    with private.open_file(tmp_path / "folder" / "text") as text:
        text.write("é")
    assert mode(tmp_path / "folder") == 0o700
    assert mode(tmp_path / "folder" / "file") == 0o600
    assert mode(tmp_path / "folder" / "text") == 0o600
    assert (tmp_path / "folder" / "text").read_text(encoding="utf-8") == "é"


def test_what_was_there_is_written_to_and_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.write_text("long before")
    shared.chmod(0o644)
    with private.open_file(shared) as text:
        text.write("now")
    assert (shared.read_text(), mode(shared)) == ("now", 0o644)
    with private.open_file(Path("/dev/null")) as nowhere:
        nowhere.write("nothing")


def test_what_is_as_it_should_be_is_not_told(file: Path) -> None:
    assert private.loose(file) == []


def test_each_file_that_others_may_read_is_told_and_the_command_mends_it(file: Path) -> None:
    log = file.with_name("wfe.db-wal")
    backup = file.with_name("wfe.db.backup-v1")
    other = file.with_name("wfe.db.notes")
    for path in (log, backup, other):
        path.touch()
    for path, bits in ((file.parent, 0o755), (file, 0o644), (log, 0o660), (backup, 0o604)):
        path.chmod(bits)
    found = private.loose(file)
    assert [(one.path, one.mode, one.should_be) for one in found] == [
        (file.parent, 0o755, 0o700),
        (file, 0o644, 0o600),
        (log, 0o660, 0o600),
        (backup, 0o604, 0o600),
    ]
    for one in found:
        subprocess.run(["/bin/sh", "-c", one.mend], check=True)
    assert private.loose(file) == []


@pytest.mark.parametrize(
    ("bits", "should_be"),
    [(0o755, None), (0o750, None), (0o1777, None), (0o777, 0o755), (0o775, 0o755)],
    ids=lambda bits: oct(bits) if bits else "fine",
)
def test_another_folder_counts_only_where_others_could_put_a_file_in_its_place(
    tmp_path: Path, bits: int, should_be: int | None
) -> None:
    folder = tmp_path / "project"
    file = folder / "wfe.db"
    fill(file, "t1")
    folder.chmod(bits)
    found = {one.path: one.should_be for one in private.loose(file)}
    assert found == ({} if should_be is None else {folder: should_be})


def test_names_with_signs_of_patterns_mean_themselves(tmp_path: Path) -> None:
    file = tmp_path / "a[b]*?.db"
    fill(file, "t1")
    for name in ("a[b]*?.db.backup-v1", "ab.db.backup-v1"):
        (tmp_path / name).touch(mode=0o644)
    assert [one.path.name for one in private.loose(file)] == ["a[b]*?.db.backup-v1"]
