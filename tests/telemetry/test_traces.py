"""What OpenTelemetry is told: an execution is a trace, whoever drives it, and whenever."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from wfe import Engine, Recording, Registry, StepContext, WorkflowResponse, step, workflow
from wfe.errors import StoreBusy
from wfe.store.contract import CheckpointStore
from wfe.store.memory import MemoryStore
from wfe.telemetry.traces import Traces
from wfe.testing import VirtualClock, VirtualLoop


def flows() -> Registry:
    with Registry().scope() as registry:

        @step
        async def one() -> str:
            await asyncio.sleep(1)
            return "one"

        @one.compensate
        async def undo(value: Any) -> None:
            await asyncio.sleep(10)

        @step(max_retries=1)
        async def flaky(ctx: StepContext) -> str:
            await asyncio.sleep(1)
            if ctx.attempt == 1:
                raise OSError("no luck")
            return "luck"

        @step
        async def broken() -> None:
            raise ValueError("no use")

        @step(async_=True)
        async def ask() -> None: ...

        @workflow("good")
        def good() -> Any:
            one()
            return WorkflowResponse(flaky())

        @workflow("bad")
        def bad() -> None:
            one()
            broken()

        @workflow("grandchild")
        def grandchild() -> Any:
            return WorkflowResponse(one())

        @workflow("child")
        def child() -> Any:
            return WorkflowResponse(grandchild.as_step())

        @workflow("parent")
        def parent() -> Any:
            return WorkflowResponse(child.as_step())

        @workflow("asking")
        def asking() -> Any:
            one()
            return WorkflowResponse(ask())

        @workflow("waiting")
        def waiting() -> Any:
            return WorkflowResponse(asking.as_step())

    return registry


class World:
    """Processes, one after the other on one store, whose spans all arrive at one place."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self.store = MemoryStore()
        self.registry = flows()
        self.sampler = sampler
        self._arrived = InMemorySpanExporter()

    def play(self, *lives: Callable[[Engine], Coroutine[Any, Any, Any]]) -> None:
        """What each process does, one hour after the other. It ends without a word to anybody."""

        async def main() -> None:
            for life in lives:
                await self._live(life)
                await asyncio.sleep(3600)

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(main())

    async def _live(self, life: Callable[[Engine], Coroutine[Any, Any, Any]]) -> None:
        traces = Traces(self.provider(), open_reader=lambda: nullcontext(self.store.reader))
        async with self.engine(self.store) as engine:
            for name in self.registry.ids():
                engine.subscribe(name, traces.on_event)
            await life(engine)
            await engine.shutdown(grace=0)

    def engine(self, store: CheckpointStore) -> Engine:
        return Engine(
            store=store,
            clock=VirtualClock(),
            registry=self.registry,
            recording=Recording.EVERY_STEP,
        )

    def provider(self) -> TracerProvider:
        provider = TracerProvider(sampler=self.sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._arrived))
        return provider

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._arrived.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    @property
    def tree(self) -> dict[str, str | None]:
        """Each span, and the one that it is beneath."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return {
            span.name: names.get(span.parent.span_id, "lost") if span.parent else None
            for span in self.spans
        }

    @property
    def trace_ids(self) -> set[int]:
        return {span.context.trace_id for span in self.spans if span.context}


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


def run(name: str, **options: Any) -> Callable[[Engine], Coroutine[Any, Any, Any]]:
    return lambda engine: engine.run(
        name, transaction_id="t1", throw_on_error=False, until="finished", **options
    )


def test_an_execution_is_a_trace_and_each_attempt_a_span_of_it() -> None:
    world = World()
    world.play(run("good"))
    assert [span.name for span in world.spans] == [
        "one:invoke",
        "flaky:invoke",
        "flaky:invoke",
        "good",
    ]
    assert len(world.trace_ids) == 1
    assert world.tree == {"one:invoke": "good", "flaky:invoke": "good", "good": None}
    assert [seconds(span) for span in world.spans] == [1, 1, 1, 3]
    attempts = [dict(span.attributes or {}) for span in world.spans[1:3]]
    assert [each["wfe.attempt"] for each in attempts] == [1, 2]
    assert attempts[0]["wfe.idempotency_key"] == "good:t1:flaky:invoke"
    assert len({span.context.span_id for span in world.spans if span.context}) == 4


def test_how_it_ended_is_said_and_what_was_raised_is_recorded() -> None:
    world = World()
    world.play(run("bad"))
    broken, root, undo = (world.span(name) for name in ("broken:invoke", "bad", "one:compensate"))
    assert world.span("one:invoke").status.status_code is StatusCode.OK
    assert undo.status.status_code is StatusCode.OK
    assert seconds(undo) == 10
    for failed in (broken, root):
        assert failed.status.status_code is StatusCode.ERROR
        assert failed.status.description == "ValueError: no use"
        (event,) = failed.events
        told = dict(event.attributes or {})
        assert (event.name, told["exception.type"]) == ("exception", "ValueError")
        assert 'raise ValueError("no use")' in str(told["exception.stacktrace"])
    assert dict(root.attributes or {})["wfe.state"] == "reverted"


async def cancel(engine: Engine) -> None:
    await engine.cancel("good", "t1", wait=True, throw_on_error=False)


async def run_and_cancel(engine: Engine) -> None:
    await run("good")(engine)
    await cancel(engine)


@pytest.mark.parametrize("lives", [(run_and_cancel,), (run("good"), cancel)])
def test_what_is_undone_after_its_end_is_another_span(lives: Any) -> None:
    """Spans of one id are one to whoever shows them, and the other is lost."""
    world = World()
    world.play(*lives)
    undo = world.span("one:compensate")
    first, second = (span for span in world.spans if span.name == "good")
    assert first.context
    assert second.context
    assert second.parent
    assert undo.parent
    assert first.context.span_id != second.context.span_id
    assert (second.parent.span_id, undo.parent.span_id) == (
        first.context.span_id,
        second.context.span_id,
    )
    assert [seconds(span) for span in (first, second)] == [3, 10]
    assert len(world.trace_ids) == 1


def test_children_are_in_the_trace_beneath_the_attempt_that_began_them() -> None:
    world = World()
    world.play(run("parent"))
    assert len(world.trace_ids) == 1
    assert world.tree == {
        "one:invoke": "grandchild",
        "grandchild": "grandchild-as-step:invoke",
        "grandchild-as-step:invoke": "child",
        "child": "child-as-step:invoke",
        "child-as-step:invoke": "parent",
        "parent": None,
    }


def test_what_a_crash_has_cut_off_goes_on_in_the_same_trace() -> None:
    async def crash(engine: Engine) -> None:
        started = asyncio.ensure_future(run("good")(engine))
        await asyncio.sleep(1.5)
        started.cancel()

    world = World()
    world.play(crash, lambda engine: engine.resume("good", "t1", until="finished"))
    assert len(world.trace_ids) == 1
    assert world.tree == {"one:invoke": "good", "flaky:invoke": "good", "good": None}
    flaky = dict(world.span("flaky:invoke").attributes or {})
    assert flaky["wfe.attempt"] == 2
    assert seconds(world.span("good")) == pytest.approx(3602.5, abs=1)


def test_a_family_that_a_crash_has_cut_off_goes_on_as_one_trace() -> None:
    async def crash(engine: Engine) -> None:
        started = asyncio.ensure_future(run("parent")(engine))
        await asyncio.sleep(0.5)
        started.cancel()

    async def go_on(engine: Engine) -> None:
        await engine.recover()
        await engine.wait_for("parent", "t1")

    world = World()
    world.play(crash, go_on)
    assert len(world.trace_ids) == 1
    assert world.tree == {
        "one:invoke": "grandchild",
        "grandchild": "grandchild-as-step:invoke",
        "grandchild-as-step:invoke": "child",
        "child": "child-as-step:invoke",
        "child-as-step:invoke": "parent",
        "parent": None,
    }


def _kept(engine: Engine, workflow_id: str) -> str:
    (key,) = engine.store.reader.keys(workflow_id=workflow_id)
    return key.transaction_id


def test_an_answer_that_another_process_gives_ends_the_attempt_that_has_waited() -> None:
    world = World()
    world.play(
        lambda engine: engine.run("asking", transaction_id="t1"),
        lambda engine: engine.set_step_success("asking:t1:ask:invoke", "yes", until="finished"),
    )
    assert len(world.trace_ids) == 1
    assert world.tree == {"one:invoke": "asking", "ask:invoke": "asking", "asking": None}
    assert seconds(world.span("ask:invoke")) == 3600
    assert seconds(world.span("asking")) == 3601


def test_a_child_that_waits_alone_ends_in_the_trace_of_its_parent() -> None:
    async def begin(engine: Engine) -> None:
        await engine.run("waiting", transaction_id="t1")
        await asyncio.sleep(5)

    async def answer(engine: Engine) -> None:
        key = f"asking:{_kept(engine, 'asking')}:ask:invoke"
        await engine.set_step_success(key, "yes", until="finished")
        await engine.wait_for("waiting", "t1")

    world = World()
    world.play(begin, answer)
    assert len(world.trace_ids) == 1
    assert world.tree == {
        "one:invoke": "asking",
        "ask:invoke": "asking",
        "asking": "asking-as-step:invoke",
        "asking-as-step:invoke": "waiting",
        "waiting": None,
    }


def test_another_run_of_an_id_is_another_trace() -> None:
    world = World()
    world.play(run("bad"), run("bad"))
    assert len(world.trace_ids) == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_sampler_takes_whole_traces(seed: int) -> None:
    chance = random.Random(seed)
    world = World(TraceIdRatioBased(0.5))

    async def many(engine: Engine) -> None:
        for number in range(20):
            await engine.run("good", transaction_id=f"{seed}-{number}-{chance.random()}")

    world.play(many)
    by_trace: dict[int, int] = {}
    for span in world.spans:
        assert span.context is not None
        by_trace[span.context.trace_id] = by_trace.get(span.context.trace_id, 0) + 1
    assert 0 < len(by_trace) < 20
    assert set(by_trace.values()) == {4}


def test_ids_of_others_who_use_the_provider_are_left_to_chance() -> None:
    world = World()
    provider = world.provider()
    Traces(provider)
    others = [provider.get_tracer("other").start_span("x") for _ in range(2)]
    assert len({span.get_span_context().trace_id for span in others}) == 2


def test_tracing_that_is_switched_off_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    world = World()
    world.play(run("good"))
    assert world.spans == ()


def test_a_store_that_cannot_be_read_makes_a_poorer_trace_and_hinders_nothing() -> None:
    def busy() -> Any:
        raise StoreBusy("locked")

    world = World()

    async def answer(engine: Engine) -> None:
        traces = Traces(world.provider(), open_reader=busy)
        engine.subscribe("asking", traces.on_event, subscriber_id="poor")
        await engine.set_step_success("asking:t1:ask:invoke", "yes", until="finished")

    world.play(lambda engine: engine.run("asking", transaction_id="t1"), answer)
    assert len(world.trace_ids) == 1
    assert {seconds(span) for span in world.spans if span.name == "asking"} == {0, 3601}


def test_a_run_that_is_not_stored_is_a_trace_all_the_same() -> None:
    world = World()

    async def life(engine: Engine) -> None:
        async with Engine(clock=VirtualClock(), registry=world.registry) as plain:
            traces = Traces(world.provider())
            for name in world.registry.ids():
                plain.subscribe(name, traces.on_event)
            await plain.run("parent")

    world.play(life)
    assert len(world.trace_ids) == 1
    assert world.tree["grandchild"] == "grandchild-as-step:invoke"


def test_moments_are_exact_to_the_microsecond() -> None:
    world = World()

    async def late(engine: Engine) -> None:
        await asyncio.sleep(timedelta(microseconds=123_457).total_seconds())
        await engine.run("good")

    world.play(late)
    (root,) = [span for span in world.spans if span.name == "good"]
    assert root.start_time is not None
    assert root.start_time % 1_000_000_000 == 123_457_000
