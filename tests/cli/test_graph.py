"""`graph`: an execution or a workflow as a picture, in characters, as Mermaid and as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tests.project import Project
from wfe.cli import text
from wfe.cli.diagrams import characters, layout, mermaid, svg
from wfe.cli.diagrams.colors import COLORS
from wfe.cli.diagrams.diagram import Box, Diagram, Label
from wfe.cli.looks import LOOKS
from wfe.model import StepState

SVG = "{http://www.w3.org/2000/svg}"

NESTED = """
from wfe import parallel, step, when, workflow


@step
def act() -> int:
    return 1


@act.compensate
def undo(value):
    pass


@step(async_=True)
def ask() -> None:
    return None


@workflow("inner")
def inner(gift: bool):
    parallel(act.config(name="left")(), act.config(name="right")())
    with when(gift, name="a <gift>"):
        ask()


@workflow("outer")
def outer(gift: bool):
    act.config(name="first")()
    inner.as_step(gift)
    act.config(name="last & least")()
"""


@pytest.fixture(scope="module")
def stored(shared: Project) -> Project:
    """outer:tx, whose child waits; order:b, which was reverted."""
    shared.write("workflows/nested.py", NESTED)
    shared.wfe("run", "outer", "--tx", "tx", "-i", "true", "--until", "waiting")
    shared.wfe("run", "order", "--tx", "b", "-p", "gift=false", "-p", "fail=ship")
    return shared


def drawn(project: Project, *arguments: str) -> str:
    ended = project.wfe(*arguments)
    assert ended.code == 0, ended.err
    return ended.out


def without_times(picture: str) -> str:
    return re.sub(r" \d+\.\ds", " _._s", picture)


# --- in characters -------------------------------------------------------------------------------


def test_stages_stand_side_by_side_and_parallel_steps_below_each_other(stored: Project) -> None:
    assert (
        without_times(drawn(stored, "executions", "graph", "order:b"))
        == """\
order:b
↺ reverted, 4 of 4 steps, _._s

┌───────────────────┐    ┌─────────────────┐    ┌─────────────────┐
│ reserve           │ ─▶ │ wrap            │ ─▶ │ ship            │
│   ✓ done _._s     │    │   when gift: no │    │   ✗ failed _._s │
│   ↺ reverted _._s │    │   ○ skipped     │    │   ↺ reverted    │
├───────────────────┤    └─────────────────┘    └─────────────────┘
│ charge            │
│   ✓ done _._s     │
│   ↺ reverted _._s │
└───────────────────┘
"""
    )


def test_an_undo_that_failed_is_told_from_its_step(stored: Project) -> None:
    stored.wfe("run", "wall", "--tx", "w", "-p", "fail=ship")
    for form in ("text", "mermaid", "svg"):
        picture = drawn(stored, "executions", "graph", "wall:w", "--format", form)
        assert re.search(r"(?<!undo )done \d", picture)
        assert picture.count("undo failed") == (2 if form == "svg" else 1)  # the title of a box


def test_nested_workflows_follow_below_with_their_keys(stored: Project) -> None:
    picture = drawn(stored, "executions", "graph", "outer:tx")
    assert "inner-as-step · inner:inner-as-step-tx\n● waiting, 2 of 3 steps" in picture
    assert "when a <gift>: yes" in picture
    workflow = drawn(stored, "workflows", "graph", "outer")
    assert "inner-as-step · inner\n3 steps\n" in workflow
    assert "when a <gift>" in workflow
    assert "has an undo" in workflow
    assert "async" in workflow


def test_a_workflow_that_several_steps_run_is_drawn_once(project: Project) -> None:
    project.write(
        "workflows/nested.py",
        NESTED
        + """
@workflow("twice")
def twice(gift: bool):
    inner.as_step.config(name="one")(gift)
    outer.as_step.config(name="two")(gift)
