"""Who may read what is kept: files and folders that are made for their owner alone, and which of a
database's files are open to others.

A mode that is handed to the system when something is made is cut by the umask, which may take from
it what the owner needs, but adds nothing. So what is made here gets its mode twice. What was there
before keeps the mode it has: somebody may have shared it on purpose. `loose` tells.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

FOLDER = 0o700
FILE = 0o600

#: What a folder is called that holds the database of a project, and nothing else.
OWN_FOLDER = ".wfe"

#: What SQLite keeps beside a database, with the database's own mode.
COMPANIONS = ("-wal", "-shm", "-journal")

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_folder(path: Path) -> None:
    """
    Raises:
        FileExistsError: something is there; it is left as it is.
    """
    path.mkdir(mode=FOLDER)
    path.chmod(FOLDER)


def make_file(path: Path) -> None:
    """An empty file.

    Raises:
        FileExistsError: something is there; it is left as it is.
    """
    path.touch(mode=FILE, exist_ok=False)
    path.chmod(FILE)


def open_file(path: Path) -> TextIO:
    """A file to write text into: a new one, or what is there (a file that is emptied, a pipe, a
    device) with the mode it has."""
    with suppress(FileExistsError):
        make_file(path)
    return path.open("w", encoding="utf-8")


class Loose(NamedTuple):
    """A file or folder that is open to more people than it should be."""

    path: Path
    #: The permission bits it has, and those it should have.
    mode: int
    should_be: int

    @property
    def mend(self) -> str:
        """The command that mends it."""
        return f"chmod {self.should_be:o} {shlex.quote(str(self.path))}"


def loose(database: Path) -> list[Loose]:
    """What is too open of a database's files and its folder, those that exist; empty where the system
    has no such modes.

    A folder that was made for the database should be closed. Another one may hold what everybody is
    to see; of that it counts only if others could put a file of theirs in the database's place.
    """
    if os.name != "posix":
        return []
    return [*_loose_folder(database.parent), *_loose_files(database)]


def _loose_folder(folder: Path) -> Iterator[Loose]:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if folder.name == OWN_FOLDER and mode & _OTHERS:
        yield Loose(folder, mode, mode & ~(_OTHERS | stat.S_ISVTX))
    elif mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
        yield Loose(folder, mode, mode & ~_OTHERS_WRITE)


def _loose_files(database: Path) -> Iterator[Loose]:
    beside = [database.with_name(f"{database.name}{suffix}") for suffix in COMPANIONS]
    backups = sorted(database.parent.glob(f"{literal(database.name)}.backup-v*"))
    for path in (database, *beside, *backups):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue  # SQLite makes and removes them as it likes
        if mode & _OTHERS:
            yield Loose(path, mode, mode & ~_OTHERS)


def literal(name: str) -> str:
    """The pattern that matches this name and no other."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
