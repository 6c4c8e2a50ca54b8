"""What a person sees: every width, every terminal, data as it is."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len

from wfe.cli import tree
from wfe.cli.render import Screen
from wfe.model import (
    Action,
    ErrorRecord,
    Execution,
    ExecutionState,
    Flow,
    Head,
    StepOptions,
    StepRecord,
    StepSpec,
    StepState,
    StepStatus,
)

START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
NOW = START + timedelta(seconds=12)
WIDTHS = [40, 60, 100, 160]


def execution(*records: StepRecord, guards: dict[str, bool] | None = None) -> Execution:
    """Of a flow of four stages: [reserve, charge], wrap (when gift), approve, ship."""
    stages = (("reserve", "charge"), ("wrap",), ("approve",), ("ship",))
    steps = {
        name: StepSpec(
            name=name,
            stage=number,
            guards=("gift",) if name == "wrap" else (),
            options=StepOptions(max_retries=3 if name == "charge" else 0),
        )
        for number, stage in enumerate(stages)
        for name in stage
    }
    head = Head(
        execution_id="wf_exec_1",
        workflow_id="order",
        transaction_id="rocket:x",
        run_id="01",
        state=ExecutionState.INVOKING,
        created_at=START,
        updated_at=START,
        started_at=START,
        guards=guards or {},
    )
    flow = Flow(workflow_id="order", stages=stages, steps=steps)
    return Execution(flow, head, steps=records, holder="somebody")


def record(name: str, invoke: StepState = StepState.DONE, **fields: Any) -> StepRecord:
    given = {"started_at": START, "ended_at": START + timedelta(seconds=2), **fields}
    if invoke is StepState.INVOKING:
        given["ended_at"] = None
    return StepRecord(name=name, stage=0, invoke=invoke, **given)


def drawn(item: Execution, width: int = 100, encoding: str = "utf-8", **flags: Any) -> list[str]:
    screen = Screen(Terminal(encoding), colors=False, width=width)
    lines = screen.steps(tree.rows(item, NOW, flags.get("progress")))
    return [line.plain for line in lines]


class Terminal(io.TextIOWrapper):
    """A stream that remembers what was written to it."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._content = io.BytesIO()
        super().__init__(self._content, encoding=encoding, errors="backslashreplace")

    def written(self) -> str:
        self.flush()
        return self._content.getvalue().decode(self.encoding)


def test_parallel_steps_are_bracketed_and_guarded_ones_indented_with_their_condition() -> None:
    assert drawn(execution(record("reserve"))) == [
        " ┌ reserve ✓ done        2.0s",
        " └ charge  · not_started",
        "     wrap  · not_started       when gift",
        "   approve · not_started",
        "   ship    · not_started",
    ]


def test_every_state_has_a_symbol_and_a_word() -> None:
    waiting = record("approve", StepState.INVOKING, awaiting=True)
    retrying = record(
        "charge",
        StepState.INVOKING,
        invoke_status=StepStatus.TEMP_FAILURE,
        attempts=2,
        retry_at=NOW + timedelta(seconds=3),
        error=ErrorRecord(
            action="charge", handler_type=Action.INVOKE, name="IOError", message="gone\naway"
        ),
    )
    lines = drawn(
        execution(
            record("reserve", StepState.INVOKING, running=True),
            retrying,
            record("wrap", StepState.SKIPPED),
            waiting,
            guards={"gift": False},
        ),
        progress={"reserve": tree.Progress(0.4, "loading")},
    )
    assert lines == [
        " ┌ reserve ▸ running     12s  40% loading",
        r" └ charge  ↻ retrying    12s  attempt 2 of 4 · again in 3.0s · IOError: gone\naway",
        "     wrap  ○ skipped          when gift: no",
        "   approve ● waiting     12s",
        "   ship    · not_started",
    ]