""",
    )
    out = project.wfe("workflows", "graph", "twice").out
    assert [line for line in out.splitlines() if "·" in line] == ["one · inner", "two · outer"]
    for kind in ("text", "mermaid", "svg"):
        drawn = project.wfe("workflows", "graph", "twice", "--format", kind).out
        assert "runs inner: see one" in drawn


def test_what_has_no_room_goes_on_below_and_nothing_is_cut(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = drawn(stored, "executions", "graph", "order:b")
    monkeypatch.setenv("COLUMNS", "50")
    narrow = drawn(stored, "executions", "graph", "order:b")
    assert all(text.cells(line) <= 50 for line in narrow.split("\n"))
    assert sorted(re.findall(r"\w+", wide)) == sorted(re.findall(r"\w+", narrow))
    assert narrow.count("┌") == 3


def diagram(*stages: tuple[Box, ...]) -> Diagram:
    return Diagram("w:t", Label("running", "running"), stages)


LONG = "VeryLongCamelCaseName_with_underscores-and-dashes" * 2
WIDE = "日本語のとても長いステップ名" * 3


@pytest.mark.parametrize("plain", [False, True])
def test_boxes_are_straight_whatever_the_names_are(plain: bool) -> None:
    boxes = [Box(name, (Label("done", "done"),)) for name in (LONG, WIDE, "é", "x" * 200)]
    lines = characters.drawn(diagram(tuple(boxes)), 80, plain=plain)
    widths = {text.cells("".join(part.text for part in line)) for line in lines[3:]}
    assert len(widths) == 1
    if plain:
        assert all(part.text.isascii() for line in lines for part in line)


def test_a_person_sees_states_in_colour(stored: Project) -> None:
    shown = stored.wfe("executions", "graph", "order:b", "--color", "always").out
    assert "\x1b[1;31m✗\x1b[0m" in shown


# --- svg -----------------------------------------------------------------------------------------


def texts(image: str) -> list[str]:
    return ["".join(each.itertext()) for each in ET.fromstring(image).iter(f"{SVG}text")]


def test_the_svg_is_valid_and_says_all_that_the_text_says(stored: Project) -> None:
    image = drawn(stored, "executions", "graph", "outer:tx", "--format", "svg")
    root = ET.fromstring(image)
    assert root.tag == f"{SVG}svg"
    assert root.get("font-family") == "sans-serif"
    width, height = map(float, (root.get("viewBox") or "").split()[2:])
    assert (width, height) == (float(root.get("width", 0)), float(root.get("height", 0)))
    shown = texts(image)
    for expected in ("outer:tx", "first", "last & least", "inner:inner-as-step-tx", "left"):
        assert expected in shown
    assert "when a <gift>: yes" in shown
    assert any(line.startswith("waiting") for line in shown)
    assert "http" not in image.replace("http://www.w3.org/2000/svg", "")


def test_states_are_told_apart_without_colour() -> None:
    assert set(StepState) <= COLORS.keys() <= LOOKS.keys()
    for word in COLORS:
        image = svg.drawn(diagram((Box("a", (Label(word, word),)),)))
        (group,) = ET.fromstring(image).iter(f"{SVG}g")
        assert word in ["".join(each.itertext()) for each in group.iter(f"{SVG}text")]
        assert len(list(group.iter(f"{SVG}path"))) == 1, f"{word} has no sign"
        frame = next(group.iter(f"{SVG}rect"))
        is_idle = word in ("skipped", "skipped_failure", "not_started", "dormant")
        assert (frame.get("stroke-dasharray") is not None) is is_idle


def test_that_a_step_failed_is_seen_even_where_it_was_undone() -> None:
    box = Box("a", (Label("failed", "failed"), Label("reverted", "reverted")))
    assert box.word == "failed"
    assert Box("a", (Label("done", "done"), Label("reverted", "reverted"))).word == "reverted"


@pytest.mark.parametrize(
    "name", ['<b>&"x"\'', "]]>", "a\ufffeb", "\u202eabc", "é👨‍👩‍👧", LONG, WIDE]
)
def test_any_name_is_valid_xml_and_fits_into_its_box(name: str) -> None:
    picture = diagram((Box(name, (Label("done", "done"),)), Box("other")), (Box("next"),))
    ET.fromstring(svg.drawn(picture))
    places = layout.laid_out(picture)
    (box,) = [each for each in places.boxes if each.box.name == name]
    for line in box.lines:
        font = layout.NAME_FONT if line.is_name else layout.LABEL_FONT
        assert layout.width_of(line.text, font) <= box.width


def test_boxes_do_not_overlap_and_lie_within_the_picture() -> None:
    inner = diagram(*[(Box(f"in-{n}"), Box(f"in-{n}-b")) for n in range(9)])
    done = (Label("done", "done"),)
    stages: list[tuple[Box, ...]] = [(Box(f"s{n}", done),) for n in range(30)]
    stages[3] = tuple(Box(f"p{n}") for n in range(12))
    stages[5] = (Box("nested", (), inner), Box("beside"))
    _check(layout.laid_out(diagram(*stages)))


def _check(places: layout.Layout) -> None:
    for box in places.boxes:
        assert 0 <= box.x <= box.x + box.width <= places.width
        assert 0 <= box.y <= box.y + box.height <= places.height
        for other in places.boxes:
            apart = (
                box is other
                or box.x + box.width <= other.x
                or other.x + other.width <= box.x
                or box.y + box.height <= other.y
                or other.y + other.height <= box.y
            )
            assert apart, (box, other)
        if box.inner is not None:
            assert box.inner.width <= box.width - 2 * layout.PADDING
            _check(box.inner)


# --- mermaid -------------------------------------------------------------------------------------


def test_mermaid_has_a_node_for_each_step_and_an_arrow_for_each_pair_of_stages(
    stored: Project,
) -> None:
    lines = drawn(stored, "executions", "graph", "outer:tx", "--format", "mermaid").split("\n")
    assert lines[0] == lines[2] == "---"
    assert lines[1].startswith('title: "outer:tx: waiting, 1 of 3 steps')
    assert lines[3] == "flowchart LR"
    body = "\n".join(lines)
    assert re.search(r'subgraph n2\["inner-as-step<br/>inner:inner-as-step-tx<br/>● waiting', body)
    assert "    n3 & n4 --> n5" in lines
    assert "  n1 --> n2" in lines
    assert "  class n2 waiting" in lines
    assert body.count("classDef") == len(set(re.findall(r":::(\w+)", body)))


def test_no_name_breaks_out_of_a_mermaid_label() -> None:
    name = "\"]; end\n%% `x` <b> #35; & 'y' {z} é 日本"
    body = mermaid.drawn(diagram((Box(name),)))
    (node,) = [line for line in body.split("\n") if line.startswith("  n1[")]
    label = node.removeprefix('  n1["').removesuffix('"]')
    assert not set(label) & set("\"`<>[]{};%'#&") - set("#;")
    assert "é 日本" in label
    assert label.startswith("#34;#93;#59; end#10;#37;#37; ")


# --- usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [("executions", "graph", "outer:tx"), ("workflows", "graph", "x")]
)
def test_an_unknown_format_is_refused_with_a_near_one(
    stored: Project, command: tuple[str, ...]
) -> None:
    ended = stored.wfe(*command, "--format", "svgg")
    assert (ended.code, ended.out) == (2, "")
    assert "There is no format 'svgg'." in ended.err
    assert "Did you mean svg?" in ended.err


def test_what_is_not_there_ends_with_3(stored: Project) -> None:
    assert stored.wfe("executions", "graph", "nope").code == 3
    assert stored.wfe("workflows", "graph", "nope").code == 3
