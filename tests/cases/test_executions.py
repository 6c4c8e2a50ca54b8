"""What goes wrong for people who run durable steps, from public bug reports of tools of this field,
as neutral inputs with the right outcome: executions and steps. The numbers are those of the collection.
"""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project
from wfe import Engine, Recording, StepContext, Workflow, parallel, step, workflow
from wfe.authoring.registry import Registry
from wfe.model import ExecutionState
from wfe.store.sqlite import SQLiteStore
from wfe.testing import VirtualEngine, crash_everywhere, run_to_end

calls: list[str] = []


@pytest.fixture(autouse=True)
def registry() -> Any:
    calls.clear()
    with Registry().scope() as registry:
        yield registry


def test_case_e1_a_sweep_leaves_an_execution_that_waits_longer_than_its_retention() -> None:
    @step(async_=True)
    async def ask() -> None: ...

    @workflow("asking", retention_time=1)
    def asking() -> Any:
        return ask()

    with VirtualEngine() as engine:
        engine.run(asking, transaction_id="t1")
        engine.advance(5)
        assert engine.call(engine.inner.clear_expired()) == 0
        assert engine.answer("ask", "yes").result == "yes"
        engine.advance(2)
        assert engine.call(engine.inner.clear_expired()) == 1


def test_case_e2_the_last_of_three_attempts_is_what_a_person_sees(project: Project) -> None:
    project.write(
        "workflows/flaky.py",
        """
        from wfe import step, workflow

        @step(max_retries=2)
        def flaky(ctx) -> None:
            raise OSError(f"try {ctx.attempt} failed")

        @workflow
        def always():
            flaky()
        """,
    )
    ended = project.wfe("run", "always", "--tx", "t1")
    assert ended.code == 10
    shown = project.wfe("executions", "show", "t1", "-o", "json").document
    (error,) = shown["errors"]
    raised = error["error"]
    assert (raised["name"], raised["message"], error["attempts"]) == ("OSError", "try 3 failed", 3)
    assert 'raise OSError(f"try {ctx.attempt} failed")' in raised["stack"]
    assert "attempt 3" in ended.err


def test_case_e3_the_undo_of_the_step_that_failed_is_called_once_with_none_and_may_return() -> None:
    @step
    async def charge() -> None:
        raise ValueError("no money")

    @charge.compensate
    async def refund(receipt: Any) -> str:
        calls.append(f"refund {receipt}")
        return "nothing to refund"

    @workflow("order")
    def order() -> None:
        charge()

    assert run_to_end(order).state == "reverted"
    assert calls == ["refund None"]


def test_case_e4_a_reverted_id_runs_again_and_a_second_start_is_attached(tmp_path: Path) -> None:
    go = asyncio.Event()

    @step
    async def charge(good: bool) -> str:
        calls.append("charge")
        if not good:
            raise ValueError("no money")
        await go.wait()
        return "paid"

    @workflow("order")
    def order(good: bool) -> Any:
        return charge(good)

    async def main() -> None:
        store = SQLiteStore(tmp_path / "wfe.db")
        async with Engine(store=store, recording=Recording.EVERY_STEP) as engine:
            options: dict[str, Any] = {"transaction_id": "t1", "throw_on_error": False}
            first = await engine.run(order, False, **options)
            assert first.acknowledgement.has_failed
            again = [
                asyncio.create_task(engine.run(order, True, until="finished", **options))
                for _ in range(2)
            ]
            go.set()
            outcomes = [await each for each in again]
            assert [outcome.acknowledgement.reason for outcome in outcomes] == [None, None]
            assert [outcome.result for outcome in outcomes] == ["paid", "paid"]
            listed, count = await engine.list_and_count_executions()
            assert count == 2
            assert [str(each.state) for each in listed] == ["done", "reverted"]

    asyncio.run(main())
    assert calls == ["charge", "charge"]


def test_case_e5_two_different_workflows_of_one_name_are_refused_with_both_places(
    project: Project,
) -> None:
    one = """
        from wfe import step, workflow

        @step
        def first(): ...

        @workflow("same")
        def same():
            first()
        """
    project.write("workflows/one.py", one)
    project.write("workflows/two.py", one.replace("first", "second"))
    refused = project.execute("run", "same")
    assert refused.code == 2
    assert "one.py" in refused.err
    assert "two.py" in refused.err
    project.write("workflows/two.py", "from one import same\n")
    assert project.execute("run", "same").code == 0


