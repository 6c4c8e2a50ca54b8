"""Drawing for people on a terminal. The one place that knows Rich.

Few colours, and never colour alone: a state is a symbol and a word. Data is drawn as it is, so that
a key can be copied from the screen: no markup, no emoji names, no shortening; a line that is longer
than the terminal is wide goes on in the next one without a break in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from wfe.cli import documents, text, tree
from wfe.cli.looks import can_show_symbols, look
from wfe.model import Execution

if TYPE_CHECKING:
    from wfe.cli.diagrams.diagram import Diagram

_BRACKETS = {"": " ", "first": "┌", "middle": "│", "last": "└", "fold": "…"}
_ASCII_BRACKETS = {"": " ", "first": "|", "middle": "|", "last": "|", "fold": "~"}
#: Brackets that go on beside the steps of a child.
_OPEN = ("first", "middle")
_MOVING = ("running", "compensating")
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: Cells that a shortened text needs to say anything.
_WORD = 8
#: Cells that a sentence needs to be read.
_SENTENCE = 30
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
        self._is_plain = not can_show_symbols(stream)
        #: The lengths of the lines that were drawn last, of what moves.
        self._frame: list[int] = []

    @property
    def width(self) -> int:
        """In cells."""
        return self.console.width

    def line(self, *parts: Text | str) -> None:
        """One line of text, however long."""
        self.console.print(_seen(Text.assemble(*parts)), soft_wrap=True)

    def title(self, title: str) -> None:
        """The head of what follows."""
        self.line(Text(title, "bold"))

    def paragraph(self, sentence: str, *, indent: str = "", label: str = "") -> None:
        """A sentence, broken between words where the line ends; a word that is longer, such as a key,
        stays whole. `label` stands before the first line, the others begin below its end."""
        room = self.width - cell_len(indent) - cell_len(label)
        for number, line in enumerate(_broken(sentence, room)):
            before = label if number == 0 else " " * cell_len(label)
            self.line(indent, Text(before, "dim"), line)

    def beside(self, head: Text, sentence: str) -> None:
        """A sentence beside its head, broken between words; below it where hardly any room is left."""
        column = cell_len(head.plain)
        if self.width - column < _SENTENCE:
            head.rstrip()
            self.line(head)
            self.paragraph(sentence, indent="    ")
            return
        first, *others = _broken(sentence, self.width - column)
        self.line(head, first)
        for line in others:
            self.line(" " * column, line)

    def choices(self, choices: Sequence[tuple[str, str]], *, indent: str) -> None:
        """What can be done, and the command for each: beside it, or below where one of them would go on
        in the next line."""
        width = max((cell_len(does) for does, _ in choices), default=0)
        longest = max((cell_len(self.text(command).plain) for _, command in choices), default=0)
        is_beside = cell_len(indent) + width + 2 + longest <= self.width
        for does, command in choices:
            if is_beside:
                self.line(f"{indent}{does:<{width}}  ", self.text(command))
            else:
                self.line(indent, does)
                self.line(f"{indent}  ", self.text(command))

    def with_note(self, line: Text, note: str, *, indent: int) -> None:
        """A line, and a note beside it, or below where there is no room for it."""
        if not note or _length(line) + 2 + cell_len(note) <= self.width:
            whole = Text.assemble(line, f"  {note}" if note else "")
            whole.rstrip()
            self.line(whole)
            return
        line.rstrip()
        self.line(line)
        self.paragraph(note, indent=" " * indent)

    def dim(self, lines: str) -> None:
        """What only some readers want."""
        self.line(Text(lines, "dim"))

    def state(self, word: str, *, frame: int | None = None) -> Text:
        """The symbol and the word of a state; `frame` moves the symbol of what is under way."""
        return Text.assemble(self._symbol(word, frame), " ", Text(word, look(word).ink))

    def _symbol(self, word: str, frame: int | None) -> Text:
        symbol, plain, style = look(word)
        if frame is not None and word in _MOVING:
            frames = _ASCII_FRAMES if self._is_plain else _FRAMES
            return Text(frames[frame % len(frames)], style)
        return Text(plain if self._is_plain else symbol, style)

    # --- tables ----------------------------------------------------------------------------------

    def table(
        self,
        titles: Sequence[str],
        rows: Iterable[Sequence[Text]],
        *,
        cut: bool = False,
        below: bool = False,
    ) -> None:
        """Columns side by side; the last one is as long as it likes, or `cut` where the line ends: cut
        to less than a word it is left out. `below`: where it has no room it goes there, broken between
        words."""
        table = [[Text(title, "dim") for title in titles], *rows]
        for line, row in zip(aligned([row[:-1] for row in table]), table, strict=True):
            last, room = row[-1].copy(), self.width - _length(line)
            if cut and room < _WORD:
                last = Text()
                line.rstrip()
            elif cut:
                last = self._cut(last, room)
            elif below and _length(last) > room:
                line.rstrip()
                self.line(line)
                self.paragraph(last.plain, indent="    ")
                continue
            self.line(line, last)

    def lines(self, titles: Sequence[str], rows: Iterable[Sequence[Text]]) -> list[Text]:
        """The lines of a table whose last column is as long as it likes."""
        table = [[Text(title, "dim") for title in titles], *rows]
        lines = aligned([row[:-1] for row in table])
        return [Text.assemble(line, row[-1]) for line, row in zip(lines, table, strict=True)]

    def rows(
        self, rows: Iterable[Sequence[Text]], *, least: Mapping[int, int] | None = None
    ) -> list[Text]:
        """Lines of cells below each other, without titles. `least` is how wide a column is at least,
        in cells."""
        table = list(rows)
        return aligned(table, least=least) if table else []

    def columns(self, rows: Iterable[Sequence[str]]) -> None:
        """Data side by side, without titles."""
        for line in aligned([list(map(self.text, row)) for row in rows]):
            line.rstrip()
            self.line(line)

    def text(self, data: str) -> Text:
        """Data as it is, but for control characters and what nobody would see."""
        return Text(text.shown(data))

    def faint(self, data: str) -> Text:
        """Data that counts for less than what stands around it."""
        return Text(text.shown(data), "dim")

    # --- what moves -----------------------------------------------------------------------------

    def live(self, draw: Callable[[], Sequence[Text]]) -> Live:
        """A context in which what `draw` gives is kept up to date at the bottom of the screen, and
        stays there at the end; what is printed meanwhile stands above. No line is broken."""

        def frame() -> Group:
            lines = [self._cut(line, self.width) for line in draw()]
            self._frame = [_length(line) for line in lines]
            return Group(*lines)

        return Live(
            get_renderable=frame,
            console=self.console,
            refresh_per_second=8,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )

    @contextmanager
    def whole(self) -> Iterator[Callable[[Sequence[Text]], None]]:
        """Have the whole terminal, which is at the end as it was before. Gives a function that shows
        lines there, as many as fit; one that is longer than the terminal is wide goes on in the next."""

        def show(lines: Sequence[Text]) -> None:
            heights = [max(-(-_length(line) // self.width), 1) for line in lines]
            ends = accumulate(heights)
            with self.console.capture() as picture:
                for line, end in zip(lines, ends, strict=True):
                    if end <= self.height:
                        self.line(line)
            self.console.file.write("\x1b[H\x1b[J" + picture.get().removesuffix("\n"))
            self.console.file.flush()

        with self.console.screen():
            yield show

    def fit(self, size: os.terminal_size) -> None:
        """Draw for a terminal of this size from now on. A terminal that does not tell its own says 0,
        and stays what it was taken for."""
        if 0 in size:
            return
        if size.columns < self.width:
            # The terminal has broken the lines that stand there: more of them are to be wiped out.
            broken = sum((length - 1) // size.columns for length in self._frame if length)
            self.console.file.write("\x1b[2K\x1b[1A" * broken)
        self.console.size = ConsoleDimensions(size.columns, size.lines)

    def abandon(self, sentence: str) -> None:
        """The process ends now, within a signal, while something moves: leave the terminal usable, and
        say a last word."""
        with suppress(OSError):  # first the cursor, which is hidden
            last = b"\x1b[?25h\n" + text.last_word(sentence)
            os.write(self.console.file.fileno(), last)

    @property
    def dots(self) -> str:
        """Stand for what is left out."""
        return "..." if self._is_plain else "…"

    def _cut(self, line: Text, room: int) -> Text:
        """The beginning of a line, where the whole has no room."""
        if _length(line) <= room:
            return line
        short = line.copy()
        short.truncate(max(room - len(self.dots), 0))
        short.append(self.dots)
        return short

    @property
    def height(self) -> int:
        """In lines."""
        return self.console.height

    def diagram(self, diagram: Diagram) -> None:
        """Boxes side by side, as many as there is room for."""
        from wfe.cli.diagrams import characters

        for line in characters.drawn(diagram, self.width, plain=self._is_plain):
            styles = ("bold" if part.word == "*" else look(part.word).ink for part in line)
            parts = [Text(part.text, style) for part, style in zip(line, styles, strict=True)]
            self.line(*parts)

    # --- the tree of steps -----------------------------------------------------------------------

    def part(self, part: tree.Part, *, frame: int | None = None) -> list[Text]:
        """The lines of a part of the tree, with those that are left out counted."""
        before, after = self._left_out(part.before, "before"), self._left_out(part.after, "after")
        return [*before, *self.steps(part.rows, frame=frame, cut=True), *after]

    def _left_out(self, counts: Mapping[str, int], where: str) -> list[Text]:
        if not counts:
            return []
        return [Text(f" {self.dots} {tree.told(counts)} {where}", "dim")]

    def summary(self, execution: Execution, now: datetime, *, status: str | None = None) -> Text:
        """Where an execution stands, on one line. `status`: another one than it has now."""
        head = execution.head
        over, steps = tree.settled(execution)
        took = text.seconds(head.started_at or head.created_at, head.ended_at or now)
        facts = f"  {over} of {steps} steps  {text.elapsed(took)}"
        return Text.assemble(
            " ", self.state(status or documents.status(execution)), Text(facts, "dim")
        )

    def steps(
        self,
        rows: Sequence[tree.Row],
        *,
        frame: int | None = None,
        cut: bool = False,
        whole: bool = False,
    ) -> list[Text]:
        """A line for each step, and one more where its notes do not fit beside it; with `whole` as many
        as they need. `cut`: names that leave no room for what becomes of the steps are cut."""
        cells = [self._cells(row, frame) for row in rows]
        heads = aligned(cells, gap=1)
        if cut and heads and (excess := _length(heads[0]) - self.width) > 0:
            room = max(max(_length(row[0]) for row in cells) - excess, _WORD)
            heads = aligned([[self._cut(row[0], room), *row[1:]] for row in cells], gap=1)
        lines: list[Text] = []
        for row, head in zip(rows, heads, strict=True):
            notes = Text(text.seen(self.joined(row.notes)), "dim" if _is_calm(row) else "")
            line = Text.assemble(head, " ", notes)
            if not row.notes or _length(line) <= self.width:
                lines.append(line)
            else:
                indent = 6 + 2 * row.depth + sum(2 + 2 * depth for _, depth in row.stem)
                room = max(self.width - indent, 10)
                below = [self._cut(notes, room)]
                if whole:
                    below = [Text(part, notes.style) for part in _broken(notes.plain, room)]
                lines += [head, *(Text.assemble(" " * indent, part) for part in below)]
        for line in lines:
            line.rstrip()
        return lines

    def _cells(self, row: tree.Row, frame: int | None) -> list[Text]:
        brackets = _ASCII_BRACKETS if self._is_plain else _BRACKETS
        stem = "".join(
            f"{brackets['middle' if bracket in _OPEN else '']} {'  ' * depth}"
            for bracket, depth in row.stem
        )
        indent = "  " * row.depth
        is_quiet = row.bracket == "fold" or _word(row) in ("not_started", "skipped")
        name = Text(self._known(text.shown(row.step)), "dim" if is_quiet else "")
        first = Text.assemble(" ", Text(stem + brackets[row.bracket], "dim"), " ", indent, name)
        return [first, *self._side(row.invoke, frame), *self._side(row.compensate, frame)]

    def _side(self, side: tree.Side | None, frame: int | None) -> list[Text]:
        if side is None:
            return [Text(), Text()]
        return [self.state(side.word, frame=frame), Text(text.elapsed(side.seconds), "dim")]

    def _known(self, words: str) -> str:
        """With escapes for what the terminal does not know, so that they count as long as they are."""
        return words.encode("ascii", "backslashreplace").decode() if self._is_plain else words

    def joined(self, notes: Iterable[str]) -> str:
        """Notes on one line."""
        return f" {'-' if self._is_plain else '·'} ".join(notes)


def _seen(line: Text) -> Text:
    """The line with escapes for what nobody would see."""
    for place, escape in reversed(text.unseen(line.plain)):
        line = Text.assemble(line[:place], escape, line[place + 1 :])
    return line


def _broken(sentence: str, room: int) -> list[str]:
    lines = [""]
    for word in re.split(r" (?!· )", sentence):  # no line begins with what stands between two notes
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def aligned(
    rows: Sequence[Sequence[Text]], *, gap: int = 2, least: Mapping[int, int] | None = None
) -> list[Text]:
    """Rows of cells as lines whose columns stand below each other, padded with spaces."""
    widths = [max(map(_length, column)) for column in zip(*rows, strict=True)]
    for column, width in (least or {}).items():
        widths[column] = max(widths[column], width)
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


def _is_calm(row: tree.Row) -> bool:
    return _word(row) not in ("failed", "timeout", "waiting")


def _word(row: tree.Row) -> str:
    return row.invoke.word if row.invoke is not None else ""
