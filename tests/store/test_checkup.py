"""The check-up finds what is wrong, says where, and takes nothing that is right for wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import NOW, begun, changed, new, told
from tests.store.support import fill, locked
from wfe.errors import SchemaTooNew, StoreUnusable
from wfe.model import EventKind, ExecutionState, StepState, StepStatus
from wfe.store.checkup import Result, check_up, is_damaged, is_partial
from wfe.store.database import open_for_writing
from wfe.store.facts import NEWEST, facts
from wfe.store.invariants import INVARIANTS
from wfe.store.salvage import Reach, reach
from wfe.store.writer import Packer, Writer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Executions of two steps each: order:done, order:waits, and order:runs, with a timeline."""
    file = tmp_path / "wfe.db"
    writer = Writer(open_for_writing(file, synchronous="normal"), busy_timeout=5)
    packer = Packer()
    over: dict[str, Any] = {
        "running": False,
        "invoke": StepState.DONE,
        "invoke_status": StepStatus.OK,
    }
    done: dict[str, Any] = {"state": ExecutionState.DONE, "ended_at": NOW, "retention_time": 60.0}
    open_ = {"state": ExecutionState.INVOKING}
    for name, second, head in (
        ("done", over, done),
        ("waits", {"running": False, "awaiting": True}, {**open_, "awaiting": 1}),
        ("runs", {}, {**open_, "running": 1}),
    ):
        execution = new(name)
        changes = changed(
            execution,
            begun(**over),
            begun("charge", stage=1, **second),
            events=(told(EventKind.BEGIN),),
            result=b"5" if name == "done" else None,
            **head,
        )
        assert writer.write([packer.insertion(execution, changes)]) == [True]
    writer.close()
    return file


def found(file: Path) -> dict[str, Result]:
    """The checks that found something."""
    return {result.name: result for result in check_up(file) if not result.is_ok}


