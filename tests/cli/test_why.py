"""`wfe executions why`: for every state an execution can be in, a sentence and the way out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.project import Project
from wfe.cli.app import whole

WAITING = """
from wfe import PermanentStepFailure, parallel, sleep, step, workflow


@step
def reserve() -> str:
    return "stock"


@reserve.compensate
def release(stock):
    pass


@step(async_=True, timeout=7200)
def approve() -> None:
    return None


@workflow("asks", timeout=86400)
def asks():
    reserve()
    approve()


@step(async_=True, auto_retry=False, max_retries=3)
def fragile() -> None:
    raise ValueError("not this time")


@workflow("parks")
def parks():
    fragile()


@workflow("sleeps")
def sleeps():
    sleep(3 * 86400, name="three-days")


@step(max_retries=2, retry_interval=3600)
def flaky() -> None:
    raise ConnectionError("the gateway is down")


@workflow("retries")
def retries():
    flaky()


@workflow("parent")
def parent():
    reserve()
    asks.as_step()


@workflow("grandparent")
def grandparent():
    parent.as_step()


@workflow("parent-of-sleeper")
def parent_of_sleeper():
    sleeps.as_step()


@step
def fail() -> None:
    raise PermanentStepFailure("no truck today")


@step(compensate_async=True)
def book() -> str:
    return "booked"


@book.compensate
def unbook(booking) -> None:
    return None


@workflow("undoes")
def undoes():
    book()
    fail()


@workflow("passes-over")
def passes_over():
    fail.config(name="first", continue_on_permanent_failure=True)()
    reserve()


@workflow("fails")
def fails():
    reserve()
    fail.config(name="last")()


@workflow("too-late", timeout=0.05)
def late():
    approve.config(timeout=None)()


@step
def build() -> str:
    return "a wall"


@build.compensate
def unbuild(wall):
    raise RuntimeError("it cannot be unbuilt")


@workflow("broken-wall")
def walls():
    build()
    fail()
