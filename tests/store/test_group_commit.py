"""Group commit: few transactions, few statements, and nobody pays for another's mistake."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.support import begun, changed, new
from tests.project import until
from tests.store.support import kept, locked, parcel
from wfe.errors import SkipExecutionError
from wfe.model import Execution, ExecutionState
from wfe.store.commits import Commits
from wfe.store.connection import Connection
from wfe.store.database import open_for_writing
from wfe.store.writer import Outcome, Packer, Parcel, Writer


class Bench:
    """Commits over a file, with every statement that they execute written down."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.statements: list[str] = []
        self._last = ""
        self.threads: set[int] = set()
        connection.raw.set_trace_callback(self._trace)
        self.writer = Writer(connection, busy_timeout=5)
        self.packer = Packer()
        self.forget()

    def _trace(self, statement: str) -> None:
        if statement != self._last:  # what a trigger runs is told as the statement that set it off
            self.statements.append(statement.split(maxsplit=1)[0])
        self._last = statement
        self.threads.add(threading.get_ident())

    def run(self, use: Callable[[Commits], Awaitable[None]]) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            hand_over = loop.run_in_executor

            def counted(*arguments: Any) -> Any:
                self.hops += 1
                return hand_over(*arguments)

            loop.run_in_executor = counted  # type: ignore[assignment,method-assign]  # to count
            with ThreadPoolExecutor(1) as thread:
                commits = Commits(self.writer, thread)
                await use(commits)
                await commits.finish()

        asyncio.run(main())

    def forget(self) -> None:
        self.statements.clear()
        self.threads.clear()
        self.hops = 0

    @property
    def transactions(self) -> int:
        return self.statements.count("COMMIT")

    def inserted(self, count: int) -> list[Execution]:
        """New executions, kept."""
        executions = [new(f"t{number}") for number in range(count)]
        parcels = []
        for execution in executions:
            changes = changed(execution, state=ExecutionState.INVOKING)
            parcels.append(self.packer.insertion(execution, changes))
            execution.take(changes)
        assert set(self.writer.write(parcels)) == {True}
        self.forget()
        return executions

    def step(self, execution: Execution, **fields: Any) -> Parcel:
        return self.packer.update(execution, changed(execution, begun(), **fields))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with closing(open_for_writing(tmp_path / "wfe.db", synchronous="normal")) as connection:
        yield Bench(connection)


def test_what_is_ready_together_shares_few_transactions_and_statements(bench: Bench) -> None:
    executions = bench.inserted(500)

    async def use(commits: Commits) -> None:
        parcels = [bench.step(execution) for execution in executions]
        outcomes = await asyncio.gather(*(commits.put(each, lone=False) for each in parcels))
        assert set(outcomes) == {True}

    bench.run(use)
    assert bench.transactions <= 4
    assert bench.hops <= 2
    assert len(bench.statements) <= 120
    assert Counter(bench.statements)["BEGIN"] == bench.transactions


@pytest.mark.parametrize(("count", "hops"), [(199, 2), (200, 1)])
def test_the_thread_goes_on_by_itself_where_much_lies_there(
    bench: Bench, count: int, hops: int
) -> None:
    async def use(commits: Commits) -> None:
        with commits._lock:
            puts = [commits.put(parcel("first"), lone=False)]
            until(lambda: not commits._queue)  # the thread has taken it
            puts += [commits.put(parcel(f"t{number}"), lone=False) for number in range(count)]
        assert set(await asyncio.gather(*puts)) == {True}

    bench.run(use)
    assert bench.transactions == 2
    assert bench.hops == hops


def test_other_work_for_the_thread_has_its_turn_however_much_comes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, groups = Writer.write, list[int]()

    async def use(commits: Commits) -> None:
        loop = asyncio.get_running_loop()
        coming = [(parcel(f"t{number}"), loop.create_future()) for number in range(90)]
        futures = [future for _, future in coming]

        def busy(writer: Writer, group: Sequence[Parcel], *, wait: bool = True) -> list[Outcome]:
            groups.append(len(group))
            for _ in range(min(3, len(coming))):
                commits._queue.append(coming.pop())
            return write(writer, group, wait=wait)

        monkeypatch.setattr(Writer, "write", busy)
        first = commits.put(parcel("first"), lone=False)
        assert await commits.run(lambda: len(groups)) == 8
        await first
        await asyncio.gather(*futures)

    monkeypatch.setattr("wfe.store.commits._MUCH", 3)
    bench.run(use)
    assert groups == [1] + [3] * 30


