"""Questions to a database file, answered without a running loop and without user code.

`SQLiteReader` has a connection of its own and answers each question from one state of the database. It
may be used from several threads; they take turns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Self

import msgspec
from peewee import SQL, fn

from wfe.clock import SystemClock
from wfe.errors import UsageError
from wfe.model import (
    Execution,
    ExecutionKey,
    ExecutionState,
    Flow,
    TimelineEvent,
)
from wfe.store import loading, rows, schedule_rows, signals, summaries
from wfe.store.connection import Connection
from wfe.store.contract import ExecutionSummary, Query, WaitingStep
from wfe.store.ledger import ScheduleRow, Tick
from wfe.store.moments import to_micros
from wfe.store.queries import blocks, selection
from wfe.store.queries.filters import Plan, plan
from wfe.store.tables import (
    FINISHED,
    UNFINISHED,
    ExecutionEvent,
    WorkflowExecution,
)
from wfe.store.trouble import gone, translated

_FLOWS_KEPT = 128

#: Of an execution t1: a step of it waits for its child, which has ended.
_CHILD_HAS_ENDED = f"""
EXISTS (
    SELECT 1 FROM execution_step s JOIN workflow_execution k
      ON k.parent_step_idempotency_key =
         t1.workflow_id || ':' || t1.transaction_id || ':' || s.name || ':invoke'
    WHERE s.execution_id = t1.id AND s.awaiting
      AND k.root = coalesce(t1.root, t1.workflow_id || ':' || t1.transaction_id)
      AND json_extract(k.execution, '$.parent_run_id') = t1.run_id
      AND k.deleted_at IS NULL AND k.{FINISHED}
)
"""

_DUE = f"""
SELECT json_group_array(json_array(workflow_id, transaction_id))
FROM (SELECT workflow_id, transaction_id FROM workflow_execution
      WHERE wake_at <= ? AND {UNFINISHED} AND deleted_at IS NULL
      ORDER BY wake_at, serial LIMIT ?)
