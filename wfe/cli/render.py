"""Drawing for people on a terminal. The one place that knows Rich.

Few colours, and never colour alone: a state is a symbol and a word. Data is drawn as it is, so that
a key can be copied from the screen: no markup, no emoji names, no shortening; a line that is longer
than the terminal is wide goes on in the next one without a break in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from wfe.cli import documents, text, tree
from wfe.model import Execution

#: State → symbol, its stand-in where the terminal knows ASCII only, and style.
_LOOKS = {
    "done": ("✓", "+", "green"),
    "failed": ("✗", "x", "bold red"),
    "timeout": ("✗", "x", "bold red"),
    "reverted": ("↺", "<", "magenta"),
    "running": ("▸", ">", "cyan"),
    "interrupted": ("◌", "?", "yellow"),
    "invoking": ("▸", ">", "cyan"),
    "compensating": ("◂", "<", "cyan"),
    "waiting_to_compensate": ("◂", "<", "cyan"),
    "waiting": ("●", "*", "yellow"),
    "sleeping": ("◷", "~", "yellow"),
    "retrying": ("↻", "~", "yellow"),
    "skipped": ("○", "-", "dim"),
    "skipped_failure": ("○", "-", "dim"),
    "not_started": ("·", ".", "dim"),
    "dormant": ("·", ".", "dim"),
}
_BRACKETS = {"": " ", "first": "┌", "middle": "│", "last": "└"}
_ASCII_BRACKETS = {"": " ", "first": "|", "middle": "|", "last": "|"}
_MOVING = ("running", "compensating")
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: Cells that a shortened text needs to say anything.
_WORD = 8
_ASCII_FRAMES = "|/-\\"


class Screen:
    """A terminal to draw on."""

    def __init__(self, stream: TextIO, *, colors: bool, width: int | None = None) -> None:
        self.console = Console(
            file=stream,
            color_system="standard" if colors else None,
            force_terminal=True,
            no_color=not colors,
            emoji=False,
            markup=False,
            highlight=False,
            width=width,
            legacy_windows=False,
        )
        self._is_plain = not _can_show_symbols(stream)

    @property
    def width(self) -> int:
        """In cells."""
        return self.console.width

    def line(self, *parts: Text | str) -> None:
        """One line of text, however long."""
        self.console.print(Text.assemble(*parts), soft_wrap=True)

    def title(self, title: str) -> None:
        """The head of what follows."""
        self.line(Text(title, "bold"))

    def dim(self, lines: str) -> None:
        """What only some readers want."""
        self.line(Text(lines, "dim"))

    def state(self, word: str, *, frame: int | None = None) -> Text:
        """The symbol and the word of a state; `frame` moves the symbol of what is under way."""
        return Text.assemble(self._symbol(word, frame), " ", Text(word, _style(word)))

    def _symbol(self, word: str, frame: int | None) -> Text:
        symbol, plain, style = _LOOKS.get(word, ("?", "?", ""))
        if frame is not None and word in _MOVING:
            frames = _ASCII_FRAMES if self._is_plain else _FRAMES
            return Text(frames[frame % len(frames)], style)
        return Text(plain if self._is_plain else symbol, style)

    # --- tables ----------------------------------------------------------------------------------

    def table(
        self, titles: Sequence[str], rows: Iterable[Sequence[Text]], *, cut: bool = False
    ) -> None:
        """Columns side by side; the last one is as long as it likes, or `cut` where the line ends.
        Cut to less than a word it is left out."""
        table = [[Text(title, "dim") for title in titles], *rows]
        for line, row in zip(aligned([row[:-1] for row in table]), table, strict=True):
            last, room = row[-1].copy(), self.width - _length(line)
            if cut and room < _WORD:
                last = Text()
                line.rstrip()
            elif cut:
                last.truncate(room, overflow="ellipsis")
            self.line(line, last)

    def columns(self, rows: Iterable[Sequence[str]]) -> None:
        """Data side by side, without titles."""
        for line in aligned([list(map(self.text, row)) for row in rows]):
            line.rstrip()
            self.line(line)

    def text(self, data: str) -> Text:
        """Data as it is, but for control characters."""
        return Text(text.safe(data))

    # --- what moves -----------------------------------------------------------------------------

    def live(self, draw: Callable[[], Sequence[Text]]) -> Live:
        """A context in which what `draw` gives is kept up to date at the bottom of the screen, and
        stays there at the end; what is printed meanwhile stands above."""
        return Live(
            get_renderable=lambda: Group(*draw()),
            console=self.console,
            refresh_per_second=8,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def fit(self, size: os.terminal_size) -> None:
        """Draw for a terminal of this size from now on."""
        self.console.size = ConsoleDimensions(size.columns, size.lines)

    @property
    def height(self) -> int:
        """In lines."""
        return self.console.height

    # --- the tree of steps -----------------------------------------------------------------------

    def part(self, part: tree.Part, *, frame: int | None = None) -> list[Text]:
        """The lines of a part of the tree, with those that are left out counted."""
        dots = "..." if self._is_plain else "…"
        before = [Text(f" {dots} {part.before} before", "dim")] if part.before else []
        after = [Text(f" {dots} {part.after} after", "dim")] if part.after else []
        return [*before, *self.steps(part.rows, frame=frame), *after]

    def summary(self, execution: Execution, now: datetime) -> Text:
        """Where an execution stands, on one line."""
        head = execution.head
        over, steps = tree.settled(execution)
        took = text.seconds(head.started_at or head.created_at, head.ended_at or now)
        facts = f"  {over} of {steps} steps  {text.elapsed(took)}"
        return Text.assemble(" ", self.state(documents.status(execution)), Text(facts, "dim"))

    def steps(self, rows: Sequence[tree.Row], *, frame: int | None = None) -> list[Text]:
        """A line for each step, and one more where its notes do not fit beside it."""
        heads = aligned([self._cells(row, frame) for row in rows], gap=1)
        lines: list[Text] = []
        for row, head in zip(rows, heads, strict=True):
            notes = Text(f" {self._dot()} ".join(row.notes), "dim" if _is_calm(row) else "")
            line = Text.assemble(head, " ", notes)
            if not row.notes or _length(line) <= self.width:
                lines.append(line)
            else:
                indent = 6 + 2 * row.depth
                notes.truncate(max(self.width - indent, 10), overflow="ellipsis")
                lines += [head, Text.assemble(" " * indent, notes)]
        for line in lines:
            line.rstrip()
        return lines

    def _cells(self, row: tree.Row, frame: int | None) -> list[Text]:
        brackets = _ASCII_BRACKETS if self._is_plain else _BRACKETS
        indent = "  " * row.depth
        name = Text(row.step, "dim" if _word(row) in ("not_started", "skipped") else "")
        first = Text.assemble(" ", Text(brackets[row.bracket], "dim"), " ", indent, name)
        return [first, *self._side(row.invoke, frame), *self._side(row.compensate, frame)]

    def _side(self, side: tree.Side | None, frame: int | None) -> list[Text]:
        if side is None:
            return [Text(), Text()]
        return [self.state(side.word, frame=frame), Text(text.elapsed(side.seconds), "dim")]

    def _dot(self) -> str:
        return "-" if self._is_plain else "·"


def aligned(rows: Sequence[Sequence[Text]], *, gap: int = 2) -> list[Text]:
    """Rows of cells as lines whose columns stand below each other, padded with spaces."""
    widths = [max(map(_length, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = Text(no_wrap=True)
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell)
            line.append(" " * (width - _length(cell) + (gap if width else 0)))
        lines.append(line)
    return lines


def _length(cell: Text) -> int:
    return cell_len(cell.plain)


def _style(word: str) -> str:
    return _LOOKS.get(word, ("", "", ""))[2]


def _is_calm(row: tree.Row) -> bool:
    return _word(row) not in ("failed", "timeout", "waiting")


def _word(row: tree.Row) -> str:
    return row.invoke.word if row.invoke is not None else ""


def _can_show_symbols(stream: Any) -> bool:
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        "✓▸●┌⠋".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