def test_an_undone_step_shows_that_it_was_done_and_how_it_was_undone() -> None:
    undone: dict[str, Any] = {
        "compensate": StepState.REVERTED,
        "last_attempt_at": START + timedelta(seconds=5),
        "undone_at": START + timedelta(seconds=6),
    }
    failed = record(
        "charge",
        StepState.FAILED,
        compensate=StepState.COMPENSATING,
        running=True,
        last_attempt_at=START + timedelta(seconds=9),
        error=ErrorRecord(
            action="charge", handler_type=Action.INVOKE, name="Declined", message="no money"
        ),
    )
    assert drawn(execution(record("reserve", **undone), failed))[:2] == [
        " ┌ reserve ✓ done        2.0s ↺ reverted     1.0s",
        " └ charge  ✗ failed      2.0s ◂ compensating 3.0s  Declined: no money",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_tree_is_longer_than_the_terminal(width: int) -> None:
    long = ErrorRecord(
        action="charge", handler_type=Action.INVOKE, name="E", message="a long story " * 20
    )
    item = execution(record("reserve"), record("charge", StepState.FAILED, error=long))
    lines = drawn(item, width)
    assert all(cell_len(line) <= width for line in lines)
    assert any("E: a long story" in line for line in lines)


def test_a_terminal_that_knows_ascii_only_gets_ascii() -> None:
    lines = drawn(execution(record("reserve")), encoding="ascii")
    assert lines[0] == " | reserve + done        2.0s"
    assert all(line.isascii() for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_keys_stand_in_a_table_whole_and_as_they_are(width: int) -> None:
    keys = ["order:rocket:x:invoke", "w:[/b] [bold]:x", "w:" + "x" * 300, "w:é👨‍👩‍👧שלום"]
    stream = Terminal()
    screen = Screen(stream, colors=True, width=width)
    screen.table(["STATUS", "KEY"], [[screen.state("done"), screen.text(key)] for key in keys])
    lines = stream.written().split("\n")
    for key, line in zip(keys, lines[1:], strict=False):
        assert line.endswith(key)


def test_without_colours_nothing_but_text_is_written() -> None:
    stream = Terminal()
    screen = Screen(stream, colors=False, width=60)
    screen.title("order:rocket:x")
    screen.line(screen.state("failed"))
    assert stream.written() == "order:rocket:x\n✗ failed\n"


def test_control_characters_in_data_do_not_reach_the_terminal() -> None:
    stream = Terminal()
    screen = Screen(stream, colors=False, width=60)
    screen.line(screen.text("a\x1b]0;title\x07b\nc"))
    assert stream.written() == "a\\x1b]0;title\\x07b\\nc\n"


def long(*records: StepRecord) -> Execution:
    """Of a flow of 500 steps, s0 to s499, one after the other."""
    names = [f"s{number}" for number in range(500)]
    flow = Flow(
        workflow_id="long",
        stages=tuple((name,) for name in names),
        steps={name: StepSpec(name=name, stage=number) for number, name in enumerate(names)},
    )
    return Execution(flow, execution().head, steps=records, holder="somebody")


def test_of_a_tree_that_is_too_tall_the_part_under_way_is_shown_and_the_rest_counted() -> None:
    records = [record(f"s{number}") for number in range(300)]
    records[7] = record("s7", StepState.SKIPPED)
    tall = long(*records, record("s300", StepState.INVOKING, running=True))
    part = tree.part(tall, NOW, {}, 20)
    assert "s300" in [row.step for row in part.rows]
    assert len(part.rows) == 18
    lines = Screen(Terminal(), colors=False, width=60).part(part)
    assert len(lines) == 20
    assert lines[0].plain == " … 293 done, 1 skipped before"
    assert lines[-1].plain == " … 188 not_started after"


def test_going_backwards_the_part_that_is_being_undone_is_shown() -> None:
    waits: dict[str, Any] = {"compensate": StepState.NOT_STARTED, "undo": True}
    records = [record(f"s{number}", **waits) for number in range(400)]
    records.append(record("s400", compensate=StepState.COMPENSATING, undo=True, running=True))
    part = tree.part(long(*records), NOW, {}, 20)
    assert "s400" in [row.step for row in part.rows]


def test_a_tree_that_fits_is_shown_whole() -> None:
    part = tree.part(long(), NOW, {}, 500)
    assert (len(part.rows), part.before, part.after) == (500, {}, {})


def test_a_name_that_leaves_no_room_for_the_state_is_cut_where_the_tree_moves() -> None:
    item = execution(record("reserve"))
    for width, name in ((40, "reserve"), (27, "rese…")):
        screen = Screen(Terminal(), colors=False, width=width)
        lines = [line.plain for line in screen.part(tree.part(item, NOW, {}, 20))]
        assert lines[0].startswith(f" ┌ {name} ✓ done")
        assert all(cell_len(line) <= width for line in lines if "when" not in line)


def test_where_ascii_alone_is_known_nothing_else_stands_in_the_tree() -> None:
    item = execution(record("reserve"))
    screen = Screen(Terminal("ascii"), colors=False, width=24)
    assert all(line.plain.isascii() for line in screen.part(tree.part(item, NOW, {}, 3)))


def test_a_step_whose_process_is_gone_is_interrupted_and_one_of_the_past_is_not() -> None:
    item = execution(record("reserve", StepState.INVOKING, running=True))
    item.holder = None
    assert tree.rows(item, NOW)[0].invoke == tree.Side("interrupted", 12.0)
    assert tree.rows(item, NOW, is_past=True)[0].invoke == tree.Side("running", 12.0)


def test_a_step_that_is_tried_again_on_request_only_is_parked() -> None:
    item = execution(
        record("ship", StepState.INVOKING, invoke_status=StepStatus.TEMP_FAILURE, attempts=1)
    )
    item.flow.steps["ship"] = msgspec.structs.replace(  # type: ignore[index]  # of this test alone
        item.flow.steps["ship"], options=StepOptions(auto_retry=False)
    )
    assert " ship " in drawn(item)[-1]
    assert "● parked" in drawn(item)[-1]


def test_a_terminal_that_becomes_narrow_gets_its_broken_lines_wiped_out() -> None:
    stream = Terminal()
    screen = Screen(stream, colors=False, width=60)
    with screen.live(lambda: [screen.text("x" * 50), screen.text("y" * 10)]):
        before = stream.written()
        screen.fit(os.terminal_size((20, 10)))
        assert stream.written()[len(before) :] == "\x1b[2K\x1b[1A" * 2
        screen.fit(os.terminal_size((60, 10)))
        assert stream.written()[len(before) :] == "\x1b[2K\x1b[1A" * 2


@pytest.mark.parametrize(
    ("width", "shown"),
    [(100, "  A description of this"), (60, "  A descri…"), (54, "")],
)
def test_a_description_is_cut_where_the_line_ends_and_left_out_where_no_word_fits(
    width: int, shown: str
) -> None:
    stream = Terminal()
    screen = Screen(stream, colors=False, width=width)
    row = [screen.text("k" * 49), screen.text("A description of this")]
    screen.table(["KEY", "DESCRIPTION"], [row], cut=True)
    assert stream.written().split("\n")[1] == "k" * 49 + shown
