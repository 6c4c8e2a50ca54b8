"""The public surface: which names there are, and that naming them is all that `import wfe` does."""

from __future__ import annotations

import subprocess
import sys

import wfe

NAMES = """
Acknowledgement Action CommandResult DefinitionChanged DefinitionError DuplicateStep
DuplicateWorkflow Engine ErrorRecord Event EventKind Execution ExecutionCancelled ExecutionError
ExecutionKey ExecutionState IdempotencyConflict InputMismatch InvalidInput InvalidName InvalidOption
InvalidSchedule InvalidTransactionId MalformedKey NonSerializableValue NotAllowed NotFound
OnFinish PermanentStepFailure Recording ReferenceMisuse Refused Registry Schedule Scheduler SchemaTooNew Step
StepContext StepFailed StepKey StepNotFound StepNotWaiting StepResponse StepState StepStatus
StoreBusy StoreError StoreUnusable TransactionExists TransactionFinished TransactionNotFound
TransactionStepTimeoutError TransactionTimeoutError UsageError WfeError Workflow WorkflowNotFound
WorkflowResponse WrongAction hook parallel resource sleep step transform when workflow
"""


def test_the_public_names_are_these() -> None:
    assert wfe.__all__ == NAMES.split() == sorted(NAMES.split())
    assert set(wfe.__all__) <= set(dir(wfe))


def test_every_public_name_is_there() -> None:
    for name in wfe.__all__:
        assert getattr(wfe, name).__module__.startswith("wfe.")


def words_of(script: str) -> list[str]:
    """What a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_importing_the_package_loads_nothing_else() -> None:
    script = (
        "import sys; before = set(sys.modules); import wfe; "
        "print(*sorted(set(sys.modules) - before - {'__future__'}))"
    )
    printed = words_of(script)
    assert printed == ["wfe"]


def test_authoring_does_not_load_what_only_running_needs() -> None:
    script = (
        "import sys; from wfe import StepContext, hook, parallel, resource, sleep, step, transform, "
        "when, workflow; print(*sorted(sys.modules))"
    )
    printed = words_of(script)
    heavy = {"asyncio", "logging", "peewee", "pydantic", "rich", "typer", "croniter", "ulid"}
    assert not heavy & set(printed)
    loaded = {name for name in printed if name.startswith("wfe.")}
    assert {name.split(".")[1] for name in loaded} == {
        "authoring",
        "durations",
        "endings",
        "errors",
        "model",
        "near",
        "plain",
    }
