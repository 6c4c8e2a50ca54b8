"""The example of the documentation, complete: it type-checks strictly, and it composes."""

from __future__ import annotations

from dataclasses import dataclass

from wfe import (
    StepContext,
    StepResponse,
    WorkflowResponse,
    hook,
    parallel,
    step,
    transform,
    when,
    workflow,
)


@dataclass
class Order:
    id: str
    total: float
    gift: bool = False


@dataclass
class Receipt:
    id: str


@dataclass
class Stock:
    items: list[str]


@step
def reserve_stock(order: Order) -> Stock:
    return Stock([order.id])


@step(max_retries=3, retry_interval=2.0)
async def charge_card(ctx: StepContext, order: Order) -> StepResponse[Receipt]:
    receipt = await ctx.resolve("payments").charge(order.total, key=ctx.idempotency_key)
    return StepResponse(receipt, compensate_with=receipt.id)


@charge_card.compensate
async def refund(ctx: StepContext, receipt_id: str) -> None: ...


@step
def wrap(stock: Stock) -> str:
    return ", ".join(stock.items)


@step(async_=True)
def manager_approval(order: Order) -> StepResponse[bool]:
    return StepResponse.awaiting()


def make_label(stock: Stock, receipt: Receipt) -> str:
    return f"{receipt.id}: {stock.items}"


@workflow("place-order", retention_time=7 * 24 * 3600)
def place_order(order: Order) -> WorkflowResponse[dict[str, object]]:
    stock, receipt = parallel(reserve_stock(order), charge_card(order))
    with when(order.gift, name="gift"):
        wrapped = wrap(stock)
    label = transform(stock, receipt, fn=make_label)
    validated = hook("validated", {"order": order, "receipt": receipt})
    approval = manager_approval.config(name="approve-order", timeout=3600)(order)
    return WorkflowResponse(
        {"receipt": receipt, "label": label, "wrapped": wrapped, "approved": approval},
        hooks=[validated],
    )
