"""`wfe executions`: what is stored, for people and for pipes, without user code."""

from __future__ import annotations

import csv
import io

import pytest

from tests.project import Project


@pytest.fixture(scope="module")
def stored(shared: Project) -> Project:
    """Three executions: order:a is done, order:b reverted, publish:c waits."""
    shared.wfe("run", "order", "--tx", "a", "-p", "gift=true")
    shared.wfe("run", "order", "--tx", "b", "-p", "gift=false", "-p", "fail=ship")
    shared.wfe("run", "publish", "--tx", "c", "-i", "1", "--until", "waiting")
    return shared


def keys(project: Project, *arguments: str) -> list[str]:
    ended = project.wfe("executions", "list", "-o", "key", *arguments)
    assert ended.code == 0
    return ended.lines


def test_a_pipe_gets_tab_separated_lines_the_newest_first(stored: Project) -> None:
    ended = stored.wfe("executions", "list")
    cells = [line.split("\t") for line in ended.lines]
    assert [row[:2] for row in cells] == [
        ["publish:c", "waiting"],
        ["order:b", "reverted"],
        ["order:a", "done"],
    ]
    assert all(row[2].endswith("Z") and row[3].endswith("Z") for row in cells)
    assert "\x1b" not in ended.out


def test_every_format_holds_the_same_executions(stored: Project) -> None:
    documents = stored.wfe("executions", "list", "-o", "json").document
    lines = stored.wfe("executions", "list", "-o", "jsonl").lines
    rows = csv.DictReader(io.StringIO(stored.wfe("executions", "list", "-o", "csv").out))
    wide = stored.wfe("executions", "list", "-o", "wide").lines
    expected = ["publish:c", "order:b", "order:a"]
    assert [document["key"] for document in documents] == expected
    assert len(lines) == 3
    assert [row["key"] for row in rows] == expected
    assert [line.split("\t")[0] for line in wide] == expected
    assert keys(stored) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-q", "order"], ["order:b", "order:a"]),
        (["-q", "ORD revert"], ["order:b"]),
        (["-q", "nothing"], []),
        (["-w", "publish"], ["publish:c"]),
        (["--state", "done,reverted"], ["order:b", "order:a"]),
        (["--state", "waiting"], ["publish:c"]),
        (["--state", "waiting,done"], ["publish:c", "order:a"]),
        (["--state", "invoking"], ["publish:c"]),
        (["--since", "1h ago"], ["publish:c", "order:b", "order:a"]),
        (["--until", "1h ago"], []),
        (["--limit", "1"], ["publish:c"]),
        (["--limit", "0"], ["publish:c", "order:b", "order:a"]),
    ],
)
def test_lists_are_filtered(stored: Project, arguments: list[str], expected: list[str]) -> None:
    assert keys(stored, *arguments) == expected


def test_count_is_of_all_that_match(stored: Project) -> None:
    assert stored.wfe("executions", "list", "--count", "--limit", "1", "-w", "order").out == "2\n"


def test_a_list_that_is_cut_short_says_so_on_stderr(stored: Project) -> None:
    assert "more than 2" in stored.wfe("executions", "list", "--limit", "2").err
    assert stored.wfe("executions", "list", "--limit", "3").err == ""


