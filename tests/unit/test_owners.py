"""Who drives an execution, and whether that process is still there."""

from __future__ import annotations

import os
import subprocess
import sys

from wfe.model import ExecutionState
from wfe.store import owners
from wfe.store.contract import shown_status

ASK = "from wfe.store import owners; print(owners.claim(), flush=True); input()"


def test_an_owner_lives_until_it_is_released() -> None:
    owner = owners.claim()
    assert owners.is_alive(owner)
    owners.release(owner)
    assert not owners.is_alive(owner)


def test_two_owners_of_one_process_are_told_apart() -> None:
    one, other = owners.claim(), owners.claim()
    owners.release(one)
    assert owners.is_alive(other)
    owners.release(other)


def test_another_process_is_there_until_it_ends() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    owner = process.stdout.readline().strip()
    assert owners.is_alive(owner)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not owners.is_alive(owner), "it has ended, though nobody has waited for it"
    process.communicate()
    assert not owners.is_alive(owner)


def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it() -> None:
    owner = owners.claim()
    host, boot, _, start, number = owner.rsplit("/", 4)
    assert not owners.is_alive(f"{host}/{boot}/1/{start}0/{number}")
    assert not owners.is_alive(f"{host}/another boot/1/{start}/{number}")
    owners.release(owner)


def test_nobody_is_not_there_and_of_another_host_nobody_can_tell() -> None:
    assert not owners.is_alive(None)
    assert owners.is_alive("elsewhere/boot/1/2/3")


def test_a_step_that_a_dead_process_was_executing_is_shown_as_interrupted() -> None:
    owner = owners.claim()
    alive = shown_status(ExecutionState.INVOKING, 1, 0, None, owner)
    owners.release(owner)
    dead = shown_status(ExecutionState.INVOKING, 1, 0, None, owner)
    assert (alive, dead) == ("running", "interrupted")
    assert shown_status(ExecutionState.INVOKING, 0, 1, None, None) == "waiting"
    assert shown_status(ExecutionState.DONE, 1, 0, None, None) == "done"
