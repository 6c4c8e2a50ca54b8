"""Whatever is typed: one sentence, a documented exit code, never a traceback of ours."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tests.project import Project
from wfe.cli import app, main
from wfe.cli.exit_codes import MEANINGS, ExitCode

#: A usage error of every kind that the parser itself finds.
WRONG = [
    ["run"],
    ["run", "echo", "--nope"],
    ["run", "echo", "-i"],
    ["run", "echo", "extra"],
    ["run", "echo", "--until", "never"],
    ["run", "echo", "--timeout", "soon"],
    ["nope"],
    ["step", "fail", "t1"],
    ["step", "nope"],
    ["executions", "list", "--limit", "x"],
    ["help", "nope"],
    ["--color", "blue", "executions", "list"],
]


def test_what_help_says_of_a_command_is_what_the_command_says(project: Project) -> None:
    commands = app.whole().commands
    said = {name: place.sentence for name, place in app._COMMANDS.items()}
    assert said == {name: commands[name].get_short_help_str(10_000) for name in commands}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_is_one_sentence_with_the_way_out(
    project: Project, arguments: list[str]
) -> None:
    ended = project.wfe(*arguments)
    assert (ended.code, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("why t1", "wfe executions why"),
        ("cancle t1", "wfe executions cancel"),
        (
            "show",
            "wfe executions show or wfe step show or wfe schedules show or wfe workflows show",
        ),
        ("workflow list", "wfe workflows"),
        ("executions run", "wfe run"),
        ("executions resum", "wfe executions resume"),
        ("executions succeed t1", "wfe step succeed"),
    ],
)
def test_a_command_that_is_not_there_may_be_another_one_of_any_group(
    project: Project, typed: str, meant: str
) -> None:
    ended = project.wfe(*typed.split())
    assert (ended.code, ended.err.splitlines()[1]) == (2, f"  Did you mean {meant}?")


@pytest.mark.parametrize("output", [["-o", "json"], ["--output=json"], ["-ojson"]])
@pytest.mark.parametrize(
    "arguments", [one for one in WRONG if one[0] not in ("nope", "help")], ids=" ".join
)
def test_wrong_usage_is_one_json_document_where_json_was_asked_for(
    project: Project, arguments: list[str], output: list[str]
) -> None:
    ended = project.wfe(*arguments[:2], *output, *arguments[2:])
    assert ended.code == 2
    assert ended.document["ok"] is False
    assert set(ended.document["error"]) == {"code", "message", "hint", "key"}
    assert ended.document["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "nope"], 3),
        (["run", "echo", "-i", "{"], 2),
        (["run", "order", "-i", "3"], 2),
        (["run", "order", "-p", "fail=charge", "-p", "gift=true"], 10),
        (["run", "wall", "-p", "fail=ship"], 11),
        (["run", "late"], 12),
        (["run", "flows.py:nope"], 2),
        (["run", "workflows/flows.py:nope"], 3),
        (["run", "no.such.module:nope"], 2),
        (["run", "echo", "--db", "/"], 1),
        (["run", "echo", "--db", "workflows/flows.py"], 1),
        (["run", "echo", "--db", "/dev/null/wfe.db"], 1),
        (["executions", "show", "nope"], 3),
        (["executions", "show", ""], 2),
        (["executions", "list", "--db", "workflows/flows.py"], 1),
        (["step", "succeed", "nope"], 2),
        (["step", "fail", "echo:nope:echo:invoke", "--error", "x"], 3),
        (["workflows", "show", "nope"], 3),
        (["workflows", "list", "--app", "nope.py"], 2),
    ],
    ids=str,
)
def test_every_failure_is_one_json_document_and_its_exit_code(
    flows: Project, arguments: list[str], code: int
) -> None:
    ended = flows.wfe(*arguments, "-o", "json")
    assert ended.code == code
    assert ended.document["ok"] is False
    assert ended.document["error"]["message"]
    assert "Traceback" not in ended.err
    plain = flows.wfe(*arguments)
    assert (plain.code, plain.out) == (code, "")
    assert "error: " in plain.err


@pytest.mark.parametrize("key", ["nope", "echo:nope", "a:b:c"])
def test_the_key_that_was_not_found_is_told_as_it_was_typed(flows: Project, key: str) -> None:
    ended = flows.wfe("executions", "show", key, "-o", "json")
    assert (ended.code, ended.document["error"]["key"]) == (3, key)


def test_what_stands_in_the_place_of_a_database_is_left_as_it_is(flows: Project) -> None:
    before = (flows.root / "workflows/flows.py").read_bytes()
    flows.wfe("run", "echo", "-i", "1", "--db", "workflows/flows.py")
    assert (flows.root / "workflows/flows.py").read_bytes() == before


def test_a_module_with_a_syntax_error_is_told_with_its_line_and_the_others_run(
    flows: Project,
) -> None:
    flows.write("workflows/broken.py", "def f(:\n")
    assert flows.wfe("run", "echo", "-i", "1").code == 0
    ended = flows.wfe("run", "broken")
    assert ended.code == 2
    assert "workflows/broken.py:1: SyntaxError: invalid syntax" in ended.err
    assert "def f(:" in ended.err
    assert "Traceback" not in ended.err
    assert not (flows.wfe("run", "broken", "-o", "json").document["ok"])


def test_what_a_module_prints_while_it_loads_stays_out_of_stdout(flows: Project) -> None:
    flows.write("workflows/noisy.py", "print('loading')")
    assert flows.wfe("run", "echo", "-i", "1").out == "1\n"


def test_an_internal_error_says_so_in_one_line_and_shows_where_only_on_request(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfe.cli.session.load", lambda flags: 1 // 0)
    ended = project.wfe("executions", "list", "-o", "json")
    assert ended.code == 1
    assert ended.document["error"]["code"] == "internal"
    assert "Traceback" not in ended.err
    monkeypatch.setenv("WFE_DEBUG", "1")
    assert "Traceback" in project.wfe("executions", "list").err


def test_a_reader_that_goes_away_ends_a_command_without_a_word(flows: Project) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    flows.wfe("run", "echo", "-i", "1")
    kept, errors = (sys.stdout, sys.stderr), io.StringIO()
    sys.stdout, sys.stderr = Closed(), errors
    try:
        code = main(["executions", "list"])
    finally:
        sys.stdout, sys.stderr = kept
    assert (code, errors.getvalue()) == (141, "")


def test_help_lists_every_exit_code(project: Project) -> None:
    lines = project.wfe("help", "exit-codes").out.splitlines()
    assert [int(line.split()[0]) for line in lines] == sorted(ExitCode)
    assert set(MEANINGS) == set(ExitCode)


def test_help_explains_keys_and_names_its_topics(project: Project) -> None:
    assert "order:tx1:charge:invoke" in project.wfe("help", "keys").out
    assert "exit-codes, keys" in project.wfe("help").out


@pytest.mark.parametrize(
    "arguments",
    [[], ["executions"], ["step"], ["workflows"], ["--help"], ["run", "--help"]],
    ids=" ".join,
)
def test_a_group_alone_prints_its_help(project: Project, arguments: list[str]) -> None:
    ended = project.wfe(*arguments)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("Usage: wfe")


@pytest.mark.parametrize("columns", ["60", "160"])
@pytest.mark.parametrize("arguments", [[], ["executions"], ["schedules"], ["db"]], ids=" ".join)
def test_the_help_of_a_group_has_whole_sentences(
    project: Project, monkeypatch: pytest.MonkeyPatch, arguments: list[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    commands = project.wfe(*arguments).out.partition("Commands:\n")[2]
    assert commands
    assert "..." not in commands
    assert max(map(len, commands.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["list", "-o", "json"], True),
        (["list", "-ojson"], True),
        (["list", "--output", "json"], True),
        (["list", "--output=json"], True),
        (["list", "-o", "jsonl"], False),
        (["list", "-o"], False),
        (["show", "--", "-ojson"], False),
    ],
)
def test_json_is_recognised_before_arguments_are_understood(
    arguments: list[str], wanted: bool
) -> None:
    assert app.wants_json(arguments) is wanted


def test_flags_may_stand_before_the_command(flows: Project) -> None:
    flows.wfe("--db", "other.db", "run", "echo", "-i", "1", "--tx", "t1")
    assert (flows.root / "other.db").exists()
    assert flows.wfe("--db", "other.db", "executions", "list", "-o", "key").out == "echo:t1\n"
    assert flows.wfe("--db", "no.db", "executions", "list", "--db", "other.db", "-o", "key").lines


def test_without_workflows_the_way_to_name_some_is_told(project: Project) -> None:
    (project.root / "workflows").rmdir()
    ended = project.wfe("run", "order")
    assert ended.code == 3
    assert "name a file, folder or module with --app" in ended.err
    assert "--app" in project.wfe("workflows", "list").err


def test_an_unknown_setting_is_refused_with_a_near_one(project: Project) -> None:
    project.write("wfe.toml", "databse = 'x'")
    ended = project.wfe("executions", "list", "-o", "json")
    assert ended.code == 2
    assert "there is no setting 'databse'" in json.loads(ended.out)["error"]["message"]


def test_the_command_that_helps_is_the_one_that_was_typed_on_the_same_database(
    flows: Project,
) -> None:
    assert "See: wfe executions list --help" in flows.wfe("executions", "list", "--limit", "-1").err
    assert "See: wfe run --help" in flows.wfe("run", "echo", "--tx").err
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1", "--db", "my.db")
    ended = flows.wfe("step", "succeed", "echo:t1:echo:invoke", "--db", "my.db")
    assert ended.err.endswith("wfe executions show echo:t1 --db my.db\n")


def test_where_there_is_no_database_that_is_why_nothing_is_found(flows: Project) -> None:
    ended = flows.wfe("executions", "show", "t1", "--db", "typo.db", "-o", "json")
    assert ended.code == 3
    assert str(flows.root / "typo.db") in ended.document["error"]["hint"]


@pytest.mark.parametrize("target", ["workflows/flows.py", ":echo", "workflows/flows.py:"])
def test_a_target_that_names_no_workflow_says_how_one_is_named(flows: Project, target: str) -> None:
    ended = flows.wfe("run", target, "-o", "json")
    assert ended.code == 2
    assert ended.document["error"]["code"] == "usage"
    assert ":NAME" in ended.document["error"]["hint"]


def test_an_interrupt_outside_of_any_execution_is_one_sentence(flows: Project) -> None:
    flows.write("workflows/stopped.py", "raise KeyboardInterrupt")
    ended = flows.wfe("run", "echo", "-i", "1", "-o", "json")
    assert ended.code == 130
    assert ended.document["error"]["code"] == "interrupted"
    assert ended.err == "error: Interrupted.\n"
