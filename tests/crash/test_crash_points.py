"""What `kill -9` costs: at most the step in flight, wherever it strikes.

The short form has each flow die at a few kinds of point, at one of each, drawn anew in each run; what
one flow leaves out is the next one's. Of crashes in the middle of a write, and of those that follow
another one, both forms draw a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.crash.checks import Left, check
from tests.crash.conftest import Room
from tests.crash.flows import FLOWS

Plan = dict[int, str | int]

#: The kinds of points, in the order in which they are dealt to flows: half of them to a flow, so that
#: two that follow one another have all, also where neither has anything to undo. Before a commit and
#: inside it the same is in the store.
KINDS = (
    ("before commit", "in commit"),
    ("before",),
    ("after commit",),
    ("in",),
    ("after",),
    ("before ~",),
    ("in ~",),
    ("after ~",),
)


@pytest.mark.parametrize("flow", FLOWS)
def test_a_kill_costs_at_most_the_step_in_flight(flow: str, room: Room) -> None:
    expected = room.left_alone(flow)
    check(expected, expected)
    once = checked(room.perform(flow, plans(flow, expected, room)), expected)
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


def plans(flow: str, expected: Left, room: Room) -> Sequence[Plan]:
    """A death at each point; in the short form at one of each kind that is dealt to the flow."""
    every: list[Plan] = [
        {number: point} for number, report in enumerate(expected.reports) for point in report.points
    ]
    if room.is_full:
        return every
    dealt = KINDS[list(FLOWS).index(flow) % 2 :: 2]
    of_kinds = [[plan for plan in every if kind(plan) in each] for each in dealt]
    return [room.random.choice(of_kind) for of_kind in of_kinds if of_kind]


def kind(plan: Plan) -> str:
    """Of the point at which it dies: `before`, `in` or `after` the function of a step, its undo (`~`),
    or a `commit`."""
    (point,) = plan.values()
    when, what = str(point).split(maxsplit=1)
    if what.startswith("commit "):
        return f"{when} commit"
    return f"{when} ~" if what.startswith("~") else when


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
