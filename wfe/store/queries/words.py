"""What a person types to find executions, split into words as a shell splits a line.

Spaces separate words. Inside 'single quotes' everything stands for itself; inside "double quotes", too,
but that a backslash before a double quote or a backslash is left out; elsewhere a backslash takes the
meaning from whatever follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wfe.errors import UsageError

_SPACES = frozenset(" \t\r\n")

#: Stands in `Typed.bare` for a character that was quoted.
_QUOTED = "\0"


class Typed(NamedTuple):
    """A word, or a part of one."""

    text: str
    #: The same, with \\0 for each character that was quoted and means nothing but itself.
    bare: str

    def split(self, separator: str) -> list[Typed]:
        """The parts between separators that were not quoted."""
        parts, start = [], 0
        for bare in self.bare.split(separator):
            end = start + len(bare)
            parts.append(self.part(start, end))
            start = end + len(separator)
        return parts

    def part(self, start: int, end: int | None = None) -> Typed:
        return Typed(self.text[start:end], self.bare[start:end])


def words(text: str) -> list[Typed]:
    """
    Raises:
        UsageError: a quotation mark that nothing closes, or a backslash before nothing.
    """
    found: list[Typed] = []
    word: list[tuple[str, str]] = []
    for character, bare in _characters(text):
        if bare not in _SPACES:
            word.append((character, bare))
        elif word:
            found.append(_whole(word))
            word = []
    return [*found, _whole(word)] if word else found


def _whole(word: list[tuple[str, str]]) -> Typed:
    return Typed("".join(text for text, _ in word), "".join(bare for _, bare in word))


def _characters(text: str) -> Iterator[tuple[str, str]]:
    """Each character, and how it stands in `bare`; nothing, for a quotation mark."""
    characters, quote = iter(text), ""
    for character in characters:
        if character == quote:
            quote = ""
        elif character == "\\" and quote != "'":
            escaped = _next(characters, text)
            if quote and escaped not in '"\\':
                yield "\\", _QUOTED
            yield escaped, _QUOTED
        elif quote:
            yield character, _QUOTED
        elif character in "'\"":
            quote = character
            yield "", ""
        else:
            yield character, character
    if quote:
        raise UsageError(f"A {quote} opens a quotation in {text!r} that nothing closes.")


def _next(characters: Iterator[str], text: str) -> str:
    escaped = next(characters, "")
    if not escaped:
        raise UsageError(f"Nothing follows the backslash at the end of {text!r}.")
    return escaped
