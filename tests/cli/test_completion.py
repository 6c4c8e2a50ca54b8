"""Shells complete names and keys, and are never written to by what goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.project import WFE, Ended, Project
from wfe import glance
from wfe.cli import shells
from wfe.errors import UsageError

#: An id that a shell would evaluate, were it handed over as code.
HOSTILE = r"""a\";touch pwned;"$(touch pwned)`touch pwned`'x"""


@pytest.fixture(scope="module")
def made(shared: Project) -> Project:
    """publish:t1 waits for an answer, two-answers:t2 for two; order:o 1 (with a space) is done."""
    shared.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting")
    shared.wfe("run", "two-answers", "--tx", "t2", "--until", "waiting")
    shared.wfe("run", "order", "--tx", "o 1", "-p", "gift=true")
    return shared


@pytest.fixture
def stored(project: Project, made: Project) -> Project:
    """All that is in `made`, to do with as one likes."""
    project.copy(made)
    return project


def complete(project: Project, line: str, **environ: str) -> Ended:
    """What a shell is told for a command line that is cut off here."""
    return project.execute(
        _WFE_COMPLETE="complete_fish",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_ARGS=line,
        **environ,
    )


def values(project: Project, line: str) -> list[str]:
    ended = complete(project, line)
    assert (ended.code, ended.err) == (0, "")
    return [line.partition("\t")[0] for line in ended.lines if line]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("wfe exec", ["executions"]),
        ("wfe executions res", ["resume", "result"]),
        ("wfe run --un", ["--until"]),
        ("wfe run ", ["echo", "late", "order", "publish", "two-answers", "wall"]),
        ("wfe run o", ["order"]),
        ("wfe workflows show w", ["wall"]),
        ("wfe executions list -w p", ["publish"]),
        ("wfe executions list --state failed,wait", ["failed,waiting_to_compensate", "failed,waiting"]),
        ("wfe executions list -o js", ["json", "jsonl"]),
        ("wfe --color al", ["always"]),
        ("wfe executions show pub", ["publish:t1"]),
        ("wfe executions show publish:", ["publish:t1"]),
        ("wfe executions show t", ["two-answers:t2", "t1", "t2"]),
        ("wfe executions diff order:o", ["order:o 1"]),
        ("wfe run order --tx ", ["o 1"]),
        (
            "wfe step succeed ",
            [
                "publish:t1:approve:invoke",
                "two-answers:t2:left:invoke",
                "two-answers:t2:right:invoke",
            ],
        ),
        ("wfe step fail two-answers:t2:l", ["two-answers:t2:left:invoke"]),
        ("wfe step show 'order:o 1:w", ["order:o 1:wrap"]),
        ("wfe help ke", ["keys"]),
        ("wfe executions show nope", []),
        ("wfe executions show -q", []),
    ],
)  # fmt: skip
def test_a_word_is_completed_by_what_may_stand_there(
    stored: Project, line: str, expected: list[str]
) -> None:
    assert values(stored, line) == expected


def test_commands_come_with_what_they_do(project: Project) -> None:
    assert "run\tRun a workflow and print its result." in complete(project, "wfe ").lines


def test_schedules_are_completed_by_name(stored: Project) -> None:
    with closing(sqlite3.connect(stored.db)) as connection, connection:
        connection.execute(
            "INSERT INTO schedule (name, workflow_id, origin, timing, definition, anchor,"
            " accounted_until, fired) VALUES ('nightly', 'late', 'workflow', 'x', '{}', 1, 1, 0)"
        )
    assert values(stored, "wfe schedules show ") == ["nightly"]


def test_another_database_is_looked_into_where_it_was_named(stored: Project) -> None:
    stored.wfe("run", "echo", "-i", "1", "--tx", "x9", "--db", "other.db")
    assert values(stored, "wfe executions show --db other.db ") == ["echo:x9"]
    assert values(stored, "wfe --db other.db executions show ") == ["echo:x9"]
    assert values(stored, "wfe --db nope.db executions show ") == []
    assert not (stored.root / "nope.db").exists()


def break_module(project: Project) -> None:
    project.write("workflows/broken.py", "print('loud')\n1 / 0\nworkflow(")


def break_database(project: Project) -> None:
    project.db.write_text("no database " * 100)


def break_settings(project: Project) -> None:
    project.write("wfe.toml", "nonsense = ")


def remove_database(project: Project) -> None:
    shutil.rmtree(project.db.parent)


BROKEN = [break_module, break_database, break_settings, remove_database]


