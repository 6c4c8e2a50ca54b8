"""`on_finish`: a command that is told of ends, after the result is out, and what the timeline says of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.forking import Forked
from tests.project import Project

#: Appends what it is told to `told` in its folder.
TELL = """
import json, os, sys

document = json.load(sys.stdin)
names = ("WFE_EXECUTION", "WFE_STATE", "WFE_ENDING", "WFE_ON_FINISH")
document["environment"] = {name: os.environ.get(name) for name in names}
with open("told", "a") as file:
    file.write(json.dumps(document) + "\\n")
"""

SICK = """
import sys

print("no such user", "the mail is lost", sep="\\n", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def flows(flows: Project) -> Project:
    flows.write("tell.py", TELL)
    flows.write("sick.py", SICK)
    set_up(flows, f'on_finish = ["{sys.executable}", "tell.py"]')
    return flows


def set_up(project: Project, *lines: str) -> None:
    project.write("wfe.toml", "\n".join(lines))


def told(project: Project) -> list[dict[str, Any]]:
    file = project.root / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def notices(project: Project, key: str) -> list[dict[str, Any]]:
    entries = project.wfe("executions", "events", key, "-o", "json").document
    return [entry for entry in entries if entry["kind"] == "notice"]


FAILS = ("-i", '{"gift": false, "fail": "charge"}')


def test_a_failure_is_told_with_all_that_an_operator_asks_for(flows: Project) -> None:
    ended = flows.wfe("run", "order", *FAILS, "--tx", "0042")
    assert ended.code == 10
    (document,) = told(flows)
    assert document["key"] == "order:0042"
    assert (document["workflow"], document["transaction"]) == ("order", "0042")
    assert (document["state"], document["ending"]) == ("reverted", "reverted")
    assert (document["exit_code"], document["result"]) == (10, None)
    assert document["errors"][0]["error"]["message"] == "the gateway is down"
    assert document["created"] <= document["started"] <= document["ended"]
    assert document["show"] == f"wfe executions show order:0042 --db {flows.db}"
    assert document["environment"] == {
        "WFE_EXECUTION": "order:0042",
        "WFE_STATE": "reverted",
        "WFE_ENDING": "reverted",
        "WFE_ON_FINISH": "off",
    }
    shown = flows.wfe(*document["show"].split()[1:], "-o", "json").document
    assert (shown["run"], shown["id"]) == (document["run"], document["id"])


def test_the_timeline_says_who_was_told(flows: Project) -> None:
    flows.wfe("run", "order", *FAILS, "--tx", "0042")
    (notice,) = notices(flows, "order:0042")
    assert notice["detail"] == f"{sys.executable} tell.py"
    assert notice["error"] is None
    assert (
        "its end is told"
        in flows.wfe("executions", "events", "order:0042", "--color", "always").out
    )
    assert flows.wfe("executions", "show", "order:0042", "--at", str(notice["number"])).code == 0
    assert flows.wfe("db", "check").code == 0


def test_what_is_done_is_told_only_where_that_is_asked_for(flows: Project) -> None:
    assert flows.wfe("run", "echo", "-i", "1").code == 0
    assert told(flows) == []
    set_up(flows, f'on_finish = "{sys.executable} tell.py"', 'on_finish_for = "all"')
    assert flows.wfe("run", "echo", "-i", '{"a": [1]}').code == 0
    (document,) = told(flows)
    assert (document["ending"], document["result"]) == ("done", {"a": [1]})


def test_what_has_run_out_of_time_is_told_as_that(flows: Project) -> None:
    assert flows.wfe("run", "late").code == 12
    (document,) = told(flows)
    assert (document["state"], document["ending"]) == ("reverted", "timed_out")
    assert document["exit_code"] == 12


def test_a_cancel_is_no_failure(flows: Project) -> None:
    assert flows.wfe("run", "publish", "-i", "1", "--tx", "r1", "--until", "waiting").code == 20
    assert flows.wfe("executions", "cancel", "publish:r1").code == 0
    assert told(flows) == []


def test_a_command_that_fails_changes_nothing_and_is_in_the_timeline(flows: Project) -> None:
    set_up(flows, f'on_finish = "{sys.executable} sick.py"')
    ended = flows.wfe("run", "order", *FAILS, "--tx", "0042")
    assert ended.code == 10
    (notice,) = notices(flows, "order:0042")
    message = notice["error"]["error"]["message"]
    assert message == f"{sys.executable} ended with 3: no such user\nthe mail is lost"
    assert "the mail is lost" in ended.err
    assert flows.wfe("executions", "resume").code == 0
    assert len(notices(flows, "order:0042")) == 1


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-command-here", "no-such-command-here cannot be run: No such file or directory"),
        ("sh -c 'kill -9 $$'", "sh was killed by signal 9"),
    ],
)
def test_a_command_that_cannot_run_is_in_the_timeline(
    flows: Project, command: str, why: str
) -> None:
    set_up(flows, f'on_finish = "{command}"')
    assert flows.wfe("run", "order", *FAILS, "--tx", "0042").code == 10
    (notice,) = notices(flows, "order:0042")
    assert notice["error"]["error"]["message"] == why


def test_a_command_that_takes_too_long_is_killed(flows: Project) -> None:
    set_up(flows, 'on_finish = "sleep 60"', "on_finish_timeout = 0.05")
    assert flows.wfe("run", "order", *FAILS, "--tx", "0042").code == 10
    (notice,) = notices(flows, "order:0042")
    assert notice["error"]["error"]["message"] == "sleep was killed after 0.05 seconds"


def test_no_shell_reads_the_command(flows: Project) -> None:
    set_up(flows, 'on_finish = "touch $HOME;made *"')
    flows.wfe("run", "order", *FAILS)
    assert (flows.root / "$HOME;made").exists()
    assert (flows.root / "*").exists()