def test_any_number_of_rows_is_written_by_few_statements(bench: Bench) -> None:
    for count in (1, 2, 3, 7, 255, 256, 257, 511, 600):
        parcels = [parcel(f"{count}-{number}") for number in range(count)]
        bench.forget()
        assert bench.writer.write(parcels) == [True] * count
        assert bench.statements.count("INSERT") <= 3 * (9 + count // 256)
    assert len(kept(bench.connection.path)) == 1892


def test_one_stale_parcel_costs_one_more_attempt_and_fails_alone(bench: Bench) -> None:
    executions = bench.inserted(200)
    stale = executions[77]
    assert bench.writer.write([bench.step(stale)]) == [True]
    bench.forget()
    outcomes = bench.writer.write([bench.step(execution) for execution in executions])
    assert [n for n, outcome in enumerate(outcomes) if outcome is not True] == [77]
    assert isinstance(outcomes[77], SkipExecutionError)
    assert (bench.transactions, bench.statements.count("ROLLBACK")) == (1, 1)


def test_a_commit_that_moves_no_index_leaves_the_indexes_alone(bench: Bench) -> None:
    (execution,) = bench.inserted(1)
    assert bench.step(execution, running=1, stage=3).is_quiet
    for fields in (
        {"state": ExecutionState.DONE},
        {"wake_at": execution.head.created_at},
        {"awaiting": 1},
        {"retention_time": 5.0},
    ):
        assert not bench.step(execution, **fields).is_quiet


def test_later_parcels_of_one_key_wait_for_the_next_group(bench: Bench) -> None:
    async def use(commits: Commits) -> None:
        execution = new()
        puts = []
        for number in range(5):
            changes = changed(execution, begun(attempts=number), state=ExecutionState.INVOKING)
            pack = bench.packer.update if number else bench.packer.insertion
            puts.append(commits.put(pack(execution, changes), lone=False))
            execution.take(changes)
        puts.append(commits.put(parcel("other"), lone=False))
        assert await asyncio.gather(*puts) == [True] * 6

    bench.run(use)
    assert 5 <= bench.transactions <= 6
    assert sorted(kept(bench.connection.path)) == ["other", "t1"]


# --- alone ---------------------------------------------------------------------------------------


def test_a_lone_parcel_is_written_at_once_by_the_caller(bench: Bench) -> None:
    for expected in (True, False):

        async def use(commits: Commits, expected: bool = expected) -> None:
            assert await commits.put(parcel("t1"), lone=True) is expected

        bench.run(use)
    assert bench.hops == 0
    assert bench.threads == {threading.get_ident()}
    assert bench.connection.pragma("busy_timeout") == 0


def test_a_parcel_that_is_not_alone_is_written_by_the_thread(bench: Bench) -> None:
    async def use(commits: Commits) -> None:
        assert await commits.put(parcel("t1"), lone=False)

    bench.run(use)
    assert bench.hops == 1
    assert threading.get_ident() not in bench.threads
    assert bench.connection.pragma("busy_timeout") == 5000


def test_a_lone_parcel_joins_the_queue_where_a_group_is_under_way(bench: Bench) -> None:
    async def use(commits: Commits) -> None:
        first = commits.put(parcel("t1"), lone=False)
        assert await commits.put(parcel("t2"), lone=True)
        assert await first

    bench.run(use)
    assert threading.get_ident() not in bench.threads
    assert kept(bench.connection.path) == ["t1", "t2"]


def test_a_lone_parcel_does_not_wait_for_a_lock_on_the_loop(bench: Bench) -> None:
    async def use(commits: Commits) -> None:
        with locked(bench.connection.path) as other:
            put = commits.put(parcel("t1"), lone=True)
            await asyncio.sleep(0)
            assert not put.done()
            other.execute("ROLLBACK")
            assert await put

    bench.run(use)
    assert bench.hops == 1


def test_a_slow_disk_moves_lone_parcels_to_the_thread_for_a_while(bench: Bench) -> None:
    async def use(commits: Commits) -> None:
        bench.connection.raw.set_trace_callback(lambda _: time.sleep(0.005))  # the slow disk
        assert await commits.put(parcel("slow"), lone=True)
        assert bench.hops == 0
        bench.connection.raw.set_trace_callback(None)
        for number in range(30):
            assert await commits.put(parcel(f"t{number}"), lone=True)

    bench.run(use)
    assert 0 < bench.hops < 30


# --- one loop after the other --------------------------------------------------------------------


def test_a_loop_that_ended_in_the_middle_of_a_group_blocks_nobody(bench: Bench) -> None:
    with ThreadPoolExecutor(1) as thread:
        commits = Commits(bench.writer, thread)
        started, release = threading.Event(), threading.Event()

        def hold() -> None:
            started.set()
            release.wait()

        thread.submit(hold)
        started.wait()

        async def hand_over() -> None:
            commits.put(parcel("t1"), lone=False).cancel()

        asyncio.run(hand_over())
        release.set()

        async def go_on() -> None:
            assert await commits.put(parcel("t2"), lone=False)
            await commits.finish()

        asyncio.run(go_on())
    assert sorted(kept(bench.connection.path)) == ["t1", "t2"]
