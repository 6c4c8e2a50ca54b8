"""A database file, from outside: as another program, another process or another user meets it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.contract.support import changed, new
from wfe.model import ExecutionState
from wfe.store.database import open_for_writing
from wfe.store.writer import Outcome, Packer, Parcel, Writer


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def parcel(transaction_id: str = "t1", *, padding: int = 0) -> Parcel:
    """A new run, whose input is so many bytes long."""
    execution = new(transaction_id, input=b'"' + b"x" * padding + b'"')
    return Packer().insertion(execution, changed(execution, state=ExecutionState.INVOKING))


def fill(path: Path, *transaction_ids: str) -> None:
    """Keep new runs in a database, which is made where there is none."""
    writer = Writer(open_for_writing(path, synchronous="normal"), busy_timeout=5)
    outcomes: list[Outcome] = writer.write([parcel(each) for each in transaction_ids])
    writer.close()
    assert all(outcome is True for outcome in outcomes), outcomes


def kept(path: Path) -> list[str]:
    """The transaction ids in a file, asked with plain sqlite3."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [
            transaction_id
            for (transaction_id,) in connection.execute(
                "SELECT transaction_id FROM workflow_execution ORDER BY serial"
            )
        ]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody else writes meanwhile, or until the block rolls it back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Be a user whom permissions bind. Where the tests run as root: nobody, for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        try:
            yield folder
        finally:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o700)
