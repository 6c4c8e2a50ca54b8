"""The bell: somebody sleeps until it is worth looking."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from wfe.store.bell import Bell

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="nobody tells who writes")

#: Seconds that a wait may take which is to end by itself.
LONG = 60


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    bell = Bell(tmp_path)
    yield bell
    bell.close()


def open_files() -> set[str]:
    return {file.name for file in Path("/proc/self/fd").iterdir()}


def listening(bell: Bell) -> Bell:
    assert bell.listens()
    assert bell.wait(LONG)
    return bell


def test_it_is_heard_once_by_who_waits_later(bell: Bell) -> None:
    bell.ring()
    bell.ring()
    assert bell.wait(LONG)
    assert not bell.wait(0)
    bell.ring()
    assert bell.wait(LONG, deaf=True)


def test_it_may_be_rung_more_often_than_anybody_listens(bell: Bell) -> None:
    for _ in range(100_000):
        bell.ring()
    assert bell.wait(LONG)
    assert not bell.wait(0)


@on_linux
@pytest.mark.parametrize("how", ["written", "made", "removed", "moved away", "moved here"])
def test_it_rings_when_a_file_of_the_folder_is(bell: Bell, tmp_path: Path, how: str) -> None:
    there, elsewhere = tmp_path / "there", tmp_path / "deeper" / "elsewhere"
    elsewhere.parent.mkdir()
    for file in (there, elsewhere):
        file.touch()
    listening(bell)
    if how == "written":
        there.write_text("x")
    elif how == "made":
        (tmp_path / "new").touch()
    elif how == "removed":
        there.unlink()
    elif how == "moved away":
        there.rename(elsewhere)
    else:
        elsewhere.rename(there)
    assert not bell.wait(0, deaf=True)
    assert bell.wait(LONG)
    assert not bell.wait(0)


@on_linux
def test_the_first_wait_tells_of_what_was_written_before_it_listened(
    bell: Bell, tmp_path: Path
) -> None:
    (tmp_path / "before").touch()
    assert not bell.wait(0)
    assert bell.listens()
    assert bell.wait(0)


@on_linux
def test_where_nothing_can_be_heard_it_says_so(tmp_path: Path) -> None:
    bell = Bell(tmp_path / "missing")
    before = open_files()
    assert not bell.listens()
    assert not bell.wait(0)
    assert open_files() <= before
    bell.close()


@pytest.mark.parametrize("library", [SimpleNamespace(inotify_init1=lambda _: -1), object()])
def test_a_system_that_refuses_is_not_heard(
    bell: Bell, library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    assert not bell.listens()
    bell.ring()
    assert bell.wait(LONG)


@on_linux
def test_nothing_of_it_stays_open(tmp_path: Path) -> None:
    before = open_files()
    bell = listening(Bell(tmp_path))
    assert open_files() > before
    bell.close()
    assert open_files() <= before
