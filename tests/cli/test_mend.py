"""`wfe executions resume|retry|cancel|delete`, where no other process is about."""

from __future__ import annotations

import json

import pexpect  # type: ignore[import-untyped]  # it has no types

from tests.project import WFE, Project


def test_what_was_reverted_is_run_again_with_the_same_input_as_a_new_run(flows: Project) -> None:
    assert flows.wfe("run", "order", "-i", '{"fail": "ship"}', "--tx", "t1").code == 10
    again = flows.wfe("executions", "retry", "t1")
    assert again.code == 10
    listed = flows.wfe("executions", "list", "-o", "json").document
    assert [each["transaction"] for each in listed] == ["t1", "t1"]
    assert len({each["run"] for each in listed}) == 2


def test_what_is_done_is_not_retried(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    refused = flows.wfe("executions", "retry", "t1", "-o", "json")
    assert refused.code == 4
    assert "is done: it cannot be retried" in refused.document["error"]["message"]


def test_what_is_done_and_kept_can_be_cancelled(flows: Project) -> None:
    flows.wfe("run", "order", "-i", "{}", "--tx", "t1")
    assert flows.wfe("executions", "cancel", "t1").code == 0
    assert flows.wfe("executions", "list").lines[0].split("\t")[1] == "reverted"


def test_a_cancel_that_has_undone_all_is_no_error(flows: Project) -> None:
    for tx in ("t1", "t2"):
        flows.wfe("run", "publish", "-i", "1", "--tx", tx, "--until", "waiting")
    cancelled = flows.wfe("executions", "cancel", "t1")
    assert cancelled.code == 0
    assert "publish:t1 was cancelled; all it had done was undone." in cancelled.err
    assert "error:" not in cancelled.err
    document = flows.wfe("executions", "cancel", "t2", "-o", "json").document
    assert (document["ok"], document["status"]) == (True, "reverted")
    assert flows.wfe("executions", "result", "t2").code == 13


def test_a_cancel_whose_undo_fails_is_one(flows: Project) -> None:
    flows.write(
        "workflows/wall.py",
        """
        from wfe import step, workflow

        @step
        def lay() -> str:
            return "bricks"

        @lay.compensate
        def lift(bricks):
            raise RuntimeError("they stick")

        @workflow("bricks")
        def bricks():
            lay()
        """,
    )
    flows.wfe("run", "bricks", "--tx", "t1")
    cancelled = flows.wfe("executions", "cancel", "t1", "-o", "json")
    assert (cancelled.code, cancelled.document["error"]["code"]) == (11, "failed")
    assert "error: bricks:t1 failed" in cancelled.err


def test_what_is_over_is_not_resumed(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    assert flows.wfe("executions", "resume", "t1").code == 4


def test_where_nothing_is_interrupted_nothing_is_resumed(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    resumed = flows.wfe("executions", "resume")
    assert (resumed.code, resumed.out, resumed.err) == (0, "", "Nothing is interrupted.\n")
    assert flows.wfe("executions", "resume", "-o", "json").document == []


def test_a_finished_execution_is_deleted_when_somebody_agrees(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    asked = flows.wfe("executions", "delete", "t1")
    assert asked.code == 2
    assert "-y" in asked.err
    assert flows.wfe("executions", "delete", "t1", "-y").code == 0
    assert flows.wfe("executions", "list").lines == []


def test_who_does_not_agree_gets_the_document_that_is_due(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    delete = ["executions", "delete", "t1", "-o", "json"]
    asked = pexpect.spawn(WFE, delete, cwd=str(flows.root), encoding="utf-8", echo=False)
    asked.expect_exact("Go on? [y/N] ")
    asked.sendline("n")
    asked.expect(pexpect.EOF)
    asked.close()
    document = json.loads(asked.before[: asked.before.rindex("}") + 1])
    assert (asked.exitstatus, document["error"]["message"]) == (1, "Nothing was done.")
    assert flows.wfe("executions", "show", "t1").code == 0


def test_an_unfinished_execution_is_not_deleted(flows: Project) -> None:
    flows.write(
        "workflows/asking.py",
        """
        from wfe import step, workflow

        @step(async_=True)
        def ask(): ...

        @workflow
        def asking():
            return ask()
        """,
    )
    assert flows.wfe("run", "asking", "--tx", "t1", "--until", "waiting").code == 20
    refused = flows.wfe("executions", "delete", "asking:t1", "-y", "-o", "json")
    assert refused.code == 4
    assert refused.document["error"]["code"] == "not_allowed"
    assert flows.wfe("executions", "cancel", "asking:t1").code == 0


def test_unknown_keys_are_not_found(flows: Project) -> None:
    flows.wfe("run", "echo", "-i", "1", "--tx", "t1")
    for command in ("resume", "retry", "cancel", "delete"):
        assert flows.wfe("executions", command, "nothing:at-all").code == 3
