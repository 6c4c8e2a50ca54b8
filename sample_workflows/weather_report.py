"""Weather report: check a file, load it, find the odd days, ask a person, publish a page.

    wfe run weather-report                                      the bundled file, into out/
    wfe run weather-report -p csv=mine.csv -p threshold=2.5     another file, more odd days

Worth a look, because most jobs need the same:
- `check-rows` comes first and writes nothing, so a bad file costs nothing. It also makes the paths
  absolute: an answer may come days later, from a process in another folder.
- `load-table` may run again after a crash, and so may its undo. Both ask the database itself, in the
  transaction that does the work, whose load it holds.
- `keep-report` reads the old report before `write-report` begins. Its output is on record by then, so
  its undo restores the old report however far the writing came.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean, pstdev

from _weather_file import read
from _weather_page import Anomaly, Month, Statistics, page

from wfe import (
    PermanentStepFailure,
    StepContext,
    StepResponse,
    WorkflowResponse,
    parallel,
    step,
    transform,
    when,
    workflow,
)

WEEK = 7 * 24 * 3600


@dataclass(frozen=True)
class Request:
    csv: str = str(Path(__file__).with_name("data") / "seattle-weather.csv")
    database: str = "out/weather.db"
    report: str = "out/weather-report.html"
    #: From how many standard deviations a day is an anomaly.
    threshold: float = 3.0


@dataclass(frozen=True)
class Job:
    """A request whose file has been checked. Its paths are absolute."""

    csv: str
    database: str
    report: str
    threshold: float
    days: int
    sha256: str


@dataclass(frozen=True)
class Answer:
    """What a person says about the anomalies."""

    approved: bool
    by: str = ""


@dataclass(frozen=True)
class Kept:
    """A report as it was; `content` is None where there was none."""

    report: str
    content: bytes | None


@step("check-rows", pure=True)
def check_rows(request: Request) -> Job:
    """Every row, before anything is written."""
    if not request.threshold > 0:
        raise PermanentStepFailure(f"threshold must be above 0, not {request.threshold}")
    source, database, report = (
        str(Path(name).absolute()) for name in (request.csv, request.database, request.report)
    )
    days, sha256 = read(source)
    return Job(source, database, report, request.threshold, len(days), sha256)


# --- the table -----------------------------------------------------------------------------------


@contextmanager
def transaction(database: str) -> Iterator[sqlite3.Connection]:
    """All of the block, or nothing of it."""
    with closing(sqlite3.connect(database)) as db, db:
        # Views and triggers that name a table go on meaning whatever bears the name.
        db.execute("PRAGMA legacy_alter_table = ON")
        db.execute("BEGIN IMMEDIATE")
        yield db


def has_table(db: sqlite3.Connection, name: str) -> bool:
    return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [name]).fetchone())


def loaded_by(db: sqlite3.Connection) -> str | None:
    """The run whose load the table holds; None where none is on record."""
    if not has_table(db, "weather_load"):
        return None
    return str(db.execute("SELECT run_id FROM weather_load").fetchone()[0])


@step("load-table")
def load_table(ctx: StepContext, job: Job) -> StepResponse[int]:
    """Put the file in place of the table; the old one steps aside as `weather_before`."""
    days, sha256 = read(job.csv)
    if sha256 != job.sha256:
        raise PermanentStepFailure(f"{job.csv} has changed since it was checked")
    Path(job.database).parent.mkdir(parents=True, exist_ok=True)
    with transaction(job.database) as db:
        if loaded_by(db) != ctx.run_id:
            db.execute("DROP TABLE IF EXISTS weather_before")
            if has_table(db, "weather"):
                db.execute("ALTER TABLE weather RENAME TO weather_before")
            db.execute(
                "CREATE TABLE weather (date TEXT PRIMARY KEY, precipitation REAL NOT NULL,"
                " temp_max REAL NOT NULL, temp_min REAL NOT NULL, wind REAL NOT NULL,"
                " weather TEXT NOT NULL)"
            )
            db.executemany("INSERT INTO weather VALUES (?, ?, ?, ?, ?, ?)", days)
            db.execute("DROP TABLE IF EXISTS weather_load")
            db.execute("CREATE TABLE weather_load AS SELECT ? AS run_id", [ctx.run_id])
    return StepResponse(len(days), compensate_with=job.database)


@load_table.compensate
def unload_table(ctx: StepContext, database: str | None) -> None:
    """The table as it was. None: the load failed, and its transaction with it."""
    if database is None:
        return
    with transaction(database) as db:
        match loaded_by(db):
            case None:
                return  # undone already
            case ctx.run_id:
                db.execute("DROP TABLE weather")
                db.execute("DROP TABLE weather_load")
                if has_table(db, "weather_before"):
                    db.execute("ALTER TABLE weather_before RENAME TO weather")
            case other:
                raise PermanentStepFailure(f"run {other} has loaded the table since: undo it first")


# --- figures -------------------------------------------------------------------------------------


@step("monthly-statistics", pure=True)
def monthly_statistics(job: Job) -> Statistics:
    with closing(sqlite3.connect(job.database)) as db:
        rows = db.execute(
            "SELECT substr(date, 1, 7), round(sum(precipitation), 1), round(avg(temp_max), 1),"
            " round(avg(temp_min), 1) FROM weather GROUP BY 1 ORDER BY 1"
        )
        months = [Month(*row) for row in rows]
        day, temp_max = db.execute(
            "SELECT date, temp_max FROM weather ORDER BY temp_max DESC, date LIMIT 1"
        ).fetchone()
    wettest = max(months, key=lambda month: month.precipitation)
    return Statistics(months, wettest, warmest_day=day, warmest=temp_max)


@step("find-anomalies", pure=True)
def find_anomalies(job: Job) -> list[Anomaly]:
    """Days far from the mean of their calendar month, over all years; by date."""
    found: list[Anomaly] = []
    with closing(sqlite3.connect(job.database)) as db:
        for measure in ("temp_max", "precipitation"):
            rows = db.execute(
                f"SELECT date, {measure} FROM weather ORDER BY substr(date, 6, 2), date"
            ).fetchall()
            for _, group in groupby(rows, key=lambda row: str(row[0][5:7])):
                days = list(group)
                values = [value for _, value in days]
                mean, deviation = fmean(values), pstdev(values)
                found += (
                    Anomaly(
                        day, measure, value, round(mean, 1), round((value - mean) / deviation, 1)
                    )
                    for day, value in days
                    if deviation and abs(value - mean) >= job.threshold * deviation
                )
    return sorted(found, key=lambda anomaly: (anomaly.date, anomaly.measure))


# --- a person ------------------------------------------------------------------------------------


@step("approve-anomalies", async_=True, timeout=WEEK, pure=True)
def approve_anomalies(anomalies: list[Anomaly]) -> StepResponse[Answer]:
    """Waits a week for an answer such as {"approved": true, "by": "kim"}."""
    return StepResponse.awaiting()


@step("check-answer", pure=True)
def check_answer(answer: Answer) -> Answer:
    if not answer.approved:
        raise PermanentStepFailure(f"{answer.by or 'somebody'} did not approve the anomalies")
    return answer


# --- the report ----------------------------------------------------------------------------------


def replace_file(path: Path, content: bytes, tag: str) -> None:
    """Readers see the old content or the new one, whole, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{tag}")
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@step("keep-report")
def keep_report(job: Job) -> Kept:
    path = Path(job.report)
    return Kept(job.report, path.read_bytes() if path.exists() else None)


