"""`wfe init`: a folder to begin in, with one workflow, its test and a README."""

from __future__ import annotations

import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from wfe.cli import output, text
from wfe.cli.command import alone, command
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.errors import UsageError

app = alone()

#: Where each file of `starter/` goes.
_FILES = {
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    "workflows/backup.py": "backup.py.txt",
    "workflows/test_backup.py": "test_backup.py.txt",
}


@command(app, "init", formats=("table", "json"))
def init(
    session: Session,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", show_default=False, help="Where; made if need be. Else: here."
        ),
    ] = ".",
) -> int:
    """Make a folder to begin in: one workflow, its test, and a README that says how to go on. What is
    there is never overwritten.

    \b
    wfe init my-workflows
    """
    if not folder:
        raise UsageError("FOLDER is empty: name one, or leave it out for this one.")
    root = Path(folder).expanduser()
    made = [root / name for name in _FILES]
    _refuse_to_overwrite(root, made)
    for path, source in zip(made, _FILES.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        content = files("wfe.cli").joinpath("starter", source).read_text(encoding="utf-8")
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    if session.output == "json":
        output.print_json({"ok": True, "folder": str(root), "files": [str(path) for path in made]})
        return ExitCode.OK
    for path in made:
        output.write_line(text.safe(str(path)))
    go = "" if folder == "." else f"cd {text.shown(shlex.quote(folder))} && "
    print(f"Run it with: {go}wfe run backup -p folder=workflows", file=sys.stderr)
    return ExitCode.OK


def _refuse_to_overwrite(root: Path, made: list[Path]) -> None:
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is there, and is no folder.", hint="Name another folder.")
    there = [str(path) for path in made if path.exists() or path.is_symlink()]
    if there:
        raise UsageError(
            f"Nothing was made, as this is there already: {', '.join(there)}.",
            hint="Name another folder: wfe init FOLDER",
        )
