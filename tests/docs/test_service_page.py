"""docs/run-as-a-service.md: the unit, the lines and the commands that it shows work."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.project import WFE
from wfe.telemetry.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
UNIT = (ROOT / "docs" / "systemd" / "wfe.service").read_text()
PAGE = (ROOT / "docs" / "run-as-a-service.md").read_text()

PATIENCE = 20

JOBS = """
from wfe import step, workflow

@step
def work(): ...

@workflow("nightly", schedule="0 3 * * *")
def nightly():
    work()
"""


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder that the page calls /srv/jobs."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "jobs.py").write_text(JOBS)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "wfe").symlink_to(WFE)
    return tmp_path


def at_home(text: str, home: Path) -> str:
    return text.replace("/srv/jobs", str(home))


def ends_with_143_after_term(command: list[str], home: Path) -> None:
    """A process that serves, and says so to its supervisor."""
    place = str(home / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(place)
        supervisor.settimeout(PATIENCE)
        environ = {**os.environ, "NOTIFY_SOCKET": place}
        with subprocess.Popen(
            command, cwd=home, env=environ, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            assert supervisor.recv(4096).startswith(b"READY=1\nSTATUS=Serving 1 schedule")
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(PATIENCE) in (143, -signal.SIGTERM)


def test_the_unit_that_the_page_shows_is_the_one_in_the_file() -> None:
    assert block("ini") == UNIT


def test_what_the_unit_begins_serves_and_ends_as_it_says(home: Path) -> None:
    (command,) = re.findall(r"^ExecStart=(.+)$", UNIT, re.MULTILINE)
    assert "SuccessExitStatus=143" in UNIT
    ends_with_143_after_term(shlex.split(at_home(command, home)), home)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(home: Path) -> None:
    unit = home / "wfe.service"
    unit.write_text(at_home(UNIT, home))
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    about_it = [line for line in ended.stderr.splitlines() if "wfe.service" in line]
    assert about_it == []


def test_the_line_of_the_crontab_works(home: Path) -> None:
    when, _, command = block("crontab").strip().partition(" ")
    assert when == "@reboot"
    ends_with_143_after_term(["sh", "-c", at_home(command, home)], home)
    assert '"event":"schedule"' in (home / "serve.log").read_text()


def test_the_file_for_launchd_works(home: Path) -> None:
    agent = plistlib.loads(at_home(block("xml"), home).encode())
    assert agent["WorkingDirectory"] == str(home)
    ends_with_143_after_term(agent["ProgramArguments"], home)


def test_the_flags_of_its_commands_exist() -> None:
    lines = [line for line in PAGE.splitlines() if re.match(r"(OTEL_\S+ )?wfe ", line)]
    assert len(lines) >= 4
    for line in lines:
        words = [word for word in shlex.split(line) if not word.startswith("OTEL_")]
        shown = subprocess.run(
            [WFE, words[1], "--help"], capture_output=True, text=True, check=True
        ).stdout
        for flag in (word for word in words if word.startswith("--")):
            assert flag in shown, line


def test_the_table_of_metrics_is_whole() -> None:
    metrics = Metrics(lambda: nullcontext(None), started_at=datetime(2026, 1, 1, tzinfo=UTC))
    counted = {family.name for family in metrics.registry.collect()}
    stored = {"wfe_executions", "wfe_queue_depth"}
    shown = set(re.findall(r"^\| `(\w+?)(?:_total)?[{`]", PAGE, re.MULTILINE))
    assert shown == counted | stored


def test_the_extras_that_it_names_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    named = set(re.findall(r"pip install 'wfe\[(\w+)\]'", PAGE))
    assert named == {"metrics", "otel", "watch"}
    assert all(f"\n{extra} = [" in project for extra in named)
