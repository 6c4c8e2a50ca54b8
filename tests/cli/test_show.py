"""`wfe executions show`: sections, the timeline, and an execution as it was."""

from __future__ import annotations

import re

import pytest

from tests.project import Project


@pytest.fixture(scope="module")
def stored(shared: Project) -> Project:
    """order:b was reverted, publish:c waits, wall:w could not be undone."""
    shared.wfe("run", "order", "--tx", "b", "-p", "gift=false", "-p", "fail=ship")
    shared.wfe("run", "publish", "--tx", "c", "-i", "1", "--until", "waiting")
    shared.wfe("run", "wall", "--tx", "w", "-p", "fail=ship")
    return shared


def rows(project: Project, *arguments: str) -> list[list[str]]:
    """Lines of cells."""
    ended = project.wfe("executions", "show", *arguments)
    assert ended.code == 0, ended.err
    return [line.split("\t") for line in ended.lines]


def entries(project: Project, key: str) -> list[list[str]]:
    return [row[1:] for row in rows(project, key, "--timeline") if row[0] == "entry"]


def entry_of(project: Project, key: str, kind: str, step: str | None = None) -> str:
    """The number of the first entry of that kind."""
    named = key if step is None else f"{key}:{step}"
    return next(e[0] for e in entries(project, key) if e[2] == kind and named in e[3])


def test_a_pipe_is_told_where_an_error_was_raised(stored: Project) -> None:
    meant, unforeseen = rows(stored, "wall:w", "--errors")
    assert meant == ["error", "ship", "invoke", "PermanentStepFailure", "no truck today"]
    assert unforeseen[:4] == ["error", "build", "compensate", "RuntimeError"]
    assert re.search(r'flows\.py", line \d+, in unbuild\\n', unforeseen[5])


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("--steps", {"step"}),
        ("--input", {"input"}),
        ("--outputs", {"output", "result"}),
        ("--errors", {"error"}),
        ("--timeline", {"entry"}),
    ],
)
def test_a_section_that_is_named_is_all_that_is_shown(
    stored: Project, section: str, words: set[str]
) -> None:
    assert {row[0] for row in rows(stored, "order:b", section)} == words


def test_sections_may_be_named_together(stored: Project) -> None:
    found = {row[0] for row in rows(stored, "order:b", "--steps", "--errors")}
    assert found == {"step", "error"}


def test_the_timeline_tells_begin_attempts_errors_and_undos_in_order(stored: Project) -> None:
    told = entries(stored, "order:b")
    assert [number for number, *_ in told] == [str(n) for n in range(1, len(told) + 1)]
    assert told[0][2] == "begin"
    assert told[-1][2:] == ["finish", "order:b", "", "reverted"]
    (failure,) = [e for e in told if e[2] == "step_failure"]
    assert failure[3:] == ["order:b:ship:invoke", "attempt 1", "no truck today"]
    undone = [e[3] for e in told if e[2] == "compensate_step_success"]
    assert set(undone) == {"order:b:reserve:compensate", "order:b:charge:compensate"}
    assert all(e[1].endswith("Z") for e in told)


def test_the_timeline_is_part_of_the_document_where_it_is_asked_for(stored: Project) -> None:
    whole = stored.wfe("executions", "show", "order:b", "-o", "json").document
    assert "timeline" not in whole
    told = stored.wfe("executions", "show", "order:b", "--timeline", "-o", "json").document
    assert told["timeline"][0]["kind"] == "begin"
    assert {**told, "timeline": None} == {**whole, "timeline": None}


def test_an_execution_is_shown_as_it_was_at_an_entry(stored: Project) -> None:
    shipped = entry_of(stored, "order:b", "step_begin", "ship")
    then = {row[1]: row[2] for row in rows(stored, "order:b", "--steps", "--at", shipped)}
    assert then == {"reserve": "done", "charge": "done", "wrap": "skipped", "ship": "running"}
    document = stored.wfe("executions", "show", "order:b", "--at", shipped, "-o", "json").document
    assert (document["state"], document["status"]) == ("invoking", "running")
    assert document["at"] == int(shipped)
    assert (document["errors"], document["ended"]) == ([], None)
    assert document["context"]["invoke"]["reserve"]["output"] == "stock"


def test_what_waited_then_is_no_longer_to_be_answered(stored: Project) -> None:
    awaiting = entry_of(stored, "publish:c", "step_awaiting")
    words = {row[0] for row in rows(stored, "publish:c", "--at", awaiting)}
    assert "waiting" not in words
    assert ["status", "waiting"] in rows(stored, "publish:c", "--at", awaiting)


def test_an_entry_that_is_not_there_is_refused_with_those_that_are(stored: Project) -> None:
    count = len(entries(stored, "order:b"))
    for wrong in ("0", str(count + 1)):
        ended = stored.wfe("executions", "show", "order:b", "--at", wrong, "-o", "json")
        assert (ended.code, ended.document["error"]["code"]) == (2, "usage")
        assert ended.document["error"]["hint"] == f"It has 1 to {count}."


def test_a_person_sees_errors_with_their_own_frames(stored: Project) -> None:
    shown = stored.wfe("executions", "show", "wall:w", "--errors", "--color", "always").out
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "undo of build: RuntimeError: it cannot be unbuilt" in plain
    assert 'workflows/flows.py", line' in plain
    assert "in unbuild" in plain
    assert "site-packages" not in plain
    assert "/wfe/runtime/" not in plain


def test_a_person_is_told_that_there_are_no_errors(stored: Project) -> None:
    shown = stored.wfe("executions", "show", "publish:c", "--errors", "--color", "always").out
    assert "no errors" in shown


def test_the_error_of_a_step_that_is_tried_again_is_shown_meanwhile(flows: Project) -> None:
    flows.write(
        "workflows/parked.py",
        """
        from wfe import step, workflow

        @step(async_=True, auto_retry=False, max_retries=1)
        def fragile():
            raise ValueError("not this time")

        @workflow("fragile")
        def parked():
            fragile()
        """,
    )
    flows.wfe("run", "fragile", "--tx", "t1", "--until", "waiting")
    shown = flows.wfe("executions", "show", "fragile:t1", "--errors", "--color", "always").out
    assert "fragile: ValueError: not this time" in shown
    assert "in fragile" in shown


def test_a_person_sees_the_timeline_with_the_time_since_the_begin(stored: Project) -> None:
    shown = stored.wfe("executions", "show", "order:b", "--timeline", "--color", "always").out
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert re.search(r"^   1   \+0\.000s  ▸ running +it begins$", plain, re.MULTILINE)
    assert re.search(r"✗ failed +ship +no truck today$", plain, re.MULTILINE)
    assert re.search(r"↺ reverted +undo of reserve$", plain, re.MULTILINE)
    assert re.search(r"↺ reverted +it ends$", plain, re.MULTILINE)
