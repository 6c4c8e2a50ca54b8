"""docs/reference/cli.md, made of the Typer app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.docs.markdown import fence, page, prose, table
from wfe.cli.app import whole
from wfe.cli.commands.help import TOPICS
from wfe.cli.exit_codes import MEANINGS

INTRO = """\
Made from the program itself by `make docs`. Every command also explains itself with `--help`, and `wfe help
TOPIC` what is true of all: {topics}.

How the commands are used is told in [Run workflows](../run-workflows.md), [Answer steps that
wait](../answer-steps.md), [Find and mend](../find-and-mend.md) and [Schedule
workflows](../schedule-workflows.md)."""

#: The options that every command has.
COMMON = ("--app", "--db", "--color", "--help")


def write() -> str:
    """The page."""
    root = whole()
    return page(
        [
            "# Reference: the command line",
            INTRO.format(topics=", ".join(f"`{topic}`" for topic in sorted(TOPICS))),
            "## Options of every command",
            table(["option", "what it is"], _options(root, wanted=COMMON[:-1])),
            "They may stand before the command, too. And `wfe` alone has",
            table(["option", "what it is"], _options(root)),
            "## Exit codes",
            table(["code", "meaning"], ([f"{code:d}", told] for code, told in MEANINGS.items())),
            *_commands(root, "wfe"),
        ]
    )


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        words = f"{path} {name}"
        yield f"## {words}"
        if hasattr(command, "commands"):
            yield prose(command.help)
            yield from _commands(command, words)
        else:
            yield from _command(command, words)


def _command(command: Any, words: str) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = [p.metavar if p.required else f"[{p.metavar or p.name.upper()}]" for p in arguments]
    yield fence(" ".join([words, "[OPTIONS]", *usage]))
    text, _, examples = (command.help or "").partition("\n\n\b\n")
    yield prose(text)
    if examples:
        yield "For example:"
        yield fence(examples)
    told = [[f"`{p.metavar or p.name.upper()}`", p.help or ""] for p in arguments]
    yield table(["argument", "what it is"], (row for row in told if row[1]))
    yield table(["option", "what it is"], _options(command))


def _options(command: Any, *, wanted: tuple[str, ...] = ()) -> Iterator[list[str]]:
    for option in command.params:
        if option.param_type_name != "option":
            continue
        is_common = bool({*option.opts} & {*COMMON})
        if is_common if not wanted else not {*option.opts} & {*wanted}:
            continue
        names = sorted(option.opts, key=len)
        metavar = "" if option.is_flag or not option.metavar else f" {option.metavar}"
        default = "" if option.is_flag or option.default in (None, ()) else option.default
        told = f"{option.help} Default: `{default}`." if default else option.help
        repeated = " May be repeated." if option.multiple and "repeated" not in told else ""
        named = ", ".join([*(f"`{name}`" for name in names[:-1]), f"`{names[-1]}{metavar}`"])
        yield [named, told + repeated]
