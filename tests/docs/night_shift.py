"""Records docs/night-shift.md: what an operator types in one night, and what stands on the terminal.

The commands really run, on the samples of this project in a temporary folder, in terminals of a hundred
columns. Nothing of what they print is written by hand; what is another one each time (times, ids, the
folder, the person) is replaced by the rules below. How long something took, and what is caught in motion,
stays as it was recorded; `comparable` leaves it out.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.console import INSTALLED
from tests.docs.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]

#: As long as the name of the temporary folder.
FOLDER = "/srv/night-shift"

#: What varies → what stands for it.
RULES = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-11-30T03:14:15.926Z"),
    (r"(?<=by )[^\s@]+@[^\s.,]+", "kim@night"),
    (r"(?<=process )\d+", "4711"),
]

#: A duration, an age, or a moment of a timeline.
_DURATION = r"\+?\b\d+(\.\d+)?[smhd](\d\d[smh])?\b"
#: What a command shows that does not wait for the end: where that takes it depends on the machine.
_IN_MOTION = r"(?<=\$ wfe executions cancel deploy-site:8\n).*?(?=```)"

BROKEN = "CUH,Cushing Municipal,Cushing,OK,USA,35.949925,-96.77305278"

INTRO = """\
# The night shift

Three things have gone wrong on one machine. This is what the person on duty types, and what stands on the
terminal then. The jobs are samples of this project: [airports_import.py](../sample_workflows/airports_import.py)
and [deploy_site.py](../sample_workflows/deploy_site.py).

The story is recorded: `make docs` runs it and writes this page, and a test runs it again. Times and ids have
been made alike. What the commands can do is told in [Find and mend](find-and-mend.md) and [Answer
steps that wait](answer-steps.md).
"""


class Story:
    """The page as far as it has come."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder = folder
        self._path = path
        self._parts = [INTRO]

    def tell(self, words: str) -> None:
        self._parts.append(words.strip("\n") + "\n")

    def types(self, *commands: str) -> None:
        """Commands one after the other in the first terminal, each with what it leaves there."""
        lines: list[str] = []
        for command in commands:
            lines += self._shown(command, Terminal(command, self._folder, self._path))
        self._block(lines)

    @contextmanager
    def beside(self, command: str, *, until: str) -> Iterator[None]:
        """Another terminal, in which something runs meanwhile, told when it has ended. `until` are
        the words after which the rest begins."""
        terminal = Terminal(command, self._folder, self._path)
        try:
            terminal.until(until)
            yield
            self.tell("And in the second terminal:")
            self._block(self._shown(command, terminal))
        finally:
            terminal.kill()

    def page(self) -> str:
        text = "\n".join(self._parts).replace(str(self._folder), FOLDER)
        for pattern, replacement in RULES:
            text = re.sub(pattern, replacement, text)
        return _with_equal_ids(text)

    def _shown(self, command: str, terminal: Terminal) -> list[str]:
        code, lines = terminal.end()
        return [f"$ {command}", *lines, *([f"[{code}]"] if code else []), ""]

    def _block(self, lines: list[str]) -> None:
        shown = "\n".join(line.rstrip() for line in lines).rstrip("\n")
        self._parts.append(f"```text\n{shown}\n```\n")


def comparable(page: str) -> str:
    """The page without what no two recordings have in common."""
    page = re.sub(_IN_MOTION, "", page, flags=re.DOTALL)
    page = re.sub(r".*…$", "", page, flags=re.MULTILINE)  # cut where the line ends
    return re.sub(r"\s+", " ", re.sub(_DURATION, "_", page))


