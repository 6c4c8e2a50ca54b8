"""Which executions may have the words that are looked for, out of the ids that are kept as text.

`candidates` narrows a question down to the executions whose ids have the words in them, or whose
workflow or state does. It may name some that do not meet the condition, which is then put to each of
them; it never leaves one out that does. A word that very many have narrows nothing down: there the list
is found faster in its own order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing

import msgspec

from wfe.model import ExecutionState
from wfe.store.queries.blocks_schema import LINES, SHIFT
from wfe.store.queries.conditions import All, Operator, Pattern, Test, Word

#: A word that more executions than this have is common.
_MOST = 10_000

#: From so many workflows on they are not looked through for a word.
_MOST_WORKFLOWS = 1_000

#: No serial is smaller.
_LEAST = -(1 << 62)

#: Fields by which an execution is looked up at once.
_NAMES = ("execution_id", "transaction_id", "run_id")

_PACKED = "SELECT block, ids FROM search_block ORDER BY block DESC"
_NEWEST = "SELECT max(serial) FROM workflow_execution WHERE serial BETWEEN ? AND ?"
_PACK = f"SELECT {LINES} FROM workflow_execution WHERE serial BETWEEN ? AND ?"

#: One workflow after the other, each by one look into the index.
_WORKFLOWS = """
WITH RECURSIVE known(id) AS (
    SELECT min(workflow_id) FROM workflow_execution WHERE deleted_at IS NULL
    UNION ALL
    SELECT (SELECT min(workflow_id) FROM workflow_execution
            WHERE workflow_id > known.id AND deleted_at IS NULL)
    FROM known WHERE known.id IS NOT NULL
)
SELECT json_group_array(id) FROM (SELECT id FROM known WHERE id IS NOT NULL LIMIT ?)
"""

_HAVING = """
SELECT json_group_array(serial) FROM (
    SELECT serial FROM workflow_execution
    WHERE {} IN (SELECT value FROM json_each(?)) AND deleted_at IS NULL LIMIT ?
)
"""


class _Sought:
    """A text that is looked for, and where it was found."""

    def __init__(self, pattern: Pattern) -> None:
        longest = max(pattern.parts, key=len)
        self.pattern = pattern
        self.needle = longest.replace("\n", "\v").encode()
        self.is_folded = pattern.folded
        self.serials: set[int] = set()

    @property
    def is_common(self) -> bool:
        return len(self.serials) > _MOST

    def look(self, block: int, ids: bytes) -> None:
        """Find it in the lines of a block."""
        position = ids.find(self.needle)
        while position >= 0 and not self.is_common:
            start = ids.rfind(b"\n", 0, position) + 1
            self.serials.add((block << SHIFT) + int(ids[start : start + 3], 16))
            end = ids.find(b"\n", position)
            position = ids.find(self.needle, end) if end >= 0 else -1


def candidates(connection: sqlite3.Connection, condition: All) -> str | None:
    """The serials of all executions that may meet the condition, as a JSON array; None: any may.

    `connection` is in a transaction, in which the condition is then put to them.
    """
    if any(_is_name(part) for part in condition.parts):
        return None
    sought = [each for part in condition.parts for each in _sought(connection, part)]
    sought = [each for each in sought if each.needle and not each.is_common]
    narrow = list(sought)
    with closing(_blocks(connection)) as blocks:
        while narrow and (packed := next(blocks, None)):
            block, ids = packed
            folded = _folded(ids) if any(each.is_folded for each in narrow) else ids
            for each in narrow:
                each.look(block, folded if each.is_folded else ids)
            narrow = [each for each in narrow if not each.is_common]
    if not narrow:
        return None
    found = set.intersection(*(each.serials for each in narrow))
    return msgspec.json.encode(sorted(found)).decode()


def _folded(ids: bytes) -> bytes:
    """The ids without their case; that of A to Z they have lost before."""
    return ids if ids.isascii() else ids.decode(errors="replace").casefold().encode()


def _is_name(part: object) -> bool:
    return isinstance(part, Test) and part.operator is Operator.IN and part.field in _NAMES


def _sought(connection: sqlite3.Connection, part: object) -> Iterator[_Sought]:
    match part:
        case Word(pattern):
            sought = _Sought(pattern)
            _look_at_states(connection, sought)
            if not sought.is_common and _look_at_workflows(connection, sought):
                yield sought
        case Test("transaction_id" | "run_id", Operator.LIKE, pattern):
            yield _Sought(pattern)


def _look_at_states(connection: sqlite3.Connection, sought: _Sought) -> None:
    states = [str(state) for state in ExecutionState if sought.pattern.matches(state)]
    _add_having(connection, "state", states, sought)


def _look_at_workflows(connection: sqlite3.Connection, sought: _Sought) -> bool:
    """False where there are too many of them to be looked at."""
    (found,) = connection.execute(_WORKFLOWS, (_MOST_WORKFLOWS + 1,)).fetchone()
    workflows = msgspec.json.decode(found, type=list[str])
    matching = [each for each in workflows if sought.pattern.matches(each)]
    _add_having(connection, "workflow_id", matching, sought)
    return len(workflows) <= _MOST_WORKFLOWS


def _add_having(
    connection: sqlite3.Connection, column: str, values: list[str], sought: _Sought
) -> None:
    if values:
        asked = (msgspec.json.encode(values).decode(), _MOST + 1)
        (found,) = connection.execute(_HAVING.format(column), asked).fetchone()
        sought.serials.update(msgspec.json.decode(found, type=list[int]))


# --- blocks --------------------------------------------------------------------------------------


def _blocks(connection: sqlite3.Connection) -> Generator[tuple[int, bytes], None, None]:
    """All blocks that have rows, the newest first; those that are not there, put together."""
    (high,) = connection.execute("SELECT max(serial) FROM workflow_execution").fetchone()
    if high is None:
        return
    with closing(connection.execute(_PACKED)) as packed:
        for block, ids in packed:
            yield from _missing(connection, (block + 1) << SHIFT, high)
            yield block, ids
            high = (block << SHIFT) - 1
    yield from _missing(connection, _LEAST, high)


def _missing(connection: sqlite3.Connection, low: int, high: int) -> Iterator[tuple[int, bytes]]:
    """The blocks of the rows from `low` to `high`, whole ones."""
    while (newest := connection.execute(_NEWEST, (low, high)).fetchone()[0]) is not None:
        block = newest >> SHIFT
        (ids,) = connection.execute(_PACK, (block << SHIFT, newest)).fetchone()
        yield block, ids
        high = (block << SHIFT) - 1
