"""Writing: checkpoints made ready as parcels of rows, and groups of them kept in one transaction.

A parcel is made where `commit` is called, so that a value that cannot be packed fails its own caller.
A group takes few statements however many parcels it has (`statements`). Each parcel is compared with
the version that the store holds, by the UPDATE itself; only where the number of rows it touched tells
that one was stale does the group start again, and looks first which ones.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec
from peewee import SQL, fn

from wfe.clock import SystemClock
from wfe.errors import SkipExecutionError
from wfe.model import (
    Changes,
    Execution,
    ExecutionKey,
    ExecutionState,
    Flow,
    Head,
    StepRecord,
    TimelineEvent,
)
from wfe.store import rows, signals, trouble
from wfe.store import statements as sql
from wfe.store.connection import Connection
from wfe.store.contract import Settled
from wfe.store.moments import to_micros
from wfe.store.tables import FINISHED, WorkflowExecution

_T = TypeVar("_T")

#: True: kept. False: not inserted, because the key or the run is taken. An exception: not kept.
Outcome = bool | BaseException

_FLOWS_KEPT = 256

#: Errors that one parcel brings upon its group; whatever else goes wrong goes wrong for all.
_OF_ONE = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    ValueError,
)


class Parcel(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One `insert` or `commit`, as rows. Of a table that gets several, their values lie in one list,
    one after the other: a thousand parcels wait together, and what they are made of is looked through
    for garbage meanwhile."""

    key: ExecutionKey
    #: The row of `workflow_execution`: for INSERT_EXECUTIONS, UPDATE_QUIET or UPDATE_MOVING.
    row: rows.Row
    is_new: bool
    is_quiet: bool = False
    #: The unique index cannot tell whether the key is free; ask.
    asks: bool = False
    definition: rows.Row
    input: str | None = None
    result: str | None = None
    #: For PUT_STEPS and INSERT_EVENTS.
    steps: list[object]
    events: list[object]
    settled: Sequence[Settled] = ()
    #: For OWE_NOTICES: one row, or nothing.
    owed: rows.Row = ()

    @property
    def execution_id(self) -> str:
        return str(self.row[0])

    @property
    def version(self) -> int:
        """The version that an update was computed from."""
        return int(self.row[1])


class Packer:
    """Makes parcels. Remembers the texts of flows, which many executions share."""

    def __init__(self) -> None:
        self._definitions: dict[int, tuple[Flow, rows.Row]] = {}

    def insertion(self, execution: Execution, changes: Changes) -> Parcel:
        head = changes.head
        definition = self._definition(execution.flow, head)
        return Parcel(
            key=head.key,
            row=rows.insert_row(head, definition[0]),
            is_new=True,
            asks=head.is_final,
            definition=definition,
            input=rows.text(execution.input),
            result=rows.text(changes.result or execution.result),
            steps=_steps(head, {**execution.steps, **changes.steps}),
            events=_events(head, changes.events),
            owed=_owed(changes),
        )

    def update(
        self, execution: Execution, changes: Changes, settled: Sequence[Settled] = ()
    ) -> Parcel:
        """
        Raises:
            SkipExecutionError: a final run is rewritten, other than by a cancel that takes it back.
        """
        before, head = execution.head, changes.head
        if before.is_final and (
            before.state is not ExecutionState.DONE or head.state is ExecutionState.DONE
        ):
            raise SkipExecutionError
        definition = self._definition(execution.flow, head)
        is_quiet = rows.rests(before, head)
        columns = rows.quiet_row if is_quiet else rows.moving_row
        return Parcel(
            key=head.key,
            row=(head.execution_id, before.version, *columns(head, definition[0])),
            is_new=False,
            is_quiet=is_quiet,
            asks=before.is_final,
            definition=definition,
            result=rows.text(changes.result),
            steps=_steps(head, changes.steps),
            events=_events(head, changes.events),
            settled=settled,
            owed=_owed(changes),
        )

    def _definition(self, flow: Flow, head: Head) -> rows.Row:
        known = self._definitions.get(id(flow))
        if known is not None and known[0] is flow:
            return known[1]
        digest, text = rows.flow_text(flow)
        row = (digest, flow.hash, flow.workflow_id, text, to_micros(head.created_at))
        if len(self._definitions) >= _FLOWS_KEPT:
            self._definitions.clear()
        self._definitions[id(flow)] = (flow, row)
        return row


