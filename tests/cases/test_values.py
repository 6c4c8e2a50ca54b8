"""Case P10: payloads that others lose, change or choke on. Each is handed on and stored as what it is,
or refused with its place and the reason; a step that answers with one fails for good and is undone.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from wfe import step, workflow
from wfe.authoring.registry import Registry
from wfe.testing import crash_everywhere, run_to_end


@dataclasses.dataclass
class Line:
    article: str
    price: Decimal


def _nested(depth: int) -> Any:
    value: Any = "the innermost"
    for _ in range(depth):
        value = [value]
    return value


def _cycle() -> Any:
    value: list[Any] = []
    value.append({"again": value})
    return value


_KEPT: dict[str, tuple[Any, Any]] = {
    "5 MB of text": ("wfe, " * 1_000_000, "wfe, " * 1_000_000),
    "aware": (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00Z"),
    "naive": (datetime(2026, 3, 1, 12), "2026-03-01T12:00:00"),  # noqa: DTZ001  (what people hand over)
    "bytes": (b"\x00\xff", "AP8="),
    "Decimal": (Decimal("12.50"), "12.50"),
    "dataclass": (Line("nut", Decimal("0.10")), {"article": "nut", "price": "0.10"}),
    "a set": ({2, 1}, [1, 2]),
    "one below 2^63": (2**63 - 1, 2**63 - 1),
    "200 levels": (_nested(200), _nested(200)),
    "U+2028": ("a\u2028b\nc", "a\u2028b\nc"),
}

_REFUSED: dict[str, tuple[Any, str]] = {
    "NaN": ({"rate": float("nan")}, "$.rate"),
    "infinity": ([1.0, float("inf")], "$[1]"),
    "half a surrogate pair": ("\ud800", "surrogate"),
    "2,000 levels": (_nested(2000), "500 levels"),
    "a cycle": (_cycle(), "cycle"),
    "keys that are no text": ({1: "a"}, "key"),
}


@pytest.mark.parametrize("name", _KEPT)
def test_case_p10_what_is_kept_is_the_same_in_every_life(name: str) -> None:
    value, plain = _KEPT[name]
    with Registry().scope():

        @step
        async def hand_over() -> Any:
            return value

        @step
        async def take(given: Any) -> bool:
            return bool(given == plain)

        @workflow("handing")
        def handing() -> Any:
            given = hand_over()
            return [take(given), given]

    ends = list(crash_everywhere(handing))
    assert {(end.state, end.result[0]) for end in ends} == {("done", True)}
    assert all(end.result[1] == plain for end in ends)


@pytest.mark.parametrize("name", _REFUSED)
def test_case_p10_what_cannot_be_kept_is_refused_with_its_place_and_undone(name: str) -> None:
    value, reason = _REFUSED[name]
    undone: list[Any] = []
    with Registry().scope():

        @step
        async def before() -> str:
            return "a file"

        @before.compensate
        async def remove(file: str) -> None:
            undone.append(file)

        @step(max_retries=3)
        async def hand_over() -> Any:
            return value

        @workflow("handing")
        def handing() -> Any:
            before()
            return hand_over()

    end = run_to_end(handing)
    (error,) = end.outcome.errors
    assert (end.state, undone) == ("reverted", ["a file"])
    assert reason in error.message
    assert error.attempts == 1, "the value will not get better"
