"""What a type checker makes of bodies. Read by mypy in test_typing.py, never run.

`assert_type` says what an expression must be; a `type: ignore[code]` says that mypy must find that
very error there (an ignore that is not needed is an error itself).
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_type

from wfe import (
    StepContext,
    StepResponse,
    WorkflowResponse,
    hook,
    parallel,
    resource,
    sleep,
    step,
    transform,
    when,
    workflow,
)


@dataclass
class Line:
    sku: str
    price: float


@dataclass
class Order:
    total: float
    gift: bool = False
    lines: list[Line] = field(default_factory=list)
    created: datetime | None = None


@dataclass
class Receipt:
    id: str


# --- steps: what a call is, whatever the function returns and however it runs ---------------------


@step
def plain(order: Order) -> Receipt:
    return Receipt("r")


@step("named", max_retries=3, retry_interval=2.0)
async def asynchronous(ctx: StepContext, order: Order, *, note: str = "") -> Receipt:
    return Receipt("r")


@step(timeout=5)
def responding(ctx: StepContext, order: Order) -> StepResponse[Receipt]:
    return StepResponse(Receipt("r"), compensate_with="r")


@step
async def responding_later(order: Order) -> StepResponse[Receipt]:
    return StepResponse.awaiting(compensate_with="r")


@step
def skipping(numbers: list[int]) -> StepResponse[int]:
    return StepResponse.skip("nothing to do")


@step
def failing(number: int) -> StepResponse[int]:
    StepResponse.permanent_failure("no")


@step
def anything(value: object) -> dict[str, Any]:
    return {}


@step
def untyped(value: Any) -> Any:
    return value


@step
def nothing(ctx: StepContext) -> None: ...


@responding.compensate
async def undo(ctx: StepContext, receipt_id: str) -> None: ...


undone = assert_type(undo(StepContext(), "r"), Coroutine[Any, Any, None])


@workflow("steps")
def steps(order: Order) -> Receipt:
    assert_type(plain(order), Receipt)
    assert_type(asynchronous(order), Receipt)
    assert_type(asynchronous(order, note="n").id, str)
    assert_type(responding(order), Receipt)
    assert_type(responding_later(order), Receipt)
    assert_type(skipping([1]), int)
    assert_type(failing(skipping([1])), int)
    assert_type(anything(order), dict[str, Any])
    assert_type(anything(order)["x"], Any)
    assert_type(untyped(order), Any)
    assert_type(plain.config(name="again", max_retries=2)(order), Receipt)
    assert_type(order.lines[0].price, float)
    nothing()

    plain()  # type: ignore[call-arg]
    plain(5)  # type: ignore[arg-type]
    plain(plain(order))  # type: ignore[arg-type]
    asynchronous(order, nota="n")  # type: ignore[call-arg]
    asynchronous(StepContext(), order)  # type: ignore[arg-type, call-arg]
    print(responding(order).amount)  # type: ignore[attr-defined]
    print(order.giftt)  # type: ignore[attr-defined]
    plain.config(max_retry=2)  # type: ignore[call-arg]
    plain.config(max_retries="2")  # type: ignore[arg-type]
    skipping(["1"])  # type: ignore[list-item]
    return plain.config(name="last")(order)


@step(max_retry=3)  # type: ignore[call-overload, untyped-decorator]
def misconfigured(order: Order) -> None: ...


# --- groups, conditions, transforms --------------------------------------------------------------


def make_label(receipt: Receipt, line: Line) -> str:
    return f"{receipt.id} {line.sku}"


async def make_label_later(receipt: Receipt) -> str:
    return receipt.id


@transform
def total(lines: list[Line], factor: float = 1.0) -> float:
    return sum(line.price for line in lines) * factor


@transform
async def total_later(lines: list[Line]) -> float:
    return 0.0


@workflow("shapes", timeout=60, idempotent=True)
def shapes(order: Order) -> WorkflowResponse[dict[str, str]]:
    receipt, number = parallel(plain(order), skipping([1]))
    assert_type(receipt, Receipt)
    assert_type(number, int)
    assert_type(parallel([plain(order)]), list[Receipt])
    assert_type(
        parallel(
            plain(order),
            skipping([1]),
            plain(order),
            skipping([1]),
            plain(order),
            skipping([1]),
            plain(order),
            anything(1),
        ),
        tuple[Receipt, int, Receipt, int, Receipt, int, Receipt, dict[str, Any]],
    )

    with when(order.gift, name="gift"):
        wrapped = plain(order)
    assert_type(wrapped, Receipt)
    with when(order, lambda order: order["total"] > 100):
        nothing()
    assert_type(when(order.gift).then(lambda: plain(order)), Receipt | None)
    assert_type(parallel(plain(order), when(order.gift).then(lambda: skipping([1])))[1], int | None)

    assert_type(transform(receipt, order.lines[0], fn=make_label), str)
    assert_type(transform(receipt, fn=make_label_later), str)
    assert_type(transform(order.lines, fn=len), int)
    assert_type(total(order.lines, factor=2), float)
    assert_type(total_later(order.lines), float)
    total(order)  # type: ignore[arg-type]
    transform(receipt)  # type: ignore[call-overload]

    validated = hook("validated", {"order": order})
    assert_type(validated.result(), Any)
    assert_type(validated.result(Line).sku, str)
    sleep(5)
    sleep(order.total, name="nap")
    sleep("5s")  # type: ignore[arg-type]
    return WorkflowResponse({"receipt": receipt.id}, hooks=[validated])


@shapes.hooks.validated
def validate(ctx: StepContext, value: dict[str, Any]) -> int:
    return 1


@validate.compensate
def invalidate(value: int) -> None: ...


assert_type(validate(StepContext(), {}), int)


# --- children and workflows ----------------------------------------------------------------------


@workflow("without-input")
def without_input() -> Receipt:
    return plain(Order(1))


@workflow
def parent(order: Order) -> None:
    assert_type(shapes.as_step(order), dict[str, str])
    assert_type(steps.as_step.config(name="child")(order), Receipt)
    assert_type(without_input.as_step(), Receipt)
    shapes.as_step(5)  # type: ignore[arg-type]
    shapes.as_step()  # type: ignore[call-arg]
    workflow("w", timout=5)  # type: ignore[call-overload]


@resource
def payments() -> Receipt:
    return Receipt("client")


assert_type(payments(), Receipt)