def _with_equal_ids(text: str) -> str:
    """Ids of runs by the order in which they are met."""
    numbers: dict[str, int] = {}

    def equal(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[0], len(numbers) + 1)
        return f"01M8N5000000000000000000{number:02d}"

    return re.sub(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", equal, text)


# --- the evening before --------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """The jobs, a file with a slip in it, and a site."""
    workflows = folder / "workflows"
    workflows.mkdir()
    for name in ("airports_import.py", "deploy_site.py"):
        shutil.copy(ROOT / "sample_workflows" / name, workflows)
    (folder / "incoming").mkdir()
    airports = (ROOT / "sample_workflows/data/airports.csv").read_text()
    assert BROKEN in airports
    (folder / "incoming/airports.csv").write_text(
        airports.replace(BROKEN, BROKEN.replace("35.", "359"))
    )
    (folder / "site").mkdir()
    (folder / "site/index.html").write_text("<h1>The new site</h1>\n")


def _silently(folder: Path, path: str, command: str, *, code: int = 0) -> None:
    """What nobody looked at, such as a line of a crontab."""
    terminal = Terminal(command, folder, path)
    ended, lines = terminal.end()
    assert ended == code, "\n".join([command, *lines])


# --- the night -----------------------------------------------------------------------------------


def failed_import(story: Story) -> None:
    story.tell("""
## The import that failed

First, what has gone wrong, and what is still under way?
""")
    story.types(
        "wfe executions list --state failed,reverted --since '12h ago'",
        "wfe executions list --state running,waiting,sleeping,interrupted",
    )
    story.tell(
        "The import has failed, and all that it had done was undone. What happened, and why?"
    )
    story.types(
        "wfe executions show airports-import:monday",
        "wfe executions why airports-import:monday",
    )
    story.tell(
        "One line of the file has a slip in it: nothing on earth is at 359949925 degrees. It is mended."
    )
    story.types(
        "sed -n 1201p incoming/airports.csv",
        "sed -i '1201s/359949925/35.949925/' incoming/airports.csv",
        "wfe executions retry airports-import:monday",
    )
    story.tell(
        "The same input, a new run of the same id: the failed one stays for those who want to know."
    )
    story.types("wfe executions list -w airports-import")


def waiting_deploy(story: Story) -> None:
    story.tell("""
## The deploy that waits

The new site is on one server, and waits for somebody to say yes. No process is waiting: it is a row in the
database.
""")
    story.types("wfe step list --waiting", "wfe executions why deploy-site:7")
    story.tell(
        "Somebody has looked at the canary and says yes. It is watched from a second terminal."
    )
    with story.beside("wfe executions watch deploy-site:7", until="waiting"):
        answer = """'{"approved": true, "by": "kim"}'"""
        story.types(f"wfe step succeed deploy-site:7:approve --response {answer}")


def runaway(story: Story) -> None:
    story.tell("""
## The deploy that does not end

The deploy to the staging servers should have been over hours ago. It shows the new site on one of them, and
goes on in some terminal.
""")
    story.types("wfe executions list --state sleeping", "wfe executions why deploy-site:8")
    story.tell("""
Somebody has typed 86400 seconds instead of 86. It is cancelled: the process that has it in hand undoes what it
has done, and the second terminal watches.
""")
    with story.beside("wfe executions watch deploy-site:8", until="sleeping"):
        story.types("wfe executions cancel deploy-site:8")
    story.tell("Who did that, and when, is on record. Nothing is left to do:")
    story.types(
        "wfe executions events deploy-site:8",
        "ls out/staging/canary/releases",
        "wfe executions list",
    )


def record(path: str = INSTALLED) -> str:
    """The page. On the `path` is the `wfe` that is typed."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="wfe") as name:
        folder = Path(name).resolve()
        prepare(folder)
        _silently(
            folder,
            path,
            "wfe run airports-import -p csv=incoming/airports.csv --tx monday",
            code=10,
        )
        _silently(
            folder,
            path,
            "wfe run deploy-site -p source=site -p soak=0 --tx 7 --until waiting",
            code=20,
        )
        slow = "wfe run deploy-site -p source=site -p servers=out/staging -p soak=86400 --tx 8"
        running = Terminal(slow, folder, path)
        try:
            running.until("sleeping")
            story = Story(folder, path)
            failed_import(story)
            waiting_deploy(story)
            runaway(story)
            code, lines = running.end()
            assert code == 13, "\n".join(lines)
            return story.page()
        finally:
            running.kill()
