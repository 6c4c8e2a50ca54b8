"""Where the boxes of a diagram stand on paper, and the lines between them. In pixels, from the top left.

Stages stand side by side in bands; what a band has no room for goes on in the next one. A box is as large
as its text, by widths of letters that are generous for any sans-serif font, and holds the diagram of a
nested workflow below its text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wfe.cli import text
from wfe.cli.diagrams.diagram import Box, Diagram, Label

#: Sizes of fonts, and the heights of lines in them.
NAME_FONT, LABEL_FONT = 13.0, 11.0
NAME_LINE, LABEL_LINE = 18.0, 16.0
#: Between the line of a box and its text; room for the sign of a state.
PADDING, SIGN = 10.0, 16.0

#: The longest line of text in a box, and the longest band at the top level.
_WIDEST, _BAND = 180.0, 1100.0
_ACROSS, _DOWN, _BANDS_APART = 44.0, 14.0, 40.0

#: Widths of letters by the size of the font.
_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[]{}/\\ -"), frozenset("mwMW@%&")

Point = tuple[float, float]


class Line(NamedTuple):
    """A line of text in a box, and the state whose sign stands before it."""

    text: str
    word: str
    is_name: bool


class Placed(NamedTuple):
    """A box at its place, with its lines of text and what is nested in it."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    lines: tuple[Line, ...]
    #: Its own places count from the top left of this box.
    inner: Layout | None

    @property
    def middle(self) -> float:
        """The height at which lines come in and go out."""
        return self.y + self.height / 2


class Layout(NamedTuple):
    """A diagram on paper."""

    width: float
    height: float
    boxes: tuple[Placed, ...]
    #: Broken lines, each from one point to the next; those that arrive at a box end in an arrow.
    lines: tuple[tuple[Point, ...], ...]
    arrows: tuple[Point, ...]


def width_of(words: str, font: float) -> float:
    """How long a text is, at most, in a font of that size."""
    return font * sum(map(_width, words))


def _width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.38
    if character in _WIDE:
        return 1.0
    return 0.74 if character.isupper() else 0.64


def laid_out(diagram: Diagram, room: float = _BAND) -> Layout:
    """The boxes of a diagram in bands of at most `room`, where no single box is wider."""
    columns = [_column(stage, room) for stage in diagram.stages if stage]
    boxes: list[Placed] = []
    lines: list[tuple[Point, ...]] = []
    arrows: list[Point] = []
    top = width = 0.0
    last: list[Placed] = []
    bands = list(_bands(columns, room))
    inset = _ACROSS / 2 if len(bands) > 1 else 0.0  # for the lines that lead from band to band
    for band in bands:
        height = max(_height(column) for column in band)
        left = inset
        for number, column in enumerate(band):
            placed = list(_placed(column, left, top, height))
            if last and number == 0:
                _lead_on(last, placed, top - _BANDS_APART / 2, lines)
            elif last:
                _lead_across(last, placed, left - _ACROSS / 2, lines)
            arrows += [(box.x, box.middle) for box in placed] if last else []
            boxes += placed
            last, left = placed, left + column[0].width + _ACROSS
        width = max(width, left - _ACROSS + inset)
        top += height + _BANDS_APART
    return Layout(width, max(top - _BANDS_APART, 0.0), tuple(boxes), tuple(lines), tuple(arrows))


# --- boxes ---------------------------------------------------------------------------------------


def _column(stage: Sequence[Box], room: float) -> list[Placed]:
    """The boxes of a stage, of one width, at no place yet."""
    boxes = [_sized(box, room) for box in stage]
    width = max(box.width for box in boxes)
    return [box._replace(width=width) for box in boxes]


def _sized(box: Box, room: float) -> Placed:
    lines = tuple(_lines(box))
    width = max(_length(line) for line in lines)
    height = sum(NAME_LINE if line.is_name else LABEL_LINE for line in lines)
    inner = None
    if box.inner is not None:
        inner = laid_out(box.inner, max(room - 2 * (PADDING + _ACROSS), _WIDEST))
        width, height = max(width, inner.width), height + PADDING + inner.height
    return Placed(box, 0.0, 0.0, width + 2 * PADDING, height + 2 * PADDING, lines, inner)


def _lines(box: Box) -> Iterator[Line]:
    for piece in _broken(box.name, NAME_FONT * 1.08):  # it is bold
        yield Line(piece, "", is_name=True)
    if box.inner is not None and box.inner.title != box.name:
        for piece in _broken(box.inner.title, LABEL_FONT):
            yield Line(piece, "", is_name=False)
    for label in box.labels:
        yield from _lines_of(label)


def _lines_of(label: Label) -> Iterator[Line]:
    for number, piece in enumerate(_broken(label.text, LABEL_FONT)):
        yield Line(piece, "" if number else label.word, is_name=False)


def _broken(words: str, font: float) -> list[str]:
    return text.broken(text.safe(words), _WIDEST, lambda piece: width_of(piece, font))


def _length(line: Line) -> float:
    if line.is_name:
        return width_of(line.text, NAME_FONT * 1.08)
    return width_of(line.text, LABEL_FONT) + (SIGN if line.word else 0.0)


# --- places --------------------------------------------------------------------------------------


def _bands(columns: list[list[Placed]], room: float) -> Iterator[list[list[Placed]]]:
    band: list[list[Placed]] = []
    used = 0.0
    for column in columns:
        if band and used + column[0].width > room:
            yield band
            band, used = [], 0.0
        band.append(column)
        used += column[0].width + _ACROSS
    if band:
        yield band


def _height(column: list[Placed]) -> float:
    return sum(box.height for box in column) + _DOWN * (len(column) - 1)


def _placed(column: list[Placed], left: float, top: float, height: float) -> Iterator[Placed]:
    """The boxes of a stage below each other, in the middle of their band."""
    y = top + (height - _height(column)) / 2
    for box in column:
        yield box._replace(x=left, y=y)
        y += box.height + _DOWN


# --- lines ---------------------------------------------------------------------------------------


def _lead_across(
    before: list[Placed], after: list[Placed], bus: float, lines: list[tuple[Point, ...]]
) -> None:
    """From each box of a stage to each of the next one, over a line between them."""
    heights = [box.middle for box in (*before, *after)]
    lines += [((box.x + box.width, box.middle), (bus, box.middle)) for box in before]
    lines.append(((bus, min(heights)), (bus, max(heights))))
    lines += [((bus, box.middle), (box.x, box.middle)) for box in after]


def _lead_on(
    before: list[Placed], after: list[Placed], between: float, lines: list[tuple[Point, ...]]
) -> None:
    """From the last stage of a band to the first one of the next, round between them."""
    right, left = before[0].x + before[0].width + _ACROSS / 2, after[0].x - _ACROSS / 2
    lines += [((box.x + box.width, box.middle), (right, box.middle)) for box in before]
    top, bottom = min(box.middle for box in before), max(box.middle for box in after)
    lines.append(((right, top), (right, between), (left, between), (left, bottom)))
    lines += [((left, box.middle), (box.x, box.middle)) for box in after]
