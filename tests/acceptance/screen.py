"""What stands on a terminal after all that was written to it: just as much of one as `wfe` uses."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)")


def screen_after(written: str) -> list[str]:
    """The lines, from the first one ever written. A line that is too long is not folded."""
    lines, row, column = [""], 0, 0
    for part in _CONTROL.split(written):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.startswith("\x1b[") and part.endswith("A"):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b["):
            before, after = lines[row][:column].ljust(column), lines[row][column + len(part) :]
            lines[row] = before + part + after
            column += len(part)
    return [line.rstrip() for line in lines]
