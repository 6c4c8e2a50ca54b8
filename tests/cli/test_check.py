"""`wfe workflows check`: what would go wrong is told before it does, and CI can rely on the exit code."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.project import Project
from wfe.lint.check import NOTICED, RULES

HEAD = "from wfe import step, workflow\n"

GOOD = """
from wfe import step, workflow

@step
def build() -> str:
    return "a wall"

@build.compensate
def unbuild(wall: str | None) -> None: ...

@step
def tell() -> None: ...

@workflow("good")
def good():
    build()
    tell()
"""

#: Rule → a body that it finds something in, and the sentence.
BAD = {
    "no-undo": (
        """
        @step
        def build(): ...

        @step
        def tell(): ...

        @workflow("bad")
        def bad():
            build()
            tell()
        """,
        "The step 'build' of 'bad' has no undo, and 'tell' may fail after it.",
    ),
    "pure-undo": (
        """
        @step(pure=True)
        def look(): ...

        @look.compensate
        def unlook(): ...

        @workflow("bad")
        def bad():
            look()
        """,
        "The step 'look' is pure, and has an undo.",
    ),
    "undo-none": (
        """
        @step
        def build() -> str: ...

        @build.compensate
        def unbuild(wall: str): ...

        @workflow("bad")
        def bad():
            build()
        """,
        "where the step has failed, or its time was up, before it returned. Write wall: str | None, and",
    ),
    "unsaved-undo": (
        """
        @step(save_response=False)
        def build() -> str: ...

        @build.compensate
        def unbuild(wall: str): ...

        @workflow("bad")
        def bad():
            build()
        """,
        "The undo of the step 'build' takes str, but receives None: with save_response=False nothing",
    ),
    "no-timeout": (
        """
        @step(async_=True)
        def ask() -> None: ...

        @workflow("bad")
        def bad():
            ask()
        """,
        "The step 'ask' of 'bad' may wait for an answer for ever.",
    ),
    "short-timeout": (
        """
        @step(max_retries=3, retry_interval=10, retry_backoff=2, timeout=70)
        def fetch(): ...

        @workflow("bad")
        def bad():
            fetch()
        """,
        "the waits between its retries take 70 seconds in all, but its timeout, 70 seconds, passes",
    ),
    "idle-option": (
        """
        @step(retry_interval=10)
        def fetch(): ...

        @workflow("bad")
        def bad():
            fetch()
        """,
        "The step 'fetch' of 'bad': retry_interval has no effect without max_retries.",
    ),
    "name": (
        """
        @step("my step")
        def mine(): ...

        @workflow("bad")
        def bad():
            mine()
        """,
        "The step 'my step' of 'bad' has to be quoted in every shell",
    ),
    "alike": (
        """
        @step
        def send_mail(): ...

        @send_mail.compensate
        def unsend(): ...

        @workflow("bad")
        def bad():
            send_mail()
            send_mail.config(name="send-mail")()
        """,
        "The steps 'send_mail' and 'send-mail' of 'bad' are named alike.",
    ),
    "schedule-doubt": (
        """
        @step
        def tell(): ...

        @workflow("bad", schedule="*/90 * * * *")
        def bad():
            tell()
        """,
        "that is hourly at most, not every 90 minutes",
    ),
    "schedule": (
        """
        @step
        def tell(count: int): ...

        @workflow("bad", schedule="@daily")
        def bad(count: int):
            tell(count)
        """,
        "The schedule of 'bad' gives it an input that does not fit",
    ),
}


def write(project: Project, body: str) -> None:
    project.write("workflows/bad.py", HEAD + textwrap.dedent(body))


def test_what_has_nothing_wrong_with_it_ends_with_0_and_prints_nothing(project: Project) -> None:
    project.write("workflows/good.py", GOOD)
    ended = project.wfe("workflows", "check", "--strict")
    assert (ended.code, ended.out, ended.err) == (0, "", "1 workflow: no errors, no warnings.\n")


@pytest.mark.parametrize("code", BAD)
def test_each_rule_finds_what_it_is_there_for(project: Project, code: str) -> None:
    body, sentence = BAD[code]
    write(project, body)
    level = next(str(rule.level) for rule in RULES if rule.code == code)
    ended = project.wfe("workflows", "check")
    (line,) = ended.lines
    assert re.match(rf"workflows/bad\.py:\d+: {level} {code}: ", line)
    assert sentence in line
    assert ended.code == (2 if level == "error" else 0)
    assert project.wfe("workflows", "check", "--strict").code == 2


def test_every_rule_is_tested_and_explained(project: Project) -> None:
    assert BAD.keys() == {rule.code for rule in RULES}
    explained = project.wfe("help", "lint").out
    for code in (*NOTICED, *BAD):
        assert f"  {code} " in explained


def test_no_step_runs_and_no_database_is_made(project: Project) -> None:
    write(
        project,
        """
        @step
        def loud(): raise SystemExit("I ran")

        @workflow("loud")
        def louder():
            loud()
        """,
    )
    assert project.wfe("workflows", "check").code == 0
    assert not project.db.exists()


def test_a_module_that_does_not_load_and_a_name_given_twice_are_errors(project: Project) -> None:
    project.write("workflows/good.py", GOOD)
    project.write(
        "workflows/again.py", GOOD.replace("    tell()", "    tell(); tell.config(name='x')()")
    )
    project.write("workflows/broken.py", "\nimport nowhere")
    project.write("workflows/wrong.py", HEAD + "@workflow('a:b')\ndef f(): ...\n")
    ended = project.wfe("workflows", "check")
    assert ended.code == 2
    found = [line.split(": ", 2)[:2] for line in ended.lines]
    assert ["workflows/broken.py:2", "error import"] in found
    assert ["workflows/wrong.py:2", "error import"] in found
    assert [code for _, code in found].count("error duplicate") == 1
    assert "No module named 'nowhere'" in ended.out


TELLING = """
@step
def tell(): ...

