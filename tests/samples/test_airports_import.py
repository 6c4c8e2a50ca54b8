"""The airports: all rows or none, whatever fails, and each of them once, whenever the process dies."""

from __future__ import annotations

import csv
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project, project_in
from wfe import PermanentStepFailure
from wfe.testing import Run, VirtualEngine, crash_at, crash_everywhere, run_to_end

from .support import ROOT, module, sample

SAMPLE = ROOT / "sample_workflows" / "airports_import.py"
REAL = ROOT / "sample_workflows" / "data" / "airports.csv"
HEADING = "iata,name,city,state,country,latitude,longitude"
GOOD = [f"A{number:02},Field {number},Town,TX,USA,{number}.5,-{number}.25" for number in range(9)]


class Connect:
    """Opens databases; fails so many times, `after` having opened some."""

    def __init__(self, failures: int = 0, *, after: int = 0) -> None:
        self.failures = failures
        self.after = after

    def __call__(self, database: str) -> sqlite3.Connection:
        if self.after:
            self.after -= 1
        elif self.failures:
            self.failures -= 1
            raise sqlite3.OperationalError("database is locked")
        return sqlite3.connect(database)


CALM = {"connect": Connect()}
#: What is in a database that holds nothing.
NOTHING = ["BEGIN TRANSACTION;", "COMMIT;"]


