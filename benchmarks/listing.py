"""What it costs to find executions among a million, and what an insert pays for it.

    python -m benchmarks.listing [--rows 1000000] [--repeat 7] [--folder DIR]

The database is made in a temporary folder with multi-row SQL: a tenth are children, a fiftieth is
unfinished, half have transaction ids that wfe made. Each question is asked through the reader that
`wfe executions list` uses, so that Python's part is in the figures: for a page some 3 ms, more than
SQLite takes. They are medians in milliseconds of wall time; `cpu` is the least of this process alone,
for machines that have other work.
"""

from __future__ import annotations

import argparse
import base64
import random
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from wfe.model import (
    Changes,
    EventKind,
    Execution,
    ExecutionState,
    Flow,
    Head,
    StepRecord,
    TimelineEvent,
)
from wfe.store import rows
from wfe.store.connection import Connection
from wfe.store.contract import Query
from wfe.store.database import open_for_writing, open_reader
from wfe.store.migrations import MIGRATIONS, migrate
from wfe.store.moments import to_micros
from wfe.store.queries.pages import behind, place
from wfe.store.queries.typed import conditions, states
from wfe.store.reader import SQLiteReader
from wfe.store.statements import INSERT_EXECUTIONS
from wfe.store.writer import Packer, Parcel, Writer

NOW = datetime(2026, 11, 1, tzinfo=UTC)
WORKFLOWS = ("import-orders", "order", "release", "nightly-backup")
HEAD = '{"started_at":"2026-11-01T00:00:00.000000Z","stage":4,"guards":{"gift":true},"metadata":%s}'

#: The migration that is measured.
SEARCH = next(each for each in MIGRATIONS if each.name == "search")

_FROM_BASE32 = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)


# --- rows ----------------------------------------------------------------------------------------


def made_up() -> Iterator[rows.Row]:
    """Rows of `rows.INSERT_COLUMNS`, a second apart."""
    chance, number = random.Random(1), 0
    metadata = '{"source":"%s"}' % ("x" * 150)
    while True:
        number += 1
        yield _row(chance, number, HEAD % metadata)


