"""The list of decisions, and that each has its test."""

from __future__ import annotations

import re
from pathlib import Path

#: How many differences from the reference engine were decided on.
DECISIONS = 67


def _tested() -> set[int]:
    """The numbers in the names of the tests of this folder."""
    names = [
        match
        for path in Path(__file__).parent.glob("test_*.py")
        for match in re.findall(r"def test_decision_((?:\d\d_)+)", path.read_text())
    ]
    return {int(number) for name in names for number in name.strip("_").split("_")}


def test_each_decision_has_a_test_of_its_own() -> None:
    assert set(range(1, DECISIONS + 1)) - _tested() == set()


def test_no_test_claims_a_decision_that_does_not_exist() -> None:
    assert _tested() <= set(range(1, DECISIONS + 1))


def test_the_page_on_differences_tells_each_decision_once() -> None:
    page = Path(__file__).parents[2] / "docs" / "differences-from-medusa.md"
    anchors = re.findall(r'<a id="d(\d+)"></a>', page.read_text())
    assert sorted(map(int, anchors)) == list(range(1, DECISIONS + 1))
