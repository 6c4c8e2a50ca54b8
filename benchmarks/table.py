"""The table of the results, as text that is Markdown, and its place in docs/performance.md.

python -m benchmarks.table
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchmarks.pipe import ROOT
from benchmarks.plan import KEPT, TARGETS, WORKLOADS, Target
from benchmarks.results import Results

PAGE = ROOT / "docs" / "performance.md"

_PLACE = re.compile(r"(<!-- results: .*? -->\n).*?(<!-- end of results -->)", re.DOTALL)

#: What is no time: how it is written.
_UNITS = {
    "peak": lambda value: f"{value / 2**20:.1f} MiB",
    "each": lambda value: f"{value / 2**10:.1f} KiB",
    "idle": lambda value: f"{value:.1%}",
    "bare": lambda value: f"{value:.1%}",
    "waiting": lambda value: f"{value:,.0f}",
    "rate": lambda value: f"{value:,.0f}",
}

#: Figures where more is better, or that are no cost: nothing is said of how many times they are.
_PLAIN = ("waiting", "rate", "idle", "bare")

#: What is kept, in the words of the table.
_KEPT = {"none": "nothing", "full": "full", "normal": "normal"}


def shown(figure: str, value: float | None) -> str:
    if value is None:
        return ""
    return _UNITS[figure](value) if figure in _UNITS else _time(value)


def _time(seconds: float) -> str:
    units = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
    unit = next((unit for unit, size in units.items() if seconds >= size), "µs")
    number = seconds / units[unit]
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def times(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are aligned also where nobody renders it; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *others = [
        [
            cell.ljust(width) if number < 2 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    rule = ["-" * width if n < 2 else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *others))


# --- what was measured ---------------------------------------------------------------------------


def comparison(results: Results) -> str:
    head = ("", "kept", "floor", "wfe", "DBOS", "DBOS tuned", "wfe ÷ floor", "DBOS tuned ÷ wfe")
    return markdown([head, *_rows(results)])


def _rows(results: Results) -> Iterator[Sequence[str]]:
    for workload in WORKLOADS:
        if workload.name not in results.names():
            continue
        for figure in results.figures(workload.name):
            if workload.titles and figure not in workload.titles:
                continue
            title = workload.titles.get(figure, figure)
            for kept in KEPT:
                row = _row(results, workload.name, figure, kept)
                if any(row):
                    yield (title, _KEPT[kept] if len(workload.kept) > 1 else "", *row)
                    title = ""


def _row(results: Results, workload: str, figure: str, kept: str) -> list[str]:
    floor, wfe, dbos = ((workload, figure, f"{side} {kept}") for side in ("floor", "wfe", "dbos"))
    medians = [results.median(floor), results.median(wfe)]
    medians.append(results.median((workload, figure, "dbos default")) if kept == "full" else None)
    medians.append(results.median(dbos))
    row = [shown(figure, value) for value in medians]
    if figure not in _PLAIN:
        row += [times(results.ratio(wfe, floor)), times(results.ratio(dbos, wfe))]
    else:
        row += ["", ""]
    return row


def targets(results: Results) -> str:
    rows = [("aim", "", "limit", "reached")]
    for target in TARGETS:
        reached = results.reached(target)
        if reached is None:
            continue
        is_met = reached >= target.limit if target.at_least else reached <= target.limit
        limit = f"{'≥' if target.at_least else '≤'} {_of(target, target.limit)}"
        rows.append((target.text, "met" if is_met else "missed", limit, _of(target, reached)))
    return markdown(rows)


def _of(target: Target, value: float) -> str:
    return times(value) if target.of is not None else shown(target.figure[1], value)


def broken(results: Results) -> str:
    return "".join(
        f"- {side}, {workload}: {reason}\n" for (workload, side), reason in results.broken().items()
    )


# --- the page ------------------------------------------------------------------------------------


def section(results: Results) -> str:
    """What stands in docs/performance.md between the markers."""
    about = results.about
    machine = (
        f"{about['date']}, {about['machine']}, {about['system']}, load {about['load']:.1f} at the start. "
        f"{about['versions']}.{' ' + about['note'] if about.get('note') else ''}\n"
    )
    parts = [machine, comparison(results), targets(results), broken(results)]
    return "\n" + "\n".join(part for part in parts if part) + "\n"


def page(results: Results, text: str) -> str:
    """The page with these results."""
    made = section(results)
    return _PLACE.sub(lambda found: found[1] + made + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(Results.read(), PAGE.read_text()))
