"""Runs the examples of a document: files as they are shown, commands as they are typed.

A fenced `python` block that opens with a comment naming a file is that file. In a fenced `console`
block, `$ ` begins a command and the lines below are what it prints on stdout; `...` stands for any text,
and a line `[10]` for an exit code other than 0. Commands that begin with `1$ ` run beside those that
begin with `2$ `, as in two terminals.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^([12]?)\$ (.*)$")

#: Seconds that any command of a document may take.
PATIENCE = 30


class Command(msgspec.Struct):
    terminal: str
    text: str
    output: list[str]
    code: int = 0


def blocks(document: Path, language: str) -> Iterator[str]:
    for found, text in _FENCE.findall(document.read_text()):
        if found == language:
            yield text


def files(document: Path) -> Iterator[tuple[str, str]]:
    """Name and content of each file that the document shows."""
    for text in blocks(document, "python"):
        first = text.splitlines()[0]
        if first.startswith("# ") and first.endswith(".py"):
            yield first.removeprefix("# "), text


def commands(document: Path) -> Iterator[list[Command]]:
    """The commands of each console block."""
    for text in blocks(document, "console"):
        found: list[Command] = []
        for line in text.splitlines():
            match = _COMMAND.match(line)
            if match:
                found.append(Command(match[1], match[2], []))
            elif code := re.fullmatch(r"\[(\d+)\]", line):
                found[-1].code = int(code[1])
            else:
                found[-1].output.append(line)
        yield found


def run_document(document: Path, folder: Path) -> int:
    """Do in `folder` what the document says; gives how many commands that were."""
    for name, content in files(document):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    count = 0
    for block in commands(document):
        started = [(c, _start(c, folder)) for c in block if c.terminal == "1"]
        for command in block:
            if command.terminal == "1":
                continue
            if command.terminal == "2":
                _until_waiting(folder)
            _check(command, _start(command, folder))
        for command, process in started:
            _check(command, process)
        count += len(block)
    return count


def _environment() -> dict[str, str]:
    own = str(Path(sys.executable).parent)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WFE_")}
    return {**kept, "PATH": f"{own}{os.pathsep}{kept['PATH']}"}


def _start(command: Command, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "-c", command.text],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _check(command: Command, process: subprocess.Popen[str]) -> None:
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == command.code, f"{command.text}\n{stdout}\n{stderr}"
    if command.output:
        wanted = re.escape("\n".join(command.output)).replace(r"\.\.\.", ".*")
        assert re.fullmatch(wanted, stdout.rstrip("\n"), re.DOTALL), f"{command.text}\n{stdout}"


def _until_waiting(folder: Path) -> None:
    """Until what was started in the other terminal waits for its answer."""
    count = Command("", "wfe executions list --state invoking --count", [])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        process = _start(count, folder)
        if process.communicate(timeout=PATIENCE)[0].strip() == "1":
            return
    raise AssertionError("nothing waits in the other terminal")