def test_case_e6_a_step_that_times_out_under_continue_lets_the_rest_run() -> None:
    @step(timeout=1, continue_on_permanent_failure=True)
    async def slow() -> str:
        await asyncio.sleep(5)
        return "late"

    @step
    async def last() -> str:
        return "done"

    @workflow("patient")
    def patient() -> Any:
        slow()
        return last()

    run = run_to_end(patient)
    assert (run.state, run.result) == ("done", "done")


def test_case_e7_a_cancel_between_two_retries_undoes_each_step_once() -> None:
    @step
    async def reserve() -> str:
        return "stock"

    @reserve.compensate
    async def release(stock: Any) -> None:
        calls.append(f"release {stock}")

    @step(async_=True, max_retries=5, retry_interval=60)
    async def charge() -> None:
        raise OSError("busy")

    @charge.compensate
    async def refund(receipt: Any) -> None:
        calls.append(f"refund {receipt}")

    @workflow("order")
    def order() -> None:
        reserve()
        charge()

    with VirtualEngine() as engine:
        engine.run(order, transaction_id="t1")
        engine.advance(61)
        assert engine.cancel(order, "t1").state == "reverted"
        engine.advance(600)
    assert calls == ["refund None", "release stock"]


def test_case_e8_blocking_steps_side_by_side_see_each_its_own_context() -> None:
    together = threading.Barrier(5, timeout=10)

    @step
    def who(ctx: StepContext) -> list[str]:
        together.wait()
        return [ctx.idempotency_key, ctx.step_name]

    @workflow("five")
    def five() -> Any:
        return list(parallel([who.config(name=f"who-{n}")() for n in range(5)]))

    run = run_to_end(five, transaction_id="t1")
    assert run.result == [[f"five:t1:who-{n}:invoke", f"who-{n}"] for n in range(5)]


def test_case_e10_a_comment_may_be_edited_and_an_inserted_step_is_refused_with_a_diff(
    project: Project,
) -> None:
    code = """
        from wfe import step, workflow

        @step
        def build() -> str:
            return "1.2"

        @step(async_=True)
        def approve() -> None: ...

        @workflow
        def release():
            version = build()
            approve()
            return version
        """
    project.write("workflows/release.py", code)
    assert project.execute("run", "release", "--tx", "t1", "--until", "waiting").code == 20
    added = "@step\n        def lint() -> None: ...\n\n        @workflow"
    inserted = code.replace("@workflow", added).replace(
        "version = build()", "lint(); version = build()"
    )
    project.write("workflows/release.py", inserted)
    refused = project.execute("step", "succeed", "t1")
    assert refused.code == 4
    assert "+ lint" in refused.err
    assert "--allow-changed" in refused.err
    project.write("workflows/release.py", code.replace("return version", "return version  # here"))
    answered = project.execute("step", "succeed", "t1")
    assert (answered.code, answered.out) == (0, '"1.2"\n')


def test_case_e13_a_resumed_run_hands_over_the_same_value_as_the_first() -> None:
    seen: list[Any] = []
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)

    @step
    async def now() -> datetime:
        return moment

    @step
    async def typed(value: datetime) -> None:
        seen.append(value)

    @step
    async def untyped(value: Any) -> None:
        seen.append(value)

    @workflow("times")
    def times() -> None:
        value = now()
        typed(value)
        untyped(value)

    for run in crash_everywhere(times):
        assert run.state == "done"
    assert {str(value) for value in seen if isinstance(value, datetime)} == {str(moment)}
    assert {value for value in seen if not isinstance(value, datetime)} == {"2026-03-01T12:00:00Z"}


class Needy(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (Needy(7, "full"), "Needy", "7: full"),
        (Mute("x"), "Mute", ""),
        (ExceptionGroup("both", [ValueError("a"), KeyError("b")]), "ExceptionGroup", "both"),
        (SystemExit(3), "SystemExit", "3"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("in_thread", [False, True], ids=["coroutine", "thread"])
def test_case_e14_whatever_a_step_raises_is_recorded_and_the_loop_survives(
    error: BaseException, name: str, message: str, in_thread: bool
) -> None:
    run = run_to_end(_raising(error, in_thread))
    assert run.state == str(ExecutionState.REVERTED)
    (record,) = run.outcome.errors
    assert record.name == name
    assert message in record.message
    assert record.stack is not None
    assert "raise error" in record.stack


def _raising(error: BaseException, in_thread: bool) -> Workflow[Any, Any]:
    if in_thread:

        @step
        def raising() -> None:
            raise error
    else:

        @step
        async def raising() -> None:
            raise error

    @workflow("raising")
    def body() -> None:
        raising()

    return body
