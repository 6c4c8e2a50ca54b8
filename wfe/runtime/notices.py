"""Notices: somebody is told that an execution has ended, and the timeline says what became of that.

    the end is committed, and with it that a notice is owed → taken by one engine → told → settled

Who is told is known here alone, from the workflow and the engine; the store knows that something is
owed. Whatever stops in between leaves it owed: to this engine as long as it lives, then to any other
one that has the workflow. So somebody may be told twice, and is never forgotten.

An execution that is not kept when it is over is told of by its own engine, from memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wfe.authoring.on_finish import DEFAULT_TIMEOUT, OnFinish, Told, on_finish
from wfe.authoring.workflows import Workflow
from wfe.endings import ending_of
from wfe.errors import EngineClosed, StoreBusy, StoreError, WfeError, WorkflowNotFound
from wfe.model import (
    Action,
    ErrorRecord,
    EventKind,
    Execution,
    ExecutionKey,
    Head,
    TimelineEvent,
)
from wfe.runtime import recording
from wfe.runtime.announcement import announcement, variables
from wfe.runtime.errand import Errand
from wfe.runtime.live import Live
from wfe.store import codec, owners
from wfe.store.notices import Notice

if TYPE_CHECKING:
    from wfe.runtime.engine import Engine

logger = logging.getLogger("wfe")

#: Commands that run at the same time, and notices that are looked up at once.
_TOGETHER = 4
_LIMIT = 1000

#: Seconds until what was told is written down again, where the store was busy.
_AGAIN = 0.5

#: In the metadata of an execution that tells of another: whose end. Of its own end nobody is told.
TELLS_OF = "on_finish_of"


class _Teller(NamedTuple):
    """An execution that tells, and how many seconds it may be waited for."""

    key: ExecutionKey
    patience: float


#: Tells; gives the execution that does, where it is one.
_Telling = Callable[[], Awaitable[_Teller | None]]


class Notices:
    """What an engine owes, and what it tells in its turn."""

    def __init__(
        self, engine: Engine, told: Any, find: Callable[[str], Workflow[Any, Any]]
    ) -> None:
        """`told` is what the engine was given as `on_finish`; `find` gives a workflow by its id.

        Raises:
            InvalidOption
        """
        given = on_finish(told)
        self._is_off = given is False
        self._base: OnFinish | None = given or None
        self._engine = engine
        self._find = find
        self._owner: str | None = None
        self._turns = asyncio.Semaphore(_TOGETHER)
        self._threads: ThreadPoolExecutor | None = None
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._is_held_back = self._is_closed = False
        #: Whose ends were committed here while notices were held back.
        self.left: list[ExecutionKey] = []

    # --- what is owed ----------------------------------------------------------------------------

    def are_owed(self, workflow: Workflow[Any, Any], head: Head) -> bool:
        """Is somebody to be told of this end? Of a child's end never: its parent's is told."""
        if (workflow.on_finish is None and self._base is None) or head.root is not None:
            return False
        told = self._told(workflow)
        if told is None or TELLS_OF in head.metadata:
            return False
        ending = ending_of(head)
        return ("failed" if ending == "result_failed" else ending) in told.told

    def _told(self, workflow: Workflow[Any, Any]) -> OnFinish | None:
        """Who is told of the ends of a workflow."""
        own: Told = workflow.on_finish
        if self._is_off or own is False:
            return None
        told = self._base if own is None else own.over(self._base)
        return None if told is None or told.run is None else told

    def of_end(self, live: Live) -> None:
        """An execution has ended here, and its end is committed."""
        head = live.execution.head
        if self._is_closed or not self.are_owed(live.workflow, head):
            return
        is_kept = live.is_stored and recording.is_kept(head)
        if not is_kept:
            told = self._told(live.workflow)
            assert told is not None
            self._spawn(head.execution_id, partial(self._tell_unkept, told, live.execution.copy()))
        elif self._is_held_back:
            self.left.append(head.key)
        else:
            self._begin(
                Notice(
                    execution_id=head.execution_id,
                    key=head.key,
                    run_id=head.run_id,
                    version=head.version,
                    owed_since=head.updated_at,
                )
            )

    def hold_back(self) -> None:
        """Tell nobody of ends that come from here on, unless `send` is called."""
        self._is_held_back = True

    @property
    def is_held_back(self) -> bool:
        return self._is_held_back

    # --- telling ---------------------------------------------------------------------------------

    async def send(self, keys: Collection[ExecutionKey] | None, *, wait: bool) -> int:
        """Tell what is owed, and nobody has taken; `keys`: of these alone. See `Engine.send_notices`."""
        if self._is_off or self._is_closed:
            return 0
        begun = 0
        for notice in await self._engine.store.notices.owed(limit=_LIMIT):
            is_wanted = keys is None or notice.key in keys
            under_way = notice.execution_id in self._tasks.values()
            if is_wanted and not under_way and self._can_tell(notice):
                self._begin(notice)
                begun += 1
        if wait and self._tasks:
            await asyncio.wait(set(self._tasks))
        return begun

    def _can_tell(self, notice: Notice) -> bool:
        """Is it known here who is to be told? Elsewhere it may be."""
        try:
            return self._told(self._find(notice.key.workflow_id)) is not None
        except WorkflowNotFound:
            return False

    def _begin(self, notice: Notice) -> asyncio.Task[None]:
        return self._spawn(notice.execution_id, partial(self._send, notice))

    def _spawn(self, execution_id: str, work: _Telling) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._in_turn(work))
        self._tasks[task] = execution_id
        task.add_done_callback(self._tasks.pop)
        return task

    async def _in_turn(self, work: _Telling) -> None:
        try:
            async with self._turns:
                teller = await work()
            if teller is not None:
                await self._rest(teller)
        except StoreError as error:
            logger.warning("A notice is left owed: %s", error)
        except EngineClosed:
            logger.debug("A notice is left owed: the engine is closed")
        except Exception:
            logger.exception("A notice is left owed")

    async def _send(self, notice: Notice) -> _Teller | None:
        """Take it, tell, and settle it."""
        notices = self._engine.store.notices
        if not await notices.take(notice, owner=await self._holding()):
            return None
        execution = await self._engine.store.load(notice.key, notice.run_id)
        told = self._told(self._find(notice.key.workflow_id))
        if execution is None or told is None or execution.head.version != notice.version:
            # It was forgotten, or taken back: when that has ended, a notice is owed again.
            await notices.settle(notice, None)
            return None
        failure, teller = await self._tell(told, execution)
        entry = TimelineEvent(
            kind=EventKind.NOTICE,
            time=self._engine.clock.now(),
            error=failure,
            detail=str(told),
        )
        await self._settle(notice, entry)
        return teller

    async def _settle(self, notice: Notice, entry: TimelineEvent) -> None:
        while True:
            try:
                await self._engine.store.notices.settle(notice, entry)
            except StoreBusy:
                await asyncio.sleep(_AGAIN)
            else:
                return

    async def _tell_unkept(self, told: OnFinish, execution: Execution) -> _Teller | None:
        _, teller = await self._tell(told, execution)
        return teller

    async def _tell(
        self, told: OnFinish, execution: Execution
    ) -> tuple[ErrorRecord | None, _Teller | None]:
        """Why it could not be told; and the execution that tells, where it is one.

        Raises:
            StoreError, EngineClosed: it was not told, and may be another time.
        """
        teller = failure = None
        try:
            if told.workflow_id is not None:
                teller = await self._run(told.workflow_id, told, execution)
            else:
                failure = await self._command(told, execution)
        except (StoreError, EngineClosed):
            raise
        except WfeError as error:
            failure = f"{told} was not told: {error.message}"
        if failure is None:
            return None, teller
        logger.warning("The end of %s: %s", execution.head.key, failure)
        record = ErrorRecord(
            action=None, handler_type=Action.INVOKE, name="NoticeFailed", message=failure
        )
        return record, None

    async def _command(self, told: OnFinish, execution: Execution) -> str | None:
        assert told.command is not None
        document = self._announcement(execution)
        errand = Errand(
            told.command,
            codec.encode(document, what="notice") + b"\n",
            variables=variables(document),
            folder=told.folder,
            timeout=told.timeout or DEFAULT_TIMEOUT,
        )
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_TOGETHER, thread_name_prefix="wfe-notice")
        try:
            failure = await asyncio.get_running_loop().run_in_executor(self._threads, errand.run)
        except asyncio.CancelledError:
            errand.stop()
            raise
        return None if failure is None else f"{told.command[0]} {failure}"

    async def _run(self, workflow_id: str, told: OnFinish, execution: Execution) -> _Teller:
        """Begin the execution that tells, once: it has an id of its own for each end."""
        head = execution.head
        key = ExecutionKey(workflow_id, f"on-finish-{head.execution_id}-{head.version}")
        if await self._engine.store.load(key) is None:
            begun = await self._engine.run(
                workflow_id,
                self._announcement(execution),
                transaction_id=key.transaction_id,
                until="stored",
                throw_on_error=False,
                metadata={TELLS_OF: str(head.key)},
            )
            if begun.acknowledgement.reason is not None:
                raise begun.acknowledgement.reason
        return _Teller(key, told.timeout or DEFAULT_TIMEOUT)

    async def _rest(self, teller: _Teller) -> None:
        """Wait until the execution that tells is finished, or waits for somebody."""
        with suppress(WfeError, TimeoutError):
            async with asyncio.timeout(teller.patience):
                await self._engine.wait_for(
                    teller.key.workflow_id,
                    teller.key.transaction_id,
                    until="waiting",
                    throw_on_error=False,
                )

    def _announcement(self, execution: Execution) -> dict[str, Any]:
        return announcement(execution, getattr(self._engine.store, "path", None))

    # --- life ------------------------------------------------------------------------------------

    async def _holding(self) -> str:
        """This teller, as the store names it; with its lease."""
        if self._owner is None:
            self._owner = owners.claim()
        if (peers := self._engine.store.peers) is not None:
            await peers.hold(self._owner)
        return self._owner

    @property
    def is_idle(self) -> bool:
        """Nobody is being told."""
        return not self._tasks

    async def close(self, grace: float) -> None:
        """Let those be told who are, for `grace` seconds; what is left then stays owed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        while self._tasks and (left := deadline - loop.time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)
        self._is_closed = True
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._threads is not None:
            self._threads.shutdown(wait=False)
        await self._let_go()

    async def _let_go(self) -> None:
        if self._owner is None:
            return
        owners.release(self._owner)
        if (peers := self._engine.store.peers) is not None:
            with suppress(StoreError):  # it counts as gone all the same
                await peers.release(self._owner)
