"""Writes what of the documents is made by programs: `make docs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.docs import night_shift, reference_api, reference_cli, states

DOCS = Path(__file__).resolve().parents[2] / "docs"

#: Page → what it is made by.
PAGES: Mapping[str, Callable[[], str]] = {
    "night-shift.md": night_shift.record,
    "reference/api.md": reference_api.write,
    "reference/cli.md": reference_cli.write,
    "reference/states.md": states.write,
}

if __name__ == "__main__":
    for name, made in PAGES.items():
        page = DOCS / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(made())
