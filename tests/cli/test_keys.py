"""A key may be shortened to what is unique; where it is not, the candidates are told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.project import Project
from wfe.cli.keys import find_execution, find_step
from wfe.errors import MalformedKey, StepNotFound, TransactionNotFound, UsageError
from wfe.store.contract import Reader
from wfe.store.database import open_reader


def start(project: Project, workflow: str, tx: str) -> str:
    """Run it to where it waits; its run id."""
    ended = project.wfe("run", workflow, "--tx", tx, "-i", "1", "--until", "waiting", "-o", "json")
    return str(ended.document["run"])


@pytest.fixture(scope="module")
def reader(shared: Project) -> Iterator[Reader]:
    for tx in ("t1", "a:b", "approve", "t1:approve"):
        start(shared, "publish", tx)
    start(shared, "echo", "t1")
    start(shared, "echo", "publish:t1")
    with open_reader(shared.db) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("publish:a:b", "publish:a:b"),
        ("a:b", "publish:a:b"),
        ("publish:a:b:approve:invoke", "publish:a:b"),
        ("publish:a:b:publish", "publish:a:b"),
        ("approve", "publish:approve"),
        ("echo:publish:t1", "echo:publish:t1"),
    ],
)
def test_an_execution_by_its_key_its_id_or_a_step_of_it(
    reader: Reader, text: str, key: str
) -> None:
    assert str(find_execution(reader, text).head.key) == key


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("t1", ["publish:t1", "echo:t1"]),
        ("publish:t1", ["publish:t1", "echo:publish:t1"]),
        ("publish:t1:approve", ["publish:t1", "publish:t1:approve"]),
    ],
)
def test_what_may_mean_several_is_refused_with_the_candidates(
    reader: Reader, text: str, candidates: list[str]
) -> None:
    with pytest.raises(UsageError, match="may mean") as refused:
        find_execution(reader, text)
    for candidate in candidates:
        assert f"{candidate} (run " in refused.value.message


def test_a_run_is_found_by_the_beginning_of_its_id(flows: Project) -> None:
    first = start(flows, "echo", "t1")
    second = start(flows, "echo", "t1")
    with open_reader(flows.db) as reader:
        assert find_execution(reader, "echo:t1").head.run_id == second
        assert find_execution(reader, first).head.run_id == first
        assert find_execution(reader, first.lower()[:25]).head.run_id == first
        with pytest.raises(UsageError, match="may mean"):
            find_execution(reader, first[:5])


def test_a_step_by_its_full_key_wins_over_every_other_reading(flows: Project) -> None:
    start(flows, "publish", "t1")
    start(flows, "publish", "t1:approve:invoke")
    with open_reader(flows.db) as reader:
        step = find_step(reader, "publish:t1:approve:invoke")
        assert (step.transaction_id, step.step) == ("t1", "approve")


def test_a_step_without_action_is_meant_at_the_side_it_is_at(reader: Reader) -> None:
    assert str(find_step(reader, "publish:a:b:approve")) == "publish:a:b:approve:invoke"
    assert str(find_step(reader, "a:b")) == "publish:a:b:approve:invoke"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", MalformedKey),
        ("nope", MalformedKey),
        ("publish:nope:approve", MalformedKey),
        ("publish:nope:approve:invoke", TransactionNotFound),
        ("publish:a:b:nope:invoke", StepNotFound),
        ("publish:a:b:approve:undo", MalformedKey),
    ],
)
def test_a_step_that_is_not_there(reader: Reader, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        find_step(reader, text)


def test_without_a_store_nothing_is_found() -> None:
    with pytest.raises(TransactionNotFound):
        find_execution(None, "t1")
    with pytest.raises(TransactionNotFound):
        find_step(None, "publish:t1:approve:invoke")
    with pytest.raises(MalformedKey):
        find_step(None, "t1")


def test_of_many_candidates_the_newest_ten_are_told(flows: Project) -> None:
    for number in range(12):
        start(flows, "publish", f"t{number}")
    with open_reader(flows.db) as reader:
        run = find_execution(reader, "publish:t0").head.run_id
        with pytest.raises(UsageError, match=r", and others\.") as refused:
            find_execution(reader, run[:4])
    assert refused.value.message.count("(run ") == 10
