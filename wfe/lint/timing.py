"""Steps that may wait for ever, and timeouts and options that cannot do what they are there for."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Awaitable, Iterator
from datetime import datetime
from typing import Any, Union

from wfe.authoring.nodes import Node
from wfe.authoring.responses import StepResponse
from wfe.authoring.workflows import Workflow
from wfe.engine.endings import retry_delay
from wfe.lint.findings import Said, of_step, seconds
from wfe.model import StepKind, StepOptions


def waits_for_ever(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Steps that wait for an answer, without a limit."""
    if workflow.options.timeout is not None:
        return
    for node in workflow.nodes.values():
        options = node.spec.options
        if options.async_ and options.timeout is None and _may_await(node):
            yield of_step(
                node,
                f"The step {node.spec.name!r} of {workflow.id!r} may wait for an answer for ever.",
                "Give it a timeout, or the workflow: @step(async_=True, timeout=7 * 24 * 3600).",
            )


def short_timeouts(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Timeouts that pass before what they are the limit of can be over."""
    whole = workflow.options.timeout
    for node in workflow.nodes.values():
        name, options = node.spec.name, node.spec.options
        for what, wait in _waits(options):
            for whose, limit in (("its timeout", options.timeout), ("the workflow's", whole)):
                if limit is not None and wait >= limit:
                    yield of_step(
                        node,
                        f"The step {name!r} of {workflow.id!r}: {what} take {seconds(wait)} in all, "
                        f"but {whose}, {seconds(limit)}, passes before.",
                        "Raise the timeout, or retry less.",
                    )
                    break
        if options.timeout is not None and whole is not None and options.timeout >= whole:
            yield of_step(
                node,
                f"The timeout of the step {name!r}, {seconds(options.timeout)}, never passes: that of "
                f"{workflow.id!r}, {seconds(whole)}, passes before.",
            )


def idle_options(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Options that have no effect without another one."""
    for node in workflow.nodes.values():
        for names, needed in _idle(node.spec.options):
            yield of_step(
                node,
                f"The step {node.spec.name!r} of {workflow.id!r}: {' and '.join(names)} "
                f"{'have' if len(names) > 1 else 'has'} no effect without {needed}.",
            )


def _waits(options: StepOptions) -> Iterator[tuple[str, float]]:
    """What a step waits for by itself, and how many seconds that takes at least, jitter left out."""
    if options.auto_retry and options.max_retries and options.retry_interval:
        yield "the waits between its retries", _all_retries(options)
    if options.retry_interval_awaiting is not None and options.max_awaiting_retries:
        again = options.retry_interval_awaiting * options.max_awaiting_retries
        yield "the intervals at which it is to ask again", again


def _all_retries(options: StepOptions) -> float:
    """Seconds between the first attempt and the last one, without the attempts themselves. Beyond
    `_COUNTED` retries each wait is taken to be as long as the one before."""
    counted = min(options.max_retries, _COUNTED)
    delays = [retry_delay(options, failures, 0.0) for failures in range(1, counted + 1)]
    return sum(delays) + (options.max_retries - counted) * delays[-1]


#: Enough to be exact, and so few that no power of a backoff overflows.
_COUNTED = 200


def _idle(options: StepOptions) -> Iterator[tuple[list[str], str]]:
    shape = {
        "retry_backoff": options.retry_backoff != 1.0,
        "retry_max_interval": options.retry_max_interval is not None,
        "retry_jitter": options.retry_jitter != 0.0,
    }
    given = [name for name, is_given in shape.items() if is_given]
    if not options.retry_interval and given:
        yield given, "retry_interval"
    elif not options.max_retries and options.retry_interval:
        yield ["retry_interval", *given], "max_retries"
    if options.retry_interval_awaiting is None and options.max_awaiting_retries is not None:
        yield ["max_awaiting_retries"], "retry_interval_awaiting"
    elif options.retry_interval_awaiting is not None and not options.async_:
        yield ["retry_interval_awaiting"], "async_"


# --- what may wait for an answer -----------------------------------------------------------------


def _may_await(node: Node) -> bool:
    """Whether an answer may have to come from outside, as far as annotations tell; a nested workflow
    waits by its own rules."""
    if node.spec.kind is not StepKind.STEP:
        return False
    function = inspect.unwrap(node.handler.function)
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    return "awaiting" in names or _may_be_none(node.handler.signature.returns)


def _may_be_none(returns: Any) -> bool:
    """Whether a function of this annotation may return None, by which an async step says that it
    waits."""
    origin = typing.get_origin(returns)
    if origin is Awaitable:
        return _may_be_none(typing.get_args(returns)[0])
    if origin in (Union, types.UnionType):
        return any(map(_may_be_none, typing.get_args(returns)))
    return returns in (None, Any, type(None)) and returns is not StepResponse
