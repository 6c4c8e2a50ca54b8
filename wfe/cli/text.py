"""How values are written as text: safe on a terminal, and for people where a person reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

# Patterns are texts, compiled when a text first needs them: most never do.
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
#: What JSON text may hold, but a terminal or a reader of lines would take for a command or an end.
_UNSAFE_IN_JSON = r"[\x7f-\x9f\u2028\u2029]"
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def safe(text: str) -> str:
    """`text` on one line, with control characters written as escapes; all else as it is."""
    return text if text.isprintable() else re.sub(_CONTROL, _escape, text)


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
    """A duration as a person reads it: 0.4s, 12s, 3m05s, 2h10m, 4d06h; empty for None."""
    if length is None:
        return ""
    length = max(length, 0.0)
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
