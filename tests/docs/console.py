"""Runs the examples of a document, from its first line to its last: files as they are shown, commands as
they are typed.

A fenced block that opens with a comment naming a file is that file; a later block of the same name goes
on with it. In a fenced `console` block, `$ ` begins a command and the lines below are what it prints on
stdout; `...` stands for any text, and a line `[10]` for an exit code other than 0. Commands that begin
with `1$ ` run beside those that begin with `2$ `, as in two terminals: the second one is used as soon as
an execution waits in the first. A line `^C` below a command of the first terminal ends it when those of
the second have ended; nothing is waited for then.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.\w+)\n")
_COMMAND = re.compile(r"^([12]?)\$ (.*)$")

#: Seconds that any command of a document may take.
PATIENCE = 30
#: A PATH on which the installed command is found.
INSTALLED = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


class File(msgspec.Struct):
    name: str
    content: str


class Command(msgspec.Struct):
    terminal: str
    text: str
    output: list[str]
    code: int = 0
    is_interrupted: bool = False


def blocks(document: Path, language: str) -> Iterator[str]:
    for found, text in _FENCE.findall(document.read_text()):
        if found == language:
            yield text


def parts(document: Path) -> Iterator[File | list[Command]]:
    """The files that the document shows, and the commands of each console block, in its order."""
    for language, text in _FENCE.findall(document.read_text()):
        if language == "console":
            yield list(_commands(text))
        elif match := _FILE.match(text):
            yield File(match[1], text)


def idle_blocks(document: Path) -> Iterator[str]:
    """The blocks that nobody runs, but for pictures (`text`)."""
    for language, text in _FENCE.findall(document.read_text()):
        if language not in ("console", "text") and not _FILE.match(text):
            yield text


def _commands(block: str) -> Iterator[Command]:
    command = Command("", "", [])
    for line in block.splitlines():
        if match := _COMMAND.match(line):
            if command.text:
                yield command
            command = Command(match[1], match[2], [])
        elif code := re.fullmatch(r"\[(\d+)\]", line):
            command.code = int(code[1])
        elif line == "^C":
            command.is_interrupted = True
        else:
            command.output.append(line)
    yield command


def run_document(document: Path, folder: Path, path: str = INSTALLED) -> int:
    """Do in `folder` what the document says; gives how many commands that were. On the `path` is the
    `wfe` that it means."""
    count = 0
    shown: set[str] = set()
    for part in parts(document):
        if isinstance(part, File):
            place = folder / part.name
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("a" if part.name in shown else "w") as file:
                file.write(part.content)
            shown.add(part.name)
        else:
            _run_block(part, folder, path)
            count += len(part)
    return count


def _run_block(block: list[Command], folder: Path, path: str) -> None:
    started = [(c, _start(c, folder, path)) for c in block if c.terminal == "1"]
    lasts = any(command.is_interrupted for command, _ in started)
    for command in block:
        if command.terminal == "1":
            continue
        if command.terminal == "2" and not lasts:
            _until_waiting(folder, path)
        _check(command, _start(command, folder, path))
    for command, process in started:
        if command.is_interrupted:
            process.send_signal(signal.SIGINT)
        _check(command, process)


def _environment(path: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WFE_")}
    return {**kept, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _start(command: Command, folder: Path, path: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "-c", command.text],
        cwd=folder,
        env=_environment(path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _check(command: Command, process: subprocess.Popen[str]) -> None:
    stdout, stderr = process.communicate(timeout=PATIENCE)
    code = process.returncode
    code = code if code >= 0 else 128 - code  # as a shell says it
    assert code == command.code, f"{command.text}\n{stdout}\n{stderr}"
    if command.output:
        wanted = re.escape("\n".join(command.output)).replace(r"\.\.\.", ".*")
        assert re.fullmatch(wanted, stdout.rstrip("\n"), re.DOTALL), f"{command.text}\n{stdout}"


def _until_waiting(folder: Path, path: str) -> None:
    """Until what was started in the other terminal waits for its answer."""
    count = Command("", "wfe executions list --state invoking --count", [])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        process = _start(count, folder, path)
        if process.communicate(timeout=PATIENCE)[0].strip() == "1":
            return
    raise AssertionError("nothing waits in the other terminal")
