"""Every use of a reference as if it were the value is refused, where it stands."""

# ruff: noqa: C416, UP031, UP032, SIM300, RUF005  each is one way in which people write it

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import math
import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from wfe import ReferenceMisuse, step, transform, when, workflow

from .support import composed, line_of, place, refused


@step
def make(value: Any = None) -> Any:
    return value


@dataclasses.dataclass
class Box:
    content: Any


#: One line each, so that the line of the function is the line of the misuse.
ONE_LINERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("with when(order.gift):", lambda order: bool(order.gift)),
    ("with when(order):", lambda order: not order),
    ("with when(order):", lambda order: 1 if order else 2),
    ("with when(order):", lambda order: order and 1),
    ("Loop inside a step", lambda order: list(order)),
    ("Loop inside a step", lambda order: [line for line in order.lines]),
    ("call it inside a step", lambda order: dict(order)),
    ("Loop inside a step", lambda order: make(*order)),
    ("Loop inside a step", lambda order: next(order)),
    ("Loop inside a step", lambda order: reversed(order)),
    ("transform(order, fn=len)", lambda order: len(order)),
    ("transform(order.id, fn=lambda value: f'", lambda order: f"{order.id}"),
    ("transform(order, fn=lambda value: f'", lambda order: f"{order:>10}"),
    ("transform(order, fn=lambda value: f'", lambda order: str(order)),
    ("transform(order, fn=lambda value: f'", lambda order: "%s" % order),
    ("transform(order, fn=lambda value: f'", lambda order: "{}".format(order)),
    ("transform(order, fn=lambda value: f'", lambda order: print(order)),
    ("transform(order, fn=lambda value: f'", lambda order: bytes(order)),
    ("transform(order, fn=lambda value: f'", lambda order: os.fspath(order)),
    ("when(order, lambda value: value == ...)", lambda order: order == 1),
    ("when(order, lambda value: value == ...)", lambda order: 1 == order),
    ("when(order, lambda value: value == ...)", lambda order: order != None),  # noqa: E711
    ("when(order, lambda value: value == ...)", lambda order: order < 1),
    ("when(order, lambda value: value == ...)", lambda order: 1 >= order),
    ("when(order, lambda value: value == ...)", lambda order: max(order, 1)),
    ("when(order, lambda value: value == ...)", lambda order: sorted([order, order])),
    ("when(order, lambda value: value == ...)", lambda order: order in [1, 2]),
    ("when(order, lambda value: ... in value)", lambda order: 1 in order),
    ("fn=lambda value: ...)", lambda order: order + 1),
    ("fn=lambda value: ...)", lambda order: 1 + order),
    ("fn=lambda value: ...)", lambda order: "text" + order),
    ("fn=lambda value: ...)", lambda order: [1] + order),
    ("fn=lambda value: ...)", lambda order: order * 2),
    ("fn=lambda value: ...)", lambda order: 2 / order),
    ("fn=lambda value: ...)", lambda order: order**2),
    ("fn=lambda value: ...)", lambda order: -order),
    ("fn=lambda value: ...)", lambda order: order | {}),
    ("fn=lambda value: ...)", lambda order: ~order),
    ("fn=lambda value: ...)", lambda order: divmod(order, 2)),
    ("fn=lambda value: ...)", lambda order: sum([order])),
    ("fn=lambda value: ...)", lambda order: int(order)),
    ("fn=lambda value: ...)", lambda order: float(order)),
    ("fn=lambda value: ...)", lambda order: round(order)),
    ("fn=lambda value: ...)", lambda order: abs(order)),
    ("fn=lambda value: ...)", lambda order: math.floor(order)),
    ("fn=lambda value: ...)", lambda order: range(order)),
    ("fn=lambda value: ...)", lambda order: [1, 2][order]),
    ("fn=lambda value: ...)", lambda order: order()),
    ("fn=lambda value: ...)", lambda order: order.name.upper()),
    ("inside a step", lambda order: isinstance(order, dict)),
    ("inside a step", lambda order: json.dumps(order)),
    ("inside a step", lambda order: json.dumps({"order": order})),
    ("inside a step", lambda order: dataclasses.asdict(order)),
    ("inside a step", lambda order: dataclasses.replace(order, gift=True)),
    ("handed to any number of steps", lambda order: copy.copy(order)),
    ("handed to any number of steps", lambda order: copy.deepcopy([order])),
    ("inside a step", lambda order: dataclasses.asdict(Box(order))),
    ("handed to any number of steps", lambda order: pickle.dumps(order)),
    ("Make a changed value", lambda order: setattr(order, "gift", True)),
    ("Make a changed value", lambda order: delattr(order, "gift")),
    ("order['_id']", lambda order: order._id),
    ("order['__name__']", lambda order: hasattr(order, "__name__")),
    ("order['__dict__']", lambda order: vars(order)),
]


