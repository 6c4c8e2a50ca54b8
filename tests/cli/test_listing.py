"""`wfe executions list`: what is found, page by page, and what is shown of it."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shlex
import sqlite3

import pytest

from tests.project import Ended, Project

NESTED = """
from wfe import WorkflowResponse, step, workflow


@step
def add(number: int) -> int:
    return number + 1


@workflow("inner", store=True)
def inner(number: int):
    return WorkflowResponse(add(number))


@workflow("outer")
def outer(number: int):
    return WorkflowResponse(inner.as_step(number))
"""


@pytest.fixture(scope="module")
def stored(shared: Project) -> Project:
    """order:a-1 is done, order:b-2 reverted, publish:c-3 waits, outer:d-4 is done and has a child."""
    shared.write("workflows/nested.py", NESTED)
    shared.wfe("run", "order", "--tx", "a-1", "-p", "gift=true", "-p", "customer.id=7")
    shared.wfe("run", "order", "--tx", "b-2", "-p", "gift=false", "-p", "fail=ship")
    shared.wfe("run", "publish", "--tx", "c-3", "-i", "1", "--until", "waiting")
    assert shared.wfe("run", "outer", "--tx", "d-4", "-i", "1").out == "2\n"
    return shared


def listed(project: Project, *arguments: str) -> Ended:
    return project.wfe("executions", "list", *arguments)


def keys(project: Project, *arguments: str) -> list[str]:
    ended = listed(project, "-o", "key", *arguments)
    assert ended.code == 0
    return ended.lines


# --- which ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("transaction=a-1", ["order:a-1"]),
        ("ORDER transaction~-2", ["order:b-2"]),
        ("state=done workflow=order", ["order:a-1"]),
        ("status=waiting", ["publish:c-3"]),
        ("created>1h", ["outer:d-4", "publish:c-3", "order:b-2", "order:a-1"]),
        ("age>1h", []),
        ("error~'no truck'", ["order:b-2"]),
        ("error~nothing", []),
        ("step.ship=failed", ["order:b-2"]),
        ("step.approve=waiting", ["publish:c-3"]),
        ("input.customer.id=7", ["order:a-1"]),
        ("output.sent=shipped", ["order:a-1"]),
        ("attempts>1", []),
        ('"a=b"', []),
    ],
)
def test_fields_are_searched(stored: Project, query: str, expected: list[str]) -> None:
    assert keys(stored, "-q", query) == expected
    assert listed(stored, "-q", query, "--count").out == f"{len(expected)}\n"


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("statee=done", "no field 'statee'. Did you mean state?", "wfe help query"),
        ("nosuchfield=1", "no field 'nosuchfield'.", "There are: workflow, transaction, run"),
        ("state=fialed", "no state 'fialed'.", "Did you mean failed?"),
        ("input.=1", "a name is missing", "wfe help query"),
        ("output.a..b!=1", "a name is missing", "wfe help query"),
        ("'open", "opens a quotation", "wfe executions list --help"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_and_no_empty_list(
    stored: Project, query: str, message: str, hint: str
) -> None:
    for output in ("json", "table"):
        ended = listed(stored, "-q", query, "-o", output)
        assert ended.code == 2
        assert message in ended.err
        assert hint in ended.err
    document = listed(stored, "-q", query, "-o", "json").document
    assert document["error"]["code"] == "usage"
    assert listed(stored, "-q", query, "--count", "-o", "json").document["ok"] is False


def test_children_are_listed_when_they_are_asked_for(stored: Project) -> None:
    assert not any(key.startswith("inner:") for key in keys(stored))
    (child,) = keys(stored, "-w", "inner")
    assert child in keys(stored, "--all")
    assert keys(stored, "-q", "inner") == []
    assert keys(stored, "-q", "inner", "--all") == [child]
    assert listed(stored, "--count").out == "4\n"
    assert listed(stored, "--count", "--all").out == "5\n"


def test_a_person_is_told_where_only_children_are_found(stored: Project) -> None:
    ended = listed(stored, "-q", "inner", "--color", "always")
    assert (ended.out, ended.err) == (
        "",
        "No executions but for 1 is a step of others: see --all.\n",
    )
    assert listed(stored, "-q", "inner").err == ""
    # No id is of these letters: ULIDs have neither an I nor an O.
    assert listed(stored, "-q", "nowhere-in", "--color", "always").err == "No executions.\n"


def test_what_nobody_drives_is_found_as_interrupted(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "a")
    flows.wfe("run", "echo", "-i", "1", "--tx", "b")
    with contextlib.closing(sqlite3.connect(flows.db, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE workflow_execution SET state = 'invoking', running = 1, ended_at = NULL"
            " WHERE transaction_id = 'a'"
        )  # as a process leaves it that is killed
    assert keys(flows, "--state", "interrupted") == ["echo:a"]
    assert keys(flows, "-q", "status=interrupted") == ["echo:a"]
    assert keys(flows, "-q", "status!=interrupted") == ["echo:b"]
    assert keys(flows, "--state", "interrupted,done") == ["echo:b", "echo:a"]
    assert listed(flows, "--state", "running,interrupted", "--count").out == "1\n"


# --- page by page --------------------------------------------------------------------------------


def next_page(ended: Ended) -> list[str]:
    """The command that stderr names, without its first word."""
    match = re.search(r"The next page: wfe (.*)", ended.err)
    return shlex.split(match[1]) if match else []


@pytest.mark.parametrize("output", ["key", "json", "jsonl", "csv", "table", "wide"])
def test_the_next_page_is_a_command_to_type(stored: Project, output: str) -> None:
    expected = keys(stored, "--all")
    seen: list[str] = []
    command = ["executions", "list", "--all", "--limit", "2", "-o", output]
    while command:
        ended = stored.wfe(*command)
        assert ended.code == 0
        seen += keys_in(ended, output)
        command = next_page(ended)
    assert seen == expected


def keys_in(ended: Ended, output: str) -> list[str]:
    match output:
        case "json":
            return [document["key"] for document in ended.document]
        case "jsonl":
            return [re.search(r'"key":"([^"]*)"', line)[1] for line in ended.lines]  # type: ignore[index]  # it is there
        case "csv":
            return [row["key"] for row in csv.DictReader(io.StringIO(ended.out))]
    return [line.split("\t")[0] for line in ended.lines]


def test_the_next_page_has_the_same_filters(stored: Project) -> None:
    flags = [
        "-q",
        "state!=failed '-'",
        "--since",
        "1h ago",
        "--until",
        "2100-01-01",
        "--limit",
        "1",
    ]
    command = next_page(listed(stored, *flags, "--state", "done,reverted", "-o", "jsonl"))
    assert command[:2] == ["executions", "list"]
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        assert command[command.index(flag) + 1] == value
    assert command[command.index("--state") + 1] == "done,reverted"
    assert command[command.index("-o") + 1] == "jsonl"
    assert [*map(str, keys_in(stored.wfe(*command), "jsonl"))] == ["order:b-2"]


def test_a_page_that_goes_on_behind_any_of_the_listed(stored: Project) -> None:
    documents = listed(stored, "-o", "json").document
    assert keys(stored, "--cursor", documents[1]["cursor"]) == [d["key"] for d in documents[2:]]
    assert keys(stored, "--cursor", documents[-1]["cursor"]) == []


def test_a_page_that_is_the_last_says_nothing(stored: Project) -> None:
    assert listed(stored, "--limit", "4").err == ""
    assert listed(stored, "--limit", "0").err == ""


def test_a_place_that_is_none_is_refused(stored: Project) -> None:
    ended = listed(stored, "--cursor", "page2", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")
    assert "'page2' is no place in a list" in ended.err


# --- what is shown -------------------------------------------------------------------------------


def test_wide_lines_and_documents_count_the_steps(stored: Project) -> None:
    documents = {d["key"]: d for d in listed(stored, "-o", "json").document}
    counts = {key: (d["steps_done"], d["steps_total"]) for key, d in documents.items()}
    assert counts["order:a-1"] == (4, 4)
    assert counts["publish:c-3"] == (0, 2)
    wide = {
        line.split("\t")[0]: line.split("\t")[-2:] for line in listed(stored, "-o", "wide").lines
    }
    assert {key: [str(over), str(total)] for key, (over, total) in counts.items()} == wide
    table = re.sub("\x1b.*?m", "", listed(stored, "-o", "wide", "--color", "always").out)
    assert re.search(r"STATUS +AGE +TOOK +STEPS +UPDATED +RUN +KEY", table)
    assert re.search(r"done.* 4/4 .*order:a-1\n", table)


def test_a_list_is_watched_only_on_a_terminal(stored: Project) -> None:
    ended = listed(stored, "--watch", "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")
    for flags in (["--watch"], ["--watch", "--count"], ["--watch", "--color", "always"]):
        ended = listed(stored, *flags)
        assert (ended.code, ended.out) == (2, "")
        assert "--watch" in ended.err


def test_help_explains_every_field(project: Project) -> None:
    from wfe.store.queries.fields import FIELDS

    told = project.wfe("help", "query")
    assert told.code == 0
    for field in FIELDS:
        assert re.search(rf"\b{field}\b", told.out)
    (example,) = [line for line in told.lines if line.startswith("  wfe ")]
    assert project.wfe(*shlex.split(example)[1:]).code == 0
