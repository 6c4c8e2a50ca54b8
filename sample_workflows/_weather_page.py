"""The page of the weather report: figures in, one self-contained HTML text out. Touches nothing.

Everything that comes from outside passes through `escape`. The chart has one bar per month in each
of two panels that share their months, and a dot for each day that stands out.
"""

from __future__ import annotations

import math
from calendar import month_name
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT = 720, 44, 8
UNITS = {"temp_max": "°C", "precipitation": "mm"}
NAMES = {"temp_max": "High", "precipitation": "Precipitation"}


@dataclass(frozen=True)
class Month:
    #: Such as 2015-12.
    month: str
    #: The sum of its days, in millimetres.
    precipitation: float
    #: Means of its days, in degrees Celsius.
    temp_max: float
    temp_min: float


@dataclass(frozen=True)
class Statistics:
    months: list[Month]
    wettest: Month
    warmest_day: str
    warmest: float


@dataclass(frozen=True)
class Anomaly:
    date: str
    measure: str
    value: float
    #: The mean of its calendar month, and the distance from it in standard deviations.
    mean: float
    score: float


@dataclass(frozen=True)
class Panel:
    """A strip of the chart that shows values from `low` to `high` between two heights."""

    top: float
    height: float
    low: float
    high: float
    step: float

    @classmethod
    def around(cls, top: float, height: float, values: list[float]) -> Panel:
        """One that holds zero and all values, and ends on a round one."""
        low, high = min(0.0, *values), max(1.0, *values)
        rough = (high - low) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        return cls(top, height, low, math.ceil(high / step) * step, step)

    def y(self, value: float) -> float:
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def bar(self, kind: str, x: float, width: float, low: float, high: float, label: str) -> str:
        return (
            f'<rect class="{kind}" x="{x:.1f}" y="{self.y(high):.1f}" width="{width:.1f}"'
            f' height="{max(self.y(low) - self.y(high), 0.5):.1f}" rx="1.5">'
            f"<title>{escape(label)}</title></rect>"
        )

    def grid(self) -> Iterator[str]:
        for number in range(math.ceil(self.low / self.step), round(self.high / self.step) + 1):
            value = number * self.step
            y = self.y(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="value" x="{LEFT - 6}" y="{y + 4:.1f}">{value:g}</text>'


def long_date(day: str) -> str:
    """`2014-08-11` as 11 August 2014, `2014-08` as August 2014."""
    year, month, *rest = day.split("-")
    return " ".join([*(str(int(part)) for part in rest), month_name[int(month)], str(int(year))])


def chart(months: list[Month], anomalies: list[Anomaly]) -> str:
    odd: dict[str, list[Anomaly]] = {measure: [] for measure in UNITS}
    for anomaly in anomalies:
        odd[anomaly.measure].append(anomaly)
    warm = Panel.around(
        34,
        170,
        [v for m in months for v in (m.temp_max, m.temp_min)] + [a.value for a in odd["temp_max"]],
    )
    wet = Panel.around(
        258,
        150,
        [m.precipitation for m in months] + [a.value for a in odd["precipitation"]],
    )
    slot = (WIDTH - LEFT - RIGHT) / len(months)
    left = {month.month: LEFT + number * slot for number, month in enumerate(months)}
    januaries = [month for month in months if month.month.endswith("-01")] or months[:1]
    labelled = januaries[:: math.ceil(60 / (12 * slot))]
    parts = [*warm.grid(), *wet.grid()]
    for title, panel in (("Mean daily low to high, °C", warm), ("Precipitation, mm a month", wet)):
        parts.append(f'<text class="panel" x="{LEFT}" y="{panel.top - 14}">{title}</text>')
    for month in months:
        name, width = long_date(month.month), min(slot * 0.7, 48)
        x = left[month.month] + (slot - width) / 2
        label = f"{name}: {month.temp_min} to {month.temp_max} °C"
        parts.append(warm.bar("warm", x, width, month.temp_min, month.temp_max, label))
        label = f"{name}: {month.precipitation} mm"
        parts.append(wet.bar("wet", x, width, 0, month.precipitation, label))
        if month in labelled:
            parts.append(f'<text x="{x:.1f}" y="430">{int(month.month[:4])}</text>')
    for panel, measure in ((warm, "temp_max"), (wet, "precipitation")):
        for anomaly in odd[measure]:
            x = left[anomaly.date[:7]] + slot * (int(anomaly.date[8:]) - 0.5) / 31
            label = f"{long_date(anomaly.date)}: {anomaly.value} {UNITS[measure]}"
            parts.append(
                f'<circle class="odd" cx="{x:.1f}" cy="{panel.y(anomaly.value):.1f}" r="3.5">'
                f"<title>{escape(label)}</title></circle>"
            )
    return (
        f'<svg viewBox="0 0 {WIDTH} 440" role="img" aria-label="Temperature and precipitation'
        f' of {len(months)} months">{"".join(parts)}</svg>'
    )


def table(anomalies: list[Anomaly]) -> str:
    rows = "".join(
        f"<tr><th scope=row>{long_date(a.date)}<td>{NAMES[a.measure]}"
        f"<td>{a.value:.1f} {UNITS[a.measure]}<td>{a.mean:.1f} {UNITS[a.measure]}<td>{a.score:+.1f}"
        for a in anomalies
    )
    return (
        "<table><thead><tr><th scope=col>Day<th scope=col>Measure<th scope=col>Value"
        "<th scope=col>Usual<th scope=col>z-score</thead>"
        f"<tbody>{rows}</tbody></table>"
    )


STYLE = """
:root { --ink: #1d2733; --soft: #5b6776; --line: #d9dee4; --warm: #e5b567; --wet: #4a7fb5; --odd: #b3261e }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 60rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2 }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.2rem }
p { margin: .25rem 0; color: var(--soft) }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem; margin: 1.75rem 0 }
dl div { padding: .8rem 1rem; border: 1px solid var(--line); border-radius: .5rem }
dt { color: var(--soft); font-size: .85rem }
dd { margin: 0; font-size: 1.2rem; font-weight: 600; line-height: 1.35 }
dd small { display: block; color: var(--soft); font-size: .85rem; font-weight: 400 }
figure { margin: 0 }
figcaption { color: var(--soft); font-size: .85rem }
svg { display: block; width: 100%; height: auto }
svg text { fill: var(--soft); font-size: 11px }
svg .panel { fill: var(--ink); font-size: 12px; font-weight: 600 }
svg .value { text-anchor: end }
svg .grid { stroke: var(--line); stroke-width: 1 }
svg .warm { fill: var(--warm) }
svg .wet { fill: var(--wet) }
svg .odd { fill: var(--odd); stroke: #fff; stroke-width: 1.2 }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th:nth-child(-n+2), td:nth-child(2) { text-align: left }
thead th { color: var(--soft); font-size: .85em; font-weight: 600 }
tbody th { font-weight: 400 }
tr { break-inside: avoid }
@media (max-width: 40rem) {
  body { padding-top: 1.25rem }
  h1 { font-size: 1.5rem }
  svg text { font-size: 19px }
  svg .panel { font-size: 20px }
  svg .odd { r: 5.5px }
  table { font-size: .75rem }
  th, td { padding: .3rem .15rem }
}
@media print {
  body { padding: 0; max-width: none; font-size: 10pt }
  figure, dl div { break-inside: avoid }
}
"""


def page(
    source: str,
    days: int,
    statistics: Statistics,
    anomalies: list[Anomaly],
    approved_by: str | None,
) -> str:
    """The whole page. `approved_by`: who let the anomalies pass; None where nobody was asked."""
    months = statistics.months
    tiles = (
        ("Days", f"{days:,}", f"in {len(months)} {'month' if len(months) == 1 else 'months'}"),
        (
            "Wettest month",
            long_date(statistics.wettest.month),
            f"{statistics.wettest.precipitation} mm",
        ),
        ("Warmest day", long_date(statistics.warmest_day), f"{statistics.warmest} °C"),
        ("Anomalies", f"{len(anomalies)}", "values far from usual"),
    )
    figures = "".join(
        f"<div><dt>{name}<dd>{escape(value)}<small>{escape(note)}</small></div>"
        for name, value, note in tiles
    )
    approval = (
        f"<p>Approved by {escape(approved_by or 'somebody')}." if approved_by is not None else ""
    )
    caption = "<figcaption>Dots: single days that stand out.</figcaption>" if anomalies else ""
    odd = f"<h2>Days that stand out</h2>{approval}{table(anomalies)}" if anomalies else ""
    span = " to ".join(dict.fromkeys(long_date(month.month) for month in (months[0], months[-1])))
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weather report, {span}</title>
<style>{STYLE}</style>
<h1>Weather report</h1>
<p>{span}, from {escape(source)}</p>
<dl>{figures}</dl>
<figure>{chart(months, anomalies)}{caption}</figure>
{odd}
</html>
"""
