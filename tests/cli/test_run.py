"""`wfe run`: the result alone on stdout, everything else on stderr, the outcome as exit code."""

from __future__ import annotations

import json

import pytest

from tests.project import Project


def test_the_result_alone_is_on_stdout_whatever_steps_and_programs_print(
    flows: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = flows.wfe("run", "echo", "-i", '{"A":1,"B":2}')
    assert (ended.code, ended.out) == (0, '{"A":1,"B":2}\n')
    assert "printed by a step" in ended.err
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "printed by a program\n")


@pytest.mark.parametrize(
    "value",
    [
        {"A": 1, "B": 2},
        [":", "a\nb\r\n\tc", "a\u2028b\x9b\x1b[31m", "é é 👨‍👩‍👧 שלום", "\x00\x7f"],
        [0, -0.0, 1e300, 2**70, 0.1, True, None, "", {}, []],
        "x" * 200_000,
        None,
        False,
    ],
)
def test_a_result_comes_back_as_it_went_in(flows: Project, value: object) -> None:
    (flows.root / "value.json").write_text(json.dumps(value))
    ended = flows.wfe("run", "echo", "-i", "@value.json")
    assert ended.document == value
    assert len(ended.out.splitlines()) == 1
    assert flows.wfe("run", "echo", "-i", "@value.json", "-o", "json").document["result"] == value


def test_json_is_one_document_with_what_it_came_to(flows: Project) -> None:
    ended = flows.wfe("run", "order", "-p", "gift=true", "--tx", "t:1", "-o", "json")
    document = ended.document
    assert document.pop("run")
    assert document == {
        "ok": True,
        "key": "order:t:1",
        "workflow": "order",
        "transaction": "t:1",
        "state": "done",
        "status": "done",
        "result": {"stock": "stock", "receipt": "receipt", "sent": "shipped"},
        "errors": [],
        "waiting": [],
    }


def test_the_key_alone_for_scripts(flows: Project) -> None:
    assert flows.wfe("run", "echo", "-i", "1", "--tx", "t1", "-o", "key").out == "echo:t1\n"


def test_progress_in_a_pipe_is_a_line_for_each_event(flows: Project) -> None:
    ended = flows.wfe("run", "order", "-p", "gift=false", "-p", "fail=charge", "--tx", "t1")
    told = [line.split("\t") for line in ended.err.splitlines() if "\t" in line]
    assert all(line[0].endswith("Z") for line in told)
    lines = ["\t".join(line[1:]) for line in told]
    assert lines[0] == "begin\torder:t1"
    assert "progress\torder:t1:reserve:invoke\tattempt 1\t50% half way" in lines
    assert "log\torder:t1:reserve:invoke\t\treserving" in lines
    failure = "step_failure\torder:t1:charge:invoke\tattempt {}\tRuntimeError: the gateway is down"
    assert [line for line in lines if line.startswith("step_failure")] == [
        failure.format(1),
        failure.format(2),
    ]
    assert lines[-1] == "finish\torder:t1\t\treverted"


def test_an_execution_that_is_undone_ends_with_10_and_says_why(flows: Project) -> None:
    ended = flows.wfe("run", "order", "-p", "gift=true", "-p", "fail=ship", "--tx", "t1")
    assert (ended.code, ended.out) == (10, "")
    assert "order:t1 failed; all it had done was undone." in ended.err
    assert "Step 'ship': no truck today\n" in ended.err
    assert ended.err.rstrip().endswith("See: wfe executions show order:t1")


def test_an_undo_that_fails_ends_with_11_and_says_both(flows: Project) -> None:
    ended = flows.wfe("run", "wall", "-p", "fail=ship", "-o", "json", "--tx", "t1")
    assert ended.code == 11
    document = ended.document
    assert document["ok"] is False
    assert document["state"] == "failed"
    assert document["error"]["code"] == "failed"
    assert document["error"]["key"] == "wall:t1"
    assert "no truck today" in document["error"]["message"]
    assert "RuntimeError: it cannot be unbuilt" in document["error"]["message"]


def test_a_timeout_ends_with_12(flows: Project) -> None:
    ended = flows.wfe("run", "late", "-o", "json")
    assert ended.code == 12
    assert ended.document["error"]["code"] == "timed_out"


def test_until_waiting_ends_with_20_and_prints_keys_and_the_commands_that_answer(
    flows: Project,
) -> None:
    ended = flows.wfe("run", "two-answers", "--tx", "tx 1", "--until", "waiting")
    assert ended.code == 20
    assert ended.lines == ["two-answers:tx 1:left:invoke", "two-answers:tx 1:right:invoke"]
    assert "  wfe step succeed 'two-answers:tx 1:left:invoke' --response JSON\n" in ended.err
    assert "  wfe step fail 'two-answers:tx 1:right:invoke' --error REASON\n" in ended.err


def test_the_printed_commands_repeat_the_flags_that_were_given(flows: Project) -> None:
    given = ["--app", "workflows/flows.py", "--db", "my.db"]
    ended = flows.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting", *given)
    command = f"wfe step succeed publish:t1:approve:invoke --response JSON {' '.join(given)}"
    assert f"  {command}\n" in ended.err
    typed = command.replace("JSON", '"kim"').split()
    assert flows.wfe(*typed[1:]).document == "published by kim"