class Place:
    """A folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "airports.db"

    def file(self, *rows: str) -> Path:
        file = self.folder / "some.csv"
        file.write_text("\n".join([HEADING, *rows, ""]))
        return file

    def request(self, csv: Path, **more: Any) -> dict[str, Any]:
        return {"csv": str(csv), "database": str(self.database), **more}

    def run(self, csv: Path, *, failures: int = 0, **more: Any) -> Run:
        resources = {"connect": Connect(failures)}
        return run_to_end(sample("airports-import"), self.request(csv, **more), resources=resources)

    def fill(self) -> None:
        """A table that knows two airports already, one of them as another one than the files do."""
        self.run(self.file(GOOD[0].replace("Field", "Old"), "ZZZ,Last,Town,TX,USA,1,2"))

    def rows(self) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database)) as db:
            return db.execute(
                "SELECT iata, name, city, state, country, latitude, longitude FROM airport"
                " ORDER BY iata"
            ).fetchall()

    def dump(self) -> list[str]:
        with closing(sqlite3.connect(self.database)) as db:
            return list(db.iterdump())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- all goes well -------------------------------------------------------------------------------


def test_the_table_holds_the_real_file(place: Place) -> None:
    run = place.run(REAL)
    assert run.result == {"rows": 3376, "added": 3376, "known": 0, "invalid": 0}
    with REAL.open(newline="") as file:
        expected = [(*row[:5], *map(float, row[5:])) for row in list(csv.reader(file))[1:]]
    assert place.rows() == sorted(expected)


def test_the_batches_share_the_rows(place: Place) -> None:
    run = place.run(place.file(*GOOD))
    assert [run.outputs[f"batch-{number}"]["added"] for number in (1, 2, 3, 4)] == [3, 2, 2, 2]


def test_what_is_known_already_stays_as_it_is(place: Place) -> None:
    place.fill()
    before = place.rows()
    run = place.run(place.file(*GOOD))
    assert run.result == {"rows": 9, "added": 8, "known": 1, "invalid": 0}
    assert set(before) < set(place.rows())


def test_an_empty_file_is_no_failure(place: Place) -> None:
    assert place.run(place.file()).result == {"rows": 0, "added": 0, "known": 0, "invalid": 0}


# --- bad rows ------------------------------------------------------------------------------------

BAD = {
    "BAD,Field,Town,TX,USA,1": "6 columns instead of 7",
    ",Field,Town,TX,USA,1,2": "an airport needs a code and a name",
    "BAD,,Town,TX,USA,1,2": "an airport needs a code and a name",
    "BAD,Field,Town,TX,USA,north,2": "could not convert string to float: 'north'",
    "BAD,Field,Town,TX,USA,nan,2": "nan, 2.0 is nowhere on earth",
    "BAD,Field,Town,TX,USA,1,-181": "1.0, -181.0 is nowhere on earth",
}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_row_is_told_what_is_wrong_with_it(row: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(BAD[row])}$"):
        module("sample_workflows.airports_import").parse(8, row.split(","))


def test_one_bad_row_undoes_every_batch_and_is_named(place: Place) -> None:
    place.fill()
    before = place.dump()
    run = place.run(file := place.file(*GOOD[:6], next(iter(BAD)), *GOOD[6:]))
    assert run.state == "reverted"
    assert run.errors[0].message == f"{file}, line 8: 6 columns instead of 7"
    assert run.timeline.count("airports-batch/load-rows") == 3
    assert run.timeline.count("~airports-batch/judge-rows") == 4
    assert place.dump() == before


def test_bad_rows_are_left_out_and_counted_where_that_is_wanted(place: Place) -> None:
    run = place.run(place.file(*BAD, *GOOD), skip_invalid=True)
    assert run.result == {"rows": 15, "added": 9, "known": 0, "invalid": 6}
    assert len(place.rows()) == 9


def test_of_several_bad_rows_the_first_is_named_and_the_others_are_counted(place: Place) -> None:
    bad = next(iter(BAD))
    run = place.run(place.file(*[bad] * 9))
    assert {error.message.partition(": ")[2] for error in run.errors} == {
        "6 columns instead of 7 (and 1 more)",
        "6 columns instead of 7 (and 2 more)",
    }


# --- each step fails -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b'"never closed', "cannot be read"),
        (b"", "the first line must read iata,name"),
        (b"code;name\n", "the first line must read iata,name"),
    ],
)
def test_a_file_that_is_no_list_of_airports_is_refused_before_anything_is_written(
    place: Place, content: bytes | None, complaint: str
) -> None:
    file = place.folder / "bad.csv"
    if content is not None:
        file.write_bytes(content)
    run = place.run(file)
    assert run.timeline == ["check-file!"]
    assert f"{file}" in run.errors[0].message
    assert complaint in run.errors[0].message
    assert not place.database.exists()


def test_a_database_that_is_a_folder_is_left_alone(place: Place) -> None:
    place.database.mkdir()
    assert place.run(place.file(*GOOD)).state == "reverted"
    assert list(place.database.iterdir()) == []


def test_a_locked_database_is_tried_again(place: Place) -> None:
    run = place.run(place.file(*GOOD), failures=3)
    assert run.result["added"] == 9
    assert run.timeline.count("airports-batch/load-rows!") == 3
    assert run.seconds >= 0.5


def test_a_database_that_stays_locked_leaves_nothing_behind(place: Place) -> None:
    place.fill()
    before = place.dump()
    run = place.run(place.file(*GOOD), failures=20)
    assert run.state == "reverted"
    assert run.errors[0].message == "database is locked"
    assert place.dump() == before


def test_a_table_that_was_not_there_is_gone_again(place: Place) -> None:
    assert place.run(place.file(*GOOD, *BAD)).state == "reverted"
    assert place.dump() == NOTHING


def test_a_file_that_changes_meanwhile_is_not_loaded(place: Place) -> None:
    airports = module("sample_workflows.airports_import")
    job = airports.check_file(airports.Request(str(place.file(*GOOD)), str(place.database)))
    place.file(*GOOD[1:])
    with pytest.raises(PermanentStepFailure, match="has changed since it was checked"):
        airports.parse_rows(airports.Batch(job, 1))


# --- again ---------------------------------------------------------------------------------------


def test_an_id_that_is_run_again_and_fails_leaves_the_rows_of_its_first_run(place: Place) -> None:
    imports, request = sample("airports-import"), place.request(place.file(*GOOD))
    with VirtualEngine(resources=CALM) as engine:
        assert engine.run(imports, request, transaction_id="t").state == "done"
        before = place.dump()
        place.file(*GOOD, next(iter(BAD)))
        assert engine.run(imports, request, transaction_id="t").state == "reverted"
    assert place.dump() == before


def test_undoing_a_finished_import_removes_its_rows_alone(place: Place) -> None:
    place.fill()
    before = place.dump()
    with VirtualEngine(resources=CALM) as engine:
        request = place.request(place.file(*GOOD))
        engine.run(sample("airports-import"), request, transaction_id="t")
        assert len(place.rows()) == 10
        assert engine.cancel(sample("airports-import"), "t").state == "reverted"
    assert place.dump() == before


#: Where the whole crashes: before, between and after the batches.
POINTS = [
    "after make-table",
    "before airports-batch/load-rows",
    "after airports-batch/load-rows",
]
#: The same while it undoes.
POINTS_OF_THE_UNDO = [
    "after ~airports-batch/judge-rows",
    "after ~make-table",
]


@pytest.mark.parametrize("point", POINTS)
def test_an_import_that_was_cut_short_goes_on_and_loads_each_row_once(
    place: Place, point: str
) -> None:
    request = place.request(place.file(*GOOD))
    run = crash_at(point, sample("airports-import"), request, resources=lambda: CALM)
    assert run.result == {"rows": 9, "added": 9, "known": 0, "invalid": 0}
    assert [row[0] for row in place.rows()] == [row[:3] for row in GOOD]


@pytest.mark.parametrize("point", POINTS + POINTS_OF_THE_UNDO)
def test_a_bad_import_that_was_cut_short_leaves_nothing(place: Place, point: str) -> None:
    request = place.request(place.file(*GOOD, next(iter(BAD))))
    run = crash_at(point, sample("airports-import"), request, resources=lambda: CALM)
    assert run.state == "reverted"
    assert place.dump() == NOTHING


def test_rows_that_a_crash_kept_from_being_reported_are_removed_all_the_same(place: Place) -> None:
    airports = module("sample_workflows.airports_import")
    request = airports.Request(**place.request(place.file(*GOOD)))
    batch = airports.Batch(airports.make_table(airports.check_file(request)), 1)
    locked = {"connect": Connect(5, after=1)}
    run = crash_at("after load-rows", sample("airports-batch"), batch, resources=lambda: locked)
    assert run.state == "reverted"
    assert run.errors[0].message == "database is locked"
    assert place.rows() == []


def test_a_crash_at_any_point_of_a_batch_loads_each_row_once(place: Place) -> None:
    airports = module("sample_workflows.airports_import")
    request = place.request(place.file(*GOOD))
    job = airports.check_file(airports.Request(**request))

    def fresh() -> dict[str, Any]:
        place.database.unlink(missing_ok=True)
        airports.make_table(job)
        return CALM

    batch = airports.Batch(job, 2)
    for run in crash_everywhere(sample("airports-batch"), batch, resources=fresh):
        assert run.result == {"rows": 2, "added": 2, "invalid": 0}, run.point
        assert [row[0] for row in place.rows()] == ["A01", "A05"], run.point


# --- from the shell ------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        shutil.copy(SAMPLE, tmp_path / "workflows")
        yield made


RULES = """
    from airports_import import Airport, Complaint, airports_batch

    @airports_batch.hooks.validate
    def in_the_states(rows: list[Airport]) -> list[Complaint]:
        return [Complaint(row.line, f"{row.iata} is in {row.country}")
                for row in rows if row.country != "USA"]
"""


def test_the_installed_command_imports_a_file_by_rules_of_ones_own(project: Project) -> None:
    project.write("workflows/rules.py", RULES)
    project.write("some.csv", "\n".join([HEADING, *GOOD, "ROR,Koror,NA,NA,Palau,7.4,134.5"]))
    arguments = ["run", "airports-import", "-p", "csv=some.csv", "-p", "database=new.db"]
    refused = project.execute(*arguments)
    assert refused.code == 10
    assert "some.csv, line 11: ROR is in Palau" in refused.err
    taken = project.execute(*arguments, "-p", "skip_invalid=true")
    assert (taken.code, taken.document["invalid"]) == (0, 1)
