"""`wfe schedule` and `wfe schedules list|show|ticks|pause|resume|delete|trigger|backfill`."""

from __future__ import annotations

import asyncio
import json
import re
import select
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.project import Ended, Project, until
from wfe import Schedule
from wfe.clock import SystemClock
from wfe.scheduling.plan import Plan
from wfe.store import owners
from wfe.store.ledger import Claim, Settlement
from wfe.store.sqlite import SQLiteStore

JOBS = """
import pathlib
import time

from wfe import Schedule, StepContext, WorkflowResponse, step, workflow

HERE = pathlib.Path(__file__).parent.parent

@step
def work(ctx: StepContext) -> str:
    (HERE / "begun").touch()
    while (HERE / "slow").exists():
        time.sleep(0.01)
    if (HERE / "broken").exists():
        raise RuntimeError("no disk")
    return str(ctx.scheduled_for)

@workflow("nightly", schedule="0 3 * * *")
def nightly():
    return WorkflowResponse(work())

@step
def echo(value):
    return value

@workflow("echo")
def echoing(value):
    return WorkflowResponse(echo(value))

@workflow("typed")
def typed(value: int):
    return WorkflowResponse(echo(value))
"""

TICK = datetime(2026, 3, 1, 3, tzinfo=UTC)
NIGHTLY = Schedule(cron="0 3 * * *")


@pytest.fixture
def jobs(project: Project) -> Project:
    project.write("workflows/jobs.py", JOBS)
    return project


@pytest.fixture
def nightly(jobs: Project) -> Project:
    """Two ticks of the schedule `nightly`: one was passed over, the other one fired."""
    asyncio.run(_fill(jobs))
    assert jobs.wfe("run", "nightly", "--tx", "sched-nightly-20260302T030000.000Z").code == 0
    return jobs


async def _fill(project: Project) -> None:
    store = SQLiteStore(project.db, synchronous="normal")
    await store.open()
    owner = owners.claim()
    await store.peers.hold(owner)
    begin = TICK - timedelta(hours=1)
    plan = Plan("nightly", "nightly", NIGHTLY, anchor=begin, source="/srv/jobs.py")
    await store.ledger.register([plan.registration], owner=owner, now=begin)
    second = TICK + timedelta(days=1)
    missed = Claim(
        schedule="nightly",
        scheduled_for=TICK,
        state="skipped",
        reason="missed",
        transaction_id=plan.transaction_id(TICK),
    )
    due = Claim(
        schedule="nightly",
        scheduled_for=second,
        state="due",
        owner=owner,
        transaction_id=plan.transaction_id(second),
    )
    late = second + timedelta(seconds=5)
    await store.ledger.claim([missed, due], now=late)
    (tick, _) = store.ledger.ticks("nightly")
    await store.ledger.settle([Settlement(tick=tick, state="fired")], now=late)
    await store.peers.release(owner)
    owners.release(owner)
    await store.close()


@pytest.fixture
def held(nightly: Project) -> Iterator[str]:
    """It is served by a process that lives, which is this one."""
    store = SQLiteStore(nightly.db, synchronous="normal")
    owner = owners.claim()

    async def hold() -> None:
        await store.open()
        await store.peers.hold(owner)
        plan = Plan("nightly", "nightly", NIGHTLY, anchor=TICK)
        await store.ledger.register([plan.registration], owner=owner, now=TICK)
        often = Plan("often", "echo", Schedule(interval=60.0), anchor=TICK, origin="command")
        await store.ledger.register(
            [often.registration],
            owner=owner,
            now=SystemClock().now(),
        )

    with asyncio.Runner() as runner:
        runner.run(hold())
        yield owner
        runner.run(store.close())
    owners.release(owner)


def test_schedules_are_told_on_a_day_that_the_last_year_does_not_have(
    nightly: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda clock: datetime(2028, 2, 29, tzinfo=UTC))
    [told] = nightly.wfe("schedules", "list", "-o", "json").document
    assert told["next"] == "2028-02-29T03:00:00.000Z"