def test_a_target_with_its_module_is_found_again_by_the_printed_commands(project: Project) -> None:
    from .flows import FLOWS

    project.write("jobs/flows.py", FLOWS)
    ended = project.wfe(
        "run", "jobs/flows.py:publish", "-i", "1", "--tx", "t", "--until", "waiting"
    )
    command = "wfe step succeed publish:t:approve:invoke --response JSON --app jobs/flows.py"
    assert f"  {command}\n" in ended.err
    assert project.wfe(*command.replace("JSON", "null").split()[1:]).code == 0


def test_a_printed_command_that_is_pasted_as_it_is_answers_nothing(flows: Project) -> None:
    flows.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting")
    ended = flows.wfe("step", "succeed", "publish:t1:approve:invoke", "--response", "JSON")
    assert ended.code == 2
    assert flows.wfe("executions", "list", "--state", "waiting", "-o", "key").lines == [
        "publish:t1"
    ]


def test_json_of_a_waiting_execution_lists_its_keys(flows: Project) -> None:
    ended = flows.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting", "-o", "json")
    assert ended.code == 20
    assert (ended.document["ok"], ended.document["status"]) == (True, "waiting")
    assert ended.document["waiting"] == ["publish:t1:approve:invoke"]


def test_until_stored_returns_when_it_is_accepted(flows: Project) -> None:
    ended = flows.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "stored")
    assert (ended.code, ended.out) == (0, "publish:t1\n")
    assert flows.wfe("executions", "show", "t1").code == 0


def test_until_stored_ends_with_0_where_events_take_stdout_too(flows: Project) -> None:
    ended = flows.wfe("run", "publish", "-i", "1", "--until", "stored", "--events", "-")
    assert ended.code == 0
    assert [json.loads(line)["kind"] for line in ended.lines] == ["begin"]


def test_timeout_stops_watching_with_20_and_says_how_to_go_on(flows: Project) -> None:
    ended = flows.wfe("run", "publish", "-i", "1", "--tx", "t1", "--timeout", "0.2s")
    assert ended.code == 20
    assert "No longer watched: publish:t1 is not finished." in ended.err
    assert ended.err.rstrip().endswith("wfe run publish --tx t1")


def test_the_same_transaction_again_says_which_case_it_is(flows: Project) -> None:
    run = ["run", "publish", "--tx", "t1", "--until", "waiting"]
    assert "publish:t1 is" not in flows.wfe(*run, "-i", "1").err
    again = flows.wfe(*run)
    assert again.code == 20
    assert "publish:t1 is waiting: it goes on where it is." in again.err
    flows.wfe("step", "succeed", "t1")
    assert "publish:t1 is done: this is a new run of it." in flows.wfe(*run, "-i", "1").err
    assert len(flows.wfe("executions", "list", "-o", "json").document) == 2


def test_the_same_transaction_with_another_input_is_a_conflict(flows: Project) -> None:
    run = ["run", "publish", "--tx", "t1", "--until", "waiting"]
    flows.wfe(*run, "-i", "1")
    assert (
        flows.wfe(*run, "-i", "2", "-o", "json").document["error"]["code"] == "idempotency_conflict"
    )
    assert flows.wfe(*run, "-i", "2").code == 4


def test_events_are_lines_of_json_in_a_file_or_alone_on_stdout(flows: Project) -> None:
    ended = flows.wfe("run", "echo", "-i", "[1]", "--tx", "t1", "--events", "events.jsonl")
    told = [json.loads(line) for line in (flows.root / "events.jsonl").read_text().splitlines()]
    assert ended.document == [1]
    assert [event["kind"] for event in told] == ["begin", "step_begin", "step_success", "finish"]
    assert told[2]["response"] == [1]
    assert told[3]["result"] == [1]
    ended = flows.wfe("run", "echo", "-i", "[1]", "--events", "-")
    assert [json.loads(line)["kind"] for line in ended.lines][-1] == "finish"


def test_events_alone_are_on_the_stdout_of_a_process(flows: Project) -> None:
    ended = flows.execute("run", "echo", "-i", "[1]", "--events", "-")
    kinds = [json.loads(line)["kind"] for line in ended.lines]
    assert kinds == ["begin", "step_begin", "step_success", "finish"]
    assert "printed by a step" in ended.err
    assert '"kind"' not in ended.err


def test_events_and_json_do_not_share_stdout(flows: Project) -> None:
    ended = flows.wfe("run", "echo", "--events", "-", "-o", "json")
    assert ended.code == 2
    assert "both want stdout" in ended.document["error"]["message"]


def test_an_events_file_that_cannot_be_written_stops_before_anything_begins(flows: Project) -> None:
    ended = flows.wfe("run", "echo", "-i", "1", "--events", "no/such/folder.jsonl")
    assert (ended.code, ended.out) == (1, "")
    assert "no/such/folder.jsonl: No such file or directory." in ended.err
    assert not flows.db.exists()
