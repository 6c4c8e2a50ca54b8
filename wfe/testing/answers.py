"""Answers: what a test says to steps that wait for it, by their names.

A step is named `approve`, its undo `~approve`; an idempotency key names it in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wfe.authoring.workflows import Workflow
from wfe.errors import PermanentStepFailure, UsageError
from wfe.model import Action, CommandResult, StepKey
from wfe.near import near
from wfe.runtime.engine import Engine
from wfe.store.contract import CheckpointStore, WaitingStep
from wfe.testing.families import family

#: By name: a value, an exception, or a function of the attempt that returns either.
Answers = Mapping[str, Any]


def checked(answers: Answers | None, workflow: Workflow[Any, Any]) -> Answers:
    """
    Raises:
        UsageError: an answer is for a step that there is not.
    """
    steps = [name for each in family(workflow) for name in each.flow.steps]
    for name in answers or {}:
        step = StepKey.parse(name).step if ":" in name else name.removeprefix("~")
        if step not in steps:
            raise UsageError(
                f"answers has {name!r}, but {workflow.id!r} has no step of that name.",
                hint=near(step, steps) or f"Steps: {', '.join(steps)}.",
            )
    return answers or {}


def key_of(step: WaitingStep) -> StepKey:
    return StepKey(step.workflow_id, step.transaction_id, step.step, step.action)


def short(key: StepKey) -> str:
    """`approve`, or `~approve` for its undo."""
    return f"~{key.step}" if key.action is Action.COMPENSATE else key.step


async def give(engine: Engine, key: StepKey | str, answer: Any, **options: Any) -> CommandResult:
    """Answer a step: a failure where the answer is an exception, which is not retried where it is a
    PermanentStepFailure."""
    if isinstance(answer, BaseException):
        options.setdefault("force_permanent_failure", isinstance(answer, PermanentStepFailure))
        return accepted(await engine.set_step_failure(key, answer, throw_on_error=False, **options))
    return accepted(await engine.set_step_success(key, answer, throw_on_error=False, **options))


async def answer_one(engine: Engine, store: CheckpointStore, answers: Answers) -> bool:
    """Answer the first step that waits and has an answer; False where there is none."""
    if not answers:
        return False
    for step in store.reader.steps_waiting():
        key = key_of(step)
        for name in (str(key), short(key)):
            if name in answers:
                answer = answers[name]
                if isinstance(answer, type):
                    answer = answer()
                elif callable(answer):
                    answer = answer(step.attempts)
                await give(engine, key, answer, until="stored")
                return True
    return False


def accepted(result: CommandResult) -> CommandResult:
    """The result of a command that was not refused.

    Raises:
        WfeError: the refusal.
    """
    if result.acknowledgement.reason is not None:
        raise result.acknowledgement.reason
    return result
