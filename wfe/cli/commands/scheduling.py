"""`wfe schedules pause|resume|delete|trigger|backfill`: what a person does about a schedule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from wfe.cli.commands.ledger import Name, find
from wfe.cli.consent import Yes
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.cli.telling import tell
from wfe.errors import NotFound, Refused, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from wfe.model import CommandResult, Event
    from wfe.runtime.engine import Engine
    from wfe.store.ledger import Ledger, ScheduleRow, Tick

#: Executions of one backfill.
_MOST = 10_000

#: Seconds between two looks at what other processes have decided on.
_LOOK = 1.0


def pause(session: Session, name: Name) -> int:
    """Pass over the ticks of a schedule from now on; each is written down. What runs goes on.

    \b
    wfe schedules pause nightly
    """
    return _change(session, name, "Paused", lambda ledger, now: ledger.pause(name, now=now))


def resume(session: Session, name: Name) -> int:
    """End a pause. The ticks that were passed over are not made up for.

    \b
    wfe schedules resume nightly
    """
    return _change(session, name, "Resumed", lambda ledger, now: ledger.resume(name, now=now))


def delete(session: Session, name: Name, yes: Yes = False) -> int:
    """Forget a schedule with all its ticks, such as one whose workflow was renamed. Its executions stay.
    One that a process serves is refused: end that first, or pause the schedule.

    \b
    wfe schedules delete weekly -y
    """
    from wfe.cli import consent
    from wfe.store.owners import described

    with session.reader(to_write=True) as reader:
        row = find(session, reader, name)
    if row.holder is not None:
        raise Refused(
            f"{described(row.holder).capitalize()} serves the schedule {name}.",
            workflow_id=row.workflow_id,
            transaction_id="",
            hint=f"Pause it: {session.command('schedules', 'pause', name)}",
        )
    consent.ask(f"forget the schedule {name} and its ticks", yes=yes)
    return _change(session, name, "Deleted", lambda ledger, now: ledger.forget(name))


def trigger(session: Session, name: Name) -> int:
    """Run the workflow of a schedule now, beside its ticks, and print its result as `wfe run` does.

    Where executions must not overlap and one goes on, it is refused (4), and says which.

    \b
    wfe schedules trigger nightly
    """
    from wfe.cli import conclusion, foreground
    from wfe.cli.live import watcher
    from wfe.scheduling.loop import Scheduler
    from wfe.scheduling.plan import known_plan

    with session.reader(to_write=True) as reader:
        row = find(session, reader, name)
    catalog = session.catalog_with(row.workflow_id)
    plan = known_plan(row)

    async def begin(engine: Engine, on_event: Callable[[Event], None]) -> CommandResult:
        async with Scheduler(engine, own=False) as scheduler:
            engine.subscribe(row.workflow_id, on_event)
            tick = await scheduler.trigger(plan)
            if tick is None or tick.state != "fired":
                raise _not_begun(session, row, tick.error if tick is not None else None)
            return await engine.wait_for(
                row.workflow_id, tick.transaction_id, until="finished", throw_on_error=False
            )

    driven = foreground.drive(session, catalog, begin, watcher(session, answers=True))
    return conclusion.conclude(session, driven)


def _not_begun(session: Session, row: ScheduleRow, why: str | None) -> Refused:
    return Refused(
        f"{row.name} was not begun: {why or 'the engine is being shut down'}.",
        workflow_id=row.workflow_id,
        transaction_id="",
        hint=f"See what it did: {session.command('schedules', 'ticks', row.name)}",
    )


def backfill(
    session: Session,
    name: Name,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="The first moment: 2026-10-24, 2d ago.")
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="The last moment; else now.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the ticks, and run nothing.")
    ] = False,
    yes: Yes = False,
) -> int:
    """Run a schedule for ticks of the past that have no execution: a line for each, in order.

    \b
    wfe schedules backfill nightly --from 2026-11-01 --to 2026-11-07 --dry-run
    wfe schedules backfill nightly --from '2d ago' -y
    """
    from wfe.cli import consent, inputs, output, text
    from wfe.clock import SystemClock
    from wfe.scheduling.plan import known_plan

    now = SystemClock().now()
    start = inputs.moment(from_, "--from", now)
    end = now if to is None else min(inputs.moment(to, "--to", now), now)
    with session.reader(to_write=True) as reader:
        row = find(session, reader, name)
        assert reader is not None
        done = {tick.scheduled_for for tick in reader.ledger.ticks(name) if tick.state == "fired"}
    plan = known_plan(row)
    begin = start - start.resolution
    every = islice(plan.timetable.between(begin, end), _MOST + len(done) + 1)
    moments = [tick for tick in every if tick not in done]
    if len(moments) > _MOST:
        raise UsageError(
            f"That is more than {_MOST} ticks.", hint="Name a shorter time: --to TIME."
        )
    if dry_run and not moments:
        return _nothing_to_fill(session, name)
    if dry_run:
        for moment in moments:
            output.print_tabbed(
                [text.iso(moment), f"{row.workflow_id}:{plan.transaction_id(moment)}"]
            )
        return ExitCode.OK
    count = f"{len(moments)} execution{'s' * (len(moments) != 1)}"
    consent.ask(f"begin {count} of {row.workflow_id}", yes=yes, is_idle=not moments)
    if not moments:
        return _nothing_to_fill(session, name)
    return _fill(session, row, moments)


def _nothing_to_fill(session: Session, name: str) -> int:
    tell(
        f"There are no ticks of {name} without an execution then. See what there is: "
        f"{session.command('schedules', 'ticks', name)}"
    )
    return ExitCode.OK


def _fill(session: Session, row: ScheduleRow, moments: list[datetime]) -> int:
    from contextlib import suppress

    from wfe.cli import conclusion, documents, foreground, output, text
    from wfe.cli.capture import stdout_as_it_is
    from wfe.scheduling.loop import Scheduler
    from wfe.scheduling.plan import known_plan

    plan = known_plan(row)
    catalog = session.catalog_with(row.workflow_id)

    async def work(engine: Engine) -> bool:
        decisions = _Decisions(row.name)
        all_done = True
        async with Scheduler(engine, own=False, on_tick=decisions.note) as scheduler:
            for moment in await scheduler.backfill(plan, moments):
                tick = await decisions.on(moment, engine.store.ledger)
                status: str = tick.reason or tick.state
                if tick.state == "fired":
                    result = await engine.wait_for(
                        row.workflow_id, tick.transaction_id, throw_on_error=False
                    )
                    if result.acknowledgement.reason is not None:
                        raise result.acknowledgement.reason
                    assert result.execution is not None
                    status = documents.status(result.execution)
                all_done &= status == "done"
                key = f"{row.workflow_id}:{tick.transaction_id}"
                with suppress(OSError):  # nobody reads any more; the rest is done all the same
                    output.print_tabbed([text.iso(moment), key, status, tick.error], stream=out)
        return all_done

    with stdout_as_it_is() as out:
        found, signal = foreground.drive_many(session, catalog, work)
    if signal is not None:
        again = session.command("schedules", "backfill", row.name)
        left = f"What is left is begun by wfe serve, or with: {again} --from TIME"
        return conclusion.interrupted(session, signal, left)
    return ExitCode.OK if found else ExitCode.ERROR


class _Decisions:
    """What becomes of the ticks of a schedule, whoever decides: this process, or another that serves."""

    def __init__(self, name: str) -> None:
        import asyncio

        self._name = name
        self._known: dict[datetime, Tick] = {}
        self._news = asyncio.Event()

    def note(self, tick: Tick) -> None:
        """One was decided on here."""
        self._known[tick.scheduled_for] = tick
        self._news.set()

    async def on(self, moment: datetime, ledger: Ledger) -> Tick:
        """The tick of a moment, as soon as it is decided on."""
        import asyncio
        from contextlib import suppress

        while moment not in self._known:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await self._news.wait()
                continue
            decided = (tick for tick in ledger.ticks(self._name) if tick.state != "due")
            self._known.update({tick.scheduled_for: tick for tick in decided})
        return self._known[moment]


def _change(
    session: Session,
    name: str,
    done: str,
    change: Callable[[Ledger, datetime], Awaitable[bool]],
) -> int:
    import asyncio

    from wfe.cli import output
    from wfe.cli.foreground import engine_of
    from wfe.clock import SystemClock

    with session.reader(to_write=True) as reader:
        find(session, reader, name)

    async def work() -> bool:
        async with engine_of(session) as engine:
            return await change(engine.store.ledger, SystemClock().now())

    if not asyncio.run(work()):
        raise NotFound(f"There is no schedule {name!r} any more.")
    if session.output == "json":
        output.print_json({"ok": True, "key": name})
    else:
        tell(f"{done}: {name}.")
    return ExitCode.OK
