"""Deploying: every server shows the new release, or each the one that it had."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project, project_in
from wfe.testing import Run, VirtualEngine, crash_everywhere, run_to_end

from .support import ROOT, sample

SERVERS = ["canary", "web-1", "web-2"]
DAY = 24 * 3600
YES = {"approve": {"approved": True, "by": "kim"}}
NO = {"approve": {"approved": False, "by": "kim"}}


class Send:
    """Copies a folder; fails so many times, or for good on one server, or brings something else."""

    def __init__(self, failures: int = 0, *, broken: str = "", spoilt: str = "") -> None:
        self.failures = failures
        self.broken = broken
        self.spoilt = spoilt

    def __call__(self, source: Path, target: Path) -> None:
        shutil.copytree(source, target, dirs_exist_ok=True)
        server = target.parts[-3]
        if self.failures or self.broken == server:
            self.failures -= 1
            raise ConnectionResetError("the line is dead")
        if self.spoilt == server:
            (target / "index.html").write_text("something else")


class Place:
    """A site, and the servers."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "site"
        self.servers = folder / "servers"
        self.publish("new")

    def publish(self, text: str) -> None:
        (self.source / "deep").mkdir(parents=True, exist_ok=True)
        (self.source / "index.html").write_text(text)
        (self.source / "deep" / "page.html").write_text("the same")

    def fill(self) -> None:
        """Servers that show an older release, all but one."""
        self.publish("old")
        self.run()
        shutil.rmtree(self.servers / "web-2")
        self.publish("new")

    def run(self, send: Send | None = None, answers: Mapping[str, Any] = YES, **more: Any) -> Run:
        request = self.request(**more)
        resources = {"send": send or Send()}
        return run_to_end(sample("deploy-site"), request, answers=answers, resources=resources)

    def request(self, **more: Any) -> dict[str, Any]:
        return {"source": str(self.source), "servers": str(self.servers), **more}

    def shown(self) -> dict[str, str]:
        """What each server shows."""
        links = sorted(self.servers.glob("*/current"))
        return {link.parent.name: (link / "index.html").read_text() for link in links}

    def look(self) -> list[str]:
        """Every file on the servers, and where each link leads."""
        return sorted(
            f"{path.relative_to(self.servers)} {path.readlink() if path.is_symlink() else ''}"
            for path in self.servers.rglob("*")
            if path.is_file() or path.is_symlink()
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_all_servers_show_what_a_person_has_approved(place: Place) -> None:
    place.fill()
    run = place.run()
    assert run.result["servers"] == SERVERS
    assert place.shown() == dict.fromkeys(SERVERS, "new")
    assert [(e.name, e.data) for e in run.emitted] == [
        ("site.deployed", {"release": run.result["release"], "by": "kim"})
    ]


def test_nobody_is_asked_where_that_is_not_wanted(place: Place) -> None:
    run = place.run(answers={}, ask=False, soak=60)
    assert run.state == "done"
    assert "(approve)" in run.timeline
    assert run.seconds == 60


def test_before_the_answer_only_the_canary_shows_the_release(place: Place) -> None:
    place.fill()
    with VirtualEngine(resources={"send": Send()}) as engine:
        engine.run(sample("deploy-site"), place.request(), transaction_id="7")
        engine.advance(2)
        assert engine.waiting == ["deploy-site:7:approve:invoke"]
        assert place.shown() == {"canary": "new", "web-1": "old"}
        engine.advance(DAY - 1)
        engine.answer("approve", YES["approve"])
    assert place.shown() == dict.fromkeys(SERVERS, "new")


# --- whatever fails ------------------------------------------------------------------------------


def test_an_answer_of_no_brings_the_canary_back(place: Place) -> None:
    place.fill()
    before = place.look()
    run = place.run(answers=NO)
    assert run.errors[0].message == "kim did not approve the release"
    assert place.look() == before
    assert run.emitted == ()


def test_an_answer_that_does_not_come_within_a_day_brings_the_canary_back(place: Place) -> None:
    place.fill()
    before = place.look()
    run = place.run(answers={}, soak=0)
    assert run.state == "reverted"
    assert run.seconds == DAY
    assert place.look() == before


def test_a_canary_that_changes_while_it_is_watched_is_no_canary(place: Place) -> None:
    with VirtualEngine(resources={"send": Send()}) as engine:
        engine.run(sample("deploy-site"), place.request(), transaction_id="7")
        (place.servers / "canary" / "current" / "index.html").write_text("hacked")
        engine.advance(2)
        run = engine.look(sample("deploy-site"), "7")
    assert run.state == "reverted"
    assert "canary shows something else" in run.errors[0].message
    assert place.look() == []


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_out_of_reach_brings_all_of_them_back(place: Place, server: str) -> None:
    place.fill()
    before = place.look()
    run = place.run(Send(broken=server))
    assert run.state == "reverted"
    assert run.errors[0].message == "the line is dead"
    assert place.look() == before


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_got_something_else_brings_all_of_them_back(
    place: Place, server: str
) -> None:
    place.fill()
    before = place.look()
    run = place.run(Send(spoilt=server))
    assert run.errors[0].message.startswith(f"{server} shows something else than")
    assert place.look() == before


def test_a_server_that_is_away_for_a_moment_is_tried_again(place: Place) -> None:
    run = place.run(Send(failures=2), soak=0)
    assert place.shown() == dict.fromkeys(SERVERS, "new")
    assert run.seconds == 1 + 2


def test_a_file_in_the_place_of_a_server_is_left_alone(place: Place) -> None:
    place.servers.mkdir()
    (place.servers / "web-1").write_text("no server")
    assert place.run().state == "reverted"
    assert place.look() == ["web-1 "]


def test_a_current_that_is_a_folder_is_left_alone(place: Place) -> None:
    current = place.servers / "canary" / "current"
    current.mkdir(parents=True)
    assert place.run().state == "reverted"
    assert current.is_dir()
    assert place.look() == []


def test_a_source_that_is_not_there_is_named(place: Place) -> None:
    run = place.run(source="none")
    assert run.errors[0].message.startswith("there is no folder ")
    assert run.timeline == ["make-plan!"]


# --- undone, and crashed -------------------------------------------------------------------------


def test_undoing_a_finished_deployment_brings_all_servers_back(place: Place) -> None:
    place.fill()
    before = place.look()
    with VirtualEngine(resources={"send": Send()}) as engine:
        request = place.request(ask=False, soak=0)
        engine.run(sample("deploy-site"), request, transaction_id="7", until="finished")
        assert place.shown() == dict.fromkeys(SERVERS, "new")
        engine.cancel(sample("deploy-site"), "7")
    assert place.look() == before


@pytest.mark.parametrize("spoilt", ["", "canary"])
def test_a_crash_at_any_point_of_a_server_leaves_no_half_release(place: Place, spoilt: str) -> None:
    plan = run_to_end(sample("deploy-site"), place.request(), answers=NO).outputs["make-plan"]

    def fresh() -> dict[str, Any]:
        shutil.rmtree(place.servers)
        return {"send": Send(spoilt=spoilt)}

    target = {"plan": plan, "server": "canary"}
    for run in crash_everywhere(sample("deploy-server"), target, resources=fresh):
        assert place.shown() == ({} if spoilt else {"canary": "new"}), run.point
        assert len(place.look()) == (0 if spoilt else 3), run.point


# --- from the shell ------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        shutil.copy(ROOT / "sample_workflows" / "deploy_site.py", tmp_path / "workflows")
        yield made


def test_the_installed_command_asks_and_takes_the_answer(project: Project) -> None:
    project.write("docs/index.html", "hello")
    command = ["run", "deploy-site", "--tx", "7", "-p", "soak=0.1", "--until", "waiting"]
    asked = project.execute(*command)
    assert (asked.code, asked.out) == (20, "deploy-site:7:approve:invoke\n")
    answer = '{"approved": true, "by": "kim"}'
    done = project.execute("step", "succeed", asked.lines[0], "--response", answer)
    assert (done.code, done.document["servers"]) == (0, SERVERS)
    for server in SERVERS:
        assert (project.root / f"out/servers/{server}/current/index.html").read_text() == "hello"
