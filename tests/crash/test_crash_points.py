"""What `kill -9` costs: at most the step in flight, wherever it strikes.

The short form leaves out points at which the same is in the store as at others: of those before and
inside a transaction it takes one, drawn anew in each run. Of crashes in the middle of a write, and of
those that follow another one, both forms draw a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.crash.checks import Left, check
from tests.crash.conftest import Room
from tests.crash.flows import FLOWS
from tests.crash.life import Report

Plan = dict[int, str | int]


@pytest.mark.parametrize("flow", FLOWS)
def test_a_kill_costs_at_most_the_step_in_flight(flow: str, room: Room) -> None:
    expected = room.left_alone(flow)
    check(expected, expected)
    plans: list[Plan] = [
        {number: point}
        for number, report in enumerate(expected.reports)
        for point in points(report, room)
    ]
    once = checked(room.perform(flow, room.sample(plans, 10)), expected)
    some = room.random.sample(once, min(len(once), 40 if room.is_full else 1))
    again = [plan for found in some if (plan := one_more(found, room)) is not None]
    log = expected.reports[0].log
    logs = [room.random.randrange(4096, log) for _ in range(40 if room.is_full else 1)]
    more = checked(
        room.perform(
            flow,
            [*again, *({} for _ in logs)],
            logs=[*(None for _ in again), *logs],
        ),
        expected,
    )
    twice, torn = more[: len(again)], more[len(again) :]
    room.count(
        crash_points=sum(len(report.points) for report in expected.reports),
        kills_at_them=kills(once) + kills(twice),
        kills_in_a_write=kills(torn),
    )


def test_a_kill_while_the_database_is_made_costs_nothing(room: Room) -> None:
    (expected,) = room.perform("linear", [{}], is_new=True)
    made = expected.reports[0].points
    plans: list[Plan] = [{0: point} for point in made[: made.index("before first")]]
    found = checked(room.perform("linear", room.sample(plans, 6), is_new=True), expected)
    room.count(crash_points=len(plans), kills_at_them=kills(found))


def points(report: Report, room: Room) -> Iterator[str]:
    """The points of a process; in the short form one of those that come to the same."""
    same: list[str] = []
    for point in report.points:
        if not room.is_full and point.startswith(("before commit", "in commit")):
            same.append(point)
            continue
        if same:
            yield room.random.choice(same)
            same = []
        yield point


def one_more(found: Left, room: Room) -> Plan | None:
    """Let a process that came after the crash crash as well."""
    (first,) = found.play.plan
    later = [
        (number, point)
        for number, report in enumerate(found.reports)
        for point in report.points
        if number > first
    ]
    return {**found.play.plan, **dict([room.random.choice(later)])} if later else None


def checked(plays: Iterator[Left], expected: Left) -> Sequence[Left]:
    all_found = list(plays)
    for found in all_found:
        check(found, expected)
    return all_found


def kills(plays: Sequence[Left]) -> int:
    return sum(report.died is not None for found in plays for report in found.reports)
