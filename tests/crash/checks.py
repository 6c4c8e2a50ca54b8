"""What must be true after crashes: the end is that of a run that was left alone, at the price of the
steps in flight."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tests.crash import ledger
from tests.crash.flows import FLOWS, Flow
from tests.crash.life import TRANSACTION_ID, Report
from tests.crash.play import Play
from wfe.model import Event, ExecutionState
from wfe.runtime.values import Outputs, decoded
from wfe.store.checkup import check_up
from wfe.store.contract import ExecutionSummary, Query, Reader
from wfe.store.database import open_reader
from wfe.testing.outcomes import timeline


class End(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution has come to."""

    state: ExecutionState
    result: Any
    outputs: Mapping[str, Any]
    errors: Sequence[tuple[str | None, str | None, str]]
    #: Its timeline, as `wfe.testing` words it; in no order where things happen side by side.
    words: Sequence[str]


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a play has left."""

    play: Play
    reports: Sequence[Report]
    lines: Sequence[ledger.Line]
    ends: Mapping[str, End]

    @property
    def begins(self) -> Counter[str]:
        """How often each function was called, by idempotency key."""
        return Counter(line.key for line in self.lines if line.what == "begin")

    @property
    def effects(self) -> set[str]:
        return {line.key for line in self.lines if line.what == "end"}


def left(play: Play, reports: Sequence[Report]) -> Left:
    """What is found when all processes have ended."""
    check_file(Path(play.db))
    with open_reader(play.db) as reader:
        runs = reader.list(Query())
        ends = {str(each.key): _end(reader, each) for each in runs}
        assert len(ends) == len(runs), f"an execution ran twice: {how(play)}"
    lines = ledger.read(play.ledger)
    return Left(play=play, reports=reports, lines=lines, ends=ends)


def check_file(db: Path) -> None:
    """SQLite finds the file whole, and `wfe db check` what is in it."""
    check_structure(db)
    findings = [str(result) for result in check_up(db) if not result.is_ok]
    assert findings == [], findings


def check_structure(db: Path) -> None:
    with closing(sqlite3.connect(db)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _end(reader: Reader, each: ExecutionSummary) -> End:
    execution = reader.load(each.key, each.run_id)
    assert execution is not None
    events = [
        Event(
            kind=entry.kind,
            workflow_id=each.workflow_id,
            transaction_id=each.transaction_id,
            run_id=each.run_id,
            time=entry.time,
            step=entry.step,
            action=entry.action,
        )
        for entry in reader.timeline(each.execution_id)
    ]
    return End(
        state=execution.head.state,
        result=decoded(execution.result),
        outputs=dict(Outputs(execution)),
        errors=[(e.action, e.name, e.message) for e in execution.head.errors],
        words=sorted(timeline(events)),
    )


def how(play: Play) -> str:
    """The command that plays it again."""
    words = [f"{number}='{point}'" for number, point in play.plan.items()]
    if play.log is not None:
        words.append(f"log={play.log}")
    if play.is_new:
        words.append("new")
    return " ".join(["python -m tests.crash.worker", play.flow, *words])


def check(found: Left, expected: Left) -> None:
    """
    - Nothing went wrong on the way, no answer was accepted twice, and the end is the expected one:
      states, results, outputs, errors, what is recorded, effects.
    - What was recorded as ended, or told to be, was never called again.
    - What was in flight was called once more per crash, under the next attempt's number, and nothing
      else was.
    """
    again = how(found.play)
    for report in found.reports:
        assert report.trouble == "", (again, report.trouble)
    logged = [line.key for line in found.lines if line.what == "log"]
    assert logged == [], (again, logged)
    answered = Counter(key for report in found.reports for key in report.answered)
    assert all(count == 1 for count in answered.values()), (again, answered)
    check_ends(found, expected)
    assert found.effects - _given_up(found) == expected.effects - _given_up(expected), again
    _check_calls(found, expected)
    _check_what_was_told(found)


def check_ends(found: Left, expected: Left) -> None:
    again = how(found.play)
    flow = FLOWS[found.play.flow]
    assert expected.ends[f"{flow.workflow.id}:{TRANSACTION_ID}"].state == flow.state
    assert found.ends.keys() == expected.ends.keys(), again
    for key, end in expected.ends.items():
        there = found.ends[key]
        assert _certain(there, flow) == _certain(end, flow), (again, key)


def _certain(end: End, flow: Flow) -> End:
    """As far as it does not depend on the crash."""
    step = flow.cancelled_in
    return msgspec.structs.replace(
        end,
        outputs={name: output for name, output in end.outputs.items() if name != step},
        words=[
            word
            for word in end.words
            if word != step and not (flow.fails_for_a_while and word.endswith("!"))
        ],
    )


def _given_up(found: Left) -> set[str]:
    """A step that was at work when its execution was cancelled, and lost then, is undone at once."""
    flow = FLOWS[found.play.flow]
    if flow.cancelled_in is None:
        return set()
    return {f"{flow.workflow.id}:{TRANSACTION_ID}:{flow.cancelled_in}:invoke"}


def _check_calls(found: Left, expected: Left) -> None:
    again = how(found.play)
    killed = [report.pid for report in found.reports if report.died]
    check_calls(found.lines, killed, expected.begins, again)
    for report in found.reports:
        called = {
            line.key for line in found.lines if line.pid == report.pid and line.what == "begin"
        }
        assert not called & set(report.ended_before), (again, report, found.lines)


def check_calls(
    lines: Sequence[ledger.Line], killed: Sequence[int], expected: Mapping[str, int], again: str
) -> None:
    """Each function was called as often as `expected` says, and once more for each of the `killed`
    processes that had it in flight; for one attempt once at most; never after its end was told."""
    attempts = Counter((line.key, line.attempt) for line in lines if line.what == "begin")
    assert all(count == 1 for count in attempts.values()), (again, attempts.most_common(3))
    begins = Counter(line.key for line in lines if line.what == "begin")
    in_flight = Counter(key for keys in _in_flight(lines, killed).values() for key in keys)
    for key, count in begins.items():
        assert count <= expected[key] + in_flight[key], (again, key, of(lines, key))
    told: set[str] = set()
    for line in lines:
        assert not (line.what == "begin" and line.key in told), (again, of(lines, line.key))
        if line.what == "told":
            told.add(line.key)


def of(lines: Sequence[ledger.Line], key: str) -> Sequence[ledger.Line]:
    return [line for line in lines if line.key == key]


def _in_flight(lines: Sequence[ledger.Line], pids: Sequence[int]) -> Mapping[int, set[str]]:
    """By process, what it had called and not told to have ended."""
    called: dict[int, set[str]] = {pid: set() for pid in pids}
    for line in lines:
        if line.pid in called and line.what == "begin":
            called[line.pid].add(line.key)
        elif line.pid in called and line.what == "told":
            called[line.pid].discard(line.key)
    return called


def _check_what_was_told(found: Left) -> None:
    """Whatever was told was kept."""
    if FLOWS[found.play.flow].stays:
        return  # a process may begin before another one is told
    for number, report in enumerate(found.reports):
        before = {r.pid for r in found.reports[:number]}
        known = {line.key for line in found.lines if line.what == "told" and line.pid in before}
        assert known <= set(report.ended_before), (how(found.play), report, found.lines)
