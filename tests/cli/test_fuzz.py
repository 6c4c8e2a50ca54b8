"""Whatever is typed: a documented exit code, one sentence, and never a traceback of ours (case P7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.project import Project, project_in
from wfe.cli.app import wants_json, whole
from wfe.cli.exit_codes import ExitCode

from .flows import FLOWS

#: These go on until they are interrupted, or somebody else does something.
ENDLESS = {("serve",), ("schedule",), ("executions", "watch")}
ENDLESS_FLAGS = {"--wait", "-f", "--follow", "--watch"}

#: What people type, by mistake or not. No workflow is among it that waits for an answer: a run of it
#: would wait, too.
WORDS = [
    "",
    " ",
    "-",
    "--",
    "--=",
    "---x",
    "-1",
    "0",
    "1",
    "1e400",
    "9" * 400,
    "NaN",
    "null",
    "{",
    '{"a": 1}',
    '"x"',
    "[" * 3000,
    "@",
    "@nope.json",
    "a=1",
    "=",
    "a.b=@nope",
    ":",
    "::::",
    "echo",
    "order",
    "flows.py:echo",
    "workflows/flows.py:echo",
    "workflows/flows.py",
    "order:o1",
    "o1",
    "publish:t1",
    "publish:t1:approve:invoke",
    "publish:t1:approve:compensate",
    "publish:t1:nope",
    "json",
    "table",
    "2h ago",
    "2026-11-30",
    "2026-02-31T99",
    "15m",
    "0 3 * * *",
    "0 0 31 2 *",
    "Europe/London",
    "failed,waiting",
    "a\nb",
    "\x1b[31m",
    "\udcff",
    "e\u0301",
    "💥",
    "[/b]",
    "%s%n",
    "*",
    "x" * 5000,
    "new-folder",
    "new-file",
    "workflows",
    "no/such/folder/x",
    "workflows/flows.py/x",
]


class Words(NamedTuple):
    """A command and the options that it knows."""

    path: tuple[str, ...]
    options: tuple[str, ...]


def commands(command: Any, *path: str) -> Iterator[Words]:
    options = tuple(o for p in command.params for o in p.opts if o.startswith("-"))
    if path not in ENDLESS:
        yield Words(path, tuple(option for option in options if option not in ENDLESS_FLAGS))
    for name in getattr(command, "commands", {}):
        yield from commands(command.commands[name], *path, name)


COMMANDS = list(commands(whole()))

#: No file is named by chance: what is typed at random could lie anywhere.
TEXT = st.text(st.characters(exclude_characters="\0/~.", codec=None), max_size=20)


@st.composite
def typed(draw: st.DrawFn) -> list[str]:
    """A command, perhaps `-o json`, some of its options, and whatever else."""
    path, options = draw(st.sampled_from(COMMANDS))
    as_json = draw(st.sampled_from([[], ["-o", "json"], ["-ojson"], ["--output=json"]]))
    known = [*options, "--nope", "-z"]
    if as_json:
        known = [option for option in known if option not in ("-o", "--output")]
    word = st.sampled_from(WORDS) | TEXT.filter(lambda text: not text.startswith("-"))
    words = draw(st.lists(st.sampled_from(known) | word, max_size=6))
    return [*path, *as_json, *words]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """order:o1 is done; publish:t1 waits; a person's own folders are out of reach."""
    root: Path = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch, project_in(root, patch) as project:
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("WFE_ACCEPT_TIMEOUT", "0.1")
        patch.setenv("WFE_BUSY_TIMEOUT", "0.1")
        (root / "home").mkdir()
        project.write("workflows/flows.py", FLOWS)
        project.wfe("run", "order", "--tx", "o1", "-p", "gift=true")
        project.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting")
        yield project


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(typed())
@example(["executions", "list", "-q", "[" * 3000, "-o", "json"])
@example(["executions", "show", "x" * 5000, "-o", "json"])
@example(["run", "echo", "-i", "[" * 3000, "-o", "json"])
@example(["run", "echo", "-p", "=", "-o", "json"])
@example(["run", "echo", "--timeout", "9" * 400, "-i", "1"])
@example(["executions", "list", "--limit", "9" * 400])
@example(["executions", "list", "--since", "9" * 400 + "d"])
@example(["init", "workflows/flows.py/x"])
@example(["db", "backup", "no/such/folder/x", "-o", "json"])
@example(["--install-completion", "--show-completion", "-o", "json"])
@example(["help", "\udcff"])
@example(["step", "show", "::::", "-o", "json"])
@example(["workflows", "check", ":", "-o", "json"])
@example(["config", "--db", "\udcff", "-o", "json"])
def test_whatever_is_typed_ends_with_a_documented_code_and_no_traceback(
    stored: Project, arguments: list[str]
) -> None:
    ended = stored.wfe(*arguments)
    assert ended.code in set(ExitCode)
    assert "Traceback" not in ended.err
    assert "internal" not in ended.err
    if ended.code in (ExitCode.OK, ExitCode.WAITING):
        return
    if wants_json(arguments):
        assert json.loads(ended.out)["ok"] is False
    said = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1
