"""How far a damaged database can still be read: row by row, from either end of each table.

SQLite refuses a file as a whole where its length is wrong, and a table from the first bad page on. So
the length is not asked after here, and a table is read from its end as well.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from wfe.store import tables


class Reach(NamedTuple):
    """How much of a table can be read."""

    table: str
    rows: int
    #: Whether that is all of it.
    is_whole: bool


def reach(path: Path) -> list[Reach]:
    """For each table that a database still knows of; empty where nothing of it can be read."""
    uri = f"{path.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        # A wrong length does not matter then, and after a first statement has failed for the sake of
        # the schema, SQLite goes by what it could read of that.
        with suppress(sqlite3.DatabaseError):
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return [_reach(connection, table) for table in tables.ALL if _is_known(connection, table)]


def _is_known(connection: sqlite3.Connection, table: type[tables.Table]) -> bool:
    try:
        connection.execute(f"EXPLAIN SELECT * FROM {_name(table)}").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _reach(connection: sqlite3.Connection, table: type[tables.Table]) -> Reach:
    rows = f"SELECT * FROM {_name(table)} NOT INDEXED"
    from_begin, is_whole = _count(connection, rows)
    if is_whole:
        return Reach(_name(table), from_begin, True)
    from_end, _ = _count(connection, f"{rows} ORDER BY {_backwards(table)}")
    return Reach(_name(table), from_begin + from_end, False)


def _count(connection: sqlite3.Connection, question: str) -> tuple[int, bool]:
    """How many rows come, and whether all do."""
    count = 0
    try:
        for _ in connection.execute(question):
            count += 1
    except sqlite3.DatabaseError:
        return count, False
    return count, True


def _name(table: type[tables.Table]) -> str:
    return str(table._meta.table_name)


def _backwards(table: type[tables.Table]) -> str:
    """The order in which the rows lie, from the end."""
    if not table._meta.without_rowid:
        return "rowid DESC"
    keys = table._meta.get_primary_keys()  # type: ignore[no-untyped-call]  # stubs
    return ", ".join(f"{field.column_name} DESC" for field in keys)
