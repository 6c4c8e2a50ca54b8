"""Plays a scenario's commands on a public engine, and records what happens in the recordings' shape.

Time is virtual: a handler that sleeps for an hour costs nothing. A restart abandons the engine and
builds a new one over the same store; what handlers of before still do is not recorded.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from wfe import Engine, StepResponse
from wfe.authoring.registry import Registry
from wfe.errors import DefinitionError, WfeError
from wfe.model import Action, CommandResult, Event, StepKey
from wfe.scheduling.loop import Scheduler
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.testing import VirtualClock, VirtualLoop, until_quiet

from . import record
from .compose import World, compose

Command = Mapping[str, Any]
Raw = dict[str, Any]
StoreKind = Literal["memory", "sqlite"]

#: A command that has not returned after so many seconds never does.
PATIENCE = 15.0
#: Two commands are never given in the same instant: what they make can be told apart by its time.
BETWEEN = 0.001
#: How long the end is waited for.
LAST_SETTLE = 0.5


class Log(logging.Handler):
    """What the engine logs meanwhile: `failures` are its own, not those of the user's code."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{record.levelname.lower()}: {record.getMessage()}"
        self.lines.append(line)
        if not str(record.msg).startswith(("A subscriber", "Execution ")):
            cause = record.exc_info[1] if record.exc_info else None
            self.failures.append(f"{line}: {cause!r}")

    def __enter__(self) -> None:
        logging.getLogger("wfe").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("wfe").removeHandler(self)


