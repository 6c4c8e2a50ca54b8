"""A diagram as Mermaid, for documents that draw it themselves: a flow chart from left to right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from wfe.cli.diagrams.colors import COLORS
from wfe.cli.diagrams.diagram import Box, Diagram
from wfe.cli.looks import look

#: What may stand in a quoted label as it is: letters of any script, digits, spaces and a few signs.
_SPECIAL = re.compile(r"[^\w \-.,:()/+=✓✗↺▸◂●◷↻○◌·]")


def drawn(diagram: Diagram) -> str:
    """The text of a flow chart."""
    chart = _Chart()
    title = json.dumps(f"{diagram.title}: {diagram.subtitle.text}")  # as YAML takes it, too
    lines = ["---", f"title: {title}", "---", "flowchart LR", *chart.lines(diagram, "  ")]
    for word in sorted(chart.words):
        color = COLORS[word]
        dashes = ",stroke-dasharray:4 3" if color.is_dashed else ""
        style = f"fill:{color.fill},stroke:{color.line},color:{color.ink}{dashes}"
        lines.append(f"  classDef {word} {style}")
    return "\n".join(lines)


class _Chart:
    """Numbers the boxes, so that any name can be drawn."""

    def __init__(self) -> None:
        self._count = 0
        #: States that occur.
        self.words: set[str] = set()

    def lines(self, diagram: Diagram, indent: str) -> Iterator[str]:
        before: Sequence[str] = ()
        for stage in diagram.stages:
            ids = []
            for box in stage:
                self._count += 1
                ids.append(f"n{self._count}")
                yield from self._box(box, ids[-1], indent)
            if before:
                yield f"{indent}{' & '.join(before)} --> {' & '.join(ids)}"
            before = ids or before

    def _box(self, box: Box, id: str, indent: str) -> Iterator[str]:
        label = _label(box)
        if box.word in COLORS:
            self.words.add(box.word)
        if box.inner is None:
            style = f":::{box.word}" if box.word in COLORS else ""
            yield f'{indent}{id}["{label}"]{style}'
            return
        yield f'{indent}subgraph {id}["{label}"]'
        yield f"{indent}  direction LR"
        yield from self.lines(box.inner, f"{indent}  ")
        yield f"{indent}end"
        if box.word in COLORS:
            yield f"{indent}class {id} {box.word}"


def _label(box: Box) -> str:
    title = [box.inner.title] if box.inner is not None and box.inner.title != box.name else []
    told = [
        f"{look(each.word).symbol} {each.text}" if each.word else each.text for each in box.labels
    ]
    return "<br/>".join(_escaped(line) for line in [box.name, *title, *told])


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", text)
