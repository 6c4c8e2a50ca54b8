"""The order sample: whichever step fails, what was done is undone in reverse."""

from __future__ import annotations

import pytest

from wfe.model import Event, EventKind

from .support import run, sample, state, undone


def test_ledger_of_an_order_that_goes_well() -> None:
    result = run(sample("order"), {"item": "kite", "quantity": 2, "gift": True})
    assert state(result) == "done"
    assert result.result == [
        "reserved 2 kite",
        "charged for 2 kite",
        "gift-wrapped 2 kite",
        "shipped 2 kite",
        "confirmed 2 kite",
    ]


def test_an_order_that_is_no_gift_is_not_wrapped() -> None:
    result = run(sample("order"), {})
    assert state(result) == "done"
    assert [line.split()[0] for line in result.result] == [
        "reserved",
        "charged",
        "shipped",
        "confirmed",
    ]


#: The step that fails → whose undo is called, stage by stage. That of the failed step is called,
#: too: how far it came, only itself can know.
UNDONE = {
    "reserve": [{"reserve", "charge"}],
    "charge": [{"reserve", "charge"}],
    "wrap": [{"wrap"}, {"reserve", "charge"}],
    "ship": [{"ship"}, {"wrap"}, {"reserve", "charge"}],
    "confirm": [{"ship"}, {"wrap"}, {"reserve", "charge"}],
}


@pytest.mark.parametrize("fail", UNDONE)
def test_undoes_in_reverse_whichever_step_fails(fail: str) -> None:
    told: list[Event] = []
    result = run(sample("order"), {"gift": True, "fail": fail}, told=told)
    assert state(result) == "reverted"
    assert [error.action for error in result.errors] == [fail]
    calls = undone(told)
    for stage in UNDONE[fail]:
        assert set(calls[: len(stage)]) == stage
        calls = calls[len(stage) :]
    assert calls == []


def test_a_carrier_that_does_not_answer_is_asked_three_times() -> None:
    told: list[Event] = []
    result = run(sample("order"), {"fail": "ship"}, told=told)
    failures = [e for e in told if e.kind is EventKind.STEP_FAILURE]
    assert [(e.step, e.attempt) for e in failures] == [("ship", 1), ("ship", 2), ("ship", 3)]
    assert result.errors[0].name == "ConnectionError"
