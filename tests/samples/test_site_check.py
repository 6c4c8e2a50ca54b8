"""The site check, against a real server: who is asked how often, and what is said of it at the end."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project, project_in
from wfe.testing import Run, crash_everywhere, run_to_end

from .support import ROOT, sample

README = "/README.md"
PAGES = ["/", README, "/sample_workflows/", "/sample_workflows/data/seattle-weather.csv"]


class Site:
    """A server that answers 200, or what a path is told to answer, the last one for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, list[int]] = {}
        self.asked: Counter[str] = Counter()
        #: Set: pages answer at once.
        self.awake = threading.Event()
        self.awake.set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked[self.path] += 1
                site.awake.wait()
                answers = site.answers.get(self.path, [200])
                self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"

    def check(self, **more: Any) -> Run:
        return run_to_end(sample("site-check"), {"base": self.base, **more})


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.awake.set()
    site.server.shutdown()
    site.server.server_close()
    thread.join()


def test_pages_that_are_up_are_asked_once_and_nobody_waits(site: Site) -> None:
    run = site.check()
    assert run.result == {"up": 4, "down": []}
    assert site.asked == dict.fromkeys(PAGES, 1)
    assert {"(pause)", "(outage)"} < set(run.timeline)
    assert run.seconds == 0


def test_a_missing_page_is_asked_once_per_look(site: Site) -> None:
    site.answers[README] = [404]
    run = site.check()
    assert run.result == {"up": 3, "down": [README]}
    assert site.asked == dict.fromkeys(PAGES, 1) | {README: 2}
    assert run.errors[0].message == f"{site.base}{README}: 404 Not Found"
    assert run.seconds == 60


def test_a_page_in_trouble_is_asked_three_times_per_look(site: Site) -> None:
    site.answers[README] = [500]
    run = site.check(pause=0)
    assert run.result == {"up": 3, "down": [README]}
    assert site.asked[README] == 6
    assert run.seconds == 2 * (1 + 2)


def test_a_page_that_comes_to_itself_is_up(site: Site) -> None:
    site.answers[README] = [503, 503, 200]
    run = site.check()
    assert run.result == {"up": 4, "down": []}
    assert "(pause)" in run.timeline


def test_a_page_that_is_back_after_the_pause_is_no_outage(site: Site) -> None:
    site.answers[README] = [404, 200]
    run = site.check()
    assert run.result == {"up": 4, "down": []}
    assert "(outage)" in run.timeline
    assert run.seconds == 60


def test_a_page_that_takes_too_long_is_down(site: Site) -> None:
    site.awake.clear()
    assert site.check(patience=0.02).result["down"] == PAGES


def test_a_site_where_nobody_listens_is_down(site: Site) -> None:
    run = run_to_end(sample("site-check"), {"base": "http://127.0.0.1:1"})
    assert run.result == {"up": 0, "down": PAGES}
    assert run.outputs["outage"] is None
    assert "outage" in run.timeline


def test_a_crash_at_any_point_does_not_change_what_is_found(site: Site) -> None:
    site.answers[README] = [404]
    for run in crash_everywhere(sample("site-check"), {"base": site.base}):
        assert run.result == {"up": 3, "down": [README]}, run.point


# --- from the shell ------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        shutil.copy(ROOT / "sample_workflows" / "site_check.py", tmp_path / "workflows")
        yield made


def test_the_installed_command_tells_a_handler_of_an_outage(project: Project, site: Site) -> None:
    project.write(
        "workflows/tell.py",
        """
        from pathlib import Path

        from site_check import Outage, site_check

        @site_check.hooks.outage
        def tell(outage: Outage) -> None:
            Path("told").write_text(f"{outage.base}: {outage.pages}")
        """,
    )
    site.answers[README] = [404]
    ended = project.execute("run", "site-check", "-p", f"base={site.base}", "-p", "pause=0.1")
    assert (ended.code, ended.document) == (0, {"up": 3, "down": [README]})
    assert (project.root / "told").read_text() == f"{site.base}: ['{README}']"
