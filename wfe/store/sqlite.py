"""The store in a SQLite file: the CheckpointStore of the command line and of engines that must
survive their process.

Two connections: the writer's, used by a thread of its own or at once by the loop (`commits`), and a
reader's, used by a second thread. Nothing here waits for the disk or a lock on the event loop, except
for the write of a lone commit.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import NamedTuple, TypeVar

from wfe.errors import StoreUnusable
from wfe.model import Changes, Execution, ExecutionKey
from wfe.store import sweep
from wfe.store.commits import Commits
from wfe.store.contract import Peers, Reader, Settled
from wfe.store.database import (
    BUSY_TIMEOUT,
    Synchronous,
    absolute,
    open_for_reading,
    open_for_writing,
)
from wfe.store.heartbeat import Heartbeat
from wfe.store.ledger import Ledger
from wfe.store.notices import Notices
from wfe.store.peers import SQLitePeers
from wfe.store.questions import Questions
from wfe.store.reader import SQLiteReader
from wfe.store.sqlite_ledger import SQLiteLedger
from wfe.store.sqlite_notices import SQLiteNotices
from wfe.store.writer import Packer, Writer

_T = TypeVar("_T")


class _Open(NamedTuple):
    """What an open store works with."""

    writer: Writer
    commits: Commits
    reader: SQLiteReader
    questions: Questions
    peers: SQLitePeers
    ledger: SQLiteLedger
    notices: SQLiteNotices
    heartbeat: Heartbeat
    writing: ThreadPoolExecutor
    reading: ThreadPoolExecutor


class SQLiteStore:
    """Executions in the SQLite file `path`, which is made where there is none.

    `synchronous`: "full" keeps a commit through a loss of power, "normal" through the death of the
    process only, and is several times faster. `busy_timeout`: seconds that another process's lock is
    waited for before StoreBusy is raised.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "full",
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        if synchronous not in ("full", "normal"):
            # SQLite takes what it does not know for "off".
            raise ValueError(f"synchronous is 'full' or 'normal', not {synchronous!r}")
        self.path = absolute(path)
        self._synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._packer = Packer()
        self._parts: _Open | None = None
        self._opening = asyncio.Lock()
        #: Answers to those who do not run on the loop; has its own connection, made when first used.
        self._reader: SQLiteReader | None = None
        self._reader_lock = threading.Lock()

    @property
    def reader(self) -> Reader:
        with self._reader_lock:
            if self._reader is None:
                self._reader = self._open_reader()
            return self._reader

    def _open_reader(self) -> SQLiteReader:
        return SQLiteReader(open_for_reading(self.path, busy_timeout=self._busy_timeout))

    @property
    def peers(self) -> Peers:
        return self._opened().peers

    @property
    def ledger(self) -> Ledger:
        return self._opened().ledger

    @property
    def notices(self) -> Notices:
        return self._opened().notices

    # --- opening and closing ---

    async def open(self) -> None:
        async with self._opening:
            if self._parts is not None:
                return
            writing = ThreadPoolExecutor(1, "wfe-store-write")
            reading = ThreadPoolExecutor(1, "wfe-store-read")
            try:
                loop = asyncio.get_running_loop()
                writer = await loop.run_in_executor(writing, self._open_writer)
                reader = await loop.run_in_executor(reading, self._open_reader)
            except BaseException:
                writing.shutdown(wait=False)
                reading.shutdown(wait=False)
                raise
            commits = Commits(writer, writing)
            heartbeat = Heartbeat(self.path, self._busy_timeout)
            peers = SQLitePeers(writer, commits, heartbeat)
            ledger = SQLiteLedger(writer, commits, reader)
            notices = SQLiteNotices(writer, commits)
            self._parts = _Open(
                writer,
                commits,
                reader,
                Questions(reading),
                peers,
                ledger,
                notices,
                heartbeat,
                writing,
                reading,
            )

    def _open_writer(self) -> Writer:
        connection = open_for_writing(
            self.path, synchronous=self._synchronous, busy_timeout=self._busy_timeout
        )
        return Writer(connection, busy_timeout=self._busy_timeout)

    async def close(self) -> None:
        async with self._opening:
            parts, self._parts = self._parts, None
            if parts is None:
                return
            await parts.commits.finish()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(parts.writing, parts.heartbeat.stop)
            await loop.run_in_executor(parts.reading, self._close_readers, parts.reader)
            await parts.commits.run(parts.writer.close)
            parts.reading.shutdown()
            parts.writing.shutdown()

    def _close_readers(self, reader: SQLiteReader) -> None:
        reader.close()
        with self._reader_lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _opened(self) -> _Open:
        if self._parts is None:
            raise StoreUnusable(f"The store of {self.path} is not open.", hint="Call open() first.")
        return self._parts

    # --- writing ---

    async def insert(self, execution: Execution, changes: Changes, *, lone: bool = False) -> bool:
        parcel = self._packer.insertion(execution, changes)
        return await self._opened().commits.put(parcel, lone=lone)

    async def commit(
        self,
        execution: Execution,
        changes: Changes,
        *,
        settled: Sequence[Settled] = (),
        lone: bool = False,
    ) -> None:
        parcel = self._packer.update(execution, changes, settled)
        await self._opened().commits.put(parcel, lone=lone)

    async def delete(
        self, key: ExecutionKey, run_id: str, *, settled: Sequence[Settled] = ()
    ) -> bool:
        parts = self._opened()
        return await parts.commits.run(lambda: parts.writer.delete(key, run_id, settled))

    async def delete_children(self, root: ExecutionKey) -> int:
        parts = self._opened()
        return await parts.commits.run(lambda: parts.writer.delete_children(root))

    async def delete_expired(self, now: datetime) -> int:
        parts = self._opened()
        due = sweep.Due(now)
        going = await parts.commits.run(
            lambda: parts.writer.ask(lambda connection: sweep.doomed(connection, due))
        )
        gone = 0
        for portion in sweep.portions(going):
            delete = functools.partial(sweep.delete_portion, due=due, portion=portion)
            gone += await parts.commits.run(lambda: parts.writer.transact(delete))  # noqa: B023
        return gone

    # --- reading ---

    async def load(self, key: ExecutionKey, run_id: str | None = None) -> Execution | None:
        reader = self._opened().reader
        return await self._read(lambda: reader.load(key, run_id))

    async def due(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        reader = self._opened().reader
        return await self._read(lambda: reader.due(now, limit))

    async def interrupted(self, now: datetime, *, limit: int = 100) -> Sequence[ExecutionKey]:
        reader = self._opened().reader
        return await self._read(lambda: reader.interrupted(now, limit))

    async def _read(self, question: Callable[[], _T]) -> _T:
        return await self._opened().questions.ask(question)