def _owed(changes: Changes) -> rows.Row:
    if not changes.owes_notice:
        return ()
    head = changes.head
    return head.execution_id, head.version, to_micros(head.updated_at)


def _steps(head: Head, steps: Mapping[str, StepRecord]) -> list[object]:
    values: list[object] = []
    for step in steps.values():
        values += rows.step_row(head.execution_id, step)
    return values


def _events(head: Head, events: Sequence[TimelineEvent]) -> list[object]:
    values: list[object] = []
    for seq, event in enumerate(events):
        values += (head.execution_id, head.version, seq, *rows.event_values(event))
    return values


class Writer:
    """The one connection of this process that writes. Not thread-safe: its users take turns."""

    def __init__(self, connection: Connection, *, busy_timeout: float) -> None:
        self._connection = connection
        self._path = connection.path
        self._busy_timeout = busy_timeout
        self._file = trouble.identity(self._path)
        #: Digests of flows that the file has.
        self._definitions: set[str] = set()

    def close(self) -> None:
        self._connection.close()

    # --- checkpoints ---

    def write(self, group: Sequence[Parcel], *, wait: bool = True) -> list[Outcome]:
        """Keep parcels of different keys in one transaction; an outcome for each. Raises nothing.

        With `wait` another process's lock is waited for as long as the busy timeout says, else not.
        """
        try:
            self._connection.wait_for_locks(self._busy_timeout if wait else 0)
            return self._write(group)
        except _OF_ONE as error:
            if len(group) > 1:
                return [outcome for parcel in group for outcome in self.write([parcel], wait=wait)]
            return [trouble.store_error(error, self._path) if _is_trouble(error) else error]
        except trouble.TROUBLE as error:
            return [trouble.store_error(error, self._path) for _ in group]
        except Exception as error:
            return [error for _ in group]

    def _write(self, group: Sequence[Parcel]) -> list[Outcome]:
        outcomes = self._attempt(group, ask=any(parcel.asks for parcel in group))
        if outcomes is None:
            outcomes = self._attempt(group, ask=True)
        if outcomes is None:
            raise RuntimeError(f"{self._path} changed inside a write transaction")
        return outcomes

    def _attempt(self, group: Sequence[Parcel], *, ask: bool) -> list[Outcome] | None:
        """Outcomes, or None where some were refused and it was not asked which; nothing is kept then."""
        connection = self._connection.raw
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check_in_place()
            outcomes: list[Outcome] = [True] * len(group)
            if ask:
                outcomes = self._refusals(group)
            kept = [p for p, outcome in zip(group, outcomes, strict=True) if outcome is True]
            is_complete = self._keep(kept)
            connection.execute("COMMIT" if is_complete else "ROLLBACK")
        except BaseException:
            self._connection.roll_back()
            raise
        if not is_complete:
            return None
        self._definitions.update(parcel.definition[0] for parcel in kept)
        return outcomes

    def _refusals(self, group: Sequence[Parcel]) -> list[Outcome]:
        """What becomes of each: True where nothing stands against it. Nobody else writes meanwhile."""
        connection = self._connection.raw
        asking: list[object] = []
        updates: list[object] = []
        for number, parcel in enumerate(group):
            names = (number, parcel.key.workflow_id, parcel.key.transaction_id)
            if parcel.is_new:
                asking += (*names, parcel.row[3], parcel.execution_id)
            elif parcel.asks:
                asking += (*names, None, None)
            if not parcel.is_new:
                updates += (number, parcel.execution_id, parcel.version)
        outcomes: list[Outcome] = [True] * len(group)
        for number in _numbers(sql.FIND_TAKEN.ask(connection, asking)):
            outcomes[number] = False if group[number].is_new else SkipExecutionError()
        for number in _numbers(sql.FIND_STALE.ask(connection, updates)):
            outcomes[number] = SkipExecutionError()
        return outcomes

    def _keep(self, parcels: Sequence[Parcel]) -> bool:
        """Write all rows; False, at once, where a head of them was refused."""
        connection = self._connection.raw
        definitions = {p.definition[0]: p.definition for p in parcels}
        unknown = [row for digest, row in definitions.items() if digest not in self._definitions]
        sql.INSERT_DEFINITIONS.run(connection, _flat(unknown))
        new = _flat(p.row for p in parcels if p.is_new)
        quiet = _flat(p.row for p in parcels if p.is_quiet)
        moving = _flat(p.row for p in parcels if not p.is_new and not p.is_quiet)
        touched = (
            sql.INSERT_EXECUTIONS.run(connection, new)
            + sql.UPDATE_QUIET.run(connection, quiet)
            + sql.UPDATE_MOVING.run(connection, moving)
        )
        if touched != len(parcels):
            return False
        inputs = _flat((p.execution_id, p.input) for p in parcels if p.input is not None)
        results = _flat((p.execution_id, p.result) for p in parcels if p.result is not None)
        sql.INSERT_INPUTS.run(connection, inputs)
        sql.PUT_RESULTS.run(connection, results)
        sql.PUT_STEPS.run(connection, _flat(p.steps for p in parcels))
        sql.INSERT_EVENTS.run(connection, _flat(p.events for p in parcels))
        sql.OWE_NOTICES.run(connection, _flat(p.owed for p in parcels))
        settled = [each for p in parcels for each in p.settled]
        if settled:
            signals.settle(self._connection, settled, SystemClock().now())
        return True

    def _check_in_place(self) -> None:
        """SQLite would go on writing into a deleted file, and nobody would ever read it again."""
        if trouble.identity(self._path) != self._file:
            raise trouble.gone(self._path)

    # --- forgetting ---

    def delete(self, key: ExecutionKey, run_id: str, settled: Sequence[Settled] = ()) -> bool:
        """Raises StoreBusy or StoreUnusable, like all that follow; nothing was deleted then."""
        row = WorkflowExecution
        return bool(
            self._delete(
                row.workflow_id == key.workflow_id,
                row.transaction_id == key.transaction_id,
                row.run_id == run_id,
                row.deleted_at.is_null(),
                settled=settled,
            )
        )

    def delete_children(self, root: ExecutionKey) -> int:
        """Unfinished ones stay: somebody still writes them."""
        is_idempotent = fn.json_extract(WorkflowExecution.execution, "$.idempotent")
        return self._delete(
            WorkflowExecution.root == str(root), SQL(FINISHED), is_idempotent.is_null()
        )

    def _delete(self, *conditions: Any, settled: Sequence[Settled] = ()) -> int:
        def delete(connection: Connection) -> int:
            if settled:
                signals.settle(connection, settled, SystemClock().now())
            return connection.run(WorkflowExecution.delete().where(*conditions)).rowcount

        return self.transact(delete)

    # --- others ---

    def transact(self, change: Callable[[Connection], _T]) -> _T:
        """Write whatever `change` writes, in one transaction."""
        with trouble.translated(self._path):
            self._connection.wait_for_locks(self._busy_timeout)
            with self._connection.transaction():
                self._check_in_place()
                return change(self._connection)

    def ask(self, question: Callable[[Connection], _T]) -> _T:
        """What this connection says now."""
        with trouble.translated(self._path):
            return question(self._connection)


def _flat(values: Iterable[Sequence[object]]) -> list[object]:
    return list(chain.from_iterable(values))


def _is_trouble(error: BaseException) -> bool:
    return isinstance(error, trouble.TROUBLE)


def _numbers(arrays: list[str]) -> list[int]:
    return [number for array in arrays for number in msgspec.json.decode(array)]
