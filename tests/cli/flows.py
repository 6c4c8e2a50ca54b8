"""Workflows that the tests of the command line run."""

from __future__ import annotations

FLOWS = """
import subprocess

from wfe import PermanentStepFailure, StepContext, WorkflowResponse, parallel, step, when, workflow


@step
def echo(value):
    print("printed by a step")
    subprocess.run(["echo", "printed by a program"])
    return value


@workflow("echo")
def echo_back(value):
    return WorkflowResponse(echo(value))


@step
def reserve(ctx: StepContext, order: dict) -> str:
    ctx.progress(0.5, "half way")
    ctx.logger.info("reserving")
    return "stock"


@reserve.compensate
def release(stock):
    pass


@step(max_retries=1)
def charge(order: dict) -> str:
    if order.get("fail") == "charge":
        raise RuntimeError("the gateway is down")
    return "receipt"


@charge.compensate
def refund(receipt):
    pass


@step
def wrap(stock: str) -> str:
    return "paper"


@step
def ship(order: dict) -> str:
    if order.get("fail") == "ship":
        raise PermanentStepFailure("no truck today")
    return "shipped"


@workflow("order", description="Reserve, charge, ship.")
def order(order: dict):
    stock, receipt = parallel(reserve(order), charge(order))
    with when(order["gift"], name="gift"):
        wrap(stock)
    return WorkflowResponse({"stock": stock, "receipt": receipt, "sent": ship(order)})


@step
def build(order: dict) -> str:
    return "a wall"


@build.compensate
def unbuild(wall):
    raise RuntimeError("it cannot be unbuilt")


@workflow("wall")
def wall(order: dict):
    build(order)
    ship(order)


@step(async_=True)
def approve(version) -> None:
    return None


@step
def publish(approval) -> str:
    return f"published by {approval}"


@workflow("publish")
def publishing(version):
    return WorkflowResponse(publish(approve(version)))


@workflow("two-answers")
def two_answers():
    parallel(approve.config(name="left")(1), approve.config(name="right")(2))


@step(async_=True, timeout=0.05)
def silence() -> None:
    return None


@workflow("late")
def late():
    silence()
"""
