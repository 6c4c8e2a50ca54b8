"""The README is true: its examples run, and what they print is what it shows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.console import blocks, run_document

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def test_the_tour_runs_as_it_is_written(tmp_path: Path) -> None:
    assert run_document(README, tmp_path) >= 8


def test_every_link_to_a_file_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (ROOT / target).exists(), target


def test_the_picture_shows_the_steps_of_the_weather_report() -> None:
    picture = next(iter(blocks(README, "text")))
    source = (ROOT / "sample_workflows/weather_report.py").read_text()
    shown = re.findall(r"^[ ┌└]+([a-z-]+) +[✓●·]", picture, re.MULTILINE)
    assert len(shown) == 8
    for name in shown:
        assert f'"{name}"' in source or f"def {name.replace('-', '_')}(" in source


def test_the_commands_that_it_names_are_make_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)$", README.read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
