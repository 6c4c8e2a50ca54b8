"""How values are written as text: safe on a terminal, and for people where a person reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

# Patterns are texts, compiled when a text first needs them: most never do.
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
#: What is invisible, or turns the order of what stands after it: with these, two names look alike, and
#: a line says something else than it holds. A joiner is left between the letters of scripts that need
#: it, and between the parts of an emoji.
_UNSEEN = (
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
    r"|(?<![^\x00-\x7f\u200b-\u200f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200b-\u200f])"
)
#: What JSON text may hold, but a terminal or a reader of lines would take for a command or an end.
_UNSAFE_IN_JSON = rf"[\x7f-\x9f\u2028\u2029]|{_UNSEEN}"
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def safe(text: str) -> str:
    """`text` on one line, with control characters written as escapes; all else as it is."""
    return text if text.isprintable() else re.sub(_CONTROL, _escape, text)


def seen(text: str) -> str:
    """`text` for people: what they would not see is written as escapes; all else as it is."""
    return text if text.isprintable() else re.sub(_UNSEEN, _escape, text)


def unseen(text: str) -> list[tuple[int, str]]:
    """Where characters are that `seen` writes as escapes, and those."""
    if text.isprintable():
        return []
    return [(match.start(), _escape(match)) for match in re.finditer(_UNSEEN, text)]


def shown(text: str) -> str:
    """`text` on one line for people: control characters and what they would not see as escapes."""
    return text if text.isprintable() else seen(safe(text))


def safe_lines(text: str) -> str:
    """The same, but for the ends of lines and tabs, which stay."""
    return "\n".join(safe(line.replace("\t", "    ")) for line in text.splitlines())


def safe_json(text: str, *, ascii_only: bool = False) -> str:
    """The same JSON value, written so that a terminal shows it and a line stays a line."""
    if text.isprintable() and (text.isascii() or not ascii_only):
        return text
    return re.sub(r"[^\x00-\x7e]" if ascii_only else _UNSAFE_IN_JSON, _json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def last_word(sentence: str) -> bytes:
    """A line for a descriptor that is written to within a signal; nothing for an empty sentence."""
    return f"{safe(sentence)}\n".encode(errors="backslashreplace") if sentence else b""


def failure(name: str | None, message: str) -> str:
    """An error as one text: its type and what it says. The type of a failure that was meant says
    nothing more."""
    if name == "PermanentStepFailure" and message:
        return message
    return f"{name}: {message}" if name and message else name or message


def iso(moment: datetime | None) -> str:
    """ISO-8601 in UTC, to the millisecond; empty for None."""
    if moment is None:
        return ""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(moment: datetime | None, until: datetime | None) -> float | None:
    """From one to the other, in seconds; None where one is missing."""
    if moment is None or until is None:
        return None
    return (until - moment) / timedelta(seconds=1)


def elapsed(length: float | None) -> str:
    """A duration as a person reads it: 0.4s, 12s, 3m05s, 2h10m, 4d06h; a round one, such as people
    set, 5m, 2h, 30d; empty for None."""
    if length is None:
        return ""
    length = max(length, 0.0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if length >= size:
            if length % size == 0:
                return f"{int(length // size)}{unit}"
            break
    if length < 9.95:
        return f"{length:.1f}s"
    whole = round(length)
    if whole < 60:
        return f"{whole}s"
    minutes, second = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{second:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02d}m"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02d}h"


def age(moment: datetime | None, now: datetime) -> str:
    """How long ago, coarsely: 5s, 12m, 3h, 9d."""
    length = seconds(moment, now)
    if length is None:
        return ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if length >= size:
            return f"{int(length // size)}{unit}"
    return f"{max(int(length), 0)}s"


def size(length: int) -> str:
    """Bytes as a person reads them: 512 B, 8.2 kB, 112 MB."""
    value, unit = float(length), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if unit != "B" and value < 9.95 else f"{value:.0f} {unit}"


def ago(moment: datetime | None, now: datetime) -> str:
    """`12m ago (2026-11-30T08:00:00.000Z)`; empty for None."""
    return "" if moment is None else f"{age(moment, now)} ago ({iso(moment)})"


def since(moment: datetime | None, now: datetime) -> str:
    """`for 12m05s (since 2026-11-30T08:00:00.000Z)`; empty for None."""
    if moment is None:
        return ""
    return f"for {elapsed(seconds(moment, now))} (since {iso(moment)})"


def to(moment: datetime | None, now: datetime) -> str:
    """`in 12m05s (2026-11-30T08:00:00.000Z)`, or that it should have come already; empty for None."""
    if moment is None:
        return ""
    if moment <= now:
        return f"at once: it was due {ago(moment, now)}"
    return f"in {elapsed(seconds(now, moment))} ({iso(moment)})"


# --- room ----------------------------------------------------------------------------------------


def cells(text: str) -> int:
    """How many cells of a terminal a text takes, as far as its characters tell one by one."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