def test_the_list_tells_next_and_last_ticks(nightly: Project) -> None:
    (line,) = nightly.wfe("schedules", "list").lines
    name, workflow, timing, status, upcoming, last = line.split("\t")
    assert (name, workflow, timing, status) == ("nightly", "nightly", "0 3 * * * in UTC", "idle")
    assert upcoming.endswith("T03:00:00.000Z")
    assert last == "2026-03-02T03:00:00.000Z"
    (document,) = nightly.wfe("schedules", "list", "-o", "json").document
    assert (document["fired"], document["last_state"]) == (1, "fired")
    assert nightly.wfe("schedules", "list", "-o", "key").lines == ["nightly"]


def test_without_schedules_it_says_where_they_come_from(project: Project) -> None:
    ended = project.wfe("schedules", "list")
    assert (ended.code, ended.out) == (0, "")
    assert "wfe serve" in ended.err
    assert project.wfe("schedules", "list", "-o", "json").document == []


def test_show_tells_definition_and_ticks(nightly: Project) -> None:
    document = nightly.wfe("schedules", "show", "nightly", "-o", "json").document
    assert document["definition"]["cron"] == "0 3 * * *"
    assert (document["status"], document["holder"], document["fired"]) == ("idle", None, 1)
    assert len(document["upcoming"]) == 5
    assert [tick["state"] for tick in document["ticks"]] == ["fired", "skipped"]
    assert "timing\t0 3 * * * in UTC" in nightly.wfe("schedules", "show", "nightly").lines


def test_ticks_tell_what_became_of_each(nightly: Project) -> None:
    fired, missed = nightly.wfe("schedules", "ticks", "nightly").lines
    key = "nightly:sched-nightly-20260302T030000.000Z"
    assert fired.split("\t")[:6] == ["2026-03-02T03:00:00.000Z", "fired", "", "5.0", key, "done"]
    assert missed.split("\t")[:3] == ["2026-03-01T03:00:00.000Z", "skipped", "missed"]
    assert nightly.wfe("schedules", "ticks", "nightly", "-o", "key").lines == [key]
    assert len(nightly.wfe("schedules", "ticks", "nightly", "--limit", "1").lines) == 1
    assert nightly.wfe("schedules", "ticks", "nightly", "--limit", "0").code == 2


