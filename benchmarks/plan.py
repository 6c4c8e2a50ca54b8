"""What is measured, on whom, how often, and what the figures should come to. Data, no doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What is kept of an execution: nothing; what survives a loss of power; what survives a killed process.
KEPT = ("none", "full", "normal")


@dataclass(frozen=True)
class Workload:
    """One thing that all sides do.

    `arguments`, and `unstored` in its stead where nothing is kept, are what a side is asked with; `quick` is
    for the short form. `prepare` is asked before all rounds, and may take its time. `alone`: every measurement
    has a process of its own, because it is about memory, or begins with a crash. `kept`: with which settings;
    `dbos`: with which of its own.
    """

    name: str
    measure: str
    arguments: Mapping[str, Any]
    quick: Mapping[str, Any]
    titles: Mapping[str, str]
    unstored: Mapping[str, Any] | None = None
    rounds: int = 7
    alone: bool = False
    kept: tuple[str, ...] = KEPT
    floor: tuple[str, ...] = KEPT
    dbos: tuple[str, ...] = ("default", "full", "normal")
    crashes: bool = False
    prepare: str | None = None

    def asked(self, kept: str, *, quick: bool) -> Mapping[str, Any]:
        if quick:
            return self.quick
        return self.unstored if kept == "none" and self.unstored is not None else self.arguments


WORKLOADS = (
    Workload(
        "five",
        "each",
        {"name": "sequence-5", "count": 20},
        {"name": "sequence-5", "count": 2},
        {"seconds": "5 steps, one after the other", "rate": "such executions in a second"},
        unstored={"name": "sequence-5", "count": 400},
        rounds=9,
    ),
    Workload(
        "parallel",
        "each",
        {"name": "parallel-100", "count": 2},
        {"name": "parallel-100", "count": 1},
        {"seconds": "100 parallel steps"},
        unstored={"name": "parallel-100", "count": 20},
    ),
    Workload(
        "steps",
        "steps",
        {"counts": {"10": 10, "100": 2, "1000": 1}},
        {"counts": {"10": 1, "100": 1}},
        {
            "10": "a step of a workflow of 10",
            "100": "a step of a workflow of 100",
            "1000": "a step of a workflow of 1,000",
        },
        unstored={"counts": {"10": 200, "100": 20, "1000": 2}},
    ),
    Workload(
        "together",
        "together",
        {"count": 1000},
        {"count": 20},
        {
            "seconds": "1,000 executions of 5 steps at once",
            "peak": "its peak memory above an empty process",
        },
        rounds=5,
        alone=True,
        floor=("full", "normal"),
    ),
    Workload(
        "beside",
        "beside",
        {"count": 200},
        {"count": 5},
        {
            "alone": "200 executions of 5 steps at once",
            "busy": "the same while a thread computes",
        },
        rounds=5,
        kept=("full",),
        floor=(),
        dbos=(),
    ),
    Workload(
        "awaiting",
        "awaiting",
        {"count": 10_000, "within": 40, "idle": 5, "settle": 12},
        {"count": 50, "within": 5, "idle": 0.2, "settle": 0},
        {
            "waiting": "executions that wait for an answer",
            "begin": "to begin one of them",
            "each": "memory of each",
            "idle": "processor time while all wait",
            "bare": "the same while there are none",
        },
        rounds=3,
        alone=True,
        floor=(),
        # All of it is reading: what a commit costs is of little weight.
        dbos=("default", "normal"),
    ),
    Workload(
        "recovery",
        "recover",
        {"count": 1000},
        {"count": 10},
        {"seconds": "1,000 in flight, killed, recovered"},
        rounds=5,
        alone=True,
        kept=("full", "normal"),
        floor=(),
        crashes=True,
    ),
    Workload(
        "commands",
        "commands",
        {"rows": 1000},
        {"rows": 1000},
        {},
        rounds=15,
        prepare="fill_for_commands",
        kept=("none",),
        floor=("none",),
        dbos=(),
    ),
    Workload(
        "listing",
        "listing",
        {"rows": 1_000_000},
        {"rows": 2000},
        {},
        prepare="fill_for_listing",
        kept=("normal",),
        floor=(),
        dbos=(),
    ),
)


#: A workload, its figure, and who: `wfe full`, `floor none`, `dbos default`.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Target:
    """What a figure, or how many times another it is, should come to: at most `limit`, or at least."""

    text: str
    figure: Key
    limit: float
    of: Key | None = None
    at_least: bool = False


def _as_it_comes(text: str, workload: str, limit: float) -> Target:
    """What DBOS takes as `pip install dbos` leaves it, next to wfe of the same durability."""
    return Target(
        f"{text}: DBOS as it comes ÷ wfe, full",
        (workload, "seconds", "dbos default"),
        limit,
        (workload, "seconds", "wfe full"),
        at_least=True,
    )


def _both(
    text: str, workload: str, limit: float, above: str, below: str, **how: bool
) -> list[Target]:
    """The same for both durabilities."""
    return [
        Target(
            f"{text}, {kept}",
            (workload, "seconds", f"{above} {kept}"),
            limit,
            (workload, "seconds", f"{below} {kept}"),
            **how,
        )
        for kept in ("full", "normal")
    ]


def _command(name: str, side: str) -> Key:
    return ("commands", name, f"{side} none")


TARGETS = (
    _as_it_comes("5 steps", "five", 10),
    *_both("5 steps: DBOS tuned ÷ wfe", "five", 10, "dbos", "wfe", at_least=True),
    Target(
        "5 steps: wfe ÷ floor, full",
        ("five", "seconds", "wfe full"),
        2,
        ("five", "seconds", "floor full"),
    ),
    _as_it_comes("1,000 at once", "together", 40),
    *_both("1,000 at once: DBOS tuned ÷ wfe", "together", 40, "dbos", "wfe", at_least=True),
    *_both("1,000 at once: wfe ÷ floor", "together", 2.5, "wfe", "floor"),
    Target("1,000 at once: peak memory", ("together", "peak", "wfe full"), 60 * 2**20),
    Target(
        "5 steps, not kept: wfe ÷ floor",
        ("five", "seconds", "wfe none"),
        4,
        ("five", "seconds", "floor none"),
    ),
    *(
        Target(
            f"a step of 1,000 ÷ a step of 10, {kept}",
            ("steps", "1000", f"wfe {kept}"),
            1.15,
            ("steps", "10", f"wfe {kept}"),
        )
        for kept in KEPT
    ),
    *(
        Target(
            f"10,000 awaiting: memory of each, {kept}",
            ("awaiting", "each", f"wfe {kept}"),
            3 * 2**10,
        )
        for kept in ("none", "full")
    ),
    *(
        Target(
            f"10,000 awaiting: processor time, {kept}", ("awaiting", "idle", f"wfe {kept}"), 0.001
        )
        for kept in ("none", "full")
    ),
    _as_it_comes("recovery of 1,000", "recovery", 15),
    *_both("recovery of 1,000: DBOS tuned ÷ wfe", "recovery", 15, "dbos", "wfe", at_least=True),
    Target(
        "wfe --help ÷ bare help",
        _command("wfe --help", "wfe"),
        1.5,
        _command("wfe --help", "floor"),
    ),
    Target(
        "executions list ÷ bare imports",
        _command("executions list", "wfe"),
        1.3,
        _command("executions list", "floor"),
    ),
    *(
        Target(f"1,000,000 rows: {page}", ("listing", page, "wfe normal"), 0.005)
        for page in ("the newest page", "a page half way", "--state failed")
    ),
    *(
        Target(f"1,000,000 rows: {question}", ("listing", question, "wfe normal"), 0.1)
        for question in (
            "-q order-2026-0500000",
            "-q nonexistent",
            "-q zq7",
            "--count",
            "--count --state done",
            "--count --state waiting",
        )
    ),
)