class Player:
    """One scenario, being played."""

    def __init__(self, scenario: Mapping[str, Any], store: CheckpointStore) -> None:
        self.scenario = scenario
        self.store = store
        self.world = World(self.outcome)
        self.registry = Registry()
        self.engine = self._engine()
        self.events: list[Raw] = []
        self.handler_events: list[Raw] = []
        self.subscribers: dict[str, list[Raw]] = {}
        self.functions: dict[str, Callable[[Event], None]] = {}
        self.spawned: dict[str, asyncio.Task[Raw]] = {}
        self.background: list[str] = []
        self.log = Log()

    def _engine(self) -> Engine:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return Engine(store=self.store, clock=VirtualClock(loop), registry=self.registry)

    # --- the whole -------------------------------------------------------------------------------

    async def play(self) -> Raw:
        """Play everything; what was seen."""
        asyncio.get_running_loop().set_exception_handler(self._in_the_background)
        with self.log:
            try:
                return await self._played()
            finally:
                await self._stop()

    async def _played(self) -> Raw:
        workflows = self._compose()
        await self._start()
        commands = []
        for command in self.scenario["commands"]:
            await asyncio.sleep(BETWEEN)
            entry = {"op": command["op"], **await self.outcome(command)}
            entry |= {
                "calls_after": len(self.world.calls),
                "events_after": len(self.events),
                "stored": await self._stored(),
            }
            commands.append(entry)
        await until_quiet(self.engine, max=LAST_SETTLE)
        final = await self._stored()
        at_work = sum(call["ended"] is None for call in self.world.calls)
        return numbered(
            {
                "workflows": workflows,
                "commands": commands,
                "events": self.events,
                "handler_events": self.handler_events,
                "subscribers": self.subscribers,
                "calls": self.world.calls,
                "background_errors": self.background + self.log.failures,
                "logs": self.log.lines,
                "pending_at_end": {"handlers_running": at_work},
                "final": final,
            }
        )

    def _in_the_background(self, _: object, context: Mapping[str, Any]) -> None:
        self.background.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _compose(self) -> list[Raw]:
        composed: dict[str, Any] = {}
        told = []
        for spec in self.scenario["workflows"]:
            entry: Raw = {"workflow": spec["id"], "error": None}
            try:
                with self.registry.scope():
                    made = compose(spec, self.world, composed)
            except DefinitionError as error:
                entry["error"] = {"name": type(error).__name__, "message": error.message}
            else:
                composed[spec["id"]] = made
                entry |= record.definition(made.flow)
            told.append(entry)
        return told

    async def _start(self) -> None:
        await self.engine.start()
        self.scheduler = Scheduler(self.engine)
        await self.scheduler.start()
        for workflow in {spec["id"] for spec in self.scenario["workflows"]} & set(
            self.registry.ids()
        ):
            self.engine.subscribe(workflow, lambda event: self.events.append(record.event(event)))

    async def _stop(self) -> None:
        self.world.epoch += 1
        await self.scheduler.stop()
        await self.engine.shutdown(grace=0)

    async def _stored(self) -> list[Raw]:
        seen = {(event["workflow"], event["transaction_id"]) for event in self.events}
        return await record.stored(self.engine, self.store, seen)

    # --- commands --------------------------------------------------------------------------------

    async def outcome(self, command: Command) -> Raw:
        """Play one command; `returned`, `thrown` or `never_returned`."""
        task = asyncio.ensure_future(self._perform(command))
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        if not done:
            task.cancel()
            return {"never_returned": True}
        return task.result()

    async def _perform(self, command: Command) -> Raw:
        if command["op"] == "join":
            return await self.spawned[command["id"]]
        try:
            returned = await getattr(self, f"_{command['op']}")(command)
        except WfeError as error:
            return {"thrown": record.thrown(error)}
        except asyncio.CancelledError:
            return {"cut_off": True}
        if isinstance(returned, CommandResult):
            if returned.acknowledgement.reason is not None:
                return {"thrown": record.thrown(returned.acknowledgement.reason) | {"quiet": True}}
            return {"returned": record.result(command["op"], returned)}
        return {"returned": {} if returned is None else returned}

    def _options(self, command: Command) -> Raw:
        options = {key: command[key] for key in ("throw_on_error",) if key in command}
        if command.get("events"):
            options["events"] = lambda event: self.handler_events.append(
                record.handler_event(event)
            )
        return options

    async def _run(self, command: Command) -> CommandResult:
        options = self._options(command)
        for key in ("transaction_id", "run_id", "input", "log_on_error"):
            if key in command:
                options[key] = command[key]
        return await self.engine.run(command.get("workflow", ""), **options)

    async def _cancel(self, command: Command) -> CommandResult:
        return await self.engine.cancel(
            command["workflow"], command["transaction_id"], **self._options(command)
        )

    def _key(self, command: Command) -> StepKey | str:
        if "idempotency_key" in command:
            return str(command["idempotency_key"])
        key = StepKey(
            command["workflow"],
            command["transaction_id"],
            command["step"],
            _action(command.get("action", "invoke")),
        )
        return str(key) if command.get("as_key") else key

    async def _set_step_success(self, command: Command) -> CommandResult:
        response = command.get("response")
        if command.get("as_step_response"):
            response = StepResponse(response, compensate_with=command["compensate_with"])
        return await self.engine.set_step_success(
            self._key(command), response, **self._options(command)
        )

    async def _set_step_failure(self, command: Command) -> CommandResult:
        failure = command.get("response")
        if "error_message" in command:
            failure = type("Error", (Exception,), {})(command["error_message"])
        return await self.engine.set_step_failure(
            self._key(command),
            failure,
            force_permanent_failure=command.get("force_permanent_failure", False),
            **self._options(command),
        )

    async def _retry_step(self, command: Command) -> CommandResult:
        return await self.engine.retry_step(self._key(command), **self._options(command))

    async def _get_running_transaction(self, command: Command) -> Raw:
        found = await self.engine.get_running_transaction(
            command["workflow"], command["transaction_id"]
        )
        return record.running(found)

    async def _subscribe(self, command: Command) -> None:
        name = command["id"]
        told = self.subscribers.setdefault(name, [])

        def subscriber(event: Event) -> None:
            told.append(record.event(event))
            if "raises" in command:
                raise RuntimeError(command["raises"])

        self.functions[name] = subscriber
        self.engine.subscribe(
            command["workflow"],
            subscriber,
            transaction_id=command.get("transaction_id"),
            subscriber_id=None if command.get("anonymous") else name,
        )

    async def _unsubscribe(self, command: Command) -> None:
        name = command["id"]
        self.engine.unsubscribe(
            command["workflow"],
            self.functions[name] if command.get("by_function") else name,
            transaction_id=command.get("transaction_id"),
        )

    async def _list_executions(self, command: Command) -> Raw:
        where: Raw = {
            field: {"$in": wanted} if isinstance(wanted, list) and field != "$or" else wanted
            for field, wanted in command["filters"].items()
        }
        order = [
            f"{'-' if direction == 'desc' else ''}{'created_at' if field == 'id' else field}"
            for field, direction in command.get("order", {"id": "asc"}).items()
        ]
        found = await self.engine.list_executions(
            where.pop("q", ""),
            where,
            order_by=order,
            limit=command.get("take"),
            offset=command.get("skip", 0),
        )
        return record.listed(found)

    async def _clear_expired(self, command: Command) -> None:
        await self.engine.clear_expired()

    async def _sleep(self, command: Command) -> None:
        await asyncio.sleep(command["seconds"])

    async def _settle(self, command: Command) -> Raw:
        return {"settled": await until_quiet(self.engine, max=command["max"])}

    async def _concurrent(self, command: Command) -> Raw:
        tasks = [asyncio.ensure_future(self._perform(each)) for each in command["ops"]]
        return {"results": list(await asyncio.gather(*tasks))}

    async def _spawn(self, command: Command) -> None:
        self.spawned[command["id"]] = asyncio.ensure_future(self._perform(command["do"]))
        await asyncio.sleep(0)

    async def _shutdown(self, command: Command) -> None:
        await self._stop()

    async def _restart(self, command: Command) -> None:
        await self._stop()
        self.engine = self._engine()
        await self._start()

    async def _unregister(self, command: Command) -> None:
        self.engine.unregister(command["workflow"])


def _action(name: str) -> Action:
    """The action of that name; one that does not exist as it is, for the engine to refuse."""
    return Action(name) if name in {*Action} else cast("Action", name)


_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


def numbered(raw: Raw) -> Raw:
    """The record with generated ids as ULID1, ULID2, … in order of appearance."""
    names: dict[str, str] = {}
    text = json.dumps(raw, ensure_ascii=False)
    text = _ID.sub(lambda found: names.setdefault(found[0], f"ULID{len(names) + 1}"), text)
    renamed: Raw = json.loads(text)
    return renamed


async def _play(scenario: Mapping[str, Any], store: CheckpointStore) -> Raw:
    return await Player(scenario, store).play()


def play(
    scenario: Mapping[str, Any], store: StoreKind = "memory", within: Path | None = None
) -> Raw:
    """Our record of a scenario, on a store of its own; its database is made `within` a folder."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        # The runner's own `run` sees to Ctrl-C, and in doing so has the whole scenario put into words.
        run = runner.get_loop().run_until_complete
        if store == "memory":
            return run(_play(scenario, MemoryStore()))
        from wfe.store.sqlite import SQLiteStore

        with tempfile.TemporaryDirectory(dir=within) as folder:
            path = Path(folder) / "wfe.db"
            return run(_play(scenario, SQLiteStore(path, synchronous="normal")))
