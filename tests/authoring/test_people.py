"""What people give is checked before anything happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

import pytest

from wfe import StepResponse, step, workflow
from wfe.authoring.people import refuse_misfit
from wfe.errors import InvalidInput


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    name: str = "x"
    lines: list[Line] = field(default_factory=list)


class Answer(TypedDict):
    ok: bool


@step
def nothing() -> None: ...


@workflow("people-orders")
def orders(order: Order) -> Any:
    return order


@workflow("people-anything")
def anything(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nam": "y"}, "has no field 'nam'. Did you mean name?"),
        ({"lines": [{"sku": "a"}, {"sku": "b", "cuont": 2}]}, r"'cuont' at lines\[1\]"),
        ({"zzz": 1}, "Its fields: name, lines."),
    ],
)
def test_a_key_that_nothing_knows_is_refused_with_the_nearest_name(
    given: Any, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        orders.check_input(given)


@pytest.mark.parametrize("given", [{}, {"name": "y"}, {"lines": [{"sku": "a", "count": 2}]}])
def test_an_input_that_fits_is_taken(given: Any) -> None:
    orders.check_input(given)


def test_an_input_without_annotation_may_hold_any_key() -> None:
    anything.check_input({"whatever": {"you": "like"}})


@pytest.mark.parametrize("returns", [StepResponse[Answer], Answer, Answer | None])
def test_an_answer_must_be_what_the_step_could_have_given(returns: Any) -> None:
    refuse_misfit({"ok": True}, returns, what="step 'ask'")
    for misfit in (None, {"ok": "perhaps"}, {"okay": True}, [1]):
        with pytest.raises(InvalidInput):
            refuse_misfit(misfit, returns, what="step 'ask'")


@pytest.mark.parametrize("returns", [None, Any, StepResponse, StepResponse[Any], Any | None])
def test_any_answer_fits_a_step_that_does_not_say(returns: Any) -> None:
    answers: tuple[Any, ...] = (None, 1, {"k": []})
    for answer in answers:
        refuse_misfit(answer, returns, what="step 'ask'")