#: Where a name may be broken: behind one of these, or before a capital letter.
_BREAKS = r"(?<=[ \-_./:])|(?<=[a-z0-9])(?=[A-Z])"


def broken(text: str, room: float, measure: Callable[[str], float]) -> list[str]:
    """`text` in lines of at most `room` by `measure`: broken where its words or parts end, and
    anywhere where one of those is longer than a line."""
    lines = [""]
    for part in re.split(_BREAKS, text):
        if measure(lines[-1] + part.rstrip()) <= room:
            lines[-1] += part
            continue
        if lines[-1]:
            lines.append("")
        for character in part:
            if lines[-1] and measure(lines[-1] + character) > room:
                lines.append("")
            lines[-1] += character
    return [line.rstrip() for line in lines]


def in_lines(sentence: str, width: int) -> list[str]:
    """A sentence in lines of at most `width` cells, broken between words. A word that is longer stays
    whole, and so does a command at the end, which is to be pasted."""
    prose, colon, command = sentence.rpartition(": wfe ")
    words = [*f"{prose}:".split(" "), f"wfe {command}"] if colon else sentence.split(" ")
    lines = [words[0]]
    for word in words[1:]:
        if cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def fitted(page: str, width: int) -> str:
    """A page of text for `width` cells: paragraphs are filled anew, and what stands in columns goes on
    below its last one. What fits stays as it is."""
    return "\n\n".join(_fitted(block, width) for block in page.split("\n\n"))


def _fitted(block: str, width: int) -> str:
    lines = block.rstrip("\n").split("\n")
    if max(map(cells, lines)) <= width:
        return block
    end = block[len(block.rstrip("\n")) :]
    if any(re.search(_GAP, line) for line in lines):
        return "\n".join(_hanging(line, width) for line in _whole(lines)) + end
    indent = " " * (len(lines[0]) - len(lines[0].lstrip()))
    return _filled(" ".join(map(str.strip, lines)), width, indent, indent) + end


#: Between two columns.
_GAP = r"(?<=\S)  +(?=\S)"

#: From here on a line goes on with the one before.
_DEEP = 8


def _whole(lines: list[str]) -> list[str]:
    """Lines with what goes on in the next one behind them."""
    whole: list[str] = []
    for line in lines:
        if whole and line.startswith(" " * _DEEP):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    return whole


def _hanging(line: str, width: int) -> str:
    """A line that goes on below its last column, or a little further in where that leaves no room."""
    indent = len(line) - len(line.lstrip())
    column = max((match.end() for match in re.finditer(_GAP, line)), default=0)
    if not indent < column <= width // 2:
        column = indent + 4
    return _filled(line.lstrip(), width, " " * indent, " " * column)


def _filled(words: str, width: int, first: str, others: str) -> str:
    import textwrap

    return textwrap.fill(
        words, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )
