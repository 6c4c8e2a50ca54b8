"""The weather report: right figures, a question where days stand out, and nothing left half done."""

from __future__ import annotations

import csv
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wfe import PermanentStepFailure, StepContext
from wfe.errors import InvalidInput
from wfe.model import CommandResult

from .support import ROOT, SILENCE, module, run, sample, state

REAL = ROOT / "sample_workflows" / "data" / "seattle-weather.csv"
HEADING = "date,precipitation,temp_max,temp_min,wind,weather"
YES = {"approved": True, "by": "kim"}
NO = {"approved": False, "by": "kim"}


class Place:
    """A folder to work in, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "weather.db"
        self.report = folder / "report.html"

    def run(self, csv: Path = REAL, *, answer: Any = YES, **options: Any) -> CommandResult:
        request = {"csv": str(csv), "database": str(self.database), "report": str(self.report)}
        request |= options.pop("request", {})
        return run(sample("weather-report"), request, answer=answer, **options)

    def fill(self) -> None:
        """An older report, and an older table with columns, an index and a view of its own."""
        self.report.write_bytes(b"\xff old report \r\n")
        self.report.chmod(0o640)
        with closing(sqlite3.connect(self.database)) as db, db:
            db.execute('CREATE TABLE "weather" (date TEXT, note TEXT)')
            db.execute('CREATE INDEX by_note ON "weather" (note)')
            db.execute("CREATE VIEW newest AS SELECT max(date) FROM weather")
            db.executemany("INSERT INTO weather (rowid, date) VALUES (?, ?)", [(7, "a"), (9, "b")])

    def tables(self) -> list[str]:
        """Everything in the database, as SQL text, and the row ids; nothing where it is missing."""
        if not self.database.exists():
            return []
        with closing(sqlite3.connect(self.database)) as db:
            dump = list(db.iterdump())[1:-1]
            return dump + (
                [str(row) for row in db.execute("SELECT rowid FROM weather")] if dump else []
            )

    def everything(self) -> Any:
        files = {
            file.name: (file.read_bytes(), file.stat().st_mode)
            for file in self.folder.iterdir()
            if file.is_file() and file != self.database
        }
        return files, self.tables()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "place"
    folder.mkdir()
    return Place(folder)


# --- the real file -------------------------------------------------------------------------------


def outliers(rows: list[dict[str, str]], measure: str, threshold: float) -> int:
    """How many values are that far from the mean of their month of the year; from plain sums."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        value, known = float(row[measure]), sums[row["date"].split("/")[1]]
        known[:] = known[0] + 1, known[1] + value, known[2] + value * value
    found = 0
    for row in rows:
        number, total, squares = sums[row["date"].split("/")[1]]
        mean = total / number
        variance = squares / number - mean * mean
        found += (float(row[measure]) - mean) ** 2 >= threshold * threshold * variance
    return found


def test_figures_of_the_real_file_match_an_independent_computation(place: Place) -> None:
    with REAL.open() as file:
        rows = list(csv.DictReader(file))
    rain: dict[str, float] = defaultdict(float)
    for row in rows:
        rain["-".join(row["date"].split("/")[:2])] += float(row["precipitation"])
    result = place.run(request={"threshold": 3})
    assert state(result) == "done"
    assert result.result == {
        "days": len(rows),
        "wettest_month": max(rain, key=lambda month: rain[month]),
        "warmest_day": max(rows, key=lambda row: float(row["temp_max"]))["date"].replace("/", "-"),
        "anomalies": outliers(rows, "temp_max", 3) + outliers(rows, "precipitation", 3),
        "report": str(place.report),
    }
    assert result.result["days"] == 1461
    assert result.result["wettest_month"] == "2015-12"
    assert result.result["warmest_day"] == "2014-08-11"


def test_the_table_holds_the_file(place: Place) -> None:
    place.run()
    with REAL.open() as file:
        days = [
            (row["date"].replace("/", "-"), *map(float, list(row.values())[1:5]), row["weather"])
            for row in csv.DictReader(file)
        ]
    with closing(sqlite3.connect(place.database)) as db:
        assert db.execute("SELECT * FROM weather ORDER BY date").fetchall() == days


def test_runs_without_any_input_where_there_is_the_bundled_file(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.folder)
    result = run(sample("weather-report"), {}, answer=YES)
    assert result.result["report"] == str(place.folder / "out" / "weather-report.html")
    assert (place.folder / "out" / "weather.db").exists()


def test_a_loaded_table_and_a_report_take_the_place_of_the_old_ones(place: Place) -> None:
    place.fill()
    result = place.run()
    assert state(result) == "done"
    assert place.report.read_text().startswith("<!doctype html>")
    assert place.report.stat().st_mode & 0o777 == 0o640
    with closing(sqlite3.connect(place.database)) as db:
        assert db.execute("SELECT * FROM newest").fetchone() == ("2015-12-31",)
    assert {file.name for file in place.folder.iterdir()} == {"weather.db", "report.html"}


# --- bad files -----------------------------------------------------------------------------------

GOOD = "2012/01/01,0.0,12.8,5.0,4.7,drizzle"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("2012/02/30,0,1,0,1,sun", "line 3, column date: '2012/02/30'"),
        ("yesterday,0,1,0,1,sun", "line 3, column date: 'yesterday'"),
        ("2012/01/01,0,1,0,1,sun", "line 3, column date: 2012/01/01 appears twice"),
        ("2012/01/02,wet,1,0,1,sun", "line 3, column precipitation: 'wet'"),
        ("2012/01/02,-0.1,1,0,1,sun", "line 3, column precipitation: '-0.1'"),
        ("2012/01/02,0,nan,0,1,sun", "line 3, column temp_max: 'nan'"),
        ("2012/01/02,0,1,-inf,1,sun", "line 3, column temp_min: '-inf'"),
        ("2012/01/02,0,1,2,1,sun", "line 3, column temp_min: 2 is above temp_max 1"),
        ("2012/01/02,0,1,0,,sun", "line 3, column wind: ''"),
        ("2012/01/02,0,1,0,1, ", "line 3, column weather: ' ' is no word"),
        ("2012/01/02,0,1,0,1", "line 3, 5 columns instead of 6"),
        ('2012/01/02,0,1,0,1,"sun\n2012/01/03,0,1,0,1,sun\n2012/01/04,1', "line 3: unexpected end"),
        ("2012/01/02,0,1,0,1," + "x" * 200_000, "line 3: field larger than"),
        ("\n2012/01/02,0,x,0,1,sun", "line 4, column temp_max: 'x'"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_written(
    place: Place, tmp_path: Path, row: str, complaint: str
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(f"{HEADING}\n{GOOD}\n{row}\n")
    place.fill()
    before = place.everything()
    result = place.run(file, answer=SILENCE)
    assert state(result) == "reverted"
    assert result.errors[0].name == "PermanentStepFailure"
    assert f"{file}: {complaint}" in result.errors[0].message
    assert place.everything() == before


def test_of_many_bad_rows_the_first_few_are_named(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("\n".join([HEADING, *["2012/01/01,?,1,0,1,sun"] * 1000]))
    message = place.run(file, answer=SILENCE).errors[0].message
    assert [f"line {line}," in message for line in range(2, 8)] == [True] * 5 + [False]
    assert message.endswith("and 995 more")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"", "holds no day"),
        (HEADING.encode(), "holds no day"),
        (b"date;rain\n", "line 1 must read date,precipitation"),
    ],
)
def test_a_file_that_is_no_weather_is_refused(
    place: Place, tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "bad.csv"
    if content is not None:
        file.write_bytes(content)
    result = place.run(file, answer=SILENCE)
    assert state(result) == "reverted"
    assert str(file) in result.errors[0].message
    assert complaint in result.errors[0].message
    assert place.everything() == ({}, [])


def test_a_byte_order_mark_and_other_line_ends_are_fine(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_bytes(f"\ufeff{HEADING}\r\n{GOOD}\r\n\r\n".encode())
    assert place.run(file, answer=SILENCE).result["days"] == 1


@pytest.mark.parametrize("threshold", [0, -1])
def test_a_threshold_must_be_positive(place: Place, threshold: float) -> None:
    result = place.run(answer=SILENCE, request={"threshold": threshold})
    assert "threshold must be above 0" in result.errors[0].message


# --- the question --------------------------------------------------------------------------------


def test_waits_for_a_person_before_it_publishes(place: Place) -> None:
    result = place.run(answer=SILENCE)
    assert state(result) == "invoking"
    assert not place.report.exists()


def test_asks_nobody_where_no_day_stands_out(place: Place) -> None:
    result = place.run(answer=SILENCE, request={"threshold": 99})
    assert state(result) == "done"
    assert result.result["anomalies"] == 0
    assert "stand out" not in place.report.read_text()


@pytest.mark.parametrize("filled", [True, False])
def test_an_answer_of_no_leaves_everything_as_it_was(place: Place, filled: bool) -> None:
    if filled:
        place.fill()
    before = place.everything()
    result = place.run(answer=NO)
    assert state(result) == "reverted"
    assert place.everything() == before


@pytest.mark.parametrize("answer", [{"approved": "perhaps"}, {"aproved": True}, None])
def test_an_answer_that_is_none_is_refused(place: Place, answer: Any) -> None:
    with pytest.raises(InvalidInput, match=r"still waits|Did you mean approved"):
        place.run(answer=answer)


def test_a_refusal_says_who_refused(place: Place) -> None:
    assert place.run(answer=NO).errors[0].message == "kim did not approve the anomalies"


# --- undone --------------------------------------------------------------------------------------


@pytest.mark.parametrize("filled", [True, False])
def test_undoing_a_finished_run_brings_table_and_report_back(place: Place, filled: bool) -> None:
    if filled:
        place.fill()
    before = place.everything()
    assert state(place.run(cancel=True)) == "reverted"
    assert place.everything() == before


def test_a_report_whose_folder_is_a_file_leaves_the_table_as_it_was(place: Place) -> None:
    place.fill()
    before = place.everything()
    result = place.run(request={"report": str(place.report / "in" / "report.html")})
    assert state(result) == "reverted"
    assert "cannot be written" in result.errors[0].message
    assert place.everything() == before


def test_a_folder_in_the_place_of_the_report_leaves_the_table_as_it_was(place: Place) -> None:
    place.fill()
    before = place.everything()
    result = place.run(request={"report": str(place.folder)})
    assert state(result) == "reverted"
    assert place.everything() == before


def test_a_report_that_cannot_be_replaced_stays(place: Place) -> None:
    place.fill()
    (place.folder / ".report.html.RUN").mkdir()  # where the new one would be written first
    before = place.everything()
    result = place.run(run_id="RUN")
    assert state(result) == "reverted"
    assert place.everything() == before


# --- twice ---------------------------------------------------------------------------------------


def context(run_id: str) -> StepContext:
    return StepContext(run_id=run_id)


def test_a_load_that_runs_again_does_not_take_its_own_rows_for_the_old_table(place: Place) -> None:
    place.fill()
    before = place.everything()
    report = module("sample_workflows.weather_report")
    job = report.check_rows(report.Request(str(REAL), str(place.database), str(place.report)))
    for _ in range(2):
        assert report.load_table(context("A"), job).output == 1461
    for _ in range(2):
        report.unload_table(context("A"), job.database)
    assert place.everything() == before


def test_a_report_that_is_written_and_undone_twice_is_as_before(place: Place) -> None:
    place.fill()
    before = place.everything()
    report = module("sample_workflows.weather_report")
    job = report.Job(str(REAL), str(place.database), str(place.report), 3.0, 0, "")
    kept = report.keep_report(job)
    for content in (b"new", b"new"):
        report.replace_file(place.report, content, "A")
    for _ in range(2):
        report.put_back(context("A"), kept)
    assert place.everything() == before


def test_a_first_report_is_removed_twice(place: Place) -> None:
    report = module("sample_workflows.weather_report")
    kept = report.Kept(str(place.report), None)
    place.report.write_text("new")
    for _ in range(2):
        report.put_back(context("A"), kept)
    assert not place.report.exists()


def test_undoing_an_older_load_does_not_touch_a_later_one(place: Place) -> None:
    place.fill()
    place.run(run_id="OLD")
    place.run(run_id="NEW")
    before = place.everything()
    report = module("sample_workflows.weather_report")
    with pytest.raises(PermanentStepFailure, match="run NEW has loaded the table since"):
        report.unload_table(context("OLD"), str(place.database))
    assert place.everything() == before


def test_a_file_that_changed_while_it_waited_is_not_loaded(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text(f"{HEADING}\n{GOOD}\n")
    report = module("sample_workflows.weather_report")
    job = report.check_rows(report.Request(str(file), str(place.database)))
    file.write_text(f"{HEADING}\n{GOOD}\n".replace("12.8", "12.9"))
    with pytest.raises(PermanentStepFailure, match="has changed since it was checked"):
        report.load_table(context("A"), job)
    assert not place.database.exists()
