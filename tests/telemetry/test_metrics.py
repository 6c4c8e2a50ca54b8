"""What Prometheus is told: counted here, or read from the store when it asks."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from wfe import Engine, Recording, Registry, StepContext, step, workflow
from wfe.errors import StoreBusy, WfeError
from wfe.store.contract import Reader
from wfe.store.ledger import Claim, Registration, Tick
from wfe.store.memory import MemoryStore
from wfe.telemetry.metrics import Address, Metrics
from wfe.testing import VirtualClock, VirtualLoop

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
ANY = Address("127.0.0.1", 0)

Samples = dict[tuple[str, ...], float]


def metrics(store: MemoryStore | None = None) -> Metrics:
    reader = None if store is None else store.reader
    return Metrics(lambda: nullcontext(reader), started_at=NOW)


_LABELS = ("workflow", "schedule", "step", "action", "state", "outcome", "queue", "le")


def scraped(metrics: Metrics) -> Samples:
    """Every sample, by its name and the values of its labels."""
    return read(generate_latest(metrics.registry).decode())


def read(text: str) -> Samples:
    return {
        (sample.name, *(sample.labels[each] for each in _LABELS if each in sample.labels)): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@contextmanager
def flows() -> Iterator[Registry]:
    with Registry().scope() as registry:

        @step
        async def slow() -> None:
            await asyncio.sleep(2)

        @slow.compensate
        async def undo(value: Any) -> None:
            await asyncio.sleep(20)

        @step(async_=True)
        async def ask() -> None: ...

        @step(max_retries=1)
        async def flaky(ctx: StepContext) -> None:
            await asyncio.sleep(ctx.attempt / 10)
            raise OSError("no luck")

        @workflow("asking")
        def asking() -> None:
            slow()
            ask()

        @workflow("failing")
        def failing() -> None:
            slow()
            flaky()

        @workflow("sleeping", timeout=1000.0)
        def sleeping() -> None:
            ask()

        yield registry


def play(use: Callable[[Engine], Any]) -> Samples:
    """What is told after an engine was used, on virtual time."""
    store = MemoryStore()
    counted = metrics(store)

    async def main() -> None:
        with flows() as registry:
            engine = Engine(
                store=store,
                clock=VirtualClock(),
                registry=registry,
                recording=Recording.EVERY_STEP,
                retention_time=1e6,
            )
        async with engine:
            for name in registry.ids():
                engine.subscribe(name, counted.on_event)
            await use(engine)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    return scraped(counted)


def test_executions_are_counted_by_workflow_and_state() -> None:
    async def use(engine: Engine) -> None:
        for _ in range(3):
            await engine.run("asking")
        await engine.run("failing", throw_on_error=False)

    told = play(use)
    assert told["wfe_executions", "asking", "invoking"] == 3
    assert told["wfe_executions", "failing", "reverted"] == 1
    assert told["wfe_store_readable",] == 1


def test_queues_are_those_who_run_wait_and_are_due() -> None:
    async def use(engine: Engine) -> None:
        await engine.run("asking")
        await engine.run("asking")
        accepting = Engine(
            store=engine.store, registry=engine.registry, recording=Recording.EVERY_STEP
        )
        accepting.hold_back()
        await accepting.run("asking", transaction_id="t1", until="stored")

    told = play(use)
    depths = {key[1]: count for key, count in told.items() if key[0] == "wfe_queue_depth"}
    assert depths == {"running": 0, "waiting": 2, "sleeping": 0, "due": 1, "owed": 0}


def test_ticks_that_are_owed_are_counted() -> None:
    store = MemoryStore()

    async def owe() -> None:
        registration = Registration(
            name="job", workflow_id="job", origin="workflow", timing="@hourly", definition=b"{}"
        )
        await store.ledger.register([registration], owner="x", now=NOW)
        claims = [
            Claim(
                schedule="job",
                scheduled_for=NOW + timedelta(hours=hour),
                state="due",
                transaction_id=f"t{hour}",
            )
            for hour in range(3)
        ]
        await store.ledger.claim(claims, now=NOW)

    asyncio.run(owe())
    assert scraped(metrics(store))["wfe_queue_depth", "owed"] == 3


def test_durations_of_steps_are_those_of_their_attempts_and_undos() -> None:
    async def use(engine: Engine) -> None:
        await engine.run("failing", throw_on_error=False)

    told = play(use)
    sums = {key[1:]: value for key, value in told.items() if key[0].endswith("_seconds_sum")}
    counts = {key[1:]: value for key, value in told.items() if key[0].endswith("seconds_count")}
    assert sums == {
        ("failing", "slow", "invoke"): 2,
        ("failing", "flaky", "invoke"): pytest.approx(0.3),
        ("failing", "slow", "compensate"): 20,
    }
    assert counts["failing", "flaky", "invoke"] == 2
    assert told["wfe_step_duration_seconds_bucket", "failing", "slow", "invoke", "1.0"] == 0
    assert told["wfe_step_duration_seconds_bucket", "failing", "slow", "invoke", "5.0"] == 1


def test_a_step_that_waits_for_an_answer_took_as_long_as_its_function() -> None:
    async def use(engine: Engine) -> None:
        await engine.run("asking", transaction_id="t1")
        await asyncio.sleep(500)
        await engine.set_step_success("asking:t1:ask:invoke", until="finished")

    told = play(use)
    assert told["wfe_step_duration_seconds_sum", "asking", "ask", "invoke"] == 0
    assert told["wfe_step_duration_seconds_count", "asking", "ask", "invoke"] == 1


def tick(**changes: Any) -> Tick:
    facts: dict[str, Any] = {"state": "fired", "decided_at": NOW + timedelta(seconds=3)} | changes
    return Tick(schedule="nightly", scheduled_for=NOW, transaction_id="t", **facts)


def test_ticks_are_counted_by_what_became_of_them_and_those_that_run_by_their_lateness() -> None:
    counted = metrics()
    told = [tick(), tick(), tick(state="skipped", reason="overlap"), tick(state="error")]
    for each in (*told, tick(kind="backfill")):
        counted.on_tick(each)
    samples = scraped(counted)
    outcomes = {key[2]: value for key, value in samples.items() if key[0] == "wfe_ticks_total"}
    assert outcomes == {"fired": 3, "overlap": 1, "error": 1}
    assert samples["wfe_tick_lateness_seconds_count", "nightly"] == 2
    assert samples["wfe_tick_lateness_seconds_sum", "nightly"] == 6


def test_what_serves_is_told_and_since_when_at_the_address() -> None:
    with metrics().served(ANY) as address, urllib.request.urlopen(str(address)) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        told = read(answer.read().decode())
    assert told["process_start_time_seconds",] == NOW.timestamp()
    assert told["wfe_build_info",] == 1
    with pytest.raises(OSError, match="refused"), urllib.request.urlopen(str(address)):
        pass


def test_a_store_that_cannot_be_read_costs_only_what_is_in_it() -> None:
    def open_reader() -> Any:
        raise StoreBusy("locked")

    counted = Metrics(open_reader, started_at=NOW)
    counted.on_tick(tick())
    told = scraped(counted)
    assert told["wfe_store_readable",] == 0
    assert told["wfe_ticks_total", "nightly", "fired"] == 1
    assert not any(key[0] == "wfe_executions" for key in told)


def test_nothing_is_read_before_somebody_asks() -> None:
    opened: list[Reader | None] = []

    def open_reader() -> Any:
        opened.append(None)
        return nullcontext(None)

    counted = Metrics(open_reader, started_at=NOW)
    counted.on_tick(tick())
    assert opened == []
    scraped(counted)
    assert opened == [None]


def test_an_address_that_is_taken_is_refused_in_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = Address(*taken.getsockname())
        with pytest.raises(WfeError) as refusal, metrics().served(address):
            pass
    assert refusal.value.message == f"Metrics cannot be had at {address}: Address already in use."
    assert refusal.value.exit_code == 1


def test_an_address_of_version_6_is_written_in_brackets() -> None:
    assert str(Address("::1", 9464)) == "http://[::1]:9464/metrics"