@workflow("notify", on_finish={target!r})
def notify():
    tell()

@workflow("bad", on_finish="workflow:notify")
def bad():
    tell()
"""


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("workflow:notfy", "on_finish of 'notify' names 'notfy', which no module here defines."),
        ("workflow:bad", "on_finish of 'bad' leads back to it: bad → notify → bad."),
        ("workflow:notify", "on_finish of 'notify' leads back to it: notify → notify."),
    ],
)
def test_whoever_is_told_of_an_end_has_to_be_there(
    project: Project, target: str, sentence: str
) -> None:
    write(project, TELLING.format(target=target))
    ended = project.wfe("workflows", "check")
    assert ended.code == 2
    assert sentence in ended.out
    assert all(": error on-finish: " in line for line in ended.lines)
    assert project.wfe("workflows", "check", "notify").code == 2


def test_a_command_that_is_told_is_no_workflow(project: Project) -> None:
    write(project, TELLING.format(target="mail ops"))
    ended = project.wfe("workflows", "check", "--strict")
    assert (ended.code, ended.out) == (0, "")


def test_one_workflow_is_looked_at_alone_whatever_is_wrong_with_others(project: Project) -> None:
    project.write("workflows/good.py", GOOD)
    project.write("workflows/broken.py", "import nowhere")
    write(project, BAD["schedule"][0])
    assert project.wfe("workflows", "check", "good").code == 0
    assert project.wfe("workflows", "check", "workflows/good.py:good").code == 0
    assert project.wfe("workflows", "check", "bad").code == 2
    assert project.wfe("workflows", "check", "nope").code == 2  # it may be in what does not load


def test_json_is_one_document_with_every_finding(project: Project) -> None:
    write(project, BAD["no-undo"][0])
    document = project.wfe("workflows", "check", "-o", "json").document
    assert (document["ok"], document["workflows"]) == (True, ["bad"])
    (finding,) = document["findings"]
    assert (finding["code"], finding["level"], finding["line"]) == ("no-undo", "warning", 3)
    assert finding["file"] == str(project.root / "workflows/bad.py")
    assert (finding["workflow"], finding["step"]) == ("bad", "build")
    document = project.wfe("workflows", "check", "--strict", "-o", "json").document
    assert (document["ok"], document["error"]["code"]) == (False, "lint")
    assert document["findings"] == [finding]


def test_on_a_terminal_a_finding_is_a_symbol_a_word_and_a_sentence(project: Project) -> None:
    write(project, BAD["no-undo"][0])
    lines = project.wfe("workflows", "check", "--color", "always").lines
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    assert plain[0] == "! warning no-undo  workflows/bad.py:3"
    assert all(line.startswith("    ") for line in plain[1:])


SILENT = {
    "nothing may fail after the last step": """
        @step
        def tell(): ...

        @workflow("fine")
        def fine():
            tell()
        """,
    "a failure that is passed over undoes nothing": """
        @step
        def build(): ...

        @step(continue_on_permanent_failure=True)
        def tell(): ...

        @workflow("fine")
        def fine():
            build()
            tell()
        """,
    "a pure step has nothing to undo": """
        @step(pure=True)
        def look(): ...

        @step
        def tell(): ...

        @workflow("fine")
        def fine():
            look()
            tell()
        """,
    "an undo that takes no value": """
        from wfe import StepContext

        @step(save_response=False)
        def build() -> str: ...

        @build.compensate
        def unbuild(ctx: StepContext): ...

        @workflow("fine")
        def fine():
            build()
        """,
    "a step that returns something does not wait": """
        @step(async_=True)
        async def work() -> int:
            return 1

        @workflow("fine")
        def fine():
            work()
        """,
    "the timeout of the workflow ends every wait": """
        @step(async_=True)
        def ask() -> None: ...

        @workflow("fine", timeout=60)
        def fine():
            ask()
        """,
    "retries that are over in time": """
        @step(max_retries=2, retry_interval=10, timeout=30)
        def fetch(): ...

        @workflow("fine", timeout=60)
        def fine():
            fetch()
        """,
}


@pytest.mark.parametrize("why", SILENT)
def test_what_is_fine_is_not_found(project: Project, why: str) -> None:
    write(project, SILENT[why])
    ended = project.wfe("workflows", "check", "--strict")
    assert (ended.code, ended.out) == (0, "")


UNDO_HEAD = """
import dataclasses, typing, wfe
from collections.abc import Hashable

