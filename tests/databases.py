"""Databases that are copied instead of made, in the processes of the tests.

SQLite takes ten times as long to make one as to open one, which was a third of what a short test on a
file cost. Here a file that is missing becomes the copy of one that was made before, at the moment and in
the place at which it would have been made. Tests of the store, which are about making it, have theirs
made; so has every command in a process of its own.
"""

from __future__ import annotations

import functools
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wfe.store import database, private

_made: Any = vars(database)["_make_file"]


@contextmanager
def are_copied() -> Iterator[None]:
    """For as long as the block runs."""
    with _by(_copy):
        yield


@contextmanager
def are_made() -> Iterator[None]:
    """For as long as the block runs, within one in which they are copied."""
    with _by(_made):
        yield


@contextmanager
def _by(way: Any) -> Iterator[None]:
    namespace = vars(database)
    before = namespace["_make_file"]
    namespace["_make_file"] = way
    try:
        yield
    finally:
        namespace["_make_file"] = before


@functools.cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder, are_made():
        file = Path(folder).resolve() / "empty.db"
        database.open_for_writing(file).close()
        return file.read_bytes()


def _copy(path: Path) -> None:
    if not path.exists():
        content = _empty()
        with suppress(OSError):  # what is wrong is told below
            private.make_folder(path.parent)
        part = path.with_name(f"{path.name}.{threading.get_ident()}")
        with suppress(OSError):
            private.make_file(part)
            part.write_bytes(content)
            os.link(part, path)  # unless somebody was faster
        with suppress(OSError):
            part.unlink()
    _made(path)
