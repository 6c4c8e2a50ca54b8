"""The examination of a database: whether it can be read, who else can, and what lies about in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from wfe.doctor.results import NAMED, quoted, result
from wfe.errors import SchemaTooOld, StoreError
from wfe.store import owners, private, signals, standing, trouble
from wfe.store.checkup import Result
from wfe.store.connection import Connection
from wfe.store.facts import NEWEST
from wfe.store.invariants import Finding
from wfe.store.reader import SQLiteReader

_BY_EFFECTIVE_USER = os.access in os.supports_effective_ids


def unreadable(path: Path, error: StoreError) -> Result:
    """Of a database that cannot be looked into, or no further."""
    mend = None
    if isinstance(error, SchemaTooOld):
        mend = "wfe db migrate"
    elif is_another_file(path, error):
        mend = f"mv -n {quoted(path)} {quoted(f'{path}.other')}"
    finding = Finding(str(error) if mend is None else error.message, mend=mend)
    return result("reading", "it can be looked into", [finding])


def is_another_file(path: Path, error: StoreError) -> bool:
    """Is it, by this error, no database, so that its mode is none of ours? The file itself is not
    opened: closing it would let go of the locks that SQLite has on it in this process."""
    return error.message == trouble.no_database(path).message


def readable(path: Path) -> Result:
    """Of one that can."""
    return result("database", f"{path} can be read, and has the newest schema, {NEWEST}")


def permissions(path: Path) -> Result:
    """Who else may read it."""
    findings = [
        Finding(
            f"{one.path} has the mode {one.mode:04o}, and should have {one.should_be:04o}.",
            mend=one.mend,
        )
        for one in private.loose(path)
    ]
    return result("permissions", "only the owner may read its files", findings)


def writable(path: Path) -> Result:
    """Whether who looks could write to it: SQLite makes files beside it, too."""
    return result(
        "writing",
        "it can be written to here",
        [
            Finding(
                f"{one} cannot be written to: nothing is run, and no answer taken.",
                mend=f"chmod u+w {quoted(one)}" if _is_closed(one) else None,
            )
            for one in (path.parent, path)
            if not os.access(one, os.W_OK, effective_ids=_BY_EFFECTIVE_USER)
        ],
    )


def _is_closed(path: Path) -> bool:
    """Is it ours, and its mode says that we may not write to it?"""
    known = path.stat()
    return known.st_uid == os.geteuid() and not known.st_mode & stat.S_IWUSR


def contents(
    connection: Connection, reader: SQLiteReader, now: datetime, *, patience: float
) -> Iterator[Result]:
    """What lies about in it. `patience` is how many seconds another process may take to accept a
    command."""
    faults = standing.faults(connection, limit=NAMED)
    whole = "a quick look finds its pages whole"
    yield result("structure", whole, [Finding(f"{f}.", mend="wfe db check") for f in faults])
    yield result(
        "leases",
        "every lease belongs to a process that lives",
        [
            Finding(f"{process} is gone, and its lease is left.", mend="wfe gc -y")
            for process in dict.fromkeys(map(owners.described, signals.gone(connection)))
        ],
    )
    yield result(
        "interrupted",
        "nothing lies there that could go on",
        [
            Finding(
                "could go on, and no process has it in hand.",
                str(key),
                f"wfe executions resume {quoted(key)}",
            )
            for key in reader.interrupted(now, 10 * NAMED)
        ],
    )
    late = standing.pending(connection, now - timedelta(seconds=patience))
    yield result("commands", "every command was taken", map(_of_pending, late))


def _of_pending(one: standing.Pending) -> Finding:
    what = f"{one.kind} {one.step}" if one.step else one.kind
    sender = f" by {one.sender}" if one.sender else ""
    why = "its process does not answer" if one.is_held else "its process is gone"
    command = "why" if one.is_held else "resume"
    return Finding(
        f"was sent {what!r}{sender} at {one.sent_at.isoformat(timespec='seconds')}: {why}.",
        str(one.key),
        f"wfe executions {command} {quoted(one.key)}",
    )