"""


@pytest.fixture(scope="module")
def stored(shared: Project) -> Project:
    """An execution `tx` of each workflow, left where it does not go on by itself."""
    shared.write("workflows/waiting.py", WAITING)
    for name in ("asks", "parks", "parent", "grandparent", "undoes", "passes-over", "fails"):
        shared.wfe("run", name, "--tx", "tx", "--until", "waiting")
    for name in ("too-late", "broken-wall"):
        shared.wfe("run", name, "--tx", "tx")
    for name in ("sleeps", "retries", "parent-of-sleeper"):
        shared.wfe("run", name, "--tx", "tx", "--timeout", "0.3")
    return shared


def why(project: Project, key: str) -> dict[str, Any]:
    ended = project.wfe("executions", "why", key, "-o", "json")
    assert ended.code == 0, ended.err
    document: dict[str, Any] = ended.document
    return document


def told(document: dict[str, Any]) -> str:
    return " ".join(document["why"])


@pytest.mark.parametrize(
    ("workflow", "kind", "step", "sentence", "way"),
    [
        ("asks", "answer", "approve:invoke", "approve waits for an answer", "step succeed"),
        (
            "parks",
            "parked",
            "fragile:invoke",
            r"fragile has failed \(attempt 1 of 4\)",
            "step retry",
        ),
        (
            "sleeps",
            "sleep",
            "three-days:invoke",
            "three-days sleeps, and wakes in (2d23h|3d00h) ",
            None,
        ),
        ("retries", "retry", "flaky:invoke", "it is tried again in (59m..s|1h00m) ", "step retry"),
        ("undoes", "answer", "book:compensate", "The undo of book waits", "step succeed"),
    ],
)
def test_what_an_execution_waits_for(
    stored: Project, workflow: str, kind: str, step: str, sentence: str, way: str | None
) -> None:
    document = why(stored, f"{workflow}:tx")
    (cause,) = document["waits"]
    assert (cause["kind"], cause["key"]) == (kind, f"{workflow}:tx:{step}")
    assert re.search(sentence, cause["why"])
    assert cause["since"].endswith("Z")
    commands = [one["command"] for one in cause["commands"]]
    assert any(f"wfe {way} {cause['key']}" in command for command in commands) or way is None
    assert bool(commands) is (way is not None)


def test_timers_are_told_the_first_one_first(stored: Project) -> None:
    timers = why(stored, "asks:tx")["timers"]
    assert [timer["what"] for timer in timers] == [
        "approve runs out of time",
        "the workflow runs out of time, and all is undone",
    ]
    assert timers[0]["at"] < timers[1]["at"]


def test_where_nobody_is_there_to_wake_it_that_is_told(stored: Project) -> None:
    for workflow in ("sleeps", "retries"):
        document = why(stored, f"{workflow}:tx")
        assert document["is_held"] is False
        assert document["held_by"].startswith("nobody")
        assert "Nobody is there to see to what comes next" in told(document)
        assert document["commands"][0]["does"] == "carry it on"


@pytest.mark.parametrize("workflow", ["asks", "parks", "sleeps", "parent-of-sleeper", "undoes"])
def test_no_process_is_said_to_be_gone_where_none_has_left_anything_at_work(
    stored: Project, workflow: str
) -> None:
    document = why(stored, f"{workflow}:tx")
    assert document["held_by"] == "nobody: it rests in the database"
    assert not any(word in told(document) for word in ("is gone", "went away"))


def test_the_last_error_is_told(stored: Project) -> None:
    assert why(stored, "retries:tx")["error"]["error"]["message"] == "the gateway is down"
    assert why(stored, "asks:tx")["error"] is None


def test_a_parent_is_followed_down_to_what_its_child_waits_for(stored: Project) -> None:
    (cause,) = why(stored, "grandparent:tx")["waits"]
    assert (cause["kind"], cause["child"]["key"]) == ("child", "parent:parent-as-step-tx")
    (below,) = cause["child"]["waits"]
    lowest = below["child"]
    assert lowest["key"] == "asks:asks-as-step-parent-as-step-tx"
    assert lowest["waits"][0]["key"] == f"{lowest['key']}:approve:invoke"
    shown = stored.wfe("executions", "why", "grandparent:tx").out
    assert f"wfe step succeed {lowest['key']}:approve:invoke --response JSON" in shown


def test_a_step_that_runs_a_workflow_is_not_offered_to_be_answered(stored: Project) -> None:
    shown = [line.split("\t") for line in stored.wfe("executions", "show", "parent:tx").lines]
    assert ["child", "asks:asks-as-step-tx", "asks-as-step"] in shown
    assert "waiting" not in [line[0] for line in shown]
    ran = stored.wfe("run", "parent", "--tx", "again", "--until", "waiting")
    assert ran.code == 20
    assert ran.err.endswith(
        "asks-as-step waits for asks:asks-as-step-again: wfe executions why asks:asks-as-step-again\n"
    )


def test_a_child_names_its_parent(stored: Project) -> None:
    document = why(stored, "asks:asks-as-step-tx")
    assert document["parent"] == "parent:tx:asks-as-step:invoke"
    assert "It is the child of parent:tx:asks-as-step:invoke." in told(document)


def test_what_is_being_undone_says_because_of_what(stored: Project) -> None:
    assert "because fail failed: no truck today" in told(why(stored, "undoes:tx"))


@pytest.mark.parametrize(
    ("workflow", "sentences", "way"),
    [
        (
            "passes-over",
            ["It is done.", "first failed, and the workflow went on without"],
            "result",
        ),
        (
            "fails",
            ["It failed at last: no truck today.", "All that it had done was undone"],
            "retry",
        ),
        ("too-late", ["It took longer than 0.1s, its limit.", "was undone"], "retry"),
        (
            "broken-wall",
            [
                "It failed at fail: no truck today.",
                "The undo of build failed: RuntimeError: it cannot be unbuilt.",
                "What build did is still there: a person has to look at it.",
            ],
            "retry",
        ),
    ],
)
def test_a_finished_execution_says_how_it_ended(
    stored: Project, workflow: str, sentences: list[str], way: str
) -> None:
    document = why(stored, f"{workflow}:tx")
    for sentence in sentences:
        assert sentence in told(document)
    assert (document["waits"], document["timers"], document["held_by"]) == ([], [], None)
    assert any(f" {way} " in one["command"] for one in document["commands"])


def test_a_cancelled_execution_says_so(stored: Project) -> None:
    stored.wfe("run", "asks", "--tx", "given-up", "--until", "waiting")
    assert stored.wfe("executions", "cancel", "asks:given-up").code == 0
    assert "It was cancelled" in told(why(stored, "asks:given-up"))


def commands_in(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        if "command" in document:
            yield document["command"]
        for value in document.values():
            yield from commands_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from commands_in(value)


@pytest.mark.parametrize(
    "workflow", ["asks", "parks", "sleeps", "retries", "parent", "broken-wall", "too-late"]
)
def test_every_command_that_is_offered_exists(stored: Project, workflow: str) -> None:
    offered = list(commands_in(why(stored, f"{workflow}:tx")))
    assert offered
    for command in offered:
        wfe, group, name, *arguments = shlex.split(command)
        found = whole().commands[group].commands[name]
        options = {option for parameter in found.params for option in parameter.opts}
        assert wfe == "wfe"
        assert {word for word in arguments if word.startswith("--")} <= options


def test_in_a_pipe_it_is_lines_of_words(stored: Project) -> None:
    lines = [line.split("\t") for line in stored.wfe("executions", "why", "asks:tx").lines]
    assert lines[0] == ["key", "asks:tx"]
    assert lines[1] == ["status", "waiting"]
    (waits,) = [line for line in lines if line[0] == "waits"]
    assert waits[1:3] == ["answer", "asks:tx:approve:invoke"]
    assert {line[0] for line in lines} == {
        "key",
        "status",
        "why",
        "waits",
        "command",
        "held",
        "timer",
    }


@pytest.mark.parametrize("columns", [60, 100])
def test_for_a_person_sentences_are_broken_between_words_and_commands_are_whole(
    stored: Project, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = stored.wfe("executions", "why", "parent:tx", "--color", "always").out
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    key = "asks:asks-as-step-tx:approve:invoke"
    assert re.search(f"it succeeded\\s+wfe step succeed {key} --response JSON\n", plain)
    prose = [line for line in plain.split("\n") if "wfe " not in line and key not in line]
    assert all(len(line) <= columns for line in prose)


def test_where_a_command_has_no_room_beside_what_it_does_it_stands_below(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["executions", "why", "asks:tx"], ["step", "show", "asks:tx:approve"]):
        monkeypatch.setenv("COLUMNS", "60")
        plain = re.sub(r"\x1b\[[\d;]*m", "", stored.wfe(*words, "--color", "always").out)
        below = plain.splitlines()
        (failed,) = [number for number, line in enumerate(below) if line.strip() == "it failed"]
        indent = len(below[failed]) - len(below[failed].lstrip()) + 2
        command = "wfe step fail asks:tx:approve:invoke --error REASON"
        assert below[failed + 1] == " " * indent + command
        monkeypatch.setenv("COLUMNS", "100")
        plain = re.sub(r"\x1b\[[\d;]*m", "", stored.wfe(*words, "--color", "always").out)
        assert f"it failed     {command}\n" in plain


def test_what_is_not_there_ends_with_3(stored: Project) -> None:
    ended = stored.wfe("executions", "why", "nope", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (3, "transaction_not_found")