def spoil(file: Path, statement: str) -> None:
    """Change a file as no wfe would."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def test_nothing_is_found_where_nothing_is_wrong(file: Path) -> None:
    results = list(check_up(file))
    assert [result for result in results if not result.is_ok] == []
    assert [result.name for result in results] == [
        "permissions",
        "structure",
        "references",
        *(check.name for check in INVARIANTS),
    ]
    assert not is_partial(results)
    assert not is_damaged(results)


@pytest.mark.parametrize(
    ("statement", "check", "key", "sentence"),
    [
        (
            "UPDATE workflow_execution SET running = 3 WHERE transaction_id = 'waits'",
            "counters",
            "order:waits",
            "it says that 3 steps run and 1 wait; 0 and 1 do",
        ),
        (
            "UPDATE execution_step SET awaiting = 0",
            "counters",
            "order:waits",
            "it says that 0 steps run and 1 wait; 0 and 0 do",
        ),
        (
            "DELETE FROM execution_step WHERE execution_id LIKE '%runs%'",
            "counters",
            "order:runs",
            "it says that 1 steps run and 0 wait; 0 and 0 do",
        ),
        (
            "UPDATE workflow_execution SET ended_at = NULL",
            "ends",
            "order:done",
            "it is done, and its end does not say so",
        ),
        (
            "UPDATE workflow_execution SET expires_at = 1 WHERE transaction_id = 'waits'",
            "ends",
            "order:waits",
            "it is invoking, and its end does not say so",
        ),
        (
            "UPDATE workflow_execution SET state = 'stuck' WHERE transaction_id = 'waits'",
            "states",
            "order:waits",
            "its state 'stuck' is unknown",
        ),
        (
            "UPDATE execution_step SET invoke = 'stuck' WHERE execution_id LIKE '%waits%'",
            "states",
            "order:waits",
            "the state of step charge is unknown",
        ),
        (
            "UPDATE execution_step SET name = 'other' WHERE name = 'charge'",
            "steps",
            "order:done",
            "its workflow never had a step other, and 2 runs more have it",
        ),
        (
            "UPDATE execution_event SET version = 7 WHERE execution_id LIKE '%done%'",
            "timelines",
            "order:done",
            "it has version 1, and an event of version 7",
        ),
        (
            "UPDATE execution_payload SET result = NULL",
            "results",
            "order:done",
            "its result is gone",
        ),
        (
            "UPDATE execution_step SET output = '{\"a\":' WHERE execution_id LIKE '%done%'",
            "values",
            "order:done",
            "step charge cannot be read",
        ),
        (
            "UPDATE workflow_execution SET execution = '' WHERE transaction_id = 'runs'",
            "values",
            "order:runs",
            "its head cannot be read",
        ),
        (
            "UPDATE execution_payload SET input = 'x' WHERE execution_id LIKE '%runs%'",
            "values",
            "order:runs",
            "its input or result cannot be read",
        ),
        ("UPDATE definition SET flow = 'x'", "steps", None, "of workflow order cannot be read"),
        (
            "DELETE FROM workflow_execution WHERE transaction_id = 'done'",
            "references",
            None,
            "execution_step: 2 without their workflow_execution",
        ),
    ],
)
def test_what_is_wrong_is_found_and_named(
    file: Path, statement: str, check: str, key: str | None, sentence: str
) -> None:
    spoil(file, statement)
    results = found(file)
    finding = next(each for each in results[check].findings if sentence in each.message)
    assert finding.key == key


def test_two_unfinished_runs_of_a_key_are_found_where_the_index_that_forbids_them_is_gone(
    file: Path,
) -> None:
    spoil(file, "DROP INDEX workflow_execution_unfinished")
    writer = Writer(open_for_writing(file), busy_timeout=5)
    execution = new("waits", "r2")
    changes = changed(execution, state=ExecutionState.INVOKING)
    parcel = Packer().insertion(execution, changes)
    assert writer.write([parcel]) == [True]
    writer.close()
    (finding,) = found(file)["unfinished"].findings
    assert finding.key == "order:waits"


def test_a_step_that_a_workflow_had_before_it_was_changed_is_no_finding(file: Path) -> None:
    spoil(
        file,
        "INSERT INTO definition SELECT 'before', 'x', workflow_id, "
        "replace(flow, '\"charge\"', '\"pay\"'), created_at FROM definition",
    )
    spoil(file, "UPDATE execution_step SET name = 'pay' WHERE name = 'charge'")
    assert found(file) == {}


def test_a_result_that_could_not_be_computed_is_no_finding(file: Path) -> None:
    spoil(file, "UPDATE execution_payload SET result = NULL")
    spoil(file, 'UPDATE workflow_execution SET execution = \'{"errors":[{"action":null}]}\'')
    assert "results" not in found(file)


def test_of_many_findings_the_first_are_named_and_all_counted(tmp_path: Path) -> None:
    file = tmp_path / "wfe.db"
    fill(file, *(f"t{number}" for number in range(30)))
    spoil(file, "UPDATE workflow_execution SET running = 1")
    counters = found(file)["counters"]
    assert (counters.found, len(counters.findings)) == (30, 10)


def test_files_that_others_may_read_are_found_with_what_mends_them(file: Path) -> None:
    file.chmod(0o644)
    (finding,) = found(file)["permissions"].findings
    assert finding.message == f"{file} has the mode 0644, and should have 0600."
    assert finding.mend == f"chmod 600 {file}"


def test_it_sees_one_moment_while_others_write(file: Path) -> None:
    results = check_up(file)
    before = [next(results) for _ in range(3)]
    spoil(file, "UPDATE workflow_execution SET running = 9")
    assert all(result.is_ok for result in (*before, *results))
    assert "counters" in found(file)


def test_nobody_has_to_wait_for_it_and_it_waits_for_nobody(file: Path) -> None:
    with locked(file):
        assert found(file) == {}


def test_of_an_older_schema_what_holds_for_all_is_checked(file: Path) -> None:
    spoil(file, f"DELETE FROM schema_version WHERE version = {NEWEST}")
    results = list(check_up(file))
    assert [result.name for result in results] == ["permissions", "structure", "references"]
    assert is_partial(results)


def test_a_newer_schema_is_refused(file: Path) -> None:
    spoil(file, "INSERT INTO schema_version VALUES (99, 'of the future', 0)")
    with pytest.raises(SchemaTooNew):
        list(check_up(file))


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="There is no database"):
        list(check_up(tmp_path / "no" / "wfe.db"))
    (tmp_path / "notes").write_text("no database\n" * 100)
    with pytest.raises(StoreUnusable, match="is not a database"):
        list(check_up(tmp_path / "notes"))


# --- damage --------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A database of 1,000 executions."""
    file = tmp_path / "wfe.db"
    fill(file, *(f"t{number}" for number in range(1000)))
    return file


