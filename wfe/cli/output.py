"""What goes to stdout: documents as JSON, lines of JSON, CSV, tab-separated lines, or keys.

In a pipe nothing is shortened or coloured, and moments are ISO-8601 in UTC.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from wfe.cli import text

#: The formats of a list; `table` and `wide` are for people on a terminal, tab-separated elsewhere.
LIST_FORMATS = ("table", "wide", "json", "jsonl", "csv", "key")
#: The formats of one thing.
ONE_FORMATS = ("table", "json", "key")

#: The formats of a command that drives an execution: `table` is the result alone.
RUN_FORMATS = ("table", "json", "key")

Document = Mapping[str, Any]


def print_json(value: Any) -> None:
    """One JSON document: indented on a terminal, on one line elsewhere."""
    write_line(json_text(value, indent=2 if sys.stdout.isatty() else 0))


def json_text(value: Any, *, indent: int = 0) -> str:
    """The JSON of `value`, safe on a terminal, whatever its encoding."""
    import msgspec

    try:
        encoded = msgspec.json.encode(value, enc_hook=_encode_other)
    except UnicodeEncodeError:  # what was typed, or a file is called, need not be text
        encoded = msgspec.json.encode(_as_text(value), enc_hook=_encode_other)
    if indent:
        encoded = msgspec.json.format(encoded, indent=indent)
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return text.safe_json(encoded.decode(), ascii_only=not utf8)


def _encode_other(value: Any) -> str:
    return str(value)


def _as_text(value: Any) -> Any:
    """The same, with escapes for what is no text."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case Mapping():
            return {_as_text(key): _as_text(item) for key, item in value.items()}
        case list() | tuple():
            return [_as_text(item) for item in value]
        case _:
            return value


def write_line(line: str, *, stream: TextIO | None = None) -> None:
    """`line` on stdout, or `stream`: as it is; on a terminal with escapes for what people would not
    see."""
    _Out(stream).write(line + "\n")


class _Out:
    """stdout, or another stream, as `write_line` says."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream

    def write(self, lines: str) -> None:
        if self._stream.isatty():
            cells = [line.split("\t") for line in lines.split("\n")]
            lines = "\n".join("\t".join(map(text.shown, row)) for row in cells)
        self._stream.write(lines)


def print_list(
    documents: Sequence[Document], output: str, columns: Sequence[str], *, is_more: bool = False
) -> None:
    """A list in any format but a table for people. `columns` are those of tab-separated lines;
    every document has a `key`. `is_more`: the beginning was printed before, and CSV has its titles."""
    match output:
        case "json":
            print_json(documents)
        case "jsonl":
            for document in documents:
                write_line(json_text(document))
        case "csv":
            _print_csv(documents, is_more=is_more)
        case "key":
            for document in documents:
                write_line(document["key"])
        case _:
            for document in documents:
                print_tabbed([document[column] for column in columns])


def print_tabbed(cells: Sequence[Any], *, stream: TextIO | None = None) -> None:
    """One line on stdout, or `stream`; a tab or an end of line inside a cell is written as an escape."""
    write_line("\t".join(text.safe(_cell(cell)) for cell in cells), stream=stream)


def _print_csv(documents: Sequence[Document], *, is_more: bool) -> None:
    import csv

    writer = csv.writer(_Out(), lineterminator="\n")
    if documents and not is_more:
        writer.writerow(documents[0])
    for document in documents:
        writer.writerow([_cell(value) for value in document.values()])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)