def _row(chance: random.Random, number: int, head: str) -> rows.Row:
    begun = to_micros(NOW + timedelta(seconds=number))
    name = ulid(chance, begun // 1000)
    transaction = f"auto-{name}" if number % 2 else f"order-2026-{number:07}"
    state, awaiting, wake_at = "done", 0, None
    match number % 100:
        case 7 | 31:
            state = "failed"
        case 13:
            state = "reverted"
        case 42:
            state, awaiting = "invoking", 1
        case 77:
            state, wake_at = "invoking", begun + 10**12
    is_over = state != "invoking"
    values = {
        "id": f"wf_exec_{name}",
        "workflow_id": chance.choice(WORKFLOWS),
        "transaction_id": transaction,
        "run_id": name,
        "version": 7,
        "flow": "flow",
        "updated_at": begun + 5_000_000,
        "running": 0,
        "held": 0,
        "parked": 0,
        "execution": head,
        "state": state,
        "definition": "shape",
        "recording": "every-step",
        "retention_time": 2_592_000.0,
        "expires_at": begun + 2_592_000_000_000 if is_over else None,
        "created_at": begun,
        "ended_at": begun + 5_000_000 if is_over else None,
        "wake_at": wake_at,
        "awaiting": awaiting,
        "parent_step_idempotency_key": f"order:{transaction}:x:invoke"
        if number % 10 == 3
        else None,
    }
    return tuple(values.get(column) for column in rows.INSERT_COLUMNS)


def ulid(chance: random.Random, milliseconds: int) -> str:
    moment = base64.b32encode(milliseconds.to_bytes(10, "big"))[-10:]
    return (moment + base64.b32encode(chance.randbytes(10))).translate(_FROM_BASE32).decode()


def insert(connection: sqlite3.Connection, block: Sequence[rows.Row]) -> None:
    """One transaction, as the store makes them."""
    connection.execute("BEGIN IMMEDIATE")
    INSERT_EXECUTIONS.run(connection, list(chain.from_iterable(block)))
    connection.execute("COMMIT")


# --- what an insert pays -------------------------------------------------------------------------


def empty(file: Path, version: int) -> Connection:
    """A database of an older schema."""
    pragmas = {
        "journal_mode": "WAL",
        "synchronous": "NORMAL",
        "foreign_keys": "ON",
        "temp_store": "MEMORY",
    }
    connection = Connection(file, mode="mode=rwc", busy_timeout=5, pragmas=pragmas)
    migrate(connection, now=NOW, migrations=MIGRATIONS[:version])
    return connection


def add_flow(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO definition VALUES ('flow', 'shape', 'order', '{}', 0)")


def parcels(count: int) -> list[Parcel]:
    """New executions whose first step has begun."""
    packer, flow = (
        Packer(),
        Flow(workflow_id="order", stages=(("reserve",),), steps={}, hash="shape"),
    )
    chance = random.Random(1)
    return [packer.insertion(*_begun(chance, flow, number)) for number in range(count)]


def _begun(chance: random.Random, flow: Flow, number: int) -> tuple[Execution, Changes]:
    moment = NOW + timedelta(seconds=number)
    name = ulid(chance, to_micros(moment) // 1000)
    head = Head(
        execution_id=f"wf_exec_{name}",
        workflow_id="order",
        transaction_id=f"auto-{name}" if number % 2 else f"order-2026-{number:07}",
        run_id=name,
        state=ExecutionState.INVOKING,
        created_at=moment,
        updated_at=moment,
        started_at=moment,
        running=1,
        version=1,
    )
    step = StepRecord(name="reserve", stage=0, running=True, attempts=1, started_at=moment)
    event = TimelineEvent(kind=EventKind.STEP_BEGIN, time=moment, step="reserve", attempt=1)
    changes = Changes(head=head, steps={"reserve": step}, events=(event,))
    return Execution(flow, head, input=b'{"order":%d}' % number), changes


def measure_inserts(file: Path, version: int, groups: Sequence[Sequence[Parcel]]) -> float:
    """Microseconds of this process for an execution, in a database of that schema."""
    with closing(empty(file, version)) as connection:
        writer = Writer(connection, busy_timeout=5)
        began = process_time()
        for group in groups:
            writer.write(group)
        taken = process_time() - began
    file.unlink()
    return taken / sum(map(len, groups)) * 1e6


def report_inserts(folder: Path, repeat: int) -> None:
    """With and without take turns; the median is that of what one was more than the other."""
    made = parcels(12_288)
    for together in (1, 8, 64):
        groups = [made[start : start + together] for start in range(0, len(made), together)]
        file = folder / "inserts.db"
        rounds = [
            [measure_inserts(file, SEARCH.version - less, groups) for less in (1, 0)]
            for _ in range(repeat)
        ]
        without, with_it = map(statistics.median, zip(*rounds, strict=True))
        more = statistics.median(after / before - 1 for before, after in rounds)
        print(
            f"insert, {together:3} in a commit {without:8.1f} µs without search,"
            f" {with_it:.1f} with it: {more:+.0%}",
            flush=True,
        )


# --- questions -----------------------------------------------------------------------------------


def fill(file: Path, count: int) -> None:
    with closing(open_for_writing(file, synchronous="normal")) as connection:
        add_flow(connection.raw)
        source = made_up()
        while block := list(islice(source, min(count, 1000))):
            insert(connection.raw, block)
            count -= len(block)
        connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def asked(text: str = "", **fields: object) -> Query:
    """As the command line asks: no children."""
    where = {"parent_step_idempotency_key": None, **fields}
    return Query(where=where, conditions=conditions(text, NOW), limit=51)


class Question(NamedTuple):
    """One that is asked, and the milliseconds that it may take."""

    name: str
    ask: Callable[[], object]
    most: float


def questions(reader: SQLiteReader, count: int) -> list[Question]:
    """What is asked of a database that `fill` has made with so many executions."""
    everyone = {"parent_step_idempotency_key": None}
    (deep,) = reader.list(Query(where=everyone, limit=1, offset=count // 2))
    page = Query(where=everyone, conditions=(behind(place(deep)),), limit=51)
    rare = f"order-2026-{count // 4 * 2:07}"
    lists = {
        "the newest page": (asked(), 10),
        "a page half way": (page, 10),
        "--state failed": (asked(state="failed"), 10),
        "--state done,failed,reverted": (with_states("done,failed,reverted"), 10),
        "--state failed,waiting": (with_states("failed,waiting"), 10),
        "--state interrupted": (with_states("interrupted"), 100),
        f"-q {rare}": (asked(rare), 100),
        f"-q {rare[-5:]} -w order": (asked(rare[-5:], workflow_id="order"), 100),
        "-q nonexistent": (asked("nonexistent"), 100),
        "-q zq7": (asked("zq7"), 100),
        "-q 'order 0042 done'": (asked("order 0042 done"), 100),
        "-q order": (asked("order"), 100),
        "-q é": (asked("é"), 100),
    }
    counts = {
        "": asked(),
        "-w order": Query(where={"workflow_id": "order"}),
        "--state failed": asked(state="failed"),
        "--state done": asked(state="done"),
        "--state waiting": with_states("waiting"),
        f"-q {rare}": asked(rare),
    }
    return [
        *(
            Question(name, partial(reader.list, query), most)
            for name, (query, most) in lists.items()
        ),
        *(
            Question(f"--count {name}".strip(), partial(reader.count, query), 100)
            for name, query in counts.items()
        ),
    ]


def seconds(ask: Callable[[], object]) -> float:
    began = perf_counter()
    ask()
    return perf_counter() - began


def report_questions(file: Path, count: int, repeat: int) -> None:
    with open_reader(file) as reader:
        for name, ask, most in questions(reader, count):
            wall, cpu = [], []
            for _ in range(repeat):
                used = process_time()
                wall.append(seconds(ask))
                cpu.append(process_time() - used)
            taken = statistics.median(wall) * 1e3
            verdict = "" if taken <= most else f"  over {most:.0f}"
            print(f"{name:32}{taken:9.2f} ms  (cpu {min(cpu) * 1e3:.2f}){verdict}", flush=True)


def with_states(listed: str) -> Query:
    everyone = {"parent_step_idempotency_key": None}
    return Query(where=everyone, conditions=(states(listed),), limit=51)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        report_inserts(folder, arguments.repeat)
        file = folder / "listing.db"
        fill(file, arguments.rows)
        print(f"{arguments.rows:,} executions, {file.stat().st_size / 1e6:,.0f} MB")
        report_questions(file, arguments.rows, arguments.repeat)


if __name__ == "__main__":
    main()