@pytest.mark.parametrize("width", [60, 100])
def test_a_person_sees_the_same(
    nightly: Project, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    listed = nightly.wfe("schedules", "list", "--color", "always").out
    assert "SCHEDULE" in listed
    assert all(word in listed for word in ("nightly", "idle", "if served", "fired"))
    shown = nightly.wfe("schedules", "show", "nightly", "--color", "always").out
    assert all(word in shown for word in ("Next", "TICK", "done", "skipped missed", "5.0s"))


def test_what_does_not_fire_as_it_is_says_so(nightly: Project) -> None:
    def shown(command: str, *name: str) -> str:
        return nightly.wfe("schedules", command, *name, "--color", "always").out

    assert "if served" in shown("list")
    assert "not as it is, but with:  wfe serve\n" in shown("show", "nightly")
    nightly.wfe("schedules", "pause", "nightly")
    assert "if resumed" in shown("list")
    assert "not as it is, but with:  wfe schedules resume nightly\n" in shown("show", "nightly")


def test_what_is_served_fires_without_a_condition(nightly: Project, held: str) -> None:
    listed = nightly.wfe("schedules", "list", "--color", "always").out
    assert "serving" in listed
    assert "if " not in listed


def test_an_unknown_name_is_3_with_near_names(nightly: Project) -> None:
    for command in ("show", "ticks", "pause", "resume", "trigger"):
        ended = nightly.wfe("schedules", command, "nightyl", "-o", "json")
        assert ended.code == 3
        assert "Did you mean nightly?" in ended.document["error"]["message"]
    assert nightly.wfe("schedules", "delete", "nightyl", "-y").code == 3


def test_a_pause_lasts_until_it_is_resumed(nightly: Project) -> None:
    def status() -> str:
        document = nightly.wfe("schedules", "show", "nightly", "-o", "json").document
        return str(document["status"])

    assert nightly.wfe("schedules", "pause", "nightly").err == "Paused: nightly.\n"
    assert status() == "paused"
    resumed = nightly.wfe("schedules", "resume", "nightly", "-o", "json")
    assert resumed.document == {"ok": True, "key": "nightly"}
    assert status() == "idle"


def test_delete_forgets_a_schedule_and_leaves_its_executions(nightly: Project) -> None:
    assert nightly.wfe("schedules", "delete", "nightly").code == 2  # nobody can be asked
    assert nightly.wfe("schedules", "delete", "nightly", "-y").code == 0
    assert nightly.wfe("schedules", "list", "-o", "key").lines == []
    assert len(nightly.wfe("executions", "list").lines) == 1


def test_delete_refuses_what_is_served(nightly: Project, held: str) -> None:
    ended = nightly.wfe("schedules", "delete", "nightly", "-y")
    assert ended.code == 4
    assert f"{owners.described(held).capitalize()} serves" in ended.err
    assert "wfe schedules pause nightly" in ended.err


def test_trigger_runs_it_now_and_prints_the_result(nightly: Project) -> None:
    before = datetime.now(UTC)
    ended = nightly.wfe("schedules", "trigger", "nightly")
    assert ended.code == 0
    assert before <= datetime.fromisoformat(ended.document) <= datetime.now(UTC)
    last = nightly.wfe("schedules", "ticks", "nightly", "-o", "json").document[0]
    assert (last["kind"], last["state"], last["outcome"]) == ("manual", "fired", "done")
    (nightly.root / "broken").touch()
    assert nightly.wfe("schedules", "trigger", "nightly").code == 10


@pytest.mark.parametrize("command", ["ticks", "show"])
def test_keys_of_executions_stay_whole_on_a_narrow_terminal(
    nightly: Project, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = nightly.wfe("schedules", command, "nightly", "--color", "always").out
    assert "\n    nightly:sched-nightly-20260302T030000.000Z\n" in out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert all(len(line) <= 60 for line in plain.splitlines() if " " in line.strip())


def test_backfill_runs_what_has_no_execution(nightly: Project) -> None:
    span = ("--from", "2026-03-01", "--to", "2026-03-03T12:00Z")
    moments = ["2026-03-01T03:00:00.000Z", "2026-03-03T03:00:00.000Z"]

    def of(ended: Ended) -> list[str]:
        return [line.split("\t")[0] for line in ended.lines]

    planned = nightly.wfe("schedules", "backfill", "nightly", *span, "--dry-run")
    assert of(planned) == moments
    refused = nightly.wfe("schedules", "backfill", "nightly", *span)
    assert (refused.code, "begin 2 executions" in refused.err) == (2, True)
    ended = nightly.wfe("schedules", "backfill", "nightly", *span, "-y")
    assert (ended.code, of(ended)) == (0, moments)
    assert {line.split("\t")[2] for line in ended.lines} == {"done"}
    again = nightly.wfe("schedules", "backfill", "nightly", *span, "-y")
    assert (again.code, again.out) == (0, "")
    assert "There are no ticks of nightly without an execution then." in again.err
    planned = nightly.wfe("schedules", "backfill", "nightly", *span, "--dry-run")
    assert (planned.code, planned.out, planned.err) == (0, "", again.err)


def test_backfill_tells_of_each_execution_when_it_has_ended(nightly: Project) -> None:
    blocked = 'while ctx.scheduled_for.day == 26 and not (HERE / "go").exists()'
    nightly.write("workflows/jobs.py", JOBS.replace('while (HERE / "slow").exists()', blocked))
    span = ("--from", "2026-02-25T00:00Z", "--to", "2026-02-26T12:00Z")
    with nightly.start("schedules", "backfill", "nightly", *span, "-y") as process:
        assert process.stdout is not None
        has_come, _, _ = select.select([process.stdout], [], [], 20)
        first = process.stdout.readline() if has_come else ""
        (nightly.root / "go").touch()
        second = process.stdout.read()
    assert first.startswith("2026-02-25T03:00:00.000Z")
    assert second.startswith("2026-02-26T03:00:00.000Z")
    assert process.returncode == 0


def test_a_backfill_that_is_interrupted_ends_and_is_finished_by_the_next(nightly: Project) -> None:
    (nightly.root / "slow").touch()
    (nightly.root / "begun").unlink()
    span = ("--from", "2026-02-25", "--to", "2026-02-26T12:00Z")
    fill = ("schedules", "backfill", "nightly", *span, "-y")
    process = nightly.start(*fill)
    try:
        until((nightly.root / "begun").exists)
        process.send_signal(signal.SIGINT)
        (nightly.root / "slow").unlink()
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "What is left is begun by wfe serve, or with: wfe schedules backfill nightly" in err
    told = [line.split("\t") for line in nightly.wfe(*fill).lines]
    assert [(moment, status) for moment, _, status, _ in told] == [
        ("2026-02-26T03:00:00.000Z", "done")
    ]


def test_schedule_runs_so_often_and_ends(jobs: Project) -> None:
    ended = jobs.wfe(
        "schedule", "echo", "--every", "0.1s", "--max", "2", "-i", "1", "--log-format", "json"
    )
    assert (ended.code, ended.out) == (0, "")
    told = [json.loads(line) for line in ended.err.splitlines()]
    assert [each["state"] for each in told if each["event"] == "finish"] == ["done", "done"]
    assert len([each for each in told if each["event"] == "tick"]) == 2
    again = jobs.wfe("schedule", "echo", "--every", "0.1s", "--max", "2", "-i", "1")
    assert again.code == 0
    assert "has run 2 times already" in again.err
    assert len(jobs.wfe("executions", "list").lines) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["echo", "-i", "1"], "either --cron or --every"),
        (["echo", "-i", "1", "--cron", "* * * * *", "--every", "1s"], "either --cron or --every"),
        (["echo", "-i", "1", "--cron", "0 0 31 2 *"], "no day 31 in February"),
        (["echo", "-i", "1", "--cron", ""], "--cron is empty"),
        (["echo", "-i", "1", "--cron", "@daily", "--tz", "Mars/Base"], "no time zone"),
        (["echo", "-i", "1", "--cron", "@daily", "--tz", ""], "error: --tz is empty"),
        (["echo", "-i", "1", "--cron", "@daily", "--name", ""], "cannot be the name of a schedule"),
        (["echo", "-i", "1", "--every", "soon"], "--every"),
        (["echo", "-i", "1", "--every", "0"], "a millisecond at least"),
        (["echo", "-i", "1", "--every", "1s", "--max", "0"], "from 1 on"),
        (["echo", "-i", "1", "--every", "1s", "--overlap", "x"], "skip, allow"),
        (["echo", "-i", "1", "--every", "1s", "--catch-up", "x"], "none, last, all"),
        (["echo", "-i", "1", "--every", "1s", "--log-format", "x"], "text, json"),
        (["echo", "-i", "1", "--every", "1s", "--name", "a:b"], "name of a schedule"),
        (["typed", "-i", '"x"', "--every", "1s"], "value"),
        (["nightly", "--every", "1s"], "the workflow's own schedule"),
        (["echo", "-i", "1", "--every", "1s", "--name", "nightly"], "own schedule of another"),
    ],
)
def test_what_cannot_be_scheduled_is_2(jobs: Project, arguments: list[str], said: str) -> None:
    ended = jobs.wfe("schedule", *arguments)
    assert ended.code == 2
    assert said in ended.err
    assert not jobs.db.exists()


