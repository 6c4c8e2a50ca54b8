"""A project in a temporary folder, and `wfe` in it: in this process, or as the installed command."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from tests.forking import Forked, forking
from wfe.cli import completion, main

#: The installed command.
WFE = str(Path(sys.executable).with_name("wfe"))


# A process of its own makes each group of commands once. Here one process is that of many commands,
# and Typer would read the signatures of a group anew for each: a third of what a command costs.
vars(typer.main)["get_command"] = functools.cache(typer.main.get_command)


class Ended(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines on stdout, split where a line ends and nowhere else."""
        return self.out.split("\n")[:-1]


class Project:
    """A folder with workflows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.db = root / ".wfe" / "wfe.db"

    def write(self, name: str, content: str) -> Path:
        """A file in it; the content is dedented."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(content))
        return file

    def copy(self, other: Project) -> None:
        """Have all that another one has, as it is there now."""
        shutil.copytree(other.root, self.root, dirs_exist_ok=True)

    def wfe(self, *arguments: str, stdin: bytes = b"") -> Ended:
        """Run a command in this process, its output in pipes."""
        out, err = io.BytesIO(), io.BytesIO()
        with _streams(stdin, out, err):
            code = main(arguments)
        return Ended(code, out.getvalue().decode(), err.getvalue().decode())

    def execute(self, *arguments: str, **environ: str) -> Ended:
        """Run a command in a process of its own, its output in pipes."""
        return _ended(self._forked(arguments, environ))

    def installed(self, *arguments: str, **environ: str) -> Ended:
        """Run the installed command, its output in pipes."""
        return _ended(subprocess.Popen([WFE, *arguments], **self._how(environ)))

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Start a command, its output in pipes."""
        return self._forked(arguments, environ, text=True)

    def start_installed(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Start the installed command, its output in pipes."""
        return subprocess.Popen([WFE, *arguments], **self._how(environ), text=True)

    def _forked(
        self, arguments: Sequence[str], environ: Mapping[str, str], *, text: bool = False
    ) -> subprocess.Popen[Any]:
        asked = {name: value for name, value in environ.items() if name == completion.VARIABLE}
        return Forked(arguments, by=forking(**asked), **self._how(environ), text=text)

    def _how(self, environ: Mapping[str, str]) -> dict[str, Any]:
        return {
            "cwd": self.root,
            "env": {**os.environ, **environ},
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }


def _ended(running: subprocess.Popen[bytes]) -> Ended:
    with running:
        out, err = running.communicate(timeout=30)
    return Ended(running.returncode, out.decode(), err.decode())


def until(found: Callable[[], object], seconds: float = 30) -> None:
    """Return when `found` finds something; for what another process does, and tells nobody of. Looks
    again and again, for a quarter of the time at most: that process may want the processor.

    Raises:
        AssertionError: it has found nothing for so long.
    """
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if found():
            return
        ended = time.monotonic()
        assert ended < deadline, "it did not come"
        time.sleep(max(0.01, 3 * (ended - began)))


@contextlib.contextmanager
def _streams(stdin: bytes, out: io.BytesIO, err: io.BytesIO) -> Iterator[None]:
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"),
        "stdout": io.TextIOWrapper(out, encoding="utf-8", write_through=True),
        "stderr": io.TextIOWrapper(err, encoding="utf-8", write_through=True),
    }
    kept = {name: getattr(sys, name) for name in streams}
    for name, stream in streams.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for name, stream in kept.items():
            streams[name].detach()
            setattr(sys, name, stream)


@contextlib.contextmanager
def project_in(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The project is the current folder, and nothing in the environment speaks to `wfe`. What it
    brings into this process is forgotten at the end."""
    for variable in (*(v for v in os.environ if v.startswith("WFE_")), "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    (root / "workflows").mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = dict(sys.modules)
    try:
        yield Project(root)
    finally:
        added = [
            (n, module) for n, module in list(sys.modules.items()) if before.get(n) is not module
        ]
        places = {name: _places(module) for name, module in added}
        for name in [name for name, found in places.items() if str(root) in found]:
            del sys.modules[name]


def _places(module: object) -> str:
    return f"{getattr(module, '__file__', None)} {list(getattr(module, '__path__', ()))}"