@pytest.mark.parametrize(("instead", "misuse"), ONE_LINERS)
def test_misuse_is_refused_at_its_line_with_what_to_write_instead(
    instead: str, misuse: Callable[[Any], Any]
) -> None:
    def body(order: Any) -> None:
        misuse(order)

    error = refused(lambda: composed(body), ReferenceMisuse)
    assert place(error) == line_of(misuse)
    assert instead in error.hint
    assert str(error).startswith(f"{__file__}:{error.line}: ")


def if_statement(order: Any) -> None:
    if order.gift:
        make(order)


def for_statement(order: Any) -> None:
    for line in order.lines:
        make(line)


def unpacking(order: Any) -> None:
    first, second = order.lines
    make([first, second])


def with_statement(order: Any) -> None:
    with order:
        make(order)


def in_place_addition(order: Any) -> None:
    order += 1


def item_assignment(order: Any) -> None:
    order["gift"] = True


def attribute_assignment(order: Any) -> None:
    order.gift = True


def item_deletion(order: Any) -> None:
    del order["gift"]


def class_pattern(order: Any) -> None:
    match order:
        case dict():
            make(order)


def value_pattern(order: Any) -> None:
    match order.kind:
        case "gift":
            make(order)


def assertion(order: Any) -> None:
    assert order.paid


STATEMENTS = [
    (if_statement, 1),
    (for_statement, 1),
    (unpacking, 1),
    (with_statement, 1),
    (in_place_addition, 1),
    (item_assignment, 1),
    (attribute_assignment, 1),
    (item_deletion, 1),
    (class_pattern, 2),
    (value_pattern, 2),
    (assertion, 1),
]


@pytest.mark.parametrize(("body", "offset"), STATEMENTS)
def test_a_statement_that_needs_a_value_is_refused_at_its_line(
    body: Callable[[Any], None], offset: int
) -> None:
    error = refused(lambda: composed(body), ReferenceMisuse)
    assert place(error) == line_of(body, offset)
    assert error.hint


def test_awaiting_a_reference_is_refused() -> None:
    async def wait(order: Any) -> None:
        await order

    def body(order: Any) -> None:
        coroutine = wait(order)
        coroutine.send(None)

    error = refused(lambda: composed(body), ReferenceMisuse)
    assert place(error) == line_of(wait, 1)
    assert "a body waits for nothing" in error.message


def test_a_reference_can_be_looked_at_in_a_debugger() -> None:
    seen: list[Any] = []

    def body(order: Any) -> None:
        made = make(order)
        parts = [order, order.lines[0].sku, made["x"], order[order.key], transform(made, fn=len)]
        seen.extend(repr(part) for part in parts)
        seen.append(len({order, made}) == 2)
        seen.append(dir(order))

    composed(body)
    assert seen == [
        "<reference order>",
        "<reference order.lines[0].sku>",
        "<reference make['x']>",
        "<reference order[order.key]>",
        "<reference transform(fn=len)>",
        True,
        [],
    ]


def closure(order: Any) -> None:
    transform(make(), fn=lambda value: value + order.total)


def default(order: Any) -> None:
    def add(value: Any, total: Any = order.total) -> Any:
        return value + total

    transform(make(), fn=add)


def keyword_default(order: Any) -> None:
    def add(value: Any, *, totals: Any = (order.total,)) -> Any:
        return value + totals[0]

    transform(make(), fn=add)


def partial(order: Any) -> None:
    transform(make(), fn=functools.partial(max, order.total))


def predicate(order: Any) -> None:
    when(make(), lambda value: value > order.total)


def step_in_body(order: Any) -> None:
    @step
    def ship() -> Any:
        return order

    ship()


@pytest.mark.parametrize(
    "body", [closure, default, keyword_default, partial, predicate, step_in_body]
)
def test_a_function_that_runs_later_may_not_hold_a_reference(body: Callable[[Any], None]) -> None:
    error = refused(lambda: composed(body), ReferenceMisuse)
    assert "order" in error.message
    assert "over as an argument" in error.hint
    assert error.file == __file__


def test_a_reference_of_another_body_is_refused() -> None:
    kept: list[Any] = []

    @workflow("first")
    def first(order: Any) -> None:
        kept.append(order)

    def second() -> None:
        make({"deep": [kept[0].id]})

    error = refused(lambda: composed(second), ReferenceMisuse)
    assert place(error) == line_of(second, 1)
    assert "'first'" in error.message
    assert "'w'" in error.message


def test_a_step_outside_of_a_body_refuses_references() -> None:
    kept: list[Any] = []
    composed(lambda order: kept.append(order))

    error = refused(lambda: make({"deep": kept}), ReferenceMisuse)
    assert "outside of a body" in error.message
    assert error.file == __file__
