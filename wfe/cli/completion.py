"""What shells complete: names of workflows, transaction ids, keys of waiting steps, and whatever a
placeholder in the help says.

Typer finds out what is being completed, and asks for values by the placeholder of a parameter (`KEY`,
`TARGET`, `ID`, `json|csv`). No module of a user's is loaded for that. Whatever goes wrong, nothing is
written to where somebody is typing.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import typer
from typer.completion import get_completion_inspect_parameters

#: Set by the script of a shell, which is what makes a call of ours one for completions.
VARIABLE = "_WFE_COMPLETE"

Values = Callable[[Any, str], Sequence[str]]


def is_asked() -> bool:
    """Whether this process is to give completions, and nothing else."""
    return VARIABLE in os.environ


def answer(complete: Callable[[], object]) -> int:
    """Write what `complete`, Typer's own code for it, prints; nothing else, and nothing where it fails."""
    get_completion_inspect_parameters()  # makes the shells known that Typer has
    completed = io.StringIO()
    with _silence() as out:
        try:
            with contextlib.redirect_stdout(completed), contextlib.redirect_stderr(io.StringIO()):
                complete()
        except SystemExit:
            pass
        except BaseException:
            return 0
        with contextlib.suppress(OSError):
            out.write(completed.getvalue().encode(errors="replace"))
    return 0


@contextlib.contextmanager
def _silence() -> Iterator[Any]:
    """Programs that are begun meanwhile write nowhere. Gives where stdout leads."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        with os.fdopen(os.dup(kept[0]), "wb") as out:
            yield out
    finally:
        for number, descriptor in enumerate(kept, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)


def attach(parameters: Sequence[inspect.Parameter]) -> None:
    """Let Typer ask for the values of these parameters, each `Annotated` with what Typer knows of it."""
    for parameter in parameters:
        for info in get_args(parameter.annotation)[1:]:
            placeholder = getattr(info, "metavar", None) or ""
            values = _transactions if parameter.name == "tx" else _of_placeholder(placeholder)
            if values is not None:
                info.autocompletion = _asked_for(values)


def plain(items: Sequence[Any]) -> list[Any]:
    """Items without what Typer would load Rich for: help that is to be rid of markup it has not."""
    for item in items:
        item.value, item.help = "\t".join(filter(None, [item.value, item.help])), None
    return list(items)


def _asked_for(values: Values) -> Callable[[typer.Context, str], Sequence[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> Sequence[str]:
        return [value for value in values(ctx, incomplete) if value.startswith(incomplete)]

    return complete


def _of_placeholder(placeholder: str) -> Values | None:
    named: dict[str, Values] = {
        "KEY": _keys,
        "[KEY]": _keys,
        "A": _keys,
        "B": _keys,
        "TARGET": _targets,
        "ID": _workflows,
        "NAME": _schedules,
        "EXPR|NAME": _schedules,
        "TOPIC": lambda ctx, incomplete: _topics(),
        "STATE,STATE": lambda ctx, incomplete: _states(incomplete),
    }
    if placeholder in named:
        return named[placeholder]
    words = placeholder.split("|")
    if len(words) > 1 and all(word.isalpha() and word.islower() for word in words):
        return lambda ctx, incomplete: words
    return None


# --- values --------------------------------------------------------------------------------------


def _settings(ctx: Any) -> Any:
    """The settings that the command would have, flags included that have been typed already."""
    from wfe.config import load

    flags: dict[str, Any] = {}
    while ctx is not None:
        for name in ("app", "db"):
            flags[name] = flags.get(name) or ctx.params.get(name)
        ctx = ctx.parent
    return load({name: list(v) if isinstance(v, tuple) else v for name, v in flags.items()})


def _keys(ctx: Any, incomplete: str) -> Sequence[str]:
    from wfe.store import hints

    database: Path = _settings(ctx).db
    if ctx.command_path.split()[-2:-1] == ["step"]:
        waiting = hints.waiting(database, incomplete)
        if waiting or ctx.command.name in ("succeed", "fail"):
            return waiting
        return hints.steps(database, incomplete) or hints.executions(database, incomplete)
    return hints.executions(database, incomplete)


def _targets(ctx: Any, incomplete: str) -> Sequence[str]:
    from wfe import glance

    return glance.names(_settings(ctx).app)


def _workflows(ctx: Any, incomplete: str) -> Sequence[str]:
    from wfe import glance
    from wfe.store import hints

    settings = _settings(ctx)
    stored = hints.workflows(settings.db, incomplete)
    return sorted({*glance.names(settings.app), *stored})


def _transactions(ctx: Any, incomplete: str) -> Sequence[str]:
    """Of the workflow that is named before. Without a value for its option a command line cannot be
    read, so that Typer knows nothing of it; its words are looked through."""
    from wfe.store import hints

    typed = os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
    database: Path = _settings(ctx).db
    for target in typed[2:]:
        workflow = target.rpartition(":")[2]
        if keys := hints.executions(database, f"{workflow}:{incomplete}"):
            return [key.removeprefix(f"{workflow}:") for key in keys]
    return []


def _schedules(ctx: Any, incomplete: str) -> Sequence[str]:
    from wfe.store import hints

    return hints.schedules(_settings(ctx).db, incomplete)


def _topics() -> Sequence[str]:
    from wfe.cli.commands.help import TOPICS

    return sorted(TOPICS)


def _states(incomplete: str) -> Sequence[str]:
    """States, behind those that are typed already."""
    from wfe.model import ExecutionState

    known = [*ExecutionState, "running", "waiting", "sleeping", "interrupted"]
    typed = incomplete.rpartition(",")[0]
    return [f"{typed},{state}" if typed else str(state) for state in known]
