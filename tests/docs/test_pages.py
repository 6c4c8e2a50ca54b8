"""The pages of docs/ are true: their examples run, their links lead somewhere, each says its own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.console import idle_blocks, run_document
from tests.forking import forking

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *DOCS.rglob("*.md")])
#: Pages of commands, each for a folder of its own. The page about tests has a test of its own.
GUIDES = sorted(page for page in DOCS.glob("*.md") if "```console" in page.read_text())
#: What nobody runs is a picture: it is drawn, or made by a program.
WRITTEN = [*GUIDES, ROOT / "README.md", DOCS / "test-your-workflows.md"]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_a_guide_runs_as_it_is_written(page: Path, tmp_path: Path) -> None:
    # What `ls` shows is what the commands have made, not what Python keeps for itself.
    path = forking(PYTHONDONTWRITEBYTECODE="1").path
    assert run_document(page, tmp_path, path) >= 5


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_every_example_of_a_guide_is_run(page: Path) -> None:
    assert list(idle_blocks(page)) == []
    assert "```text" not in page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^):]+)\)", page.read_text()):
        path, _, place = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not place or place in anchors(file), target


def anchors(page: Path) -> set[str]:
    """The places in a page that a link may lead to: its headings, and what was named."""
    text = page.read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


def test_no_page_repeats_another() -> None:
    found = defaultdict(set)
    for page in WRITTEN:
        for sentence in sentences(page):
            found[sentence].add(name(page))
    assert {sentence: pages for sentence, pages in found.items() if len(pages) > 1} == {}


def sentences(page: Path) -> Iterator[str]:
    """The longer sentences of its paragraphs and tables."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for sentence in re.split(r"(?<=[.:])\s+|\n\n|\|", text):
        words = sentence.split()
        if len(words) > 9:
            yield " ".join(words)
