"""Order: the classic saga. Reserve and charge together, perhaps wrap, ship, confirm; or undo it all.

    wfe run order                                  everything goes well
    wfe run order -p gift=true -p fail=ship        no carrier: what was done is undone in reverse
    wfe run order -p fail=charge                   the card is declined: the stock goes back

No shop stands behind it: each step returns the line that it would have added to a ledger, and its
undo receives that line. A real bank is given `ctx.idempotency_key` with the request, and so charges
once, however often a crash makes the step run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wfe import PermanentStepFailure, StepContext, parallel, step, transform, when, workflow


@dataclass(frozen=True)
class Order:
    item: str = "rocket"
    quantity: int = 1
    gift: bool = False
    #: The step that fails.
    fail: Literal["", "reserve", "charge", "wrap", "ship", "confirm"] = ""


def act(ctx: StepContext, order: Order, text: str, failure: str) -> str:
    if order.fail == ctx.step_name:
        raise PermanentStepFailure(failure)
    return f"{text} {order.quantity} {order.item}"


def undo(ctx: StepContext, line: str | None, text: str) -> None:
    if line is not None:  # None: the step itself failed, there is nothing to undo
        ctx.logger.info("%s (%s)", text, line)


@step
def reserve(ctx: StepContext, order: Order) -> str:
    return act(ctx, order, "reserved", "out of stock")


@reserve.compensate
def release(ctx: StepContext, line: str | None) -> None:
    undo(ctx, line, "released")


@step
def charge(ctx: StepContext, order: Order) -> str:
    return act(ctx, order, "charged for", "the card was declined")


@charge.compensate
def refund(ctx: StepContext, line: str | None) -> None:
    undo(ctx, line, "refunded")


@step
def wrap(ctx: StepContext, order: Order) -> str:
    return act(ctx, order, "gift-wrapped", "no paper left")


@wrap.compensate
def unwrap(ctx: StepContext, line: str | None) -> None:
    undo(ctx, line, "unwrapped")


@step(max_retries=2)
def ship(ctx: StepContext, order: Order) -> str:
    if order.fail == "ship":  # an ordinary error: tried again, three times in all
        raise ConnectionError("no carrier answers")
    return act(ctx, order, "shipped", "")


@ship.compensate
def call_back(ctx: StepContext, line: str | None) -> None:
    undo(ctx, line, "called back")


@step  # the last, for it has no undo: a mail cannot be unsent
def confirm(ctx: StepContext, order: Order) -> str:
    return act(ctx, order, "confirmed", "the mail was refused")


def ledger(*lines: str | None) -> list[str]:
    """None: a step that was skipped."""
    return [line for line in lines if line is not None]


@workflow("order", description="Reserve, charge and ship, or leave everything as it was")
def order(order: Order) -> list[str]:
    reserved, charged = parallel(reserve(order), charge(order))
    with when(order.gift, name="gift"):
        wrapped = wrap(order)
    shipped = ship(order)
    confirmed = confirm(order)
    return transform(reserved, charged, wrapped, shipped, confirmed, fn=ledger)
