"""`wfe workflows`: what was found, where it is, and what did not load."""

from __future__ import annotations

import re

import pytest

from tests.project import Project


def test_a_pipe_gets_name_steps_place_and_description(flows: Project) -> None:
    lines = [line.split("\t") for line in flows.wfe("workflows", "list").lines]
    assert [line[0] for line in lines] == [
        "echo",
        "late",
        "order",
        "publish",
        "two-answers",
        "wall",
    ]
    (order,) = [line for line in lines if line[0] == "order"]
    assert order[1] == "4"
    assert order[2].startswith("workflows/flows.py:")
    assert order[3] == "Reserve, charge, ship."


def test_what_does_not_load_is_told_the_others_are_listed_and_it_ends_with_2(
    flows: Project,
) -> None:
    flows.write("workflows/broken.py", "import nowhere")
    ended = flows.wfe("workflows", "list", "-o", "key")
    assert ended.code == 2
    assert "order" in ended.lines
    assert "workflows/broken.py:1: ModuleNotFoundError: No module named 'nowhere'" in ended.err
    document = flows.wfe("workflows", "list", "-o", "json").document
    assert document["error"]["code"] == "module_failed"
    assert "order" in [workflow["key"] for workflow in document["workflows"]]


def test_two_definitions_of_one_name_end_with_2_and_both_places(flows: Project) -> None:
    flows.write(
        "workflows/again.py",
        """
        from wfe import step, workflow

        @step
        def other() -> None: ...

        @workflow("order")
        def order():
            other()
        """,
    )
    for command in (["run", "order", "-p", "gift=true"], ["workflows", "list"]):
        ended = flows.wfe(*command)
        assert ended.code == 2
        assert "workflows/again.py:7" in ended.err
        assert "workflows/flows.py:" in ended.err
    assert not flows.db.exists()
    assert flows.wfe("run", "workflows/flows.py:order", "-p", "gift=true").code == 0


def test_show_gives_steps_options_input_and_place(flows: Project) -> None:
    document = flows.wfe("workflows", "show", "order", "-o", "json").document
    assert document["stages"] == [["reserve", "charge"], ["wrap"], ["ship"]]
    assert document["steps"]["charge"]["options"] == {"max_retries": 1}
    assert document["steps"]["charge"]["has_compensation"] is True
    assert document["steps"]["wrap"]["when"] == ["gift"]
    assert document["input"]["type"] == "object"
    assert document["source"].startswith(str(flows.root / "workflows/flows.py") + ":")


def test_show_in_a_pipe_is_tab_separated(flows: Project) -> None:
    lines = [line.split("\t") for line in flows.wfe("workflows", "show", "order").lines]
    assert ["key", "order"] in lines
    assert [line[1] for line in lines if line[0] == "step"] == ["reserve", "charge", "wrap", "ship"]


def test_show_tells_when_a_workflow_runs_by_itself(flows: Project) -> None:
    flows.write(
        "workflows/timed.py",
        """
        from wfe import Schedule, step, workflow

        @step
        def work() -> None: ...

        @workflow("nightly", schedule=Schedule(cron="0 3 * * *", timezone="Europe/London"))
        def nightly():
            work()

        @workflow("often", schedule=Schedule(interval=90))
        def often():
            work.config(name="work-often")()
        """,
    )
    document = flows.wfe("workflows", "show", "nightly", "-o", "json").document
    assert document["schedule"]["cron"] == "0 3 * * *"
    assert document["schedule"]["timezone"] == "Europe/London"
    assert flows.wfe("workflows", "show", "order", "-o", "json").document["schedule"] is None
    lines = flows.wfe("workflows", "show", "often").lines
    assert any(line.startswith("schedule\t{") and '"interval":90.0' in line for line in lines)
    shown = flows.wfe("workflows", "show", "nightly", "--color", "always").out
    assert "at 03:00 every day (0 3 * * * in Europe/London)" in re.sub(r"\s+", " ", shown)
    often = re.sub(r"\s+", " ", flows.wfe("workflows", "show", "often", "--color", "always").out)
    assert "every 1 minute 30 seconds (@every 90s)" in often


def test_on_a_terminal_the_input_is_a_line_for_each_field(flows: Project) -> None:
    flows.write(
        "workflows/typed.py",
        """
        from dataclasses import dataclass, field
        from datetime import datetime
        from typing import Any, Literal

        from wfe import step, workflow

        @dataclass
        class Address:
            city: str
            zip: str | None = None

        @dataclass
        class Parcel:
            to: Address
            due: datetime
            speed: Literal["slow", "fast"] = "slow"
            tags: list[str] = field(default_factory=list)
            note: Any = None

        @step
        def send(parcel: Parcel) -> None: ...

        @workflow("send")
        def sending(parcel: Parcel):
            send(parcel)

        @step
        def tick() -> None: ...

        @workflow("tick")
        def ticking():
            tick()
        """,
    )
    shown = flows.wfe("workflows", "show", "send", "--color", "always").out
    lines = [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()]
    assert lines[lines.index(["Input"]) + 1 :] == [
        ["to", "required", "Address"],
        ["due", "required", "string"],
        ["speed", "default", '"slow"', '"fast"', "|", '"slow"'],
        ["tags", "default", "[]", "array", "of", "string"],
        ["note", "default", "null", "anything"],
        [],
        ["Address"],
        ["city", "required", "string"],
        ["zip", "default", "null", "string", "or", "null"],
    ]
    assert flows.wfe("workflows", "show", "tick", "--color", "always").out.endswith("  none\n")


OPTIONS = """
from wfe import step, workflow

@step(async_=True, timeout=3600, max_retries=5, retry_interval=90, retry_backoff=2, save_response=False)
def ask() -> None: ...

@workflow("asks", timeout=86400, retention_time=7 * 86400, idempotent=True)
def asks():
    ask()
"""


def test_options_are_told_in_one_way_of_a_workflow_and_of_a_step_that_was_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("workflows/asks.py", OPTIONS)
    project.wfe("run", "asks", "--tx", "t1", "--until", "waiting")
    options = (
        "max_retries 5 · retry_interval 1m30s · retry_backoff 2.0 · async · timeout 1h · "
        "save_response False"
    )
    for columns in ("60", "160"):
        monkeypatch.setenv("COLUMNS", columns)
        for words in (["workflows", "show", "asks"], ["step", "show", "t1"]):
            shown = project.wfe(*words, "--color", "always").out
            lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
            assert options in " ".join(" ".join(lines).split()), shown
            assert not any(line.lstrip().startswith("·") for line in lines)
    assert "  timeout 1d · retention_time 7d · idempotent\n" in re.sub(
        r"\x1b\[[0-9;]*m", "", project.wfe("workflows", "show", "asks", "--color", "always").out
    )
