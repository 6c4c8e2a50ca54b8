"""The whole command line: its groups of commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from wfe.cli import completion, streams
from wfe.cli.command import Group, print_help, root
from wfe.cli.exit_codes import ExitCode
from wfe.cli.failures import Failure, debugging
from wfe.cli.session import colors_by_default
from wfe.near import near_names


class Root(Group):
    """The outermost group. The shell may be left out behind the two flags that are about one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from wfe.cli.shells import SCRIPTS

        is_bare = args[:1] in (["--install-completion"], ["--show-completion"])
        if is_bare and not {*args[1:2]} & SCRIPTS.keys():
            args = [f"{args[0]}=", *args[1:]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def sentence(self, ctx: Any, name: str) -> str:
        return _COMMANDS[name].sentence


app = typer.Typer(
    cls=Root,
    add_completion=False,
    help="Run workflows that undo themselves, and see what became of them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    install_completion: Annotated[
        str | None,
        typer.Option(
            "--install-completion",
            metavar="[SHELL]",
            help="Let bash, zsh or fish complete names and keys.",
        ),
    ] = None,
    show_completion: Annotated[
        str | None,
        typer.Option("--show-completion", metavar="[SHELL]", help="Show the script that does so."),
    ] = None,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"wfe {installed('wfe')}")
        raise typer.Exit
    if install_completion is not None or show_completion is not None:
        _complete(install_completion, show_completion)
        raise typer.Exit
    print_help(ctx)


def _complete(install: str | None, show: str | None) -> None:
    from wfe.cli import shells

    name = install or show or shells.present(os.environ)
    if install is None:
        print(shells.script(name), end="")
        return
    done = shells.install(name, os.environ, Path.home())
    reading = f", which {done.read_by} reads" if done.read_by is not None else ""
    print(f"The completion for {name} is in {done.script}{reading}. Open a new terminal.")


root(app, _root)


class _Place(NamedTuple):
    """Where a command or group is, and the first sentence of its help: whoever asks what there is need
    not wait for all of it to be imported."""

    module: str
    sentence: str


_COMMANDS = {
    "run": _Place("wfe.cli.commands.run", "Run a workflow and print its result."),
    "executions": _Place("wfe.cli.commands.executions", "Find executions and look at them."),
    "step": _Place("wfe.cli.commands.step", "See steps, and answer those that wait."),
    "schedule": _Place("wfe.cli.commands.schedule", "Run a workflow on a schedule, until Ctrl-C."),
    "schedules": _Place("wfe.cli.commands.schedules", "See and direct what runs by itself."),
    "serve": _Place(
        "wfe.cli.commands.serve",
        "Run what is due: schedules of workflows, timers, and whatever a process that is gone has "
        "left, until Ctrl-C.",
    ),
    "workflows": _Place("wfe.cli.commands.workflows", "See what can be run."),
    "gc": _Place(
        "wfe.cli.commands.gc", "Remove finished executions whose retention time has passed."
    ),
    "db": _Place("wfe.cli.commands.db", "Look after the database file."),
    "doctor": _Place(
        "wfe.cli.commands.doctor",
        "Look the database, the workflows and this machine through, and say what to do about what is "
        "wrong.",
    ),
    "config": _Place(
        "wfe.cli.commands.config",
        "Show every setting, and where its value came from: a flag, the environment, a file or the "
        "default, the first of these that has one.",
    ),
    "init": _Place(
        "wfe.cli.commands.init",
        "Make a folder to begin in: one workflow, its test, and a README that says how to go on.",
    ),
    "help": _Place(
        "wfe.cli.commands.help",
        "Explain a topic: cron, environment, exit-codes, keys, lint, query or recording.",
    ),
}


class _Commands(Mapping[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        made = typer.main.get_command(import_module(_COMMANDS[name].module).app)
        made.name = name
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


def whole() -> Any:
    """The command line as one command."""
    made: Any = typer.main.get_command(app)
    made.commands = _Commands()
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. No error leaves this function."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    streams.prepare()
    if completion.is_asked():
        return completion.answer(lambda: whole().main([], "wfe", standalone_mode=False))
    try:
        code = whole().main(arguments, "wfe", standalone_mode=False)
        return int(code or ExitCode.OK)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else ExitCode.ERROR
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BaseException as error:
        if debugging():
            import traceback

            traceback.print_exc()
        return _fail(_failure(error), as_json=wants_json(arguments))


def _failure(error: BaseException) -> Failure:
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "wfe"
        message = error.format_message()
        meant = _meant_by(getattr(error, "unknown_command", ""), path)
        hint = f"Did you mean {' or '.join(meant)}?" if meant else f"See: {path} --help"
        return Failure(message, code="usage", exit_code=error.exit_code, hint=hint)
    return Failure.of(error)


def _meant_by(name: str, path: str) -> list[str]:
    """The commands that may be meant by one that the group `path` does not have: one of its own that is
    near, else those of other groups that are called so, else one that is near."""
    if not name:
        return []
    own: list[str] = []
    others: dict[str, list[str]] = {}
    for outer, command in whole().commands.items():
        for inner in ("", *getattr(command, "commands", ())):
            line = f"wfe {outer} {inner}".rstrip()
            others.setdefault(inner or outer, []).append(line)
            if line.rpartition(" ")[0] == path:
                own.append(inner or outer)
    if near := near_names(name, own)[:1]:
        return [f"{path} {near[0]}"]
    near = [name] if name in others else near_names(name, others)[:1]
    return [line for each in near for line in others[each]]


def _fail(failure: Failure, *, as_json: bool) -> int:
    if as_json:
        from wfe.cli.output import print_json

        print_json(failure.document())
    failure.tell(color=colors_by_default(sys.stderr))
    return failure.exit_code


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `-o json` is among the arguments; they may be such as no command understands."""
    for index, argument in enumerate(arguments):
        if argument == "--":
            return False
        if argument in ("-o", "--output") and list(arguments[index + 1 : index + 2]) == ["json"]:
            return True
        if argument in ("-ojson", "-o=json", "--output=json"):
            return True
    return False
