"""The driver: events in, one commit, then what follows. The shell around the machine.

An execution is driven by one task at a time. Whoever has an event for it puts it into the inbox and
pumps; where somebody is pumping already, that one takes the event along:

    take all events of the inbox → machine → keep the changes → take them → act

Nothing is done before its changes are kept, and nobody outside sees changes that are not. A handler
that is the only one goes on in the task that called for it, several get tasks of their own; each sees
the context variables that the engine was started with, and none sees another's. Callers wait on a
future, never on a handler, so that giving up waiting harms nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from wfe.authoring.workflows import Workflow
from wfe.clock import Clock
from wfe.engine.events import Abort, Begin, Call, Due, Effect, Event, Resume, Tell
from wfe.engine.names import EXECUTION_DONE
from wfe.errors import (
    EngineClosed,
    SkipExecutionError,
    StoreError,
)
from wfe.model import (
    Changes,
    ExecutionKey,
    Head,
    StepKey,
)
from wfe.runtime.audiences import Audiences
from wfe.runtime.intake import outcome_of, with_result
from wfe.runtime.keeper import Keeper
from wfe.runtime.live import Live, Running
from wfe.runtime.replies import Replies, as_exception
from wfe.runtime.timers import Timers
from wfe.store.contract import CheckpointStore

logger = logging.getLogger("wfe")

#: After so many steps in one task, others get a turn.
_TURNS = 16

#: Seconds that `close` waits for what clears up behind executions, whatever grace handlers have.
_CHORES_GRACE = 5.0

#: Runs the handler of a step and says what it came to.
Perform = Callable[[Live, Running], Awaitable[Event]]


class Driver:
    """The live executions of an engine."""

    def __init__(
        self,
        store: CheckpointStore,
        clock: Clock,
        audiences: Audiences,
        perform: Perform,
        on_finish: Callable[[Live], None],
        on_wake: Callable[[ExecutionKey], None],
        on_drop: Callable[[], None],
        on_hold: Callable[[], None],
        on_rest: Callable[[Live], None],
        owes: Callable[[Workflow[Any, Any], Head], bool],
    ) -> None:
        self._clock = clock
        self._audiences = audiences
        self._perform = perform
        self._on_finish = on_finish
        self._on_drop = on_drop
        self._on_rest = on_rest
        self._owes = owes
        self._timers = Timers(clock, on_wake)
        #: Tasks that drive executions, and short ones that clear up behind them.
        self._tasks: set[asyncio.Task[Any]] = set()
        self._chores: set[asyncio.Task[Any]] = set()
        #: The context variables that every handler sees.
        self._context: Context = copy_context()
        #: Nothing new begins; nothing at all begins, not even in consequence of what ends.
        self._is_closing = self._is_closed = False
        self._keeper = Keeper(store, on_hold)
        #: This engine, as the store names it.
        self.owner = self._keeper.owner
        self.lives: dict[ExecutionKey, Live] = {}

    # --- what the engine asks for ----------------------------------------------------------------

    def adopt(self, live: Live) -> None:
        """Drive this execution from here on."""
        self.lives[live.key] = live
        live.execution.holder = self.owner

    def begin(self, live: Live) -> None:
        """Drive a new execution; its audience learns what it comes to, or why it could not begin.

        Raises:
            EngineClosed
        """
        self._check_open()
        self.adopt(live)
        live.inbox.append((Begin(), None, None))
        self._start(live)

    async def post(self, live: Live, event: Event) -> None:
        """Let `event` happen to a live execution; returns when it is kept and acted on.

        Raises:
            Refused, NotFound: the state does not allow it.
            SkipExecutionError: another writer was faster. StoreError: it could not be kept.
            EngineClosed
        """
        self._check_open()
        reply: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        live.inbox.append((event, reply, None))
        self._start(live)
        await reply

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineClosed

    def deliver(self, live: Live, signals: Sequence[tuple[int, Event]]) -> None:
        """Let commands happen that have come from other processes; the store tells their senders
        what becomes of them."""
        fresh = [(event, None, number) for number, event in signals if number not in live.signals]
        if fresh:
            live.signals = live.signals.union(number for _, _, number in fresh)
            live.inbox.extend(fresh)
            self._start(live)

    def nudge(self, live: Live) -> None:
        """Look at the deadlines of a live execution."""
        live.inbox.append((Due(), None, None))
        self._start(live)

    def resume(self, live: Live) -> None:
        """Take up what was at work in a process that is gone."""
        live.inbox.append((Resume(), None, None))
        self._start(live)

    def remind(self, key: ExecutionKey, moment: datetime | None) -> None:
        """Wake an execution at `moment`, whether it is live then or not."""
        self._timers.set(key, moment)

    def spawn(self, work: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        """Do something short in a task that is not lost: `close` waits for it, its failure is
        logged. It must not wait for a handler."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        # A coroutine made here would be left over where the task is cancelled before its first step.
        task = loop.create_task(self._supervised(work, arguments), context=self._context.copy())
        self._chores.add(task)

    def rest(self, live: Live) -> None:
        """After a pump, or a look: let go who waits for no more than rest, then forget what the
        store has, or what is over."""
        if not live.is_quiet:
            return
        if not live.is_abandoned:
            live.release()
            if live.workflow.has_children or live.execution.head.root is not None:
                self._on_rest(live)
        if live.may_be_dropped and self.lives.get(live.key) is live:
            del self.lives[live.key]
            if live.execution.head.is_final or live.audience.is_empty:
                self._audiences.leave(live.key)
            else:
                self._on_drop()

    def is_calling(self, key: StepKey) -> bool:
        """Is the handler of this step at work here?"""
        live = self.lives.get(key.execution)
        running = None if live is None else live.running.get(key.step)
        return running is not None and running.call.action is key.action

    @property
    def is_holding(self) -> bool:
        """It has taken out its lease: others may send it signals."""
        return self._keeper.is_holding

    @property
    def has_no_timers(self) -> bool:
        """Nothing goes on by itself at a later moment."""
        return len(self._timers) == 0

    @property
    def is_idle(self) -> bool:
        """Nothing is at work: what goes on, goes on by a timer or from outside."""
        return not self._tasks and not self._chores

    def hold_back(self) -> None:
        """Call no handler that is not called yet: what is accepted is for others to drive."""
        self._is_closing = True

    async def close(self, grace: float) -> None:
        """Start nothing new, let handlers end for `grace` seconds, then cancel what is left. What
        is cancelled is found in flight by whoever takes the execution up again."""
        self._is_closing = True
        await self._timers.close()
        deadline = asyncio.get_running_loop().time() + grace
        while self._tasks and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)
        await self._finish_chores()
        self._is_closed = True
        leftover = self._tasks | self._chores
        for live in self.lives.values():
            live.is_abandoned = True
        for task in leftover:
            task.cancel()
        if leftover:
            await asyncio.wait(leftover)
        self._audiences.close(EngineClosed())
        self.lives.clear()
        await self._keeper.let_go()

    async def _finish_chores(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CHORES_GRACE
        while self._chores and (left := deadline - loop.time()) > 0:
            await asyncio.wait(set(self._chores), timeout=left)

    async def _supervised(
        self, work: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await work(*arguments)
        except Exception:
            logger.exception("An internal task failed")
        finally:
            self._chores.discard(task)

    # --- driving ---------------------------------------------------------------------------------

    def _start(self, live: Live, running: Running | None = None) -> None:
        """Have a task of its own drive a live execution, beginning with a handler."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        self._tasks.add(loop.create_task(self._drive(live, running), context=self._context.copy()))

    async def _drive(self, live: Live, running: Running | None) -> None:
        """Call a handler, take what it came to along, and so on as long as just one follows."""
        task = asyncio.current_task()
        assert task is not None
        turns = 0
        try:
            while True:
                if running is not None:
                    running.task = task
                    event = await self._perform(live, running)
                    del live.running[running.call.step]
                    live.holding -= running.call.holds_caller
                    live.inbox.append((event, None, None))
                    if live.running:
                        # Others may end in this very moment: one commit for all of them.
                        self._pump_soon(live)
                        return
                running = await self._pump(live)
                if running is None:
                    return
                if copy_context() != self._context:
                    # A context variable that was set is none of the next handler's business.
                    self._start(live, running)
                    return
                turns += 1
                if turns % _TURNS == 0:
                    await asyncio.sleep(0)
        except Exception:
            logger.exception("Driving %s failed", live.key)
        finally:
            self._tasks.discard(task)

    def _pump_soon(self, live: Live) -> None:
        """Drain the inbox when whatever is ready now has had its turn."""
        if not live.is_pump_due:
            live.is_pump_due = True
            self._start(live)

    async def _pump(self, live: Live) -> Running | None:
        """Drain the inbox, unless somebody is at it. Gives the handler that is to be called next,
        where there is just one."""
        live.is_pump_due = False
        if live.is_pumping:
            return None
        live.is_pumping = True
        following: Running | None = None
        try:
            while live.inbox and not live.is_abandoned:
                # One commit: every event there is, what they change, what follows.
                if following is not None:
                    self._start(live, following)
                    following = None
                replies = Replies()
                is_heard = self._audiences.has_listeners(live.audience)
                outcome = outcome_of(
                    live,
                    self._clock.now(),
                    replies,
                    holds_back=self._is_closing,
                    keeps_timeline=live.is_stored or is_heard,
                )
                if outcome is None:
                    await self._keeper.settle(replies.settled())
                    replies.deliver()
                    continue
                changes = outcome.changes
                is_final = changes.head.is_final
                if live.is_stored or is_final:
                    changes = await self._kept(live, changes, replies)
                following = self._follow(
                    live, changes, outcome.effects, is_heard=is_heard, is_final=is_final
                )
                if replies:
                    replies.deliver()
        except BaseException as error:
            logger.debug("%s is driven no further here: %s", live.key, error)
            self._abandon(live, error)
            if not isinstance(error, (SkipExecutionError, StoreError)):
                raise
        finally:
            live.is_pumping = False
            if following is None:
                self.rest(live)
        return following

    async def _kept(self, live: Live, changes: Changes, replies: Replies) -> Changes:
        """What changes, once it is safe to act on it: written, where it is to be, and with all that
        the end of an execution adds."""
        before = live.execution.head
        if live.is_stored:
            changes = self._keeper.in_hand(live, changes, stays=not self._is_closing)
        is_over = changes.head.is_final and before.state is changes.head.state
        if changes.head.is_final and not is_over:
            if changes.head.state is EXECUTION_DONE:
                changes = await with_result(live, changes)
            if self._owes(live.workflow, changes.head):
                changes = replace(changes, owes_notice=True)
        if live.is_stored:
            settled = replies.settled()
            try:
                if is_over:  # an overtaken handler has ended: nothing to keep
                    await self._keeper.settle(settled)
                else:
                    await self._keeper.keep(live, changes, settled, lone=len(self.lives) == 1)
            except BaseException as error:
                replies.fail(error)
                raise
        return changes

    # --- acting ----------------------------------------------------------------------------------

    def _follow(
        self,
        live: Live,
        changes: Changes,
        effects: Sequence[Effect],
        *,
        is_heard: bool,
        is_final: bool,
    ) -> Running | None:
        """Make the changes true and carry out what follows. A lone handler is given back, several are
        called in tasks."""
        before, head = live.execution.head, changes.head
        live.execution.take(changes)
        if before.wake_at != head.wake_at:
            self.remind(live.key, head.wake_at)
        called: list[Running] = []
        for effect in effects:
            if isinstance(effect, Call):
                running = live.running[effect.step] = Running(effect)
                live.holding += effect.holds_caller
                called.append(running)
            elif isinstance(effect, Tell):
                if is_heard:
                    self._audiences.tell(live.execution, effect.event, effect.response)
            elif isinstance(effect, Abort) and effect.step in live.running:
                live.running[effect.step].abort()
        if live.audience.told is not None:
            live.audience.told += len(changes.events)
        if not live.holding or is_final:
            live.release()
        if is_final and before.state is not head.state:
            self._on_finish(live)
        if len(called) == 1:
            return called[0]
        for running in called:
            self._start(live, running)
        return None

    def _abandon(self, live: Live, error: BaseException) -> None:
        """Drive it no further: what is in the store is what counts."""
        live.is_abandoned = True
        exception = as_exception(error)
        while live.inbox:
            _, reply, _ = live.inbox.popleft()
            if reply is not None and not reply.done():
                reply.set_exception(exception)
        for running in live.running.values():
            running.abort()
        if live.saved is None or not isinstance(error, SkipExecutionError):
            live.audience.fail(exception)
        # Where another writer has gone on, the watch over the store tells who waits.
