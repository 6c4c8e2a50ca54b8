"""How a function becomes a command: the flags that every command has, and Typer without weight.

Each command is a function that receives a `Session` and its own parameters and gives an exit code.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from wfe.cli import completion
from wfe.cli.exit_codes import ExitCode
from wfe.cli.failures import Interrupted, help_with
from wfe.cli.session import Session
from wfe.errors import UsageError, WfeError

_COMMON: dict[str, Any] = {
    "app": Annotated[
        list[str] | None,
        typer.Option("--app", "-a", metavar="FILE|FOLDER|MODULE", help="Load workflows from here."),
    ],
    "db": Annotated[str | None, typer.Option("--db", metavar="FILE", help="The database.")],
    "color": Annotated[
        str | None, typer.Option("--color", metavar="auto|always|never", help="Use colours.")
    ],
}


_PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


#: Characters: more than any sentence has.
_WHOLE = 1000

#: Of a number that is typed: what SQLite can count, and one more.
_LARGEST = 2**62


class _Light:
    """Reads parameters without pydantic, whose import would double the time a command takes.

    It stands in for Typer's own reader; a Typer that has none ignores it. Commands take only texts,
    lists of texts, flags and whole numbers.
    """

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple else None
        if param.type_descriptor.annotation is not int:
            return value
        try:
            number = int(value)
        except ValueError:
            message = f"{value!r} is no whole number."
            raise typer.BadParameter(message, ctx=ctx, param=param) from None
        if abs(number) > _LARGEST:
            message = f"{value!r} is beyond {_LARGEST}."
            raise typer.BadParameter(message, ctx=ctx, param=param)
        return number


def _lighten(parameters: Sequence[Any]) -> None:
    for parameter in parameters:
        if hasattr(parameter, "_runtime_param"):
            parameter._runtime_param = _Light()


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _lighten(self.get_params(ctx))
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:  # the parser of options does not say whose they are
            vars(error)["ctx"] = vars(error).get("ctx") or ctx
            raise

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return completion.plain(super().shell_complete(ctx, incomplete))


class Group(TyperGroup):
    """A group of commands; alone it prints its help."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args, **{**kwargs, "invoke_without_command": True, "suggest_commands": False}
        )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _lighten(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            vars(error)["unknown_command"] = args[0]
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each with the whole first sentence of its help: what is cut says nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.sentence(ctx, name)) for name in self.list_commands(ctx)]
            )

    def sentence(self, ctx: Any, name: str) -> str:
        """What a command does."""
        found: Any = self.get_command(ctx, name)
        return str(found.get_short_help_str(_WHOLE))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return completion.plain(super().shell_complete(ctx, incomplete))


def group(help: str) -> typer.Typer:
    """A group of commands, which prints its help where no command is named."""
    app = typer.Typer(cls=Group, help=help, add_completion=False, **_PLAIN)
    app.callback()(print_help)
    return app


def alone() -> typer.Typer:
    """The place of a single command."""
    return typer.Typer(add_completion=False, **_PLAIN)


def print_help(ctx: typer.Context) -> None:
    """The help of a group without a command."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def command(
    app: typer.Typer, name: str, *, formats: Sequence[str] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Register a function as command `name` of `app`, with the flags that every command has, and
    `-o` where it knows several formats."""
    added = dict(_COMMON)
    if formats:
        option = typer.Option("--output", "-o", metavar="|".join(formats), help="What to print.")
        added = {"output": Annotated[str | None, option], **_COMMON}

    def register(function: Callable[..., int]) -> Callable[..., int]:
        def run(ctx: typer.Context, **values: Any) -> int:
            flags = {key: values.pop(key) or (ctx.obj or {}).get(key) for key in _COMMON}
            session = None
            try:
                session = Session(flags, _checked(values.pop("output", None), formats))
                code = _quietly(partial(function, session, **values))
                if session.afterwards is not None:
                    session.afterwards()
                return code
            except WfeError as error:
                help_with(error, ctx.command_path, session)
                raise
            except KeyboardInterrupt:  # Typer would end without a word, or the JSON that is due
                raise Interrupted from None

        _sign(run, function, [*_own(function), *_added(added)])
        app.command(name, cls=_Command)(run)
        return function

    return register


def root(app: typer.Typer, function: Callable[[typer.Context], None]) -> None:
    """Make `function` the callback of the outermost group, which takes the same flags for whatever
    command follows."""

    def run(ctx: typer.Context, **values: Any) -> None:
        ctx.obj = {key: values.pop(key) for key in _COMMON}
        function(ctx, **values)

    _sign(run, function, [*_own(function), *_added(_COMMON)])
    app.callback()(run)


def _sign(run: Any, function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    """Let Typer see `parameters`, which `run` receives as keywords."""
    if completion.is_asked():
        completion.attach(parameters)
    context = inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context)
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = inspect.Signature([context, *parameters])
    run.__annotations__ = {p.name: p.annotation for p in [context, *parameters]}


_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _own(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of `function` but for the first."""
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    return [parameter.replace(kind=_KEYWORD) for parameter in parameters]


def _added(options: Mapping[str, Any]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, _KEYWORD, default=None, annotation=annotation)
        for name, annotation in options.items()
    ]


def _checked(output: str | None, formats: Sequence[str]) -> str:
    if output is None or output in formats:
        return output or "table"
    near = get_close_matches(output, formats, n=1)
    raise UsageError(
        f"There is no output {output!r} here.",
        hint=f"Did you mean -o {near[0]}?" if near else f"There are: {', '.join(formats)}.",
    )


def _quietly(action: Callable[[], int]) -> int:
    """The exit code of `action`; a reader of stdout that goes away ends it without a word."""
    try:
        code = action()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing fails when the interpreter flushes
        return ExitCode.BROKEN_PIPE
    return code
