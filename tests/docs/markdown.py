"""Docstrings and tables as Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence


def prose(docstring: str | None) -> str:
    """A docstring as paragraphs: what is indented becomes a block, `Raises:` a sentence."""
    blocks = inspect.cleandoc(docstring or "").split("\n\n")
    text = "\n\n".join(filter(None, map(_block, blocks)))
    return text.replace("\n```\n\n```text\n", "\n\n")  # a block with an empty line in it


def _block(block: str) -> str:
    lines = block.split("\n")
    if not block.strip():
        return ""
    if lines[0] == "Raises:":
        return f"Raises {_sentence(lines[1:])}"
    if all(line.startswith("    ") or not line for line in lines):
        return fence("\n".join(line[4:] for line in lines))
    return "\n".join(map(_escaped, lines))


def _sentence(lines: Iterable[str]) -> str:
    """The lines of a section, of which each that is not indented further begins a new part."""
    parts: list[str] = []
    for line in lines:
        if line.startswith("        ") and parts:
            parts[-1] += f" {line.strip()}"
        else:
            parts.append(line.strip())
    return _escaped("; ".join(part.rstrip(".") for part in parts) + ".")


def _escaped(text: str) -> str:
    """Names of types in angle brackets and the like stay what they are."""
    return text.replace("<", "\\<") if "`" not in text else text


def fence(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def cell(text: str) -> str:
    """One line, in which a bar ends no cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Empty where there are no rows."""
    lines = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    if not lines:
        return ""
    head = f"| {' | '.join(titles)} |"
    return "\n".join([head, f"|{'---|' * len(titles)}", *lines])


def page(parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


def described(source: str, *, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, declaration and `#:` comment of each field of a class; of attributes that a function sets
    with `prefix="self."`."""
    comment: list[str] = []
    for line in inspect.cleandoc(source).split("\n"):
        text, _, behind = line.strip().partition("  #: ")
        if text.startswith("#: "):
            comment.append(text[3:])
            continue
        if text.startswith(prefix):
            text = text.removeprefix(prefix)
            name, _, declared = text.partition(": " if ": " in text else " = ")
            if name.isidentifier() and declared and not name.startswith("_"):
                yield name, declared, behind or " ".join(comment)
        comment = []
