"""docs/night-shift.md is what happens: recorded anew it is the same, but for how long things take."""

from __future__ import annotations

from tests.docs import night_shift

PAGE = night_shift.ROOT / "docs" / "night-shift.md"


def test_the_story_happens_as_it_is_told() -> None:
    told = night_shift.comparable(PAGE.read_text())
    assert night_shift.comparable(night_shift.record()) == told, "write it anew: make docs"