def test_a_second_one_of_a_name_says_who_holds_it(nightly: Project, held: str) -> None:
    other = nightly.wfe("schedule", "echo", "--every", "5s", "-i", "1", "--name", "often")
    assert other.code == 2
    assert f"The {owners.described(held)} holds the schedule often: echo, @every 60s" in other.err
    assert "--name NAME" in other.err


def test_the_name_of_a_workflows_own_schedule_stays_its_own_where_it_is_not_loaded(
    nightly: Project,
) -> None:
    flows = 'from wfe import step, workflow\n@step\ndef s(): ...\n@workflow("w")\ndef w(): s()\n'
    nightly.write("other.py", flows)
    ended = nightly.wfe("schedule", "other.py:w", "--every", "1s", "--name", "nightly")
    assert (ended.code, "own schedule of another workflow" in ended.err) == (2, True)


def test_an_expression_that_may_not_be_meant_is_told_before_it_runs(jobs: Project) -> None:
    arguments = ("echo", "-i", "1", "--cron", "*/7 * * * * *", "--max", "1")
    ended = jobs.wfe("schedule", *arguments, "--log-format", "json")
    assert ended.code == 0
    told = [json.loads(line) for line in ended.err.splitlines()]
    events = [each["event"] for each in told]
    assert events.index("note") < events.index("tick")
    assert "'*/7' in the seconds is uneven" in told[events.index("note")]["message"]


def test_serving_nothing_is_2(project: Project) -> None:
    ended = project.wfe("serve")
    assert ended.code == 2
    assert "There is no workflow to serve" in ended.err
