"""The lint of workflows: what can be seen of them without running a step.

    look_through(catalog, now) -> findings

Modules that do not load, names that are defined twice, and an `on_finish` that cannot be are errors that
are seen in all workflows together (NOTICED); the rest is found by RULES, each of which looks at one
workflow. What is found at one line of code is told once, however many workflows use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from wfe.authoring.workflows import Workflow
from wfe.discover import Catalog
from wfe.errors import DuplicateWorkflow, ModuleFailed
from wfe.lint import naming, schedules, telling, timing, undo
from wfe.lint.findings import Finding, Level, Rule

#: What is noticed of all workflows together: code → what it is.
NOTICED = {
    "import": "a module that does not load: what is in it cannot be run",
    "duplicate": "one name for two workflows: neither of them can be run by it",
    telling.CODE: "an on_finish that names a workflow that is not there, or that leads back to its own",
}

RULES: Sequence[Rule] = (
    Rule(
        "schedule",
        Level.ERROR,
        "a schedule that gives its workflow an input that does not fit, or cannot be followed",
        schedules.refused,
    ),
    Rule(
        "schedule-doubt",
        Level.WARNING,
        "a schedule that says something else than it seems to: */90 minutes is hourly",
        schedules.doubtful,
    ),
    Rule(
        "no-undo",
        Level.WARNING,
        "a step without an undo, and another one may fail after it: it would stay done while all "
        "else is undone; @step(pure=True) says that there is nothing to undo",
        undo.without_undo,
        once=True,
    ),
    Rule(
        "pure-undo",
        Level.WARNING,
        "a step that is said to leave nothing to undo, but has an undo",
        undo.pure_with_undo,
    ),
    Rule(
        "undo-none",
        Level.WARNING,
        "an undo whose parameter cannot be None: a step that fails before it returns has nothing to "
        "hand over, and is undone all the same",
        undo.cannot_take_none,
        once=True,
    ),
    Rule(
        "unsaved-undo",
        Level.ERROR,
        "an undo that wants what its step has returned, and the step does not keep it",
        undo.receives_nothing,
    ),
    Rule(
        "no-timeout",
        Level.WARNING,
        "a step that waits for an answer, and neither it nor its workflow has a timeout",
        timing.waits_for_ever,
    ),
    Rule(
        "short-timeout",
        Level.WARNING,
        "a timeout that passes before the retries it covers are over, or that another one forestalls",
        timing.short_timeouts,
    ),
    Rule(
        "idle-option",
        Level.WARNING,
        "an option of a step that has no effect without another one",
        timing.idle_options,
    ),
    Rule(
        "name",
        Level.WARNING,
        "a name that is hard to type or to read in a key",
        naming.awkward,
    ),
    Rule(
        "alike",
        Level.WARNING,
        "two names that are easily mistaken for each other",
        naming.alike_steps,
    ),
)


def look_through(
    catalog: Catalog, now: datetime, *, only: Workflow[Any, Any] | None = None
) -> list[Finding]:
    """What there is to say about the workflows of `catalog`, in order of files and lines; `only`: about
    this one of them, whatever is wrong with others."""
    every = [catalog.registry.get(name) for name in catalog.registry.ids()]
    known = {workflow.id: workflow for workflow in every}
    if only is not None:
        return _in_order([*telling.of_ends(only, known), *_of_workflow(only, now)])
    found = [*_noticed(catalog), *_alike(every)]
    found += [finding for workflow in every for finding in telling.of_ends(workflow, known)]
    return _in_order([*found, *(f for workflow in every for f in _of_workflow(workflow, now))])


def _of_workflow(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Finding]:
    for rule in RULES:
        for said in rule.look(workflow, now):
            yield Finding(
                rule.code,
                rule.level,
                said.message,
                said.hint,
                *(said.place or workflow.source),
                workflow=workflow.id,
                step=said.step,
            )


def _noticed(catalog: Catalog) -> Iterator[Finding]:
    for failure in catalog.failures:
        yield _of_failure(failure)
    for conflict in catalog.conflicts.values():
        yield _of_conflict(conflict)


def _of_failure(failure: ModuleFailed) -> Finding:
    place = failure.place or (None, None)
    # The message begins with the place, as a person in the current folder would write it.
    message = failure.message if failure.place is None else failure.message.partition(": ")[2]
    return Finding("import", Level.ERROR, message, failure.hint, *place)


def _of_conflict(conflict: DuplicateWorkflow) -> Finding:
    place = conflict.file, conflict.line
    return Finding("duplicate", Level.ERROR, conflict.message, conflict.hint, *place)


def _alike(workflows: Sequence[Workflow[Any, Any]]) -> Iterator[Finding]:
    by_id = {workflow.id: workflow for workflow in workflows}
    for name, other in naming.pairs_alike(by_id):
        message = f"The workflows {other!r} and {name!r} are named alike."
        yield Finding("alike", Level.WARNING, message, "", *by_id[name].source, workflow=name)


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By place, each once."""
    once = {rule.code for rule in RULES if rule.once}
    first: dict[object, Finding] = {}
    for finding in findings:
        what = None if finding.code in once else finding.message
        first.setdefault((finding.code, finding.file, finding.line, what), finding)
    return sorted(first.values(), key=lambda one: (one.file or "", one.line or 0, one.code))
