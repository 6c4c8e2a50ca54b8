"""`wfe executions diff`: where two runs of one workflow part."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wfe.cli.exit_codes import ExitCode
from wfe.cli.session import Session
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.cli.differences import Difference, Duration
    from wfe.model import Execution

#: Of a value on a terminal, so many characters are shown at least.
_SHORTEST = 16

#: Two durations are told apart where they differ by so many seconds, and by so much of the longer.
_SECONDS, _PART = 0.1, 0.2


def diff(
    session: Session,
    a: Annotated[str, typer.Argument(metavar="A", help="A key or run id; see: wfe help keys.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one, of the same workflow.")],
) -> int:
    """Compare two runs of one workflow: input, the path they took, outputs, errors, result; what came
    first stands first. Two runs of one transaction id are told apart by their run ids.

    In a pipe: a word and its values, separated by tabs. Ends with 0 whether they differ or not.

    \b
    wfe executions diff order-0042 order-0043
    wfe executions diff order-0042 order-0043 -o json
    """
    from wfe.cli import differences, keys, output

    with session.reader() as reader:
        first, second = (keys.find_execution(reader, key) for key in (a, b))
    workflows = [one.head.workflow_id for one in (first, second)]
    if workflows[0] != workflows[1]:
        raise UsageError(
            f"{first.head.key} and {second.head.key} are of two workflows: there is nothing to "
            "compare.",
            hint=f"Others of {workflows[0]}: "
            + session.command("executions", "list", "--workflow", workflows[0]),
        )
    found = list(differences.differences(first, second))
    took = differences.durations(first, second)
    if session.output == "json":
        output.print_json(_document(first, second, found, took))
    elif session.for_people:
        _draw(session, first, second, found, took)
    else:
        _print(first, second, found, took)
    return ExitCode.OK


# --- as a document and as lines ------------------------------------------------------------------


def _document(
    a: Execution, b: Execution, found: Sequence[Difference], took: Sequence[Duration]
) -> dict[str, Any]:
    from wfe.cli import differences

    told = [_difference(one) for one in found]
    return {
        "a": _side(a),
        "b": _side(b),
        "same": not found,
        "first": told[0] if told else None,
        "differences": told,
        "durations": [one._asdict() for one in took],
        "duration": {"a": differences.total(a), "b": differences.total(b)},
    }


def _side(execution: Execution) -> dict[str, Any]:
    from wfe.cli import documents

    head = execution.head
    return {"key": str(head.key), "run": head.run_id, "status": documents.status(execution)}


def _difference(one: Difference) -> dict[str, Any]:
    """A side that has nothing there is left out."""
    from wfe.cli.differences import MISSING

    sides = {"a": one.a, "b": one.b}
    return {
        "kind": one.kind,
        "step": one.step,
        "path": one.path,
        **{name: value for name, value in sides.items() if value is not MISSING},
    }


def _print(
    a: Execution, b: Execution, found: Sequence[Difference], took: Sequence[Duration]
) -> None:
    from wfe.cli import output

    for name, side in (("a", _side(a)), ("b", _side(b))):
        output.print_tabbed([name, *side.values()])
    if not found:
        output.print_tabbed(["same"])
    for one in found:
        output.print_tabbed(["differs", one.where, _shown(one.a), _shown(one.b)])
    for each in took:
        output.print_tabbed(["took", each.step, f"{each.a:.3f}", f"{each.b:.3f}"])


def _shown(value: Any) -> str:
    """As JSON, but for a text that is a word of ours or a message, and for nothing."""
    from wfe.cli import differences, output

    return "" if value is differences.MISSING else output.json_text(value)


# --- for a person --------------------------------------------------------------------------------


def _draw(
    session: Session,
    a: Execution,
    b: Execution,
    found: Sequence[Difference],
    durations: Sequence[Duration],
) -> None:
    from wfe.cli import differences, text
    from wfe.cli.render import Screen

    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    for name, execution in (("A", a), ("B", b)):
        side = _side(execution)
        took = text.elapsed(differences.total(execution))
        screen.line(f"{name}  {side['key']}  ", screen.state(side["status"]), f"  {took}")
        screen.dim(f"   run {side['run']}")
    screen.line()
    if not found:
        screen.line("They do not differ, but for moments and durations.")
    else:
        screen.title(f"They part at {found[0].where}")
        widest = max(text.cells(one.where) for one in found)
        room = max((screen.width - widest) // 2 - 4, _SHORTEST)
        rows = [[one.where, _cut(one.a, room), _cut(one.b, room)] for one in found]
        screen.table(["   WHAT", "A", "B"], [list(map(screen.text, _indented(r))) for r in rows])
    slow = [each for each in durations if _is_noticed(each)]
    if slow:
        screen.line()
        rows = [[each.step, text.elapsed(each.a), text.elapsed(each.b)] for each in slow]
        screen.table(["   TOOK", "A", "B"], [list(map(screen.text, _indented(r))) for r in rows])


def _indented(row: list[str]) -> list[str]:
    return [f"   {row[0]}", *row[1:]]


def _is_noticed(each: Duration) -> bool:
    a, b = each.a or 0.0, each.b or 0.0
    return abs(a - b) >= max(_SECONDS, _PART * max(a, b))


def _cut(value: Any, room: int) -> str:
    """As much of a value as there is room for."""
    from wfe.cli import differences

    if value is differences.MISSING:
        return "-"
    shown = value if isinstance(value, str) and value.isidentifier() else _shown(value)
    return shown if len(shown) <= room else f"{shown[: room - 3]}..."
