"""docs/performance.md shows what was measured, and the benchmark that measures it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import table
from benchmarks.plan import TARGETS, WORKLOADS
from benchmarks.results import Results

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_the_page_is_that_of_the_results() -> None:
    written = table.PAGE.read_text()
    assert table.page(Results.read(), written) == written, "write it anew: make docs"


def test_everything_is_measured_that_has_an_aim() -> None:
    assert {target.figure[0] for target in TARGETS} <= {workload.name for workload in WORKLOADS}
    reached = {target.text: Results.read().reached(target) for target in TARGETS}
    assert [text for text, value in reached.items() if value is None] == []


def test_the_benchmark_runs_and_gives_a_table_and_json(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    command = (
        sys.executable,
        "-m",
        "benchmarks",
        "five",
        "recovery",
        "--quick",
        "--out",
        str(file),
    )
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert "| 5 steps, one after the other" in ended.stdout
    workloads = json.loads(file.read_text())["workloads"]
    assert set(workloads) == {"five", "recovery"}
    for known in workloads.values():
        assert known["broken"] == {}
        assert known["figures"]["seconds"]["wfe full"][0] > 0


def test_without_dbos_it_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    options = ("--quick", "--dbos", str(tmp_path / "python"), "--out", str(file))
    ended = subprocess.run(
        (sys.executable, "-m", "benchmarks", "five", *options),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("There is no DBOS in ")
    assert not file.exists()
