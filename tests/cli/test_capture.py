"""What is printed meanwhile comes line by line, whoever prints it."""

from __future__ import annotations

import os
import subprocess

from wfe.cli.capture import lines_of_output


def test_lines_come_from_descriptors_and_from_programs() -> None:
    lines: list[str] = []
    with lines_of_output(lines.append):
        os.write(1, b"one\ntw")
        os.write(1, b"o\r\n")
        os.write(2, "10%\r20%\ré\n".encode())
        subprocess.run(["echo", "program"], check=True)
        os.write(1, b"\xff unfinished")
    assert lines == ["one", "two", "10%", "20%", "é", "program", "\ufffd unfinished"]


def test_descriptors_are_as_before_afterwards() -> None:
    before = [os.fstat(number)[:3] for number in (1, 2)]
    with lines_of_output(lambda line: None):
        assert [os.fstat(number)[:3] for number in (1, 2)] != before
    assert [os.fstat(number)[:3] for number in (1, 2)] == before
