"""The sweep: what is finished goes when its time is over, nothing else ever does, and it is counted."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import NOW, changed, new
from tests.store.support import kept, locked
from wfe.errors import StoreBusy
from wfe.model import ExecutionState
from wfe.store import leftovers
from wfe.store.compact import compact, is_worth_it
from wfe.store.database import open_for_reading, open_for_writing
from wfe.store.sweep import (
    Due,
    Swept,
    doomed,
    last_sweep,
    sweep,
    sweep_on_the_side,
    would_go,
)
from wfe.store.writer import Packer, Writer

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

#: Two hours after what `keep` keeps has ended.
LATER = NOW + 2 * HOUR
EXPIRED = Due(LATER)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "wfe.db"


def keep(file: Path, *transaction_ids: str, **fields: Any) -> None:
    """Keep runs: done at NOW, for an hour, where `fields` do not say otherwise."""
    fields = {
        "state": ExecutionState.DONE,
        "ended_at": NOW,
        "retention_time": 3600.0,
        **fields,
    }
    if not fields["state"].is_final:
        fields["ended_at"] = None
    at_first = ("workflow_id", "run_id", "parent_step_idempotency_key", "parent_run_id", "root")
    packer = Packer()
    parcels = []
    for transaction_id in transaction_ids:
        first = {name: fields[name] for name in at_first if name in fields}
        execution = new(transaction_id, **first)
        later = {name: value for name, value in fields.items() if name not in at_first}
        parcels.append(packer.insertion(execution, changed(execution, **later)))
    writer = Writer(open_for_writing(file, synchronous="normal"), busy_timeout=5)
    outcomes = writer.write(parcels)
    writer.close()
    assert all(outcome is True for outcome in outcomes), outcomes


def keep_child(file: Path, transaction_id: str, of: str, *, run: str = "r1", **fields: Any) -> None:
    """A run that was a step of run `run` of order:`of`."""
    keep(
        file,
        transaction_id,
        **{
            "workflow_id": "child",
            "parent_step_idempotency_key": f"order:{of}:reserve:invoke",
            "parent_run_id": run,
            "root": f"order:{of}",
            **fields,
        },
    )


def swept(file: Path, due: Due = EXPIRED) -> list[str]:
    """What is left after a sweep that did what was counted before."""
    counted = would_go(file, due, now=LATER)
    before = len(kept(file))
    assert sweep(file, due, now=LATER) == counted
    assert before - len(kept(file)) == counted.executions
    assert would_go(file, due, now=LATER) == Swept(0, 0)
    return kept(file)


# --- which ---------------------------------------------------------------------------------------


def test_what_has_expired_goes_with_all_that_belongs_to_it(file: Path) -> None:
    keep(file, "expired")
    keep(file, "kept", retention_time=7201.0)
    keep(file, "for-good", retention_time=None)
    assert swept(file) == ["kept", "for-good"]
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM execution_payload").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_what_is_unfinished_never_goes(file: Path) -> None:
    for number, state in enumerate(ExecutionState):
        keep(file, f"{number}-{state}", state=state, retention_time=1.0)
    for due in (EXPIRED, Due(LATER, by_age=True)):
        left = swept(file, due)
    assert [name.partition("-")[2] for name in left] == [
        state for state in ExecutionState if not state.is_final
    ]


def test_by_age_retention_does_not_count(file: Path) -> None:
    keep(file, "for-good", retention_time=None)
    keep(file, "kept", retention_time=1e9)
    keep(file, "younger", ended_at=NOW + HOUR, retention_time=1.0)
    assert swept(file, Due(NOW + HOUR - timedelta(seconds=1), by_age=True)) == ["younger"]


def test_a_child_is_kept_as_long_as_what_it_is_a_step_of(file: Path) -> None:
    keep(file, "unfinished", state=ExecutionState.INVOKING)
    keep(file, "kept", retention_time=1e9)
    keep_child(file, "of-unfinished", "unfinished")
    keep_child(file, "of-kept", "kept")
    assert swept(file) == ["unfinished", "kept", "of-unfinished", "of-kept"]
    age = Due(LATER, by_age=True)
    assert swept(file, age) == ["unfinished", "of-unfinished"]


def test_a_child_goes_with_what_it_is_a_step_of(file: Path) -> None:
    keep(file, "expired")
    keep_child(file, "without-retention", "expired", retention_time=None)
    keep_child(file, "expired-too", "expired")
    keep_child(file, "to-be-kept", "expired", retention_time=1e9)
    keep_child(file, "idempotent", "expired", retention_time=None, idempotent=True)
    assert swept(file) == ["to-be-kept", "idempotent"]


def test_a_child_of_what_is_gone_goes_when_its_own_time_is_over(file: Path) -> None:
    keep_child(file, "expired", "gone")
    keep_child(file, "without-retention", "gone", retention_time=None)
    assert swept(file) == ["without-retention"]


def test_grandchildren_follow_their_parents(file: Path) -> None:
    def grandchild(of: str) -> None:
        key = f"child:{of}:reserve:invoke"
        keep_child(file, f"grand-{of}", "root", parent_step_idempotency_key=key)

    keep(file, "root")
    keep_child(file, "goes", "root")
    keep_child(file, "stays", "root", retention_time=1e9)
    for of in ("goes", "stays"):
        grandchild(of)
    assert swept(file) == ["stays", "grand-stays"]


def test_of_an_id_that_ran_again_each_run_has_its_own_children(file: Path) -> None:
    keep(file, "again", run_id="first")
    keep_child(file, "of-first", "again", run="first")
    keep(file, "again", run_id="second", retention_time=1e9)
    keep_child(file, "of-second", "again", run="second")
    assert swept(file) == ["again", "of-second"]


def test_a_prefix_of_an_id_is_another_id(file: Path) -> None:
    keep(file, "a:b", retention_time=1e9)
    keep(file, "a")
    keep_child(file, "of-a-b", "a:b")
    keep_child(file, "of-a", "a")
    assert swept(file) == ["a:b", "of-a-b"]


# --- how -----------------------------------------------------------------------------------------


def test_two_thousand_short_runs_are_swept_and_the_dry_run_counts_them(file: Path) -> None:
    keep(file, *(f"t{number}" for number in range(2000)))
    keep(file, "waits", state=ExecutionState.INVOKING)
    told: list[tuple[int, int]] = []
    assert would_go(file, EXPIRED, now=LATER) == Swept(2000, 0)
    assert len(kept(file)) == 2001
    assert sweep(
        file, EXPIRED, now=LATER, on_progress=lambda *numbers: told.append(numbers)
    ) == Swept(2000, 0)
    assert kept(file) == ["waits"]
    assert told == [(500, 2000), (1000, 2000), (1500, 2000), (2000, 2000)]


def test_others_write_in_between(file: Path) -> None:
    keep(file, *(f"t{number}" for number in range(1200)))

    def write(gone: int, total: int) -> None:
        keep(file, f"meanwhile-{gone}")

    assert sweep(file, EXPIRED, now=LATER, on_progress=write) == Swept(1200, 0)
    assert kept(file) == ["meanwhile-500", "meanwhile-1000", "meanwhile-1200"]


def test_what_is_taken_back_meanwhile_stays(file: Path) -> None:
    keep(file, *(f"t{number}" for number in range(501)))

    def take_back(gone: int, total: int) -> None:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(
                "UPDATE workflow_execution SET state = 'compensating', expires_at = NULL"
            )

    assert sweep(file, EXPIRED, now=LATER, on_progress=take_back) == Swept(500, 0)
    assert kept(file) == ["t0"]


def test_a_lock_is_waited_for_and_then_told(file: Path) -> None:
    keep(file, "expired")
    with locked(file), pytest.raises(StoreBusy):
        sweep(file, EXPIRED, now=LATER, busy_timeout=0.01)
    assert kept(file) == ["expired"]


def test_what_is_free_can_be_given_back(file: Path) -> None:
    keep(file, *(f"t{number}" for number in range(2000)))
    sweep(file, EXPIRED, now=LATER)
    keep(file, "one")
    done = compact(file)
    assert done.after < done.before / 4
    assert file.stat().st_size == done.after
    assert kept(file) == ["one"]


def test_a_little_that_is_free_is_not_worth_a_word() -> None:
    assert not is_worth_it(1_000_000, 2_000_000)
    assert not is_worth_it(20_000_000, 900_000_000)
    assert is_worth_it(20_000_000, 60_000_000)


# --- on the side ---------------------------------------------------------------------------------


def noted(file: Path) -> Any:
    with closing(open_for_reading(file)) as connection:
        return last_sweep(connection)


def test_on_the_side_it_is_done_once_a_day(file: Path) -> None:
    keep(file, "one")
    assert sweep_on_the_side(file, now=LATER) == Swept(1, 0)
    assert noted(file) == LATER.replace(second=0, microsecond=0)
    keep(file, "two")
    assert sweep_on_the_side(file, now=LATER + DAY - HOUR) is None
    assert sweep_on_the_side(file, now=LATER + DAY) == Swept(1, 0)


def test_on_the_side_a_part_is_done_and_the_next_goes_on(file: Path) -> None:
    keep(file, *(f"t{number}" for number in range(700)))
    assert sweep_on_the_side(file, now=LATER) == Swept(500, 0)
    assert noted(file) is None
    assert sweep_on_the_side(file, now=LATER) == Swept(200, 0)
    assert sweep_on_the_side(file, now=LATER) is None


def test_a_clock_that_is_set_back_delays_no_sweep(file: Path) -> None:
    keep(file, "one")
    sweep_on_the_side(file, now=LATER + 400 * DAY)
    keep(file, "two")
    assert sweep_on_the_side(file, now=LATER) == Swept(1, 0)


def test_a_sweep_by_hand_counts_as_the_days(file: Path) -> None:
    keep(file, "one")
    sweep(file, EXPIRED, now=LATER)
    assert sweep_on_the_side(file, now=LATER + HOUR) is None


def test_a_sweep_by_age_leaves_the_days_to_do(file: Path) -> None:
    keep(file, "one")
    sweep(file, Due(NOW - DAY, by_age=True), now=LATER)
    assert sweep_on_the_side(file, now=LATER) == Swept(1, 0)


def test_on_the_side_nothing_is_made_and_nothing_raised(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert sweep_on_the_side(file, now=LATER) is None
    assert not file.exists()
    keep(file, "one")
    with locked(file), caplog.at_level(logging.DEBUG, logger="wfe"):
        assert sweep_on_the_side(file, now=LATER) is None
    assert "Nothing was swept: The database" in caplog.text
    file.write_text("no database\n" * 100)
    assert sweep_on_the_side(file, now=LATER) is None


# --- leftovers -----------------------------------------------------------------------------------

_SIGNAL = """
INSERT INTO signal (execution_id, kind, payload, sent_at, state, settled_at)
VALUES ((SELECT coalesce((SELECT id FROM workflow_execution WHERE transaction_id = ?), 'gone')),
        'cancel', 'null', ?, ?, ?)
