"""`wfe serve --watch`: what is written into a module is served, without an end to what goes on."""

from __future__ import annotations

import pytest

from tests.project import Project, until

from .serving import Serving, serving

PULSE = """
import pathlib
import time

from wfe import Schedule, step, workflow

HERE = pathlib.Path(__file__).parent.parent

@step
def say():
    with (HERE / "said").open("a") as file:
        file.write("{word}\\n")

@step
def linger():
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    (HERE / "lingered").write_text("{word}")

@workflow("{name}", schedule={schedule})
def pulse():
    say()

@workflow("long")
def long():
    linger()
"""


OFTEN = "Schedule(interval=0.2)"


def pulse(word: str, *, name: str = "pulse", schedule: str = OFTEN) -> str:
    return PULSE.format(word=word, name=name, schedule=schedule)


class Edited:
    """A module that is edited while it is served."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.write(pulse("one"))

    def write(self, content: str) -> None:
        self._project.write("workflows/pulse.py", content)

    def says(self, word: str) -> None:
        """Return when this is what was said last: a tick is told of before its step has run."""
        until(lambda: self.said()[-1:] == [word])

    def said(self) -> list[str]:
        file = self._project.root / "said"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def edited(project: Project) -> Edited:
    return Edited(project)


def fires(served: Serving, schedule: str = "pulse") -> None:
    served.until(event="tick", key=schedule, state="fired")


def test_an_edit_is_served_an_error_is_told_and_the_last_that_was_good_stays(
    project: Project, edited: Edited
) -> None:
    with serving(project, "--watch") as served:
        fires(served)
        edited.says("one")
        edited.write(pulse("two"))
        served.until(event="note", message="Loaded anew: workflows/pulse.py")
        fires(served)
        edited.says("two")
        edited.write(pulse("three").replace("@step", "@ step step", 1))
        told = served.until(event="note", message="SyntaxError")
        assert told["message"].endswith("What it had defined before stays.")
        assert told["message"].startswith("workflows/pulse.py:")
        fires(served)
        edited.says("two")
        edited.write(pulse("four"))
        served.until(event="note", message="Loaded anew")
        fires(served)
        edited.says("four")
        assert list(dict.fromkeys(edited.said())) == ["one", "two", "four"]


def test_schedules_come_change_and_go_with_their_module(project: Project, edited: Edited) -> None:
    with serving(project, "--watch") as served:
        edited.write(pulse("one", schedule="'0 0 1 1 *'"))
        told = served.until(event="note", message="Schedule pulse: 0 0 1 1 * in UTC, next ")
        assert "-01-01T00:00:00.000Z" in told["message"]
        other = pulse("other", name="other", schedule="'* * * * * *'").replace('"long"', '"longer"')
        project.write("workflows/other.py", other)
        served.until(event="note", message="Schedule other: * * * * * * in UTC")
        fires(served, "other")
        edited.write(pulse("one").replace(f", schedule={OFTEN}", ""))
        served.until(event="note", message="Schedule pulse is served no more.")
        (project.root / "workflows/other.py").unlink()
        served.until(event="note", message="Schedule other has no workflow any more")
        told = served.until(event="tick", key="other", state="error")
        assert told["error"] == "There is no workflow 'other' any more."


def test_what_is_at_work_goes_on_with_what_it_began_with(project: Project, edited: Edited) -> None:
    project.execute("run", "long", "--tx", "t1", "--until", "stored")
    with serving(project, "--watch") as served:
        while not (project.root / "begun").exists():
            served.next()
        edited.write(pulse("two"))
        served.until(event="note", message="Loaded anew")
        (project.root / "go").touch()
        served.until(event="finish", key="long:t1")
    assert (project.root / "lingered").read_text() == "one"
