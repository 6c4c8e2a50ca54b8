"""Each case of the collection has its test: in this folder by its number, or where it is named here,
because the claim belongs to a room that has it already."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent.parent

_CASES = [
    *(f"S{number}" for number in range(1, 10)),
    *(f"E{number}" for number in range(1, 15)),
    *(f"P{number}" for number in range(1, 12)),
]

_ELSEWHERE = {
    "E11": ["store/test_sweep.py::test_two_thousand_short_runs_are_swept_and_the_dry_run_counts"],
    "E12": [
        "authoring/test_misuse.py::test_misuse_is_refused_at_its_line_with_what_to_write_instead",
        "authoring/test_misuse.py::test_awaiting_a_reference_is_refused",
    ],
    "P1": [
        "acceptance/test_two_processes.py::test_what_a_killed_process_left_is_interrupted_and_goes_on",
        "crash/test_crash_points.py::test_a_kill_costs_at_most_the_step_in_flight",
    ],
    "P2": [
        "acceptance/test_database_trouble.py::test_a_lock_of_two_seconds_is_waited_for_by_every",
        "acceptance/test_database_trouble.py::test_a_lock_that_comes_while_a_step_runs_costs_nothing",
        "cli/test_locked.py::test_every_command_ends_with_a_code_of_its_own_and_writes_nothing",
    ],
    "P4": [
        "acceptance/test_database_trouble.py::test_a_full_disk_is_75_and_what_was_there_stays",
        "acceptance/test_database_trouble.py::test_a_read_only_disk_can_be_read_and_refuses_the_rest",
        "acceptance/test_database_trouble.py::test_a_database_that_is_deleted_while_a_step_runs",
        "acceptance/test_database_trouble.py::test_what_is_no_usable_database_is_one_sentence",
    ],
    "P5": ["acceptance/test_modules.py::test_keys_of_80_characters_are_whole_in_a_pipe_of_40"],
    "P6": ["cli/test_run.py::test_a_result_comes_back_as_it_went_in"],
    "P7": ["cli/test_app.py::test_every_failure_is_one_json_document_and_its_exit_code"],
    "P8": ["cli/test_examples.py::test_every_example_runs"],
    "P9": [
        "cli/test_executions.py::test_ids_are_stored_and_printed_as_given",
        "cli/test_executions.py::test_ids_that_no_terminal_prints_are_refused_with_the_reason",
    ],
    "P11": [
        "acceptance/test_modules.py::test_modules_find_what_belongs_to_them_whatever_the_current",
        "acceptance/test_modules.py::test_a_step_may_use_worker_processes",
    ],
}


@pytest.mark.parametrize("case", _CASES)
def test_the_case_has_its_test(case: str) -> None:
    by_number = re.compile(rf"def test_case_{case.lower()}_")
    here = [
        file for file in Path(__file__).parent.glob("*.py") if by_number.search(file.read_text())
    ]
    assert bool(here) is not (case in _ELSEWHERE), "in one place, by its number or by its name"
    for named in _ELSEWHERE.get(case, []):
        file, _, name = named.partition("::")
        assert f"def {name}" in (_TESTS / file).read_text(), named
