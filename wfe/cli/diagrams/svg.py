"""A diagram as SVG, for a report: boxes in the colour of their state, with its sign and its word.

The picture needs nothing from outside: no style sheet, no script, any sans-serif font.
"""

from __future__ import annotations

from collections.abc import Iterator

from wfe.cli import text
from wfe.cli.diagrams.colors import COLORS, NEUTRAL, Color
from wfe.cli.diagrams.diagram import Diagram
from wfe.cli.diagrams.layout import (
    LABEL_FONT,
    LABEL_LINE,
    NAME_FONT,
    NAME_LINE,
    PADDING,
    SIGN,
    Layout,
    Placed,
    Point,
    laid_out,
    width_of,
)

#: White round the picture, and the height of what stands above it.
_MARGIN, _HEAD = 28.0, 54.0
_TITLE_FONT = 16.0
_LINE = "#607d8b"

#: Signs in a square of 10 by 10: filled shapes, and strokes.
_FILLED = {
    "running": "M2 1L9 5L2 9Z",
    "invoking": "M2 1L9 5L2 9Z",
    "compensating": "M8 1L1 5L8 9Z",
    "waiting_to_compensate": "M8 1L1 5L8 9Z",
    "waiting": "M5 1A4 4 0 1 1 5 9A4 4 0 1 1 5 1Z",
    "not_started": "M5 3.5A1.5 1.5 0 1 1 5 6.5A1.5 1.5 0 1 1 5 3.5Z",
    "dormant": "M5 3.5A1.5 1.5 0 1 1 5 6.5A1.5 1.5 0 1 1 5 3.5Z",
    "parked": "M2 1H4V9H2ZM6 1H8V9H6Z",
}
_DRAWN = {
    "done": "M1 5.5L4 8.5L9 1.5",
    "failed": "M1.5 1.5L8.5 8.5M8.5 1.5L1.5 8.5",
    "timeout": "M1.5 1.5L8.5 8.5M8.5 1.5L1.5 8.5",
    "reverted": "M2 2V5.5H5.5M2.3 5.2A3.6 3.6 0 1 0 4.5 1.6",
    "retrying": "M8 2V5.5H4.5M7.7 5.2A3.6 3.6 0 1 1 5.5 1.6",
    "sleeping": "M5 1A4 4 0 1 1 5 9A4 4 0 1 1 5 1ZM5 2.5V5L7 6",
    "interrupted": "M5 1A4 4 0 0 1 9 5M7.8 7.8A4 4 0 0 1 2.2 7.8M1 5A4 4 0 0 1 2.8 1.7",
    "skipped": "M5 1A4 4 0 1 1 5 9A4 4 0 1 1 5 1ZM2.2 7.8L7.8 2.2",
    "skipped_failure": "M5 1A4 4 0 1 1 5 9A4 4 0 1 1 5 1ZM2.2 7.8L7.8 2.2",
}


def drawn(diagram: Diagram) -> str:
    """The picture, as a document of its own."""
    layout = laid_out(diagram)
    words = (diagram.title, diagram.subtitle.text)
    widest = max(width_of(line, _TITLE_FONT * 1.08) for line in words)
    width = max(layout.width, widest + SIGN) + 2 * _MARGIN
    height = layout.height + _HEAD + 2 * _MARGIN
    size = f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}"'
    name = _xml(f"{diagram.title}: {diagram.subtitle.text}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif">',
            f"<title>{name}</title>",
            f'<rect width="{_n(width)}" height="{_n(height)}" fill="#ffffff"/>',
            *_head(diagram),
            *_layout(layout, _MARGIN, _MARGIN + _HEAD),
            "</svg>",
        ]
    )


def _head(diagram: Diagram) -> Iterator[str]:
    word = diagram.subtitle.word
    color = COLORS.get(word, NEUTRAL)
    yield _text(diagram.title, (_MARGIN, _MARGIN + 14), _TITLE_FONT, "#1f2d33", bold=True)
    baseline = _MARGIN + 36
    yield from _sign(word, (_MARGIN, baseline - 9), color.line)
    place = (_MARGIN + (SIGN if word else 0), baseline)
    yield _text(diagram.subtitle.text, place, 12.0, color.ink)


def _layout(layout: Layout, left: float, top: float) -> Iterator[str]:
    for line in layout.lines:
        points = " ".join(f"{_n(x + left)},{_n(y + top)}" for x, y in line)
        yield f'<polyline points="{points}" fill="none" stroke="{_LINE}" stroke-width="1.5"/>'
    for x, y in layout.arrows:
        tip = f"M{_n(x + left)} {_n(y + top)}l-8 -4.5v9Z"
        yield f'<path d="{tip}" fill="{_LINE}"/>'
    for box in layout.boxes:
        yield from _box(box, left, top)


def _box(box: Placed, left: float, top: float) -> Iterator[str]:
    word = box.box.word
    color = COLORS.get(word, NEUTRAL)
    x, y = box.x + left, box.y + top
    yield "<g>"
    yield f"<title>{_xml(_spoken(box))}</title>"
    yield _frame(box, x, y, color)
    line_top = y + PADDING
    for line in box.lines:
        if line.is_name:
            place = (x + PADDING, line_top + NAME_FONT)
            yield _text(line.text, place, NAME_FONT, color.ink, bold=True)
            line_top += NAME_LINE
            continue
        own = COLORS.get(line.word, color)
        yield from _sign(line.word, (x + PADDING, line_top + 2), own.line)
        place = (x + PADDING + (SIGN if line.word else 0), line_top + LABEL_FONT)
        yield _text(line.text, place, LABEL_FONT, own.ink)
        line_top += LABEL_LINE
    yield "</g>"
    if box.inner is not None:
        yield from _layout(box.inner, x + PADDING, line_top + PADDING)


def _frame(box: Placed, x: float, y: float, color: Color) -> str:
    """Thicker where something went wrong, dashed where nothing was done."""
    fill = "#ffffff" if box.inner is not None else color.fill
    thick = "3" if box.box.word in ("failed", "timeout") else "1.5"
    dashes = ' stroke-dasharray="5 3"' if color.is_dashed else ""
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(box.width)}" height="{_n(box.height)}" rx="6" '
        f'fill="{fill}" stroke="{color.line}" stroke-width="{thick}"{dashes}/>'
    )


def _spoken(box: Placed) -> str:
    return ": ".join([box.box.name, ", ".join(label.text for label in box.box.labels)])


def _sign(word: str, place: Point, color: str) -> Iterator[str]:
    x, y = place
    at = f'transform="translate({_n(x)} {_n(y)})"'
    if word in _FILLED:
        yield f'<path d="{_FILLED[word]}" {at} fill="{color}"/>'
    elif word in _DRAWN:
        yield f'<path d="{_DRAWN[word]}" {at} fill="none" stroke="{color}" stroke-width="1.8"/>'


def _text(words: str, place: Point, size: float, color: str, *, bold: bool = False) -> str:
    x, y = place
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{color}"{weight}>'
        f"{_xml(words)}</text>"
    )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _xml(words: str) -> str:
    """As XML has it; what XML cannot hold at all is written as an escape."""
    shown = text.safe(words).replace("\ufffe", r"\ufffe").replace("\uffff", r"\uffff")
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(character, entity)
    return shown
