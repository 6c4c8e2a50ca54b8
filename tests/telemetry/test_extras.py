"""What the extras bring is imported where it was asked for, and a lack of it is told in a sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.project import Project, project_in

_EXTRAS = ("watchfiles", "prometheus_client", "opentelemetry", "requests", "anyio")

_JOBS = """
from wfe import step, workflow

@step
def work(): ...

@workflow("job")
def job():
    work()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, monkeypatch) as made:
        made.write("workflows/jobs.py", _JOBS)
        yield made


def test_nothing_of_the_extras_is_imported_unless_asked_for(project: Project) -> None:
    program = (
        "import sys; from wfe.cli import main; import wfe.cli.serving.process;"
        "main(['run', 'job', '--tx', 't1']);"
        f"print(*({set(_EXTRAS)!r} & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr.splitlines()[-1] == ""


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (("serve", "--watch"), "watchfiles", "watch"),
        (("serve", "--metrics", "127.0.0.1:0"), "prometheus-client", "metrics"),
        (("serve", "--otel"), "opentelemetry-exporter-otlp-proto-http", "otel"),
        (("run", "job", "--otel"), "opentelemetry-exporter-otlp-proto-http", "otel"),
    ],
)
def test_without_what_a_flag_needs_the_command_says_how_to_get_it(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    package: str,
    extra: str,
) -> None:
    monkeypatch.setattr("wfe.cli.extras.find_spec", lambda name: None)
    ended = project.wfe(*words)
    assert ended.code == 2
    flag = next(word for word in words if word.startswith("--"))
    assert ended.err.splitlines() == [
        f"error: {flag} needs the package {package}, which is not installed.",
        f"  Install it: pip install 'wfe[{extra}]'",
    ]


@pytest.mark.parametrize("text", ["foo", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1", ""])
def test_what_is_no_address_is_refused(project: Project, text: str) -> None:
    ended = project.wfe("serve", "--metrics", text)
    assert ended.code == 2
    assert ended.err.splitlines()[0] == f"error: --metrics {text!r} is no address."


def test_the_extras_are_there_for_the_tests() -> None:
    assert all(find_spec(name) for name in _EXTRAS)