T = typing.TypeVar("T")
Wall = typing.TypedDict("Wall", {"height": int})
Height = typing.NewType("Height", int)
Perhaps = typing.NewType("Perhaps", typing.Optional[int])

class Lays(typing.Protocol):
    def lay(self) -> None: ...

@dataclasses.dataclass
class Brick:
    weight: int
"""
UNDO = """
@step("build-{number}")
def build(): ...

@build.compensate
def unbuild(ctx: wfe.StepContext, {parameter}): ...

@workflow("one-{number}")
def one():
    build()

@workflow("two-{number}")
def two():
    build()
"""


def write_undos(project: Project, *parameters: str) -> None:
    undos = (UNDO.format(number=n, parameter=each) for n, each in enumerate(parameters))
    project.write("workflows/bad.py", "".join([HEAD, UNDO_HEAD, *undos]))


def test_an_undo_that_may_take_none_is_fine(project: Project) -> None:
    write_undos(
        project,
        "",
        "it",
        "*rest",
        "it: None",
        "it: object",
        "it: typing.Any",
        "it: T",
        "it: Brick | None",
        "it: typing.Optional[Brick]",
        "it: 'Brick | None'",
        "it: Brick = None",
        "it: 'Nowhere'",
        "it: typing.Annotated[str | None, 'a wall']",
        "it: typing.Literal['a', None]",
        "it: Hashable",
        "it: Lays",
        "it: Perhaps",
    )
    ended = project.wfe("workflows", "check", "--strict")
    assert (ended.code, ended.out) == (0, "")


def test_an_undo_that_cannot_take_none_is_told_once_where_it_is_written(project: Project) -> None:
    told = {
        "Brick": "Brick",
        "'Brick'": "Brick",
        "Wall": "Wall",
        "Height": "Height",
        "dict[str, int]": "dict[str, int]",
        "int | str": "int | str",
        "list[Brick]": "list[Brick]",
        "typing.Annotated[str, 'a wall']": "Annotated[str, 'a wall']",
        "typing.Literal['a']": "Literal['a']",
        "Brick = Brick(1)": "Brick",
    }
    write_undos(project, *(f"it: {annotation}" for annotation in told))
    text = (project.root / "workflows/bad.py").read_text().splitlines()
    lines = project.wfe("workflows", "check").lines
    undos = [number for number, line in enumerate(text, 1) if line == "@build.compensate"]
    assert [line.split(": ")[0] for line in lines] == [f"workflows/bad.py:{n}" for n in undos]
    for line, name in zip(lines, told.values(), strict=True):
        assert f" takes {name}, but receives None " in line
        assert f" Write it: {name} | None, and " in line


def test_a_use_that_keeps_no_response_is_told_where_the_body_has_it(project: Project) -> None:
    use = "    build.config(name='unkept', save_response=False)()\n"
    write_undos(project, "it: Brick")
    file = project.root / "workflows/bad.py"
    file.write_text(file.read_text() + use)
    warning, error = project.wfe("workflows", "check").lines
    assert ": warning undo-none: The undo of the step 'build-0' " in warning
    last = len(file.read_text().splitlines())
    assert error.startswith(f"workflows/bad.py:{last}: error unsaved-undo: The undo of ")


def test_the_undo_of_a_hook_is_looked_at_like_a_steps(project: Project) -> None:
    write(
        project,
        """
        from wfe import WorkflowResponse, hook

        @workflow("hooked")
        def hooked():
            built = hook("built", {})
            return WorkflowResponse(None, hooks=[built])

        @hooked.hooks.built
        def note(value: dict) -> int: ...

        @note.compensate
        def forget(count: int) -> None: ...
        """,
    )
    (line,) = project.wfe("workflows", "check").lines
    assert line.startswith(
        "workflows/bad.py:13: warning undo-none: The undo of the step 'built' takes"
    )


def test_the_last_step_of_a_nested_workflow_is_left_done_by_what_follows_it(
    project: Project,
) -> None:
    write(
        project,
        """
        @step
        def build(): ...

        @workflow("inner")
        def inner():
            build()

        @step
        def tell(): ...

        @workflow("outer")
        def outer():
            inner.as_step()
            tell()
        """,
    )
    (line,) = project.wfe("workflows", "check").lines
    assert line.startswith(
        "workflows/bad.py:3: warning no-undo: The step 'build' of 'inner', which"
    )
    assert "'outer' runs as 'inner-as-step'" in line


def test_what_many_workflows_use_is_told_once(project: Project) -> None:
    write(
        project,
        """
        @step
        def build(): ...

        @step
        def tell(): ...

        @workflow("one")
        def one():
            build()
            tell()

        @workflow("two")
        def two():
            build()
            tell()
        """,
    )
    assert len(project.wfe("workflows", "check").lines) == 1


def test_a_schedule_that_means_nothing_is_an_error(project: Project) -> None:
    write(
        project,
        """
        @step
        def tell(): ...

        @workflow("bad", schedule="0 0 31 2 *")
        def bad():
            tell()
        """,
    )
    ended = project.wfe("workflows", "check")
    assert ended.code == 2
    (line,) = ended.lines
    assert line.startswith("workflows/bad.py:6: error import: ")
    assert "there is no day 31 in February, so that it would never fire" in line


def test_what_has_no_code_is_told_at_the_line_that_uses_it(project: Project) -> None:
    """It was told at a line of whatever program looked."""
    project.write(
        "workflows/builtin.py",
        HEAD
        + """
put = step("put")(print)

@workflow("bad")
def bad():
    put("a")
    put.config(name="put-again")("b")
""",
    )
    lines = project.wfe("workflows", "check").out.splitlines()
    assert [line.split(" warning ")[0] for line in lines] == ["workflows/builtin.py:7:"]
