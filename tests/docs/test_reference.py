"""docs/reference is what the program and the docstrings say."""

from __future__ import annotations

import re

import pytest

import wfe
import wfe.testing
from tests.docs.write import DOCS, PAGES
from wfe.cli.app import whole

REFERENCE = sorted(name for name in PAGES if name.startswith("reference/"))


@pytest.mark.parametrize("name", REFERENCE)
def test_the_page_is_what_the_sources_say(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "write it anew: make docs"


def test_every_command_is_in_it() -> None:
    page = (DOCS / "reference/cli.md").read_text()
    for name, command in whole().commands.items():
        for inner in getattr(command, "commands", {"": None}):
            assert f"\n## {f'wfe {name} {inner}'.strip()}\n" in page


def test_every_public_name_is_in_it() -> None:
    page = (DOCS / "reference/api.md").read_text()
    errors = {name for name in wfe.__all__ if wfe._HOME_OF[name] == "wfe.errors"}
    titles = set(re.findall(r"^### (\w+)$", page, re.MULTILINE))
    assert titles >= {*wfe.__all__, *wfe.testing.__all__} - errors
    assert all(f"\n| `{name}` |" in page for name in errors)


def test_nothing_in_it_depends_on_where_it_was_made() -> None:
    for name in REFERENCE:
        assert not re.search(r"0x[0-9a-f]{6}|/site-packages/", (DOCS / name).read_text())
