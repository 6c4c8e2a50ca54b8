"""Stored text that would command a terminal, or say something else than it holds, is shown as escapes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import Project, project_in
from tests.terminal import Terminal

ESCAPE = "\x1b"
#: Clears the screen; sets the title; rings; returns; erases backwards; turns what follows around;
#: and what nobody sees: a space without width, a joiner, a mark, a soft hyphen.
COMMANDS = f"{ESCAPE}[2J|{ESCAPE}]0;title\x07|\x07|\rover|\x08\x08|\x9b31m"
TURNS = "\u202edne\u202c|\u2066x\u2069|\u200f"
UNSEEN = "\u200b|a\u200db|\ufeff|\u00ad"
HOSTILE = f"{COMMANDS}|{TURNS}|{UNSEEN}"

#: An id may hold what is no control character.
ID = f"t1-{TURNS}{UNSEEN}"

FLOW = f"""
from wfe import WorkflowResponse, parallel, step, workflow

HOSTILE = {HOSTILE!a}


class Hostile(Exception):
    pass


@step
def tell(ctx, value) -> dict:
    ctx.logger.info(HOSTILE)
    ctx.progress(0.5, HOSTILE)
    print(HOSTILE)
    return {{"text": HOSTILE, HOSTILE: 1}}


@tell.compensate
def untell(value):
    pass


@step(max_retries=1, continue_on_permanent_failure=True)
def fail(value):
    raise Hostile(HOSTILE)


@step({f"ask-{TURNS}{UNSEEN}"!a}, async_=True)
def ask(value) -> None:
    return None


@workflow("hostile", description=HOSTILE)
def hostile(value):
    parallel(tell(value), fail(value))
    return WorkflowResponse(ask(value))
"""

_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """hostile:<ID> has failed in a step and waits in another."""
    root = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch, project_in(root, patch) as project:
        project.write("workflows/hostile.py", FLOW)
        given = ("-i", json.dumps(HOSTILE), "--until", "waiting")
        assert project.wfe("run", "hostile", f"--tx={ID}", *given).code == 20
        yield project


@pytest.fixture
def on_terminal(stored: Project) -> Iterator[Callable[..., str]]:
    spawned: list[Any] = []

    def run(*arguments: str) -> str:
        """What a command writes to a terminal without colours."""
        child = Terminal(*arguments, folder=stored.root, lines=40, TERM="xterm", NO_COLOR="1")
        spawned.append(child)
        child.expect(pexpect.EOF)
        return str(child.before)

    yield run
    for child in spawned:
        child.close(force=True)


def commands_in(written: str) -> list[str]:
    """What a terminal would obey, or not show, but for the ends of lines."""
    text = written.replace("\r\n", "\n")
    return [c for c in text if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)] + (
        _INVISIBLE.findall(text)
    )


@pytest.mark.parametrize(
    "words",
    [
        ("executions", "list"),
        ("executions", "list", "-o", "wide"),
        ("executions", "list", "-o", "json"),
        ("executions", "list", "-o", "csv"),
        ("executions", "list", "-o", "key"),
        ("executions", "show", "KEY"),
        ("executions", "show", "KEY", "-o", "json"),
        ("executions", "events", "KEY"),
        ("executions", "why", "KEY"),
        ("executions", "graph", "KEY"),
        ("executions", "show", "no-such-\u202e"),
        ("step", "list"),
        ("step", "list", "--waiting"),
        ("step", "show", "KEY"),
        ("doctor",),
        ("workflows", "check"),
        ("step", "fail", "no-such-\u202e", "--error", "x"),
        ("workflows", "list"),
        ("workflows", "show", "hostile"),
        ("workflows", "graph", "hostile"),
        ("db", "check"),
    ],
    ids=" ".join,
)
def test_a_terminal_is_shown_what_is_stored_and_obeys_none_of_it(
    on_terminal: Callable[..., str], words: tuple[str, ...]
) -> None:
    written = on_terminal(*(f"hostile:{ID}" if word == "KEY" else word for word in words))
    assert written.strip() != ""
    assert commands_in(written) == []


def test_what_is_hidden_can_be_told_apart(on_terminal: Callable[..., str]) -> None:
    shown = on_terminal("executions", "show", f"hostile:{ID}")
    for escape in (r"\u202e", r"\u200b", r"\x1b[2J", r"\x07", r"\x9b31m", r"\rover"):
        assert escape in shown


def test_while_it_runs_only_the_tree_moves_the_cursor(on_terminal: Callable[..., str]) -> None:
    written = on_terminal(
        "run", "hostile", "--tx", "t2", "-i", json.dumps(HOSTILE), "--until", "waiting"
    )
    left = re.sub(r"\x1b\[(\?25[lh]|2K|1A|\d*A)|\r", "", written)
    assert commands_in(left) == []


def test_in_a_pipe_ids_are_as_they_are_stored(stored: Project) -> None:
    found = ("executions", "list", "-q", "transaction~t1")
    assert stored.wfe(*found, "-o", "key").lines == [f"hostile:{ID}"]
    assert stored.wfe(*found).lines[0].split("\t")[0] == f"hostile:{ID}"
    shown = stored.wfe("executions", "show", f"hostile:{ID}", "-o", "json").document
    assert shown["transaction"] == ID
    assert shown["context"]["invoke"]["tell"]["output"] == {"text": HOSTILE, HOSTILE: 1}


@pytest.mark.parametrize(
    "text",
    ["👨‍👩‍👧", "שלום", "نمی‌خواهم", "é", "e\u0301", "क्‍ष", "order:rocket:x", "[/b]"],
)
def test_what_scripts_and_emoji_need_is_shown_as_it_is(project: Project, text: str) -> None:
    project.write(
        "workflows/echo.py",
        """
        from wfe import WorkflowResponse, step, workflow

        @step
        def echo(value):
            return value

        @workflow("echo")
        def echoing(value):
            return WorkflowResponse(echo(value))
        """,
    )
    assert project.wfe("run", "echo", f"--tx={text}", "-i", "1").code == 0
    assert f"echo:{text}" in project.wfe("executions", "list", "--color", "always").out