"""


def test_settled_signals_and_leases_of_the_dead_go_after_a_day(file: Path) -> None:
    keep(file, "there", state=ExecutionState.INVOKING)
    then = int(NOW.timestamp()) * 1_000_000
    with closing(sqlite3.connect(file)) as connection, connection:
        for transaction_id, state, settled_at in (
            ("there", "applied", then),
            ("there", "refused", then),
            ("there", "pending", None),
            ("gone", "pending", None),
        ):
            connection.execute(_SIGNAL, (transaction_id, then, state, settled_at))
        connection.execute(
            "INSERT INTO owner (id, since, expires_at, beats_until) VALUES (?, ?, ?, 0)",
            ("elsewhere/boot/1/1/1", then, then),
        )
    assert would_go(file, Due(NOW), now=NOW + DAY / 2) == Swept(0, 1)
    assert would_go(file, Due(NOW), now=NOW + 2 * DAY) == Swept(0, 4)
    assert sweep(file, Due(NOW), now=NOW + 2 * DAY) == Swept(0, 4)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT state FROM signal").fetchall() == [("pending",)]
    with closing(open_for_reading(file)) as reading:
        assert leftovers.count(reading, NOW + 2 * DAY) == 0


def test_what_has_expired_is_found_without_looking_at_all_that_is_kept(file: Path) -> None:
    keep(file, "one")
    asked: list[str] = []
    with closing(open_for_reading(file)) as connection:
        connection.raw.set_trace_callback(asked.append)
        doomed(connection, EXPIRED)
        connection.raw.set_trace_callback(None)
        for text in asked:
            steps = connection.raw.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
            assert [step for *_, step in steps if step.startswith("SCAN")] == []
    assert len(asked) == 2
