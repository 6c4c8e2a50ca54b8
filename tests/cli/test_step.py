"""`wfe step`: an answer is accepted and carries the execution on, or is refused and changes nothing."""

from __future__ import annotations

import pytest

from tests.project import Project


@pytest.fixture(scope="module")
def made(shared: Project) -> Project:
    """publish:t1 waits at its step `approve`."""
    assert shared.wfe("run", "publish", "-i", "1", "--tx", "t1", "--until", "waiting").code == 20
    return shared


@pytest.fixture
def waiting(project: Project, made: Project) -> Project:
    """All that is in `made`, to do with as one likes."""
    project.copy(made)
    return project


def status(project: Project, key: str = "publish:t1") -> str:
    return str(project.wfe("executions", "show", key, "-o", "json").document["status"])


@pytest.mark.parametrize(
    "key", ["publish:t1:approve:invoke", "publish:t1:approve", "publish:t1", "t1"]
)
def test_an_answer_carries_the_execution_on_to_its_result(waiting: Project, key: str) -> None:
    ended = waiting.wfe("step", "succeed", key, "--response", '"kim"')
    assert (ended.code, ended.out) == (0, '"published by kim"\n')
    assert "step_success\tpublish:t1:approve:invoke" in ended.err
    assert status(waiting) == "done"


def test_an_answer_may_come_from_a_file_or_standard_input(waiting: Project) -> None:
    ended = waiting.wfe("step", "succeed", "t1", "--response", "-", stdin='"é"'.encode())
    assert ended.document == "published by é"


def test_an_answer_without_response_is_one_of_nothing(waiting: Project) -> None:
    assert waiting.wfe("step", "succeed", "t1").document == "published by None"


def test_a_failure_is_accepted_with_0_and_undoes_the_execution(waiting: Project) -> None:
    ended = waiting.wfe("step", "fail", "t1", "--error", "not today", "-o", "json")
    assert ended.code == 0
    assert (ended.document["ok"], ended.document["state"]) == (False, "reverted")
    assert ended.document["error"]["code"] == "reverted"
    assert ended.document["errors"][0]["error"]["message"] == "not today"
    assert status(waiting) == "reverted"


@pytest.mark.parametrize("error", ["", " "])
def test_a_failure_that_says_nothing_is_refused(waiting: Project, error: str) -> None:
    ended = waiting.wfe("step", "fail", "t1", "--error", error)
    assert (ended.code, status(waiting)) == (2, "waiting")
    assert "--error is empty" in ended.err


def test_a_failure_is_retried_unless_it_is_permanent(project: Project) -> None:
    project.write(
        "workflows/retried.py",
        """
        from wfe import step, workflow

        @step(async_=True, max_retries=1)
        def ask() -> None:
            return None

        @workflow("retried")
        def retried():
            ask()
        """,
    )
    for tx, flags, expected in [("a", [], "waiting"), ("b", ["--permanent"], "reverted")]:
        project.wfe("run", "retried", "--tx", tx, "--until", "waiting")
        assert project.wfe("step", "fail", tx, "--error", "no", *flags).code == 0
        assert status(project, f"retried:{tx}") == expected


def test_an_undo_that_fails_after_an_answer_ends_with_11(project: Project) -> None:
    project.write(
        "workflows/stuck.py",
        """
        from wfe import step, workflow

        @step
        def build() -> str:
            return "a wall"

        @build.compensate
        def unbuild(wall):
            raise RuntimeError("it cannot be unbuilt")

        @step(async_=True)
        def ask() -> None:
            return None

        @workflow("stuck")
        def stuck():
            build()
            ask()
        """,
    )
    project.wfe("run", "stuck", "--tx", "t1", "--until", "waiting")
    assert project.wfe("step", "fail", "t1", "--error", "no").code == 11


def test_an_execution_that_waits_again_ends_with_0_and_prints_what_to_answer(
    flows: Project,
) -> None:
    flows.wfe("run", "two-answers", "--tx", "t1", "--until", "waiting")
    ended = flows.wfe("step", "succeed", "two-answers:t1:left")
    assert (ended.code, ended.out) == (0, "two-answers:t1:right:invoke\n")
    assert "wfe step succeed two-answers:t1:right:invoke" in ended.err


def test_an_execution_with_two_waiting_steps_is_no_step(flows: Project) -> None:
    flows.wfe("run", "two-answers", "--tx", "t1", "--until", "waiting")
    ended = flows.wfe("step", "succeed", "t1")
    assert ended.code == 2
    assert "two-answers:t1:left:invoke" in ended.err
    assert "two-answers:t1:right:invoke" in ended.err


@pytest.mark.parametrize(
    ("key", "code", "name"),
    [
        ("garbage", 2, "malformed_key"),
        ("", 2, "malformed_key"),
        ("publish:t1:approve:approve", 2, "malformed_key"),
        ("publish:nope", 2, "malformed_key"),
        ("publish:nope:approve:invoke", 3, "transaction_not_found"),
        ("nope:t1:approve:invoke", 3, "transaction_not_found"),
        ("publish:t1:aprove:invoke", 3, "step_not_found"),
        ("publish:t1:publish:invoke", 4, "step_not_waiting"),
        ("publish:t1:approve:compensate", 4, "wrong_action"),
    ],
)
def test_an_answer_that_fits_nothing_is_refused_and_changes_nothing(
    waiting: Project, key: str, code: int, name: str
) -> None:
    before = waiting.wfe("executions", "show", "t1", "-o", "json").document
    ended = waiting.wfe("step", "succeed", key, "-o", "json")
    assert (ended.code, ended.document["error"]["code"]) == (code, name)
    assert waiting.wfe("executions", "show", "t1", "-o", "json").document == before


def test_a_finished_execution_is_not_answered(waiting: Project) -> None:
    waiting.wfe("step", "succeed", "t1")
    for key in ("t1", "publish:t1:approve:invoke"):
        ended = waiting.wfe("step", "fail", key, "--error", "late", "-o", "json")
        assert (ended.code, ended.document["error"]["code"]) == (4, "transaction_finished")
        assert "publish:t1" in ended.document["error"]["hint"]
    assert status(waiting) == "done"


def test_without_a_database_there_is_nothing_to_answer(flows: Project) -> None:
    assert flows.wfe("step", "succeed", "publish:t1:approve:invoke").code == 3
    assert not flows.db.exists()


def test_a_response_that_is_no_json_is_refused(waiting: Project) -> None:
    ended = waiting.wfe("step", "succeed", "t1", "--response", "kim")
    assert ended.code == 2
    assert "--response is not JSON" in ended.err
    assert status(waiting) == "waiting"


def test_the_workflow_of_an_answered_step_has_to_load(waiting: Project) -> None:
    waiting.write("workflows/flows.py", "1 / 0")
    ended = waiting.wfe("step", "succeed", "t1", "--app", "workflows/flows.py")
    assert ended.code in (0, 2)  # the module is loaded already where one process runs both commands


def test_an_answer_for_code_that_is_not_loaded_asks_for_its_module(waiting: Project) -> None:
    waiting.write("other.py", "")
    ended = waiting.wfe("step", "succeed", "t1", "--response", "1", "--app", "other.py")
    assert ended.code == 3
    assert "--app FILE" in ended.err
