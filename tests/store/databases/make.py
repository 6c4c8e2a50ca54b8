"""Makes a database of executions in every condition, as the wfe that runs this writes it, and beside
it what that wfe says of it: `v<schema>.db.xz` and `v<schema>.json` in the folder that is named.

    python tests/store/databases/make.py FOLDER

The tests run the same workflows (`registry`) to carry on with what such a file holds: a change of
their steps is a change of all the files. Time is made up, and the host is called HOST, so that a file
does not depend on where and when it was made; the random ids in it do.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from wfe import (
    Engine,
    PermanentStepFailure,
    Recording,
    Registry,
    Schedule,
    WorkflowResponse,
    parallel,
    sleep,
    step,
    when,
    workflow,
)
from wfe.scheduling.plan import Plan
from wfe.store import owners
from wfe.store.contract import ExecutionSummary, Query, Reader
from wfe.store.database import open_reader
from wfe.store.ledger import Claim, Settlement
from wfe.store.migrations import MIGRATIONS
from wfe.store.sqlite import SQLiteStore

#: What the host is called on which a file was made.
HOST = "elsewhere"

#: Set in the environment of a process that is to die at work.
_DIES = "MAKE_DIES"

PAYLOAD = {"text": 'é € 🚀 "quoted" \\ and\nmore; ' * 180, "numbers": [1, 2.5, 2**70], "none": None}

#: Transaction ids that a hurried query would mistake.
ODD_IDS = (
    "a:b",
    ":",
    "order:rocket:x",
    "[/b]",
    "é",
    "e\u0301",
    "👨‍👩‍👧",
    "שלום",
    "x" * 300,
    "-leading",
    "trailing ",
    "%",
    "_",
    "*",
    "a'b\"c",
)

registry = Registry()

with registry.scope():

    @step
    def echo(value: Any) -> Any:
        return value

    @workflow("echo")
    def echoing(value: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(echo(value))

    @step
    def reserve(order: dict[str, Any]) -> str:
        return "stock"

    @reserve.compensate
    def release(stock: str | None) -> None:
        pass

    @step(max_retries=1)
    def charge(order: dict[str, Any]) -> str:
        if order.get("fail") == "charge":
            raise RuntimeError("the gateway is down")
        return "receipt"

    @charge.compensate
    def refund(receipt: str | None) -> None:
        if receipt == "receipt":
            raise RuntimeError("the gateway is down for good")

    @step
    def wrap(stock: str) -> str:
        return "paper"

    @step
    def ship(order: dict[str, Any]) -> str:
        if order.get("fail") == "ship":
            raise PermanentStepFailure("no truck today")
        return "shipped"

    @workflow("order")
    def ordering(order: dict[str, Any]) -> WorkflowResponse[Any]:
        stock, receipt = parallel(reserve(order), charge(order))
        with when(order["gift"], name="gift"):
            wrap(stock)
        return WorkflowResponse({"stock": stock, "receipt": receipt, "sent": ship(order)})

    @step(async_=True)
    def approve(version: Any) -> None:
        return None

    @workflow("release")
    def releasing(version: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(echo(approve(version)))

    @workflow("two-answers")
    def two_answers() -> None:
        parallel(approve.config(name="left")(1), approve.config(name="right")(2))

    @workflow("child")
    def child(value: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(approve(value))

    @workflow("parent")
    def parent(value: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(echo(child.as_step(value)))

    @workflow("nap")
    def nap() -> WorkflowResponse[str]:
        sleep(7 * 24 * 3600.0)
        return WorkflowResponse(echo("rested"))

    @step(max_retries=3, retry_interval=3600.0)
    def call_again(value: Any) -> Any:
        raise RuntimeError("nobody is in")

    @workflow("call")
    def call(value: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(call_again(value))

    @step
    def deadly(value: Any) -> Any:
        if os.environ.get(_DIES):
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    @workflow("deadly")
    def dying(value: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(deadly(echo.config(name="first")(value)))

    @workflow("once", idempotent=True, retention_time=3600.0)
    def once(value: Any) -> WorkflowResponse[Any]:
        return WorkflowResponse(echo(value))


class MadeUpClock:
    """A second passes whenever it is asked; nothing is ever waited for."""

    def __init__(self, hour: int) -> None:
        self._now = datetime(2026, 5, 1, hour, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    async def sleep_until(self, moment: datetime) -> None:
        await asyncio.Event().wait()


def engine_on(file: Path, *, hour: int) -> Engine:
    return Engine(
        store=SQLiteStore(file),
        clock=MadeUpClock(hour),
        registry=registry,
        recording=Recording.EVERY_STEP,
    )


async def fill(file: Path) -> None:
    """Executions that have ended, and such as wait or sleep."""
    async with engine_on(file, hour=12) as engine:

        async def run(workflow: str, transaction_id: str, value: Any = None) -> None:
            await engine.run(
                workflow,
                value,
                transaction_id=transaction_id,
                until="waiting",
                throw_on_error=False,
            )

        await run("order", "done", {"gift": True})
        await run("order", "skipped", {"gift": False})
        await run("order", "reverted", {"gift": True, "fail": "charge"})
        await run("order", "failed", {"gift": True, "fail": "ship"})
        await run("echo", "large", PAYLOAD)
        await run("echo", "again", 1)
        await run("echo", "again", 2)
        for number, transaction_id in enumerate(ODD_IDS):
            await run("echo", transaction_id, number)
        await run("once", "kept", 1)
        await run("release", "waiting", "1.0")
        await run("release", "answered", "1.1")
        await engine.set_step_success("release:answered:approve:invoke", {"by": "kim"})
        await run("release", "refused", "1.2")
        await engine.set_step_failure(
            "release:refused:approve:invoke", "not today", throw_on_error=False
        )
        await run("release", "cancelled", "1.3")
        await engine.cancel("release", "cancelled", throw_on_error=False)
        await run("two-answers", "waiting")
        await run("two-answers", "half")
        await engine.set_step_success("two-answers:half:left:invoke", 1)
        await run("parent", "waiting", "p")
        await run("parent", "done", "q")
        (waiting,) = [
            item.key
            for item in await engine.list_executions(where={"workflow_id": "child"})
            if "parent:done" in str(item.parent_step_idempotency_key)
        ]
        await engine.set_step_success(f"{waiting}:approve:invoke", "yes")
        await engine.run("nap", transaction_id="sleeping")
        await engine.run("call", 1, transaction_id="retrying")


#: A schedule that has fired, was passed over, and was claimed by a process that is gone.
NIGHTLY = Schedule(cron="0 3 * * *", input=1)


async def serve(file: Path) -> None:
    """A schedule, and what became of its ticks."""
    begin = datetime(2026, 4, 27, 12, tzinfo=UTC)
    plan = Plan("nightly", "echo", NIGHTLY, anchor=begin, origin="command")
    ticks = list(plan.timetable.between(begin, begin + timedelta(days=4)))
    async with engine_on(file, hour=12) as engine:
        ledger = engine.store.ledger
        owner = owners.claim()
        await ledger.register([plan.registration], owner=owner, now=begin)

        def claim(tick: datetime, **fields: Any) -> Claim:
            return Claim(
                schedule=plan.name,
                scheduled_for=tick,
                transaction_id=plan.transaction_id(tick),
                timing=plan.timing,
                **{"state": "due", "owner": owner, **fields},
            )

        passed_over = {"state": "skipped", "reason": "missed", "owner": None}
        first, missed, claimed = claim(ticks[0]), claim(ticks[1], **passed_over), claim(ticks[2])
        await ledger.claim([first], now=ticks[0])
        (tick,) = ledger.ticks(plan.name)
        await ledger.settle([Settlement(tick=tick, state="fired")], now=ticks[0])
        await ledger.claim([missed, claimed], now=ticks[2])


async def die(file: Path) -> None:
    """One whose process ends while a step is at work."""
    async with engine_on(file, hour=13) as engine:
        await engine.run("deadly", "value", transaction_id="interrupted")


def described(file: Path) -> list[dict[str, Any]]:
    """What a file holds, as the wfe that made it says; in the order of creation."""
    with open_reader(file) as reader:
        return [description(reader, item) for item in reader.list(Query(order_by=("created_at",)))]


def description(reader: Reader, item: ExecutionSummary) -> dict[str, Any]:
    """What an execution is known by, and what it has come to."""
    execution = reader.load(item.key, item.run_id)
    assert execution is not None
    return {
        "key": str(item.key),
        "run": item.run_id,
        "state": str(item.state),
        "status": item.status,
        "parent": item.parent_step_idempotency_key,
        "input": _text(execution.input),
        "result": _text(execution.result),
        "errors": [error.message for error in execution.head.errors],
        "events": len(reader.timeline(item.execution_id)),
        "steps": {
            name: [
                str(record.invoke),
                str(record.compensate),
                record.awaiting,
                _text(record.output),
            ]
            for name, record in execution.steps.items()
        },
    }


def _text(value: bytes | None) -> str | None:
    """A value's JSON; of a long one its hash."""
    if value is None or len(value) < 200:
        return None if value is None else value.decode()
    return f"sha256 {sha256(value).hexdigest()}"


def main(folder: Path) -> None:
    name = f"v{MIGRATIONS[-1].version}"
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "wfe.db")
        asyncio.run(fill(file))
        asyncio.run(serve(file))
        doomed = [sys.executable, sys.argv[0], str(file)]
        ended = subprocess.run(doomed, env={**os.environ, _DIES: "1"}, check=False)
        assert ended.returncode == -signal.SIGKILL
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM")
        lines = ",\n".join(map(json.dumps, described(file)))
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n")
        content = lzma.compress(file.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        (folder / f"{name}.db.xz").write_bytes(content)


if __name__ == "__main__":
    platform.node = lambda: HOST
    if os.environ.get(_DIES):
        asyncio.run(die(Path(sys.argv[1])))
    main(Path(sys.argv[1]))
