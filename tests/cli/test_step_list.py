"""`wfe step list|show`: what waits is found, and one step is understood without its execution."""

from __future__ import annotations

import re

import pytest

from tests.project import Project


@pytest.fixture(scope="module")
def made(shared: Project) -> Project:
    """publish:t1 waits for an answer, two-answers:t2 for two; order:t3 was undone."""
    shared.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting")
    shared.wfe("run", "two-answers", "--tx", "t2", "--until", "waiting")
    shared.wfe("run", "order", "--tx", "t3", "-p", "gift=true", "-p", "fail=charge")
    return shared


@pytest.fixture
def waiting(project: Project, made: Project) -> Project:
    """All that is in `made`, to do with as one likes."""
    project.copy(made)
    return project


KEYS = [
    "publish:t1:approve:invoke",
    "two-answers:t2:left:invoke",
    "two-answers:t2:right:invoke",
]


def test_steps_that_wait_are_listed_the_oldest_first(waiting: Project) -> None:
    assert waiting.wfe("step", "list", "--waiting", "-o", "key").lines == KEYS
    first = waiting.wfe("step", "list", "--waiting").lines[0].split("\t")
    assert (first[0], first[1], first[3]) == (KEYS[0], "waiting", "1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", first[2])


def test_an_answered_step_is_listed_no_more(waiting: Project) -> None:
    waiting.wfe("step", "succeed", KEYS[1])
    assert waiting.wfe("step", "list", "--waiting", "-o", "key").lines == [KEYS[0], KEYS[2]]


def test_all_that_is_under_way_is_listed_with_what_it_does(project: Project) -> None:
    project.write(
        "workflows/parked.py",
        """
        from wfe import parallel, sleep, step, workflow

        @step(async_=True, auto_retry=False, max_retries=3)
        def fetch() -> int:
            raise OSError("the line is dead")

        @step(async_=True)
        def ask() -> None: ...

        @workflow("parked")
        def parked():
            parallel(fetch(), ask())
        """,
    )
    project.wfe("run", "parked", "--tx", "t1", "--until", "waiting")
    found = {one["step"]: one for one in project.wfe("step", "list", "-o", "json").document}
    assert {name: one["state"] for name, one in found.items()} == {
        "fetch": "parked",
        "ask": "waiting",
    }
    assert project.wfe("step", "list", "--waiting", "-o", "key").lines == ["parked:t1:ask:invoke"]


def test_a_step_that_runs_another_workflow_is_not_for_a_person_to_answer(project: Project) -> None:
    project.write(
        "workflows/nested.py",
        """
        from wfe import step, workflow

        @step(async_=True)
        def ask() -> None: ...

        @workflow("inner")
        def inner():
            ask()

        @workflow("outer")
        def outer():
            inner.as_step()
        """,
    )
    project.wfe("run", "outer", "--tx", "t1", "--until", "waiting")
    (key,) = project.wfe("step", "list", "--waiting", "-o", "key").lines
    assert key.startswith("inner:")
    assert key.endswith(":ask:invoke")


def test_a_list_is_as_long_as_was_asked_for(waiting: Project) -> None:
    ended = waiting.wfe("step", "list", "--waiting", "--limit", "2", "-o", "key")
    assert ended.lines == KEYS[:2]
    assert ended.err == "There are more than 2: see --limit.\n"
    assert len(waiting.wfe("step", "list", "--limit", "0").lines) == 3
    assert waiting.wfe("step", "list", "--limit", "-1").code == 2


@pytest.mark.parametrize("flags", [(), ("--waiting",)])
def test_without_a_database_the_list_is_empty(project: Project, flags: tuple[str, ...]) -> None:
    ended = project.wfe("step", "list", *flags, "-o", "json")
    assert (ended.code, ended.document) == (0, [])
    assert not project.db.exists()


def test_no_module_is_loaded(waiting: Project) -> None:
    waiting.write("workflows/broken.py", "raise SystemExit('loaded')")
    for words in (["list"], ["list", "--waiting"], ["show", "t1"]):
        assert "loaded" not in waiting.wfe("step", *words).err


def test_a_waiting_step_is_shown_with_the_commands_that_answer_it(waiting: Project) -> None:
    document = waiting.wfe("step", "show", "t1", "-o", "json").document
    assert document["key"] == KEYS[0]
    assert (document["word"], document["attempts"]) == ("waiting", 1)
    assert document["options"] == {"async": True}
    assert [entry["kind"] for entry in document["timeline"]] == ["step_begin", "step_awaiting"]
    assert f"wfe step succeed {KEYS[0]} --response JSON" in [
        way["command"] for way in document["commands"]
    ]
    assert "waits for an answer" in document["why"]


def test_a_step_that_failed_is_shown_with_its_attempts_and_its_error(waiting: Project) -> None:
    document = waiting.wfe("step", "show", "order:t3:charge", "-o", "json").document
    assert document["key"] == "order:t3:charge:compensate"
    assert document["invoke"] == {"state": "failed", "status": "permanent_failure"}
    assert document["error"]["error"]["message"] == "the gateway is down"
    kinds = [entry["kind"] for entry in document["timeline"]]
    assert kinds.count("step_failure") == 2


def test_what_a_step_returned_is_shown(flows: Project) -> None:
    flows.wfe("run", "order", "--tx", "t1", "-p", "gift=true")
    document = flows.wfe("step", "show", "order:t1:reserve", "-o", "json").document
    assert (document["output"], document["has_compensation"]) == ("stock", True)
    shown = flows.wfe("step", "show", "order:t1:reserve", "--color", "always").out
    assert '"stock"' in shown
    assert "output\tstock" in flows.wfe("step", "show", "order:t1:reserve").out.replace('"', "")


@pytest.mark.parametrize(
    ("key", "code"), [("nope", 2), ("publish:t1:nope:invoke", 3), ("t2", 2), ("t3", 4), ("", 2)]
)
def test_what_means_no_step_is_refused(waiting: Project, key: str, code: int) -> None:
    ended = waiting.wfe("step", "show", key, "-o", "json")
    assert ended.code == code
    assert ended.document["ok"] is False
