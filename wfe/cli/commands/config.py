"""`wfe config`: every setting, and where its value came from."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from wfe.cli import output, text
from wfe.cli.command import alone, command
from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.config import Value

app = alone()

#: Settings that are numbers of seconds.
_DURATIONS = ("retention", "busy_timeout", "grace", "accept_timeout", "on_finish_timeout")


@command(app, "config", formats=("table", "json"))
def config(session: Session) -> int:
    """Show every setting, and where its value came from: a flag, the environment, a file or the
    default, the first of these that has one.

    In a pipe: the setting, its value, and the flag, variable or file, separated by tabs. Durations are
    in seconds.

    \b
    wfe config
    wfe config -o json
    """
    settings = session.config
    values = settings.values
    if session.output == "json":
        output.print_json(
            {
                "root": str(settings.root),
                "file": None if settings.file is None else str(settings.file),
                "settings": {key: _document(value) for key, value in values.items()},
            }
        )
    elif session.for_people:
        _draw(session)
    else:
        output.print_tabbed(["root", str(settings.root), ""])
        for key, value in values.items():
            output.print_tabbed([key, _plain(value.value), value.origin])
    return ExitCode.OK


def _document(value: Value) -> dict[str, Any]:
    return {"value": _plain(value.value), "source": value.source, "origin": value.origin}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _draw(session: Session) -> None:
    from wfe.cli.render import Screen

    settings = session.config
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    screen.title(f"Project {text.shown(str(settings.root))}")
    rows = [
        [screen.text(key), screen.text(_shown(key, value.value)), screen.text(value.origin)]
        for key, value in settings.values.items()
    ]
    screen.table(["SETTING", "VALUE", "FROM"], rows)


def _shown(key: str, value: Any) -> str:
    if key in _DURATIONS:
        return text.elapsed(value)
    if key == "on_finish" and isinstance(value, tuple):
        return shlex.join(value)
    return " ".join(value) or "-" if isinstance(value, tuple) else str(value or "-")
