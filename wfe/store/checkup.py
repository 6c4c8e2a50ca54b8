"""The check-up of a database: who may read it, whether SQLite finds its structure whole, and whether what
is in it agrees with itself.

It changes nothing, and sees the file as it was at one moment, whoever writes meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from wfe.errors import StoreError
from wfe.store import backup, private, trouble
from wfe.store.connection import Connection
from wfe.store.database import BUSY_TIMEOUT, open_for_reading
from wfe.store.facts import NEWEST
from wfe.store.invariants import INVARIANTS, Check, Finding
from wfe.store.migrations import check_not_newer, schema_version

#: Faults of the structure that SQLite is asked to name, and findings of one check that are named.
_FAULTS = 20
_NAMED = 10


class Result(NamedTuple):
    """What a check came to."""

    name: str
    claim: str
    #: How many findings there are, and the first of them.
    found: int
    findings: Sequence[Finding]

    @property
    def is_ok(self) -> bool:
        return self.found == 0


def check_up(path: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> Iterator[Result]:
    """The result of each check as soon as it is there. Where the file is too damaged to be opened, that
    is the only finding; where its schema is an older one, only what holds for every schema is checked.

    Raises:
        StoreError: there is no such file, it is none of ours, it is locked, or newer than this wfe.
    """
    loose = private.loose(path) if path.exists() else []  # before the reader makes files of its own
    permissions = "permissions", "only the owner may read its files"
    try:
        connection = open_for_reading(path, busy_timeout=busy_timeout, any_schema=True)
    except StoreError as error:
        cause = getattr(error.__cause__, "orig", error.__cause__)  # Peewee wraps what SQLite says
        if not _is_damage(cause):
            raise
        yield _result(*permissions, _permissions(loose))
        yield Result(_STRUCTURE.name, _STRUCTURE.claim, 1, [Finding(f"{cause}.")])
        return
    with trouble.translated(path), closing(connection):
        version = schema_version(connection)
        check_not_newer(version, path)
        yield _result(*permissions, _permissions(loose))
        connection.raw.execute("BEGIN")
        for check in (*_OF_ANY, *INVARIANTS) if version == NEWEST else _OF_ANY:
            yield _result(check.name, check.claim, check.look(connection))


def is_partial(results: Sequence[Result]) -> bool:
    """Whether what is in it was not checked."""
    return results[-1].name != INVARIANTS[-1].name


def is_damaged(results: Sequence[Result]) -> bool:
    """Whether the file itself is broken, rather than what is in it."""
    return any(result.name == _STRUCTURE.name and not result.is_ok for result in results)


def _result(name: str, claim: str, findings: Iterator[Finding]) -> Result:
    named: list[Finding] = []
    count = 0
    try:
        for finding in findings:
            count += 1
            if len(named) < _NAMED:
                named.append(finding)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        count += 1
        named.append(Finding(f"It could not be checked any further: {error}."))
    return Result(name, claim, count, named)


def _is_damage(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)


# --- the file ------------------------------------------------------------------------------------


def _permissions(loose: Sequence[private.Loose]) -> Iterator[Finding]:
    for one in loose:
        message = f"{one.path} has the mode {one.mode:04o}, and should have {one.should_be:04o}."
        yield Finding(message, mend=one.mend)


def _structure(connection: Connection) -> Iterator[Finding]:
    for fault in backup.faults(connection.raw, limit=_FAULTS):
        yield Finding(f"{fault}.")


def _references(connection: Connection) -> Iterator[Finding]:
    lost: dict[tuple[str, str], int] = defaultdict(int)
    for table, _, parent, _ in connection.raw.execute("PRAGMA foreign_key_check"):
        lost[table, parent] += 1
    for (table, parent), count in lost.items():
        yield Finding(f"{table}: {count} without their {parent}.")


_STRUCTURE = Check("structure", "its pages and indexes are whole", _structure)
_OF_ANY = (
    _STRUCTURE,
    Check("references", "what a row belongs to is there", _references),
)