@keep_report.compensate
def put_back(ctx: StepContext, kept: Kept | None) -> None:
    """The old report, or none where there was none."""
    if kept is None:
        return
    path = Path(kept.report)
    if kept.content is None:
        if path.exists():
            path.unlink()
    elif not path.exists() or path.read_bytes() != kept.content:
        replace_file(path, kept.content, ctx.run_id)


@step("write-report")
def write_report(
    ctx: StepContext,
    job: Job,
    statistics: Statistics,
    anomalies: list[Anomaly],
    answer: Answer | None,
) -> str:
    """The path of the new page. Its undo is that of `keep-report`."""
    text = page(Path(job.csv).name, job.days, statistics, anomalies, answer.by if answer else None)
    try:
        replace_file(Path(job.report), text.encode(), ctx.run_id)
    except OSError as error:
        raise PermanentStepFailure(f"{job.report} cannot be written: {error.strerror}") from error
    return job.report


@workflow("weather-report", description="Check, load and publish daily weather")
def weather_report(request: Request) -> WorkflowResponse[dict[str, object]]:
    job = check_rows(request)
    load_table(job)
    statistics, anomalies = parallel(monthly_statistics(job), find_anomalies(job))
    with when(anomalies, name="anomalies"):
        answer = check_answer(approve_anomalies(anomalies))
    keep_report(job)
    report = write_report(job, statistics, anomalies, answer)
    return WorkflowResponse(
        {
            "days": job.days,
            "wettest_month": statistics.wettest.month,
            "warmest_day": statistics.warmest_day,
            "anomalies": transform(anomalies, fn=len),
            "report": report,
        }
    )
