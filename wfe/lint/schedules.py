"""Schedules that mean nothing, never fire, or say something else than they seem to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from wfe.authoring.places import Place
from wfe.authoring.workflows import Workflow
from wfe.errors import InvalidInput, InvalidSchedule
from wfe.lint.findings import Said


def refused(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Schedules that could not be followed."""
    if workflow.schedule is None:
        return
    from wfe.scheduling.schedule import Timetable

    try:
        timetable = Timetable(workflow.schedule, anchor=now)
    except InvalidSchedule as error:
        yield Said(f"{workflow.id!r}: {error.message}", error.hint, Place(*workflow.source))
        return
    try:
        workflow.check_input(timetable.input_for(now))
    except InvalidInput as error:
        yield Said(
            f"The schedule of {workflow.id!r} gives it an input that does not fit: {error.message}",
            "Write Schedule(..., input=...).",
            Place(*workflow.source),
        )


def doubtful(workflow: Workflow[Any, Any], now: datetime) -> Iterator[Said]:
    """Schedules whose writer may not mean what they say."""
    if workflow.schedule is None:
        return
    from wfe.scheduling.schedule import Timetable

    try:
        timetable = Timetable(workflow.schedule, anchor=now)
    except InvalidSchedule:
        return  # `refused` tells
    place, text = Place(*workflow.source), timetable.timing.text
    for warning in timetable.timing.warnings:
        yield Said(f"The schedule {text!r} of {workflow.id!r}: {warning}", "", place)
    if timetable.next(now) is None:
        yield Said(f"The schedule {text!r} of {workflow.id!r} fires no more.", "", place)
