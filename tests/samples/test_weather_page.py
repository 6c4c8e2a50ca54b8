"""The page of the weather report: complete in itself, and safe whatever the file and people say."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from .support import module

VOID = {"meta"}
#: Elements whose end tag HTML lets one leave out.
OPEN = {"p", "dt", "dd", "th", "td", "tr"}


class Outline(HTMLParser):
    """The elements of a page, and those that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID | OPEN:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPEN:
            assert self.stack.pop() == tag


def page(months: int = 1, odd: int = 0, source: str = "a.csv", by: str | None = None) -> str:
    made: Any = module("sample_workflows._weather_page")
    names = [f"{2000 + n // 12}-{n % 12 + 1:02}" for n in range(months)]
    figures = [
        made.Month(name, n * 1.5, 20.0 - n % 30, 3.0 - n % 30) for n, name in enumerate(names)
    ]
    anomalies = [
        made.Anomaly(f"{names[n % months]}-{n % 28 + 1:02}", measure, n - 7.5, 1.0, 3.3)
        for n in range(odd)
        for measure in ("temp_max", "precipitation")
    ]
    statistics = made.Statistics(figures, figures[-1], f"{names[0]}-01", 20.0)
    return str(made.page(source, months * 30, statistics, anomalies, by))


def chart(text: str) -> ET.Element:
    return ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


@pytest.mark.parametrize("months", [1, 2, 48, 600])
@pytest.mark.parametrize("odd", [0, 20])
def test_every_month_has_two_bars_and_every_anomaly_a_dot(months: int, odd: int) -> None:
    text = page(months, odd, by="kim" if odd else None)
    assert Outline(text).stack == []
    drawn = chart(text)
    assert len(drawn.findall("rect")) == 2 * months
    assert len(drawn.findall("circle")) == 2 * odd
    assert text.count("<tr><th scope=row>") == 2 * odd


@pytest.mark.parametrize("months", [1, 48, 600])
def test_nothing_is_drawn_outside_of_the_chart(months: int) -> None:
    drawn = chart(page(months, 20))
    width, height = (float(part) for part in drawn.attrib["viewBox"].split()[2:])
    for rect in drawn.findall("rect"):
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert min(x, y, w, h) >= 0
        assert x + w <= width
        assert y + h <= height
    for circle in drawn.findall("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height


def test_the_years_do_not_run_into_each_other() -> None:
    labels = [t for t in chart(page(600)).findall("text") if re.fullmatch("20..", t.text or "")]
    places = [float(label.attrib["x"]) for label in labels]
    assert len(places) > 5
    assert min(b - a for a, b in pairwise(places)) >= 40


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = page(48, 20, by="kim")
    seen = Outline(text).seen
    assert not {tag for tag, _ in seen} & {"script", "link", "img", "iframe", "object"}
    assert not [a for _, attrs in seen for a in attrs if a in ("href", "src") or a.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", text)


def test_what_comes_from_outside_is_escaped() -> None:
    evil = "<script>alert('1')</script>&\""
    text = page(odd=1, source=evil, by=evil)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&amp;&quot;") == 2
