"""Who drives an execution, and whether that process is still there."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from wfe.clock import monotonic
from wfe.model import ExecutionState, Head
from wfe.store import owners
from wfe.store.contract import shown_status

ASK = "from wfe.store import owners; print(owners.claim(), flush=True); input()"


def test_an_owner_lives_until_it_is_released() -> None:
    owner = owners.claim()
    assert owners.is_there(owner)
    owners.release(owner)
    assert not owners.is_there(owner)


def test_two_owners_of_one_process_are_told_apart() -> None:
    one, other = owners.claim(), owners.claim()
    owners.release(one)
    assert owners.is_there(other)
    owners.release(other)


def test_another_process_is_there_until_it_ends() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    owner = process.stdout.readline().strip()
    assert owners.is_there(owner)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not owners.is_there(owner), "it has ended, though nobody has waited for it"
    process.communicate()
    assert not owners.is_there(owner)


def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it() -> None:
    owner = owners.claim()
    host, boot, _, start, number = owner.rsplit("/", 4)
    assert not owners.is_there(f"{host}/{boot}/1/{start}0/{number}")
    assert not owners.is_there(f"{host}/another boot/1/{start}/{number}")
    owners.release(owner)


def test_of_a_process_on_another_host_nobody_can_tell() -> None:
    assert owners.is_there("elsewhere/boot/1/2/3") is None


def test_an_owner_holds_what_is_in_its_name_while_it_lives_and_its_lease_lasts() -> None:
    owner = owners.claim()
    lease = owners.lease()
    assert owners.holds(owner, lease)
    assert not owners.holds(owner, None), "it has given its lease up, or never had one"
    assert not owners.holds(None, lease)
    assert not owners.holds(owner, lease._replace(beats_until=monotonic() - 1)), "it was stopped"
    owners.release(owner)
    assert not owners.holds(owner, lease), "it has ended"


def test_a_clock_that_was_set_or_a_suspended_machine_takes_nothing_from_a_living_owner() -> None:
    owner = owners.claim()
    assert owners.holds(owner, owners.lease()._replace(expires_at=0))
    owners.release(owner)


def test_between_hosts_a_lease_ends_by_the_wall_clock() -> None:
    owner = "elsewhere/boot/1/2/3"
    assert owners.holds(owner, owners.lease()._replace(beats_until=0.0))
    assert not owners.holds(owner, owners.lease(datetime(2020, 1, 1, tzinfo=UTC)))


NOW = datetime(2026, 5, 1, tzinfo=UTC)
HEAD = Head(
    execution_id="e",
    workflow_id="w",
    transaction_id="t",
    run_id="r",
    state=ExecutionState.INVOKING,
    created_at=NOW,
    updated_at=NOW,
)


@pytest.mark.parametrize(
    ("head", "in_hand", "in_nobodys"),
    [
        (replace(HEAD, running=1), "running", "interrupted"),
        (replace(HEAD, held=1, awaiting=1), "running", "interrupted"),
        (replace(HEAD, awaiting=1), "waiting", "waiting"),
        (replace(HEAD, parked=1), "waiting", "waiting"),
        (replace(HEAD, wake_at=datetime(9000, 1, 1, tzinfo=UTC)), "sleeping", "sleeping"),
        (replace(HEAD, wake_at=NOW), "sleeping", "interrupted"),
        (replace(HEAD, wake_at=NOW, awaiting=1), "waiting", "interrupted"),
        (replace(HEAD, running=1, state=ExecutionState.DONE), "done", "done"),
    ],
)
def test_what_could_go_on_and_is_in_nobodys_hand_is_interrupted(
    head: Head, in_hand: str, in_nobodys: str
) -> None:
    assert shown_status(head, "somebody") == in_hand
    assert shown_status(head, None) == in_nobodys
