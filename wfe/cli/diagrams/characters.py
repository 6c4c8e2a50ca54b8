"""A diagram in characters: a box for each stage, side by side, as many as there is room for.

What has no room goes on in the next line, behind an arrow; nothing is cut off, except that a word that
is longer than the widest box is broken. The diagrams of nested workflows follow below.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wfe.cli import text
from wfe.cli.diagrams.diagram import Box, Diagram, Label
from wfe.cli.looks import look

#: Cells of the text in the widest box.
_WIDEST = 32


class Part(NamedTuple):
    """A piece of a line, and the state whose colour it has; empty: none. `*` is what stands out."""

    text: str
    word: str = ""


Line = list[Part]


class _Strokes(NamedTuple):
    """What boxes are made of: corners, the ends of a rule between boxes, lines, an arrow."""

    top: str
    rule: str
    bottom: str
    across: str
    down: str
    arrow: str
    dot: str


_STROKES = _Strokes("┌┐", "├┤", "└┘", "─", "│", "─▶ ", "·")
_PLAIN = _Strokes("++", "++", "++", "-", "|", "-> ", "-")


def drawn(diagram: Diagram, width: int, *, plain: bool) -> list[Line]:
    """The lines of a diagram, `width` cells wide where no word is longer. `plain`: in ASCII."""
    return list(_Pen(width, plain=plain).draw(diagram))


class _Pen:
    def __init__(self, width: int, *, plain: bool) -> None:
        self._width = width
        self._is_plain = plain
        self._strokes = _PLAIN if plain else _STROKES
        self._gap = len(self._strokes.arrow) + 1

    def draw(self, diagram: Diagram, within: str = "") -> Iterator[Line]:
        title = f"{within} {self._strokes.dot} {diagram.title}" if within else diagram.title
        yield [Part(self._safe(title), "*")]
        yield self._label(diagram.subtitle)
        yield []
        columns = [self._column(stage) for stage in diagram.stages if stage]
        for number, band in enumerate(self._bands(columns)):
            if number:
                yield []
            yield from self._beside(band, leads_on=band[-1] is not columns[-1])
        for box in (box for stage in diagram.stages for box in stage):
            if box.inner is not None:
                yield []
                yield from self.draw(box.inner, f"{within}/{box.name}" if within else box.name)

    def _safe(self, words: str) -> str:
        """On one line, and such as the terminal knows."""
        shown = text.safe(words)
        return shown.encode("ascii", "backslashreplace").decode() if self._is_plain else shown

    # --- boxes -----------------------------------------------------------------------------------

    def _column(self, stage: tuple[Box, ...]) -> list[Line]:
        """A stage: its boxes below each other."""
        contents = [self._content(box) for box in stage]
        width = max(_cells(line) for content in contents for line in content)
        strokes, lines = self._strokes, []
        for number, content in enumerate(contents):
            lines.append(self._edge(strokes.rule if number else strokes.top, width))
            for line in content:
                padding = " " * (width - _cells(line))
                lines.append([Part(f"{strokes.down} "), *line, Part(f"{padding} {strokes.down}")])
        return [*lines, self._edge(strokes.bottom, width)]

    def _edge(self, ends: str, width: int) -> Line:
        return [Part(ends[0] + self._strokes.across * (width + 2) + ends[1])]

    def _content(self, box: Box) -> list[Line]:
        lines = [[Part(piece, "*")] for piece in _broken(self._safe(box.name))]
        for label in box.labels:
            lines += [[Part("  "), *line] for line in self._labels(label)]
        return lines

    def _labels(self, label: Label) -> Iterator[Line]:
        first, *others = _broken(self._safe(label.text))
        yield self._label(Label(first, label.word))
        for other in others:
            yield [Part(other, label.word)]

    def _label(self, label: Label) -> Line:
        if not label.word:
            return [Part(self._safe(label.text))]
        symbol = look(label.word).plain if self._is_plain else look(label.word).symbol
        return [Part(symbol, label.word), Part(f" {self._safe(label.text)}", label.word)]

    # --- lines of boxes --------------------------------------------------------------------------

    def _bands(self, columns: list[list[Line]]) -> Iterator[list[list[Line]]]:
        """As many stages side by side as there is room for."""
        band: list[list[Line]] = []
        used = 0
        for column in columns:
            width = _cells(column[0]) + self._gap
            if band and used + width > self._width:
                yield band
                band, used = [], 0
            band.append(column)
            used += width
        if band:
            yield band

    def _beside(self, band: list[list[Line]], *, leads_on: bool) -> Iterator[Line]:
        """Stages side by side, with arrows between them."""
        arrow, nothing = Part(f" {self._strokes.arrow}"), Part(" " * self._gap)
        for number in range(max(map(len, band))):
            line: Line = []
            for place, column in enumerate(band):
                is_last = place == len(band) - 1
                if number < len(column):
                    line += column[number]
                else:
                    line.append(Part(" " * _cells(column[0])))
                if number == 1 and (not is_last or leads_on):
                    line.append(arrow)
                elif not is_last:
                    line.append(nothing)
            yield _without_end(line)


def _without_end(line: Line) -> Line:
    """The line without the spaces at its end."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Part(line[-1].text.rstrip(), line[-1].word)] if line else line


def _cells(line: Line) -> int:
    return sum(text.cells(part.text) for part in line)


def _broken(words: str) -> list[str]:
    return text.broken(words, _WIDEST, text.cells)