@pytest.mark.parametrize("break_it", BROKEN, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "line",
    ["wfe run ", "wfe executions show ", "wfe step succeed ", "wfe step show a:b:", "wfe run x --tx "],
)  # fmt: skip
def test_what_is_broken_says_nothing_to_whoever_types(
    stored: Project, break_it: Callable[[Project], None], line: str
) -> None:
    break_it(stored)
    ended = complete(stored, line, WFE_DEBUG="1")
    assert (ended.code, ended.err) == (0, "")
    assert "loud" not in ended.out
    assert "rror" not in ended.out


def test_a_locked_database_is_not_waited_for(stored: Project) -> None:
    with closing(sqlite3.connect(stored.db, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        ended = complete(stored, "wfe executions show ")
    assert (ended.code, ended.out.strip(), ended.err) == (0, "", "")


@pytest.mark.parametrize(
    "instruction", ["", "nonsense", "complete_tcsh", "complete_bash", "source_bash", "_", "a_b"]
)
def test_an_instruction_that_means_nothing_says_nothing(project: Project, instruction: str) -> None:
    ended = project.installed(_WFE_COMPLETE=instruction)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("line", ["", "wfe", "wfe 'unclosed", 'wfe "', "wfe run \\"])
def test_a_line_that_is_cut_anywhere_is_no_trouble(project: Project, line: str) -> None:
    assert complete(project, line).code == 0


def test_nothing_heavy_and_no_module_of_a_user_is_loaded(stored: Project) -> None:
    script = (
        "import sys, atexit, json, os\n"
        "from wfe.cli import app\n"
        "app.main([])\n"
        "heavy = ('asyncio', 'peewee', 'croniter', 'rich', 'msgspec', 'wfe.engine', 'flows',"
        " 'workflows.flows')\n"
        "sys.stderr.write(json.dumps([name for name in heavy if name in sys.modules]))\n"
    )
    for line in ("wfe run ", "wfe executions show ", "wfe step succeed "):
        ended = subprocess.run(
            [sys.executable, "-c", script],
            cwd=stored.root,
            env={
                **os.environ,
                "_WFE_COMPLETE": "complete_fish",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
                "_TYPER_COMPLETE_ARGS": line,
            },
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        assert ended.stdout.strip() != ""
        assert json.loads(ended.stderr) == []


# --- names of workflows, without loading them ----------------------------------------------------


def test_names_are_read_off_the_text_of_modules(project: Project) -> None:
    project.write(
        "workflows/deep/many.py",
        """
        import wfe
        from wfe import workflow
        raise SystemExit("loaded")

        @workflow
        def bare(): ...

        @workflow("named", timeout=3)
        def other(): ...

        @wfe.workflow("dotted")
        def third(): ...

        @workflow(f"computed-{1}")
        def fourth(): ...
        """,
    )
    project.write("workflows/_hidden.py", "@workflow('hidden')\ndef f(): ...")
    project.write("workflows/test_it.py", "@workflow('tested')\ndef f(): ...")
    project.write("workflows/broken.py", "@workflow('broken'\n")
    (project.root / "workflows/binary.py").write_bytes(b"workflow\xff\x00")
    assert glance.names([str(project.root / "workflows")]) == ["bare", "dotted", "named"]
    assert glance.names(["no.such.module", str(project.root / "nope.py")]) == []


# --- the scripts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", shells.SCRIPTS)
def test_the_script_of_a_shell_is_shown(project: Project, shell: str) -> None:
    assert project.wfe("--show-completion", shell).out == shells.script(shell)
    assert project.wfe(f"--show-completion={shell}").out == shells.script(shell)


def test_without_a_name_the_shell_around_is_meant(project: Project) -> None:
    out = subprocess.run(
        ["bash", "-c", f"{WFE} --show-completion; true"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    assert out == shells.script("bash")


def test_an_unknown_shell_is_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="tcsh"):
        shells.script("tcsh")
    ended = project.wfe("--install-completion=tcsh")
    assert (ended.code, ended.out) == (2, "")
    assert "bash, zsh, fish" in ended.err


@pytest.mark.parametrize("shell", shells.SCRIPTS)
def test_an_installation_is_complete_and_can_be_repeated(tmp_path: Path, shell: str) -> None:
    rc = tmp_path / f".{shell}rc"
    if shell != "fish":
        rc.write_text("mine")
    first = shells.install(shell, {}, tmp_path)
    assert first.script.read_text() == shells.script(shell)
    assert shells.install(shell, {}, tmp_path) == first
    if first.read_by is not None:
        lines = first.read_by.read_text().splitlines()
        assert lines[0] == "mine"
        assert len(lines) == 2
        assert str(first.script) in lines[1]


class Terminal:
    """An interactive shell in which wfe completes."""

    project: Project

    def __init__(self, shell: str, home: Path) -> None:
        shells.install(shell, {}, home)
        (home / ".inputrc").write_text("set bell-style none\nset page-completions off\n")
        arguments = {"bash": ["-i"], "zsh": ["-i"], "fish": ["-i", "--private"]}[shell]
        self._path = f"{Path(WFE).parent}:/usr/bin:/bin"
        self._is_fish = shell == "fish"
        package = str(Path(shells.__file__).parents[2])
        self.child: Any = pexpect.spawn(
            shutil.which(shell),
            arguments,
            cwd=str(home),
            env={
                "HOME": str(home),
                "PATH": self._path,
                "PYTHONPATH": package,
                "TERM": "dumb" if shell != "fish" else "xterm",
                "LANG": "C.UTF-8",
                "LC_ALL": "C.UTF-8",
                "ZDOTDIR": str(home),
                "fish_greeting": "",
            },
            dimensions=(40, 160),
            encoding="utf-8",
            timeout=20,
        )
        self._number = 0
        self.run("echo begun")

    def enter(self, project: Project) -> None:
        """Be in its folder, with the `wfe` that is there."""
        self.project = project
        path = f"{project.root}/bin:{self._path}"
        setting = f"set -x PATH (string split : {path})" if self._is_fish else f"PATH={path}"
        self.run(f"cd {project.root}; {setting}")

    def run(self, command: str) -> str:
        """Type a command, wait until it has ended, and give what was written meanwhile."""
        self._number += 1
        self.child.send(f"{command}; echo en''ded-{self._number}\r")
        self.child.expect(f"ended-{self._number}[\r\n]")
        return str(self.child.before)

    def completed(self, line: str) -> list[str]:
        """The words of a command line that was sent off right after TAB had been pressed at its end."""
        log = self.project.root / "words"
        log.unlink(missing_ok=True)
        self.run(f"{line}\t\r: ")
        return log.read_text().splitlines()[:-1]

    def tried(self, line: str) -> str:
        """What was written while TAB was pressed at the end of a command line that was then given up."""
        return self.run(f"{line}\t\x15:")


@pytest.fixture(scope="module", params=sorted(shells.SCRIPTS))
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    terminal = Terminal(request.param, tmp_path_factory.mktemp("home"))
    yield terminal
    terminal.child.close(force=True)


@pytest.fixture
def terminal(opened: Terminal, stored: Project) -> Terminal:
    """A shell in a project of its own."""
    # From now on `wfe` writes down the words it is given, unless it is asked to complete.
    stored.write(
        "bin/wfe",
        f"""\
        #!/bin/sh
        if [ -n "$_WFE_COMPLETE" ]; then touch asked; exec {WFE} "$@"; fi
        for word in "$@"; do printf '%s\\n' "$word"; done > words
        echo . >> words
        """,
    ).chmod(0o755)
    opened.enter(stored)
    return opened


def test_a_real_shell_completes_keys_with_colons_and_spaces(terminal: Terminal) -> None:
    for line, words in (
        ("wfe step succeed pub", ["step", "succeed", "publish:t1:approve:invoke"]),
        ("wfe step succeed publish:t", ["step", "succeed", "publish:t1:approve:invoke"]),
        ("wfe step fail two-answers:t2:l", ["step", "fail", "two-answers:t2:left:invoke"]),
        ("wfe executions show order:", ["executions", "show", "order:o 1"]),
        ("wfe run tw", ["run", "two-answers"]),
        ("wfe exec", ["executions"]),
    ):
        assert terminal.completed(line) == words


def test_an_id_that_looks_like_code_stays_an_id(terminal: Terminal) -> None:
    project = terminal.project
    project.wfe("run", "echo", "-i", "1", f"--tx={HOSTILE}")
    assert terminal.completed("wfe executions show echo:") == [
        "executions",
        "show",
        f"echo:{HOSTILE}",
    ]
    assert not (project.root / "pwned").exists()


def test_a_broken_project_leaves_the_prompt_alone(terminal: Terminal) -> None:
    break_module(terminal.project)
    break_database(terminal.project)
    written = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.tried("wfe step succeed "))
    assert (terminal.project.root / "asked").exists()
    assert "loud" not in written
    assert "rror" not in written
    assert "Traceback" not in written
