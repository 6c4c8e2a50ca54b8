"""What a database keeps so that words are found fast: the ids of executions in blocks, as plain text.

A row of `search_block` holds the ids of the executions whose `serial` lies in one range of 4096: a line
for each, which begins with its number in the block as three hex digits. To look through a million of
them is to look through some 40 MB of text, 50 ms; through the rows themselves it takes seconds. (An FTS5
index with trigrams is faster to ask, but slows every insert down to a third, or leaves the work to
whoever asks first; it does not exist in every SQLite; and nothing that is deleted leaves it by itself.)

Everything happens in triggers, so that it holds whoever writes: a block that is there has a line for
each row of its range.

- The first row of a range puts the block before it in its place: 10 ms, once in 4096.
- A row that comes into a block which is there, or changes its ids, removes the block.
- The last row that leaves a range takes the block with it. Lines of other rows that are gone stay:
  what is found is looked up in any case.

Blocks that are not there are put together by whoever asks (`blocks`), which is how a file is read
that cannot be written. The state of an execution changes, and is one of few: it is in no block.
"""

from __future__ import annotations

#: Rows in a block, as a power of two.
SHIFT = 12

_SIZE = 1 << SHIFT

#: The lines of rows of `workflow_execution`. Ids made by wfe repeat the run id in the transaction id. A
#: line ends nowhere but at its end: what would end one is written as another control character, here and
#: in what is looked for. (`lower` makes A to Z small, and the rest is done when it is needed.)
LINES = f"""CAST(group_concat(
    printf('%03x', serial & {_SIZE - 1}) || replace(lower(CASE
        WHEN instr(transaction_id, run_id) THEN transaction_id
        ELSE transaction_id || char(31) || run_id
    END), char(10), char(11)), char(10)) AS BLOB)"""


def _rows_of(block: str) -> str:
    return (
        f"FROM workflow_execution WHERE serial BETWEEN ({block}) << {SHIFT}"
        f" AND (({block}) << {SHIFT}) + {_SIZE - 1}"
    )


def _remove(block: str) -> str:
    return f"DELETE FROM search_block WHERE block = {block};"


_OLD, _NEW = f"old.serial >> {SHIFT}", f"new.serial >> {SHIFT}"
_BEFORE = f"({_NEW}) - 1"

#: The migration.
STATEMENTS = (
    "CREATE TABLE search_block (block INTEGER NOT NULL PRIMARY KEY, ids BLOB NOT NULL)",
    f"""
    CREATE TRIGGER search_block_full AFTER INSERT ON workflow_execution
    WHEN new.serial & {_SIZE - 1} = 0
    BEGIN
        {_remove(_BEFORE)}
        INSERT INTO search_block (block, ids)
        SELECT {_BEFORE}, (SELECT {LINES} {_rows_of(_BEFORE)})
        WHERE EXISTS (SELECT 1 {_rows_of(_BEFORE)});
    END
    """,
    f"""
    CREATE TRIGGER search_block_new AFTER INSERT ON workflow_execution
    WHEN EXISTS (SELECT 1 FROM search_block WHERE block = {_NEW})
    BEGIN {_remove(_NEW)} END
    """,
    f"""
    CREATE TRIGGER search_block_changed AFTER UPDATE OF serial, transaction_id, run_id
    ON workflow_execution
    BEGIN {_remove(_OLD)} {_remove(_NEW)} END
    """,
    f"""
    CREATE TRIGGER search_block_empty AFTER DELETE ON workflow_execution
    WHEN NOT EXISTS (SELECT 1 {_rows_of(_OLD)})
    BEGIN {_remove(_OLD)} END
    """,
    f"""
    INSERT INTO search_block (block, ids)
    SELECT number, (SELECT {LINES} {_rows_of("number")})
    FROM (SELECT DISTINCT serial >> {SHIFT} AS number FROM workflow_execution)
    WHERE number < (SELECT max(serial) >> {SHIFT} FROM workflow_execution)
    """,
    # Whether it is a child, and its state, are asked for together with what these are sorted by.
    "DROP INDEX workflow_execution_newest",
    """
    CREATE INDEX workflow_execution_newest
    ON workflow_execution (created_at, id, parent_step_idempotency_key) WHERE deleted_at IS NULL
    """,
    "DROP INDEX workflow_execution_state",
    """
    CREATE INDEX workflow_execution_state
    ON workflow_execution (state, created_at, id, parent_step_idempotency_key)
    WHERE deleted_at IS NULL
    """,
    "DROP INDEX workflow_execution_workflow",
    """
    CREATE INDEX workflow_execution_workflow
    ON workflow_execution (workflow_id, created_at, id, state) WHERE deleted_at IS NULL
    """,
    # All are counted by pages; these are the parts that a count leaves out.
    """
    CREATE INDEX workflow_execution_children ON workflow_execution (created_at)
    WHERE parent_step_idempotency_key IS NOT NULL AND deleted_at IS NULL
    """,
    """
    CREATE INDEX workflow_execution_deleted ON workflow_execution (deleted_at)
    WHERE deleted_at IS NOT NULL
    """,
    # What waits is now found among what is open: a parked step waits, too.
    "DROP INDEX workflow_execution_awaiting",
)
