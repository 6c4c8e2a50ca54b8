"""docs/night-shift.md is what happens: recorded anew it is the same, but for how long things take."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.docs import night_shift
from tests.docs.terminal import ENVIRONMENT
from tests.forking import Forking

PAGE = night_shift.ROOT / "docs" / "night-shift.md"


def test_the_story_happens_as_it_is_told() -> None:
    told = night_shift.comparable(PAGE.read_text())
    environment = {**ENVIRONMENT, "PATH": os.environ["PATH"]}
    with (
        tempfile.TemporaryDirectory(prefix="wfe") as name,
        Forking(Path(name), environment) as forking,
    ):
        happened = night_shift.comparable(night_shift.record(forking.path))
    assert happened == told, "write it anew: make docs"