def cut_in_half(content: bytearray) -> None:
    del content[len(content) // 8192 * 4096 :]


def spoil_pages(content: bytearray) -> None:
    half = len(content) // 8192 * 4096
    content[half : half + 8 * 4096] = b"\xff" * (8 * 4096)


def spoil_schema(content: bytearray) -> None:
    content[100:4096] = b"\x55" * 3996


@pytest.mark.parametrize("break_it", [cut_in_half, spoil_pages, spoil_schema])
def test_damage_is_found_and_nothing_is_changed(
    large: Path, break_it: Callable[[bytearray], None]
) -> None:
    content = bytearray(large.read_bytes())
    break_it(content)
    large.write_bytes(content)
    results = list(check_up(large))
    assert is_damaged(results)
    assert large.read_bytes() == content


def test_of_a_damaged_file_it_is_known_how_far_it_can_be_read(large: Path) -> None:
    whole = {each.table: each for each in reach(large)}
    assert whole["workflow_execution"] == Reach("workflow_execution", 1000, True)
    assert all(each.is_whole for each in whole.values())
    content = bytearray(large.read_bytes())
    cut_in_half(content)
    large.write_bytes(content)
    left = {each.table: each for each in reach(large)}
    assert set(left) == set(whole)
    assert left["schema_version"] == whole["schema_version"]
    assert any(0 < each.rows < whole[each.table].rows for each in left.values())
    assert any(not each.is_whole for each in left.values())


def test_rows_are_read_from_both_ends_of_what_is_broken(large: Path) -> None:
    content = bytearray(large.read_bytes())
    with closing(sqlite3.connect(large)) as connection:
        (page,) = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'workflow_execution' AND pagetype = 'leaf'"
            " ORDER BY path LIMIT 1 OFFSET 20"
        ).fetchone()
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    large.write_bytes(content)
    left = {each.table: each for each in reach(large)}["workflow_execution"]
    assert not left.is_whole
    assert 900 < left.rows < 1000


def test_where_nothing_can_be_read_nothing_is_claimed(large: Path) -> None:
    content = bytearray(large.read_bytes())
    spoil_schema(content)
    large.write_bytes(content)
    assert reach(large) == []


# --- facts ---------------------------------------------------------------------------------------


def test_facts_are_those_of_the_file(file: Path) -> None:
    said = facts(file)
    assert said.path == file
    assert said.size == file.stat().st_size
    assert (said.schema, said.journal_mode, said.last_sweep) == (NEWEST, "wal", None)
    assert said.states == {"done": 1, "invoking": 2}
    assert said.executions == 3
    assert said.oldest == said.newest == NOW


def test_what_is_in_the_log_and_what_is_free_is_told(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE filler (x)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(400000))")
        connection.execute("DROP TABLE filler")
        connection.commit()
        said = facts(file)
    assert said.free >= 400_000
    assert said.wal_size > 400_000


def test_a_schema_that_is_unknown_is_not_asked_what_it_holds(file: Path) -> None:
    spoil(file, "INSERT INTO schema_version VALUES (99, 'of the future', 0)")
    spoil(file, "ALTER TABLE workflow_execution RENAME TO execution")
    said = facts(file)
    assert (said.schema, said.is_known, said.executions) == (99, False, 0)


def test_an_empty_file_has_facts_too(tmp_path: Path) -> None:
    (tmp_path / "wfe.db").touch()
    said = facts(tmp_path / "wfe.db")
    assert (said.schema, said.size, said.is_known) == (0, 0, False)
