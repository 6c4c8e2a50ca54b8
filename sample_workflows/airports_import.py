"""Airports import: a file into a table, in four batches side by side, whole or not at all.

    wfe run airports-import                            the bundled file, into out/airports.db
    wfe run airports-import -p csv=mine.csv            one bad row: every batch is undone, exit code 10
    wfe run airports-import -p csv=mine.csv -p skip_invalid=true     bad rows are left out and counted

Each batch is a workflow of its own: `wfe executions list -w airports-batch` shows what became of it.
Rows bear the key of the batch that wrote them. So a step that runs again after a crash doubles nothing,
the undo of a batch removes its own rows alone, and airports that were there before stay as they are.
That undo belongs to the step before the writing, which is on record however the writing ends.

Rules of your own are a hook, in a module beside this one:

    from airports_import import Airport, Complaint, airports_batch

    @airports_batch.hooks.validate
    def in_the_states(rows: list[Airport]) -> list[Complaint]:
        return [Complaint(row.line, f"{row.iata} is in {row.country}")
                for row in rows if row.country != "USA"]

When it fails, `wfe executions show airports-import:TX` says which line of the file it was. A database
that somebody else holds locked is tried five times; run the command again once it is free.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

from wfe import (
    PermanentStepFailure,
    StepContext,
    StepResponse,
    WorkflowResponse,
    hook,
    parallel,
    resource,
    step,
    transform,
    workflow,
)

#: How many batches run side by side. A body is composed once: this cannot depend on the input.
BATCHES = 4
COLUMNS = ["iata", "name", "city", "state", "country", "latitude", "longitude"]


@dataclass(frozen=True)
class Request:
    csv: str = str(Path(__file__).with_name("data") / "airports.csv")
    database: str = "out/airports.db"
    #: Leave bad rows out instead of refusing the file.
    skip_invalid: bool = False


@dataclass(frozen=True)
class Job:
    """A request whose file could be read. Its paths are absolute."""

    csv: str
    sha256: str
    database: str
    #: Whether the table was there before.
    had_table: bool
    skip_invalid: bool


@dataclass(frozen=True)
class Batch:
    job: Job
    #: From 1 to BATCHES.
    number: int


@dataclass(frozen=True)
class Airport:
    #: Where it stands in the file.
    line: int
    iata: str
    name: str
    city: str
    state: str
    country: str
    latitude: float
    longitude: float


@dataclass(frozen=True)
class Complaint:
    line: int
    reason: str


@dataclass(frozen=True)
class Parsed:
    airports: list[Airport]
    complaints: list[Complaint]


@dataclass(frozen=True)
class Counts:
    rows: int
    added: int
    invalid: int


@resource
def connect() -> Callable[[str], sqlite3.Connection]:
    """How batches open the database. A test puts one in its place that fails."""
    return sqlite3.connect


# --- one batch -----------------------------------------------------------------------------------


def read(path: str) -> tuple[list[tuple[int, list[str]]], str]:
    """The rows below the heading with their lines, and the SHA-256 of the file."""
    try:
        content = Path(path).read_bytes()
        rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        heading, *others = [(rows.line_num, row) for row in rows if row] or [(1, [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PermanentStepFailure(f"{path} cannot be read: {error}") from error
    if heading[1] != COLUMNS:
        raise PermanentStepFailure(f"{path}: the first line must read {','.join(COLUMNS)}")
    return others, hashlib.sha256(content).hexdigest()


def parse(line: int, row: list[str]) -> Airport:
    """One airport; ValueError says what is wrong with it."""
    if len(row) != len(COLUMNS):
        raise ValueError(f"{len(row)} columns instead of {len(COLUMNS)}")
    iata, name, city, state, country, *position = row
    if not iata or not name:
        raise ValueError("an airport needs a code and a name")
    latitude, longitude = map(float, position)
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise ValueError(f"{latitude}, {longitude} is nowhere on earth")
    return Airport(line, iata, name, city, state, country, latitude, longitude)


@step("parse-rows", pure=True)
def parse_rows(batch: Batch) -> Parsed:
    rows, sha256 = read(batch.job.csv)
    if sha256 != batch.job.sha256:
        raise PermanentStepFailure(f"{batch.job.csv} has changed since it was checked")
    parsed = Parsed([], [])
    for line, row in rows[batch.number - 1 :: BATCHES]:
        try:
            parsed.airports.append(parse(line, row))
        except ValueError as error:
            parsed.complaints.append(Complaint(line, str(error)))
    return parsed


def writer(ctx: StepContext) -> str:
    """Who writes the rows of a batch: the same for all its steps and their attempts, but another in
    another run of the same id, lest the undo of that takes these rows for its own."""
    return f"{ctx.workflow_id}:{ctx.transaction_id}@{ctx.run_id}"


# The retries are for its undo, which writes.
@step("judge-rows", max_retries=4, retry_interval=0.5, retry_backoff=2)
def judge_rows(
    job: Job, parsed: Parsed, more: list[Complaint] | None
) -> StepResponse[list[Airport]]:
    """Those that nobody complains about. `more` is what the hook has to say."""
    complaints = sorted(parsed.complaints + (more or []), key=lambda complaint: complaint.line)
    if complaints and not job.skip_invalid:
        first = complaints[0]
        others = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
        raise PermanentStepFailure(f"{job.csv}, line {first.line}: {first.reason}{others}")
    bad = {complaint.line for complaint in complaints}
    good = [airport for airport in parsed.airports if airport.line not in bad]
    return StepResponse(good, compensate_with=job.database)


@judge_rows.compensate
def remove_rows(ctx: StepContext, database: str | None) -> None:
    """The rows that `load-rows` has written, whether it came to say so or not."""
    if database is None:  # the rows were refused
        return
    with closing(ctx.resolve("connect")(database)) as db, db:
        db.execute("DELETE FROM airport WHERE written_by = ?", [writer(ctx)])


# Pure: what it leaves behind is taken back by the undo of `judge-rows`.
@step(
    "load-rows",
    max_retries=4,
    retry_interval=0.5,
    retry_backoff=2,
    retry_jitter=0.2,
    pure=True,
)
def load_rows(ctx: StepContext, job: Job, airports: list[Airport]) -> int:
    """How many of them are new. All are written, or none."""
    values = [(*astuple(airport)[1:], writer(ctx)) for airport in airports]
    with closing(ctx.resolve("connect")(job.database)) as db, db:
        db.executemany(
            "INSERT INTO airport VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", values
        )
        counted = db.execute("SELECT count(*) FROM airport WHERE written_by = ?", [writer(ctx)])
        return int(counted.fetchone()[0])


@transform
def count(parsed: Parsed, good: list[Airport], added: int) -> Counts:
    rows = len(parsed.airports) + len(parsed.complaints)
    return Counts(rows, added, rows - len(good))


@workflow("airports-batch", description="One batch of airports-import")
def airports_batch(batch: Batch) -> WorkflowResponse[Counts]:
    parsed = parse_rows(batch)
    validate = hook("validate", parsed.airports)
    good = judge_rows(batch.job, parsed, validate.result(list[Complaint]))
    added = load_rows(batch.job, good)
    return WorkflowResponse(count(parsed, good, added), hooks=[validate])


# --- the whole -----------------------------------------------------------------------------------


def has_table(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'airport'").fetchone())


@step("check-file", pure=True)
def check_file(request: Request) -> Job:
    """Writes nothing."""
    source, database = Path(request.csv).absolute(), Path(request.database).absolute()
    _, sha256 = read(str(source))
    had_table = False
    if database.exists():
        with closing(sqlite3.connect(database)) as db:
            had_table = has_table(db)
    return Job(str(source), sha256, str(database), had_table, request.skip_invalid)


@step("make-table")
def make_table(job: Job) -> Job:
    Path(job.database).parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(job.database)) as db, db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS airport (iata TEXT PRIMARY KEY, name TEXT, city TEXT,"
            " state TEXT, country TEXT, latitude REAL, longitude REAL, written_by TEXT)"
        )
    return job


@make_table.compensate
def drop_table(job: Job | None) -> None:
    """Unless it was there before, or another import has filled it meanwhile."""
    if job is None or job.had_table:
        return
    with closing(sqlite3.connect(job.database)) as db, db:
        if has_table(db) and not db.execute("SELECT 1 FROM airport LIMIT 1").fetchone():
            db.execute("DROP TABLE airport")


@transform
def total(batches: list[Counts]) -> dict[str, int]:
    rows = sum(batch.rows for batch in batches)
    added = sum(batch.added for batch in batches)
    invalid = sum(batch.invalid for batch in batches)
    return {"rows": rows, "added": added, "known": rows - added - invalid, "invalid": invalid}


@workflow("airports-import", description="Load a file of airports in parallel, or undo all of it")
def airports_import(request: Request) -> dict[str, int]:
    job = make_table(check_file(request))
    batches = parallel(
        [
            airports_batch.as_step.config(name=f"batch-{number}")(Batch(job, number))
            for number in range(1, BATCHES + 1)
        ]
    )
    return total(batches)