"""

_STEPS_OVER = """
SELECT json_group_array(json_array(e.id, e.flow, (
    SELECT count(*) FROM execution_step
    WHERE execution_id = e.id AND invoke NOT IN ('not_started', 'invoking')
)))
FROM workflow_execution e
WHERE e.id IN (SELECT value FROM json_each(?)) AND e.deleted_at IS NULL
"""

_STEPS_IN_ALL = """
SELECT json_group_object(digest, (SELECT count(*) FROM json_each(flow, '$.steps')))
FROM definition WHERE digest IN (SELECT value FROM json_each(?))
"""

_decode_steps_over = msgspec.json.Decoder(list[tuple[str, str, int]]).decode
_decode_keys = msgspec.json.Decoder(list[tuple[str, str]]).decode

_row = WorkflowExecution


class SQLiteReader:
    """The Reader of a database file. A context manager that closes its connection.

    Every method raises StoreBusy or StoreUnusable where the file cannot be read.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._flows: dict[str, Flow] = {}
        #: The file itself, and what `changed` has seen of it.
        self._file = connection.path.stat().st_ino
        self._seen = -1
        selection.prepare(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def changed(self) -> bool:
        """True at the first question, and then where somebody has written since the last one.

        Raises:
            StoreUnusable: the file was deleted, or another one is in its place.
        """
        with self._reading() as connection:
            if not self._is_in_place():
                raise gone(connection.path)
            seen, self._seen = self._seen, connection.pragma("data_version")
        return seen != self._seen

    def _is_in_place(self) -> bool:
        try:
            return self._connection.path.stat().st_ino == self._file
        except FileNotFoundError:
            return False

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._lock, translated(self._connection.path):
            yield self._connection

    @property
    def ledger(self) -> Self:
        return self

    # --- one execution ---

    def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        with self._reading() as connection:
            return loading.execution(connection.raw, key, run_id, self._flow)

    def _flow(self, digest: str, text: str) -> Flow:
        flow = self._flows.get(digest)
        if flow is None:
            if len(self._flows) >= _FLOWS_KEPT:
                self._flows.clear()
            flow = self._flows[digest] = rows.flow_of(text)
        return flow

    def timeline(self, execution_id: str, *, after: int = 0) -> Sequence[TimelineEvent]:
        event = ExecutionEvent
        columns = [getattr(event, name) for name in rows.EVENT_COLUMNS[3:]]
        query = (
            event.select(*columns)
            .where(event.execution_id == execution_id)
            .order_by(event.version, event.seq)
        )
        if after:
            query = query.limit(-1).offset(after)  # SQLite has no offset without a limit
        with self._reading() as connection:
            found = connection.run(query).fetchall()
        return [rows.event_of(row) for row in found]

    # --- many ---

    def list(self, query: Query) -> Sequence[ExecutionSummary]:
        asked = plan(query)
        with self._reading() as connection, loading.one_state(connection.raw):
            wanted = selection.selected(summaries.summary_rows(), asked, _view(connection, asked))
            found = connection.run(wanted).fetchall()
        return [summaries.summary_of(row) for row in found]

    def count(self, query: Query) -> int:
        asked = plan(query)
        with self._reading() as connection, loading.one_state(connection.raw):
            queries = selection.counted(asked, _view(connection, asked))
            first, *left_out = [int(connection.run(each).fetchone()[0]) for each in queries]
        return first - sum(left_out)

    def tally(self) -> Mapping[tuple[str, ExecutionState], int]:
        columns = (_row.workflow_id, _row.state)
        query = _row.select(*columns, fn.count()).where(_row.deleted_at.is_null())
        with self._reading() as connection:
            found = connection.run(query.group_by(*columns)).fetchall()
        return {(workflow, ExecutionState(state)): count for workflow, state, count in found}

    def step_counts(self, execution_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        ids = msgspec.json.encode(list(execution_ids)).decode()
        with self._reading() as connection, loading.one_state(connection.raw):
            (found,) = connection.raw.execute(_STEPS_OVER, (ids,)).fetchone()
            over = _decode_steps_over(found)
            flows = msgspec.json.encode(sorted({flow for _, flow, _ in over})).decode()
            (found,) = connection.raw.execute(_STEPS_IN_ALL, (flows,)).fetchone()
            in_all = msgspec.json.decode(found, type=dict[str, int])
        return {execution_id: (count, in_all[flow]) for execution_id, flow, count in over}

    def keys(
        self,
        *,
        workflow_id: str | None = None,
        transaction_id: str | None = None,
        run_id_prefix: str | None = None,
        limit: int = 20,
    ) -> Sequence[ExecutionKey]:
        query = _row.select(_row.workflow_id, _row.transaction_id).where(_row.deleted_at.is_null())
        if workflow_id is not None:
            query = query.where(_row.workflow_id == workflow_id)
        if transaction_id is not None:
            query = query.where(_row.transaction_id == transaction_id)
        if run_id_prefix is not None:
            query = query.where(
                _row.run_id >= run_id_prefix, _row.run_id < f"{run_id_prefix}\U0010ffff"
            )
        elif workflow_id is None and transaction_id is None:
            raise UsageError("Give a workflow id, a transaction id or the beginning of a run id.")
        found: dict[ExecutionKey, None] = {}
        with self._reading() as connection:
            cursor = connection.run(query.order_by(_row.created_at.desc(), _row.id.desc()))
            for workflow, transaction in cursor:
                if len(found) >= limit:
                    break
                found[ExecutionKey(workflow, transaction)] = None
            cursor.close()  # one left half read would hold its state of the database
        return list(found)

    def steps_waiting(self, *, limit: int | None = None) -> Sequence[WaitingStep]:
        with self._reading() as connection:
            found = connection.run(summaries.waiting_rows(limit)).fetchall()
        return [summaries.waiting_of(row) for row in found]

    def schedules(self) -> Sequence[ScheduleRow]:
        with self._reading() as connection:
            return schedule_rows.schedules(connection)

    def ticks(self, name: str, *, limit: int | None = None) -> Sequence[Tick]:
        with self._reading() as connection:
            return schedule_rows.ticks(connection, name, limit)

    def owed(self) -> int:
        with self._reading() as connection:
            return schedule_rows.owed(connection)

    def due(self, now: datetime, limit: int) -> Sequence[ExecutionKey]:
        """Unfinished executions whose `wake_at` has come, the longest overdue first."""
        with self._reading() as connection:
            (found,) = connection.raw.execute(_DUE, (to_micros(now), limit)).fetchone()
        return [ExecutionKey(*key) for key in _decode_keys(found)]

    def interrupted(self, now: datetime, limit: int) -> Sequence[ExecutionKey]:
        """Unfinished executions that could go on and that no living engine has in hand."""
        nothing_waits = (_row.awaiting == 0) & (_row.parked == 0) & _row.wake_at.is_null()
        with self._reading() as connection:
            query = (
                _row.select(_row.workflow_id, _row.transaction_id)
                .where(
                    SQL(UNFINISHED),
                    _row.deleted_at.is_null(),
                    (_row.running > 0)
                    | (_row.held > 0)
                    | nothing_waits
                    | (_row.wake_at <= now)
                    | ((_row.awaiting > 0) & SQL(_CHILD_HAS_ENDED)),
                    _row.owner.is_null() | _row.owner.not_in(signals.holding(connection)),
                )
                .order_by(_row.created_at, _row.id)
                .limit(limit)
            )
            found = connection.run(query).fetchall()
        return [ExecutionKey(*key) for key in found]


def _view(connection: Connection, asked: Plan) -> selection.View:
    return selection.View(
        now=SystemClock().now(),
        holders=signals.holding(connection) if selection.asks_who_holds(asked) else (),
        candidates=blocks.candidates(connection.raw, asked.condition),
    )