def test_an_empty_list_is_one_and_no_database_is_made(flows: Project) -> None:
    ended = flows.wfe("executions", "list", "-o", "json")
    assert (ended.code, ended.document) == (0, [])
    assert flows.wfe("executions", "list", "--count").out == "0\n"
    assert not flows.db.exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--state", "fialed"], "There is no state 'fialed'."),
        (["--since", "soon"], "--since 'soon' is no moment."),
        (["--limit", "-1"], "--limit is a whole number"),
        (["--limit", "x"], "'x' is no whole number"),
        (["-o", "xml"], "There is no output 'xml' here."),
    ],
)
def test_a_filter_that_means_nothing_is_refused(
    stored: Project, arguments: list[str], problem: str
) -> None:
    ended = stored.wfe("executions", "list", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err


def test_keys_are_complete_in_a_narrow_pipe(
    flows: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = "x" * 75
    flows.wfe("run", "echo", "-i", "1", "--tx", tx)
    monkeypatch.setenv("COLUMNS", "40")
    (line,) = flows.wfe("executions", "list").lines
    assert line.split("\t")[0] == f"echo:{tx}"


IDS = [
    "a:b",
    ":",
    "order:rocket:x",
    "[/b]",
    "[bold]x",
    "\u00e9",
    "e\u0301",
    "👨‍👩‍👧",
    "שלום",
    "x" * 300,
    "-leading",
    "trailing ",
    "%",
    "_",
    "*",
    "a'b\"c",
    "\\n",
]


def test_ids_are_stored_and_printed_as_given(flows: Project) -> None:
    for number, tx in enumerate(IDS):
        assert flows.wfe("run", "echo", f"--tx={tx}", "-i", str(number)).out == f"{number}\n"
    assert sorted(keys(flows, "--limit", "0")) == sorted(f"echo:{tx}" for tx in IDS)
    for number, tx in enumerate(IDS):
        shown = flows.wfe("executions", "show", f"echo:{tx}", "-o", "json")
        assert (shown.document["transaction"], shown.document["result"]) == (tx, number)
        assert flows.wfe("executions", "show", "-o", "key", "--", tx).out == f"echo:{tx}\n"
        plain = flows.wfe("executions", "show", f"echo:{tx}").lines
        assert plain[0] == f"key\techo:{tx}"


@pytest.mark.parametrize("tx", ["a\nb", "", "\x1b[31m", "a\u2028b", "\udcff", "x" * 1001])
def test_ids_that_no_terminal_prints_are_refused_with_the_reason(flows: Project, tx: str) -> None:
    ended = flows.wfe("run", "echo", f"--tx={tx}", "-i", "1", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "invalid_transaction_id")
    assert not flows.db.exists() or keys(flows) == []


def test_show_in_a_pipe_is_a_line_for_each_fact_step_and_error(stored: Project) -> None:
    lines = [line.split("\t") for line in stored.wfe("executions", "show", "b").lines]
    facts = {line[0]: line[1] for line in lines}
    assert (facts["key"], facts["status"], facts["workflow"]) == ("order:b", "reverted", "order")
    steps = {line[1]: line for line in lines if line[0] == "step"}
    assert steps["reserve"][2:4] == ["done", "reverted"]
    assert steps["wrap"][2] == "skipped"
    assert "when gift: no" in steps["wrap"]
    (error,) = [line for line in lines if line[0] == "error"]
    assert error == ["error", "ship", "invoke", "PermanentStepFailure", "no truck today"]


def test_show_lists_what_to_answer(stored: Project) -> None:
    (line,) = [
        line for line in stored.wfe("executions", "show", "c").lines if line.startswith("waiting\t")
    ]
    key = "publish:c:approve:invoke"
    assert line.split("\t")[1:] == [
        key,
        f"wfe step succeed {key} --response JSON",
        f"wfe step fail {key} --error REASON",
    ]


def test_show_as_json_holds_the_whole_checkpoint(stored: Project) -> None:
    document = stored.wfe("executions", "show", "order:b", "-o", "json").document
    assert document["context"]["payload"] == {"gift": False, "fail": "ship"}
    assert document["context"]["invoke"]["reserve"]["output"] == "stock"
    assert document["context"]["errors"][0]["error"]["name"] == "PermanentStepFailure"
    steps = document["execution"]["steps"]
    assert steps["ship"]["invoke"] == {"state": "failed", "status": "permanent_failure"}
    assert steps["reserve"]["compensate"] == {"state": "reverted", "status": "ok"}
    assert document["execution"]["guards"] == {"gift": False}


def test_what_is_not_there_ends_with_3(stored: Project) -> None:
    for key in ("nope", "order:nope", "order:a:b"):
        ended = stored.wfe("executions", "show", key, "-o", "json")
        assert (ended.code, ended.document["error"]["code"]) == (3, "transaction_not_found")


def test_readers_run_no_user_code(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "a")
    flows.write("workflows/more.py", "raise SystemExit('user code was run')")
    for command in (["list"], ["show", "a"], ["list", "--count"]):
        assert flows.wfe("executions", *command).code == 0
    assert flows.wfe("workflows", "list").code == 2
