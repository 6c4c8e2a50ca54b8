"""Several processes on one database, some of which die: nothing is lost, and nothing doubled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.crash import ledger
from tests.crash.checks import check_calls, check_file
from tests.crash.conftest import Room
from tests.crash.life import TRANSACTION_ID
from tests.crash.soak import MIX, Soak, Soaked, executions_of
from tests.crash.takeover import Taken, Takeovers, keys_of
from wfe.store.contract import Query
from wfe.store.database import open_reader


def test_processes_that_are_killed_and_start_again_lose_and_double_nothing(room: Room) -> None:
    soak = Soak(
        db=str(room.database()),
        processes=8 if room.is_full else 3,
        executions=200 if room.is_full else 30,
        kills=20 if room.is_full else 3,
        steps=120 if room.is_full else 60,
        seed=room.random.randrange(1_000_000),
        deadline=500 if room.is_full else 60,
    )
    alone = {flow: room.left_alone(flow) for flow in MIX}
    soaked = room.servers.one(soak, Soaked)
    lines = ledger.read(soak.ledger)
    logged = [line.key for line in lines if line.what == "log"]
    assert (soaked.stuck, logged) == ([], []), (soak, logged)
    check_file(Path(soak.db))

    calls: Counter[str] = Counter()
    effects: set[str] = set()
    states: dict[str, str] = {}
    for process in range(soak.processes):
        for flow, transaction_id in executions_of(soak, process):
            left = alone[flow]
            calls.update({_renamed(key, transaction_id): n for key, n in left.begins.items()})
            effects |= {_renamed(key, transaction_id) for key in left.effects}
            states |= {_renamed(key, transaction_id): end.state for key, end in left.ends.items()}
    check_calls(lines, soaked.killed, calls, str(soak))
    answered = Counter(line.key for line in lines if line.what == "answered")
    assert all(count == 1 for count in answered.values()), (soak, answered.most_common(3))
    assert {line.key for line in lines if line.what == "end"} == effects
    with open_reader(soak.db) as reader:
        runs = reader.list(Query())
    assert sorted((str(run.key), run.state) for run in runs) == sorted(states.items())
    room.count(executions_side_by_side=len(runs), kills_beside_them=len(soaked.killed))


def _renamed(key: str, transaction_id: str) -> str:
    """A key of an execution, or a step of it, under another transaction id."""
    return f"{key}:".replace(f"{TRANSACTION_ID}:", f"{transaction_id}:")[:-1]


def test_of_two_that_take_up_a_dead_execution_at_once_one_drives_it(room: Room) -> None:
    takeovers = Takeovers(db=str(room.database()), executions=500 if room.is_full else 25)
    taken = room.servers.one(takeovers, list[tuple[Taken, Taken]])
    lines = ledger.read(takeovers.ledger)
    assert [line.key for line in lines if line.what == "log"] == []
    for key, both in zip(keys_of(takeovers), taken, strict=True):
        begun = [line for line in lines if line.what == "begin" and line.key.startswith(f"{key}:")]
        assert [(line.key.split(":")[2], line.attempt) for line in begun] == [
            ("first", 1),
            ("middle", 1),
            ("middle", 2),
            ("last", 1),
        ], (key, begun, both)
        assert [each.state for each in both] == ["done", "done"], (key, both)
    check_file(Path(takeovers.db))
    met = sum(left.met and right.met for left, right in taken)
    assert met == len(taken) // 2
    room.count(takeovers_by_two=len(taken), met_at_the_write=met)
