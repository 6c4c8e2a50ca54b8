"""How what dead processes have left is taken up again: the one place that knows."""

from __future__ import annotations

from wfe.model import FINAL_STATES, CommandResult, ExecutionKey
from wfe.runtime.engine import Engine

#: What a state is that is not the last one, as a query says it.
UNFINISHED = {"$nin": [str(state) for state in FINAL_STATES]}


async def recover(engine: Engine) -> None:
    """Take up whatever could go on and is in no living process's hand; it goes on by itself."""
    await engine.recover()


async def take_up(engine: Engine, key: ExecutionKey) -> CommandResult:
    """Take up one execution that a dead process has left; what its caller was told."""
    return await engine.resume(
        key.workflow_id, key.transaction_id, until="stored", throw_on_error=False
    )