def test_a_command_that_leaves_something_behind_is_not_waited_for(flows: Project) -> None:
    set_up(flows, """on_finish = ["sh", "-c", "sleep 60 & echo $! > left"]""")
    assert flows.wfe("run", "order", *FAILS, "--tx", "0042").code == 10
    (notice,) = notices(flows, "order:0042")
    assert notice["error"] is None
    os.kill(int((flows.root / "left").read_text()), signal.SIGKILL)


def test_it_runs_in_the_root_of_the_project_when_the_result_is_out(flows: Project) -> None:
    flows.write(
        "slow.py", "import pathlib, sys, time; pathlib.Path('began').touch(); time.sleep(60)"
    )
    set_up(flows, f'on_finish = "{sys.executable} slow.py"', 'on_finish_for = "all"')
    deep = flows.root / "deep"
    deep.mkdir()
    command = ["run", "echo", "-i", "1"]
    with Forked(command, cwd=deep, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"1\n"
        while not (flows.root / "began").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    assert running.returncode == 0
    assert b"wfe executions resume" in said
    (key,) = (each["key"] for each in flows.wfe("executions", "list", "-o", "json").document)
    assert notices(flows, key) == []
    set_up(flows, f'on_finish = "{sys.executable} tell.py"')
    assert flows.wfe("executions", "resume").code == 0
    assert [document["key"] for document in told(flows)] == [key]


def test_the_environment_may_say_it_or_forbid_it(
    flows: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_ON_FINISH", "off")
    flows.wfe("run", "order", *FAILS)
    assert told(flows) == []
    monkeypatch.setenv("WFE_ON_FINISH", f"{sys.executable} tell.py")
    monkeypatch.setenv("WFE_ON_FINISH_FOR", "failed,timed_out")
    flows.wfe("run", "order", *FAILS)
    assert told(flows) == []
    monkeypatch.setenv("WFE_ON_FINISH_FOR", "reverted")
    flows.wfe("run", "order", *FAILS)
    assert len(told(flows)) == 1


OWN = """
from pathlib import Path

from wfe import OnFinish, PermanentStepFailure, WorkflowResponse, step, workflow

@step
def break_down(value):
    raise PermanentStepFailure("broken")

@step
def note(what):
    with Path("noted").open("a") as file:
        file.write(f"{what['key']} {what['ending']} {what['errors'][0]['error']['message']}\\n")
    if Path("sick").exists():
        raise PermanentStepFailure("the note is lost")

@workflow("notify")
def notify(what):
    note(what)

@workflow("quiet", on_finish=False)
def quiet(value):
    break_down(value)

@workflow("loud", on_finish=OnFinish(notify))
def loud(value):
    break_down(value)

@workflow("outer", on_finish="workflow:notify")
def outer(value):
    loud.as_step(value)
"""


def test_a_workflow_may_say_for_itself_who_is_told(flows: Project) -> None:
    flows.write("workflows/own.py", OWN)
    flows.wfe("run", "quiet", "-i", "1")
    ended = flows.wfe("run", "loud", "-i", "1", "--tx", "t1")
    assert (ended.code, told(flows)) == (10, [])
    assert (flows.root / "noted").read_text() == "loud:t1 reverted broken\n"
    (notice,) = notices(flows, "loud:t1")
    assert notice["detail"] == "workflow:notify"
    listed = flows.wfe("executions", "list", "-w", "notify", "-o", "json").document
    assert [each["status"] for each in listed] == ["done"]


def test_nobody_is_told_of_the_end_of_what_tells(flows: Project) -> None:
    flows.write("workflows/own.py", OWN)
    flows.write("sick", "")
    assert flows.wfe("run", "loud", "-i", "1").code == 10
    listed = flows.wfe("executions", "list", "-w", "notify", "-o", "json").document
    assert [each["status"] for each in listed] == ["reverted"]
    assert told(flows) == []


def test_of_a_family_the_outermost_end_alone_is_told(flows: Project) -> None:
    flows.write("workflows/own.py", OWN)
    assert flows.wfe("run", "outer", "-i", "1", "--tx", "t1").code == 10
    assert (flows.root / "noted").read_text() == "outer:t1 reverted broken\n"


def test_an_unknown_workflow_is_in_the_timeline(flows: Project) -> None:
    set_up(flows, 'on_finish = "workflow:notfy"')
    assert flows.wfe("run", "order", *FAILS, "--tx", "0042").code == 10
    (notice,) = notices(flows, "order:0042")
    assert "notfy" in notice["error"]["error"]["message"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('on_finish = ""', "the command is empty"),
        ('on_finish = "mail \'ops"', "is no command: no closing quotation"),
        ("on_finish = 3", "3 is no command"),
        ('on_finish = "workflow:a:b"', "names no workflow"),
        ('on_finish_for = ["broken"]', "'broken' is none of done, reverted"),
        ("on_finish_timeout = 0", "0 is no time at all"),
    ],
)
def test_settings_that_mean_nothing_are_refused(flows: Project, line: str, why: str) -> None:
    set_up(flows, line)
    ended = flows.wfe("config")
    assert ended.code == 2
    assert why in ended.err


def test_the_settings_are_shown(flows: Project) -> None:
    set_up(flows, "on_finish = \"mail -s 'it failed' ops\"", 'on_finish_for = "done, failed"')
    settings = flows.wfe("config", "-o", "json").document["settings"]
    assert settings["on_finish"]["value"] == ["mail", "-s", "it failed", "ops"]
    assert settings["on_finish_for"]["value"] == ["done", "failed"]
    assert settings["on_finish_timeout"]["value"] == 60
    assert "mail -s 'it failed' ops" in flows.wfe("config", "--color", "always").out
