"""`wfe doctor`: what is wrong is found, and the command that it names mends it."""

from __future__ import annotations

import json
import lzma
import os
import re
import shlex
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.project import Ended, Project
from tests.store.support import open_folder, ordinary_user
from wfe.doctor import database

DIES = """
import lzma
import os
import signal
from pathlib import Path

from wfe import step, workflow

@step
def die() -> None:
    if not Path("revived").exists():
        os.kill(os.getpid(), signal.SIGKILL)

@workflow("dies")
def dies():
    die()
"""

ASKS = """
from wfe import step, workflow

@step
def before() -> None: ...

@step(async_=True)
def ask() -> None: ...

@workflow("asks")
def asks():
    before()
    ask()
"""


def findings(ended: Ended) -> dict[str, list[dict[str, Any]]]:
    """Check → what it found, where it found anything."""
    checks = ended.document["checks"]
    return {one["name"]: one["findings"] for one in checks if not one["ok"]}


def found(project: Project, check: str) -> dict[str, Any]:
    """The only finding, which is that check's."""
    ended = project.execute("doctor", "-o", "json")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    by_check = findings(ended)
    assert list(by_check) == [check]
    (finding,) = by_check[check]
    return finding


def mend(project: Project, finding: dict[str, Any]) -> None:
    """Do what it says."""
    words = shlex.split(finding["mend"])
    if words[0] == "wfe":
        ended = project.execute(*words[1:])
        assert ended.code in (0, 20), ended.err
    else:
        subprocess.run(words, cwd=project.root, check=True, timeout=30)


def write(project: Project, statement: str, *values: object) -> None:
    connection = sqlite3.connect(project.db)
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.fixture
def asking(project: Project) -> Project:
    """asks:t1 waits for an answer."""
    project.write("workflows/asks.py", ASKS)
    assert project.wfe("run", "asks", "--tx", "t1", "--until", "waiting").code == 20
    return project


def test_what_is_well_ends_with_0(asking: Project) -> None:
    ended = asking.wfe("doctor")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split("\t") for line in ended.lines]
    assert {line[0] for line in lines} == {"ok"}
    names = [line[1] for line in lines]
    assert names[:2] == ["modules", "database"]
    assert {"permissions", "structure", "leases", "interrupted", "commands", "workflows"} <= set(
        names
    )
    assert {"definitions", "schedules", "clock", "time zone", "software"} <= set(names)
    assert {"on_finish", "notices", "readings", "writing"} <= set(names)
    assert asking.wfe("doctor", "-o", "json").document["ok"] is True


def test_without_a_database_nothing_is_wrong_and_none_is_made(project: Project) -> None:
    ended = project.wfe("doctor")
    assert ended.code == 0
    assert "the first run makes it" in ended.lines[0]
    assert not project.db.exists()


def test_files_that_others_can_read(asking: Project) -> None:
    asking.db.chmod(0o644)
    loose = findings(asking.execute("doctor", "-o", "json"))["permissions"]
    assert loose[0]["mend"] == f"chmod 600 {asking.db}"
    for finding in loose:
        mend(asking, finding)
    assert asking.wfe("doctor").code == 0


def test_an_execution_whose_process_was_killed(project: Project) -> None:
    project.write("workflows/dies.py", DIES)
    assert project.execute("run", "dies", "--tx", "t1").code == -9
    by_check = findings(project.wfe("doctor", "-o", "json"))
    assert by_check.keys() == {"leases", "interrupted"}
    (lease,), (interrupted,) = by_check["leases"], by_check["interrupted"]
    assert "is gone, and its lease is left" in lease["message"]
    assert (interrupted["key"], interrupted["mend"]) == ("dies:t1", "wfe executions resume dies:t1")
    project.write("revived", "")
    mend(project, interrupted)
    if findings(project.wfe("doctor", "-o", "json")):
        mend(project, lease)
    assert project.wfe("doctor").code == 0


def test_a_workflow_that_is_gone(asking: Project) -> None:
    (asking.root / "workflows/asks.py").rename(asking.root / "elsewhere.py")
    finding = found(asking, "workflows")
    assert "1 unfinished execution of 'asks', such as asks:t1" in finding["message"]
    assert finding["mend"] == "wfe executions resume asks:t1 --app FILE"
    finding["mend"] = finding["mend"].replace("FILE", "elsewhere.py")
    mend(asking, finding)


def test_a_workflow_that_has_other_steps_now(asking: Project) -> None:
    asking.write("workflows/asks.py", ASKS.replace("    before()\n", ""))
    finding = found(asking, "definitions")
    assert "asks:t1" in finding["message"]
    assert finding["mend"] == "wfe run asks --tx t1 --allow-changed"


def test_steps_that_were_changed_where_it_does_not_matter(asking: Project) -> None:
    asking.write("workflows/asks.py", ASKS + "    before.config(name='after')()\n")
    assert asking.execute("doctor").code == 0


def test_a_command_that_nobody_took(asking: Project) -> None:
    write(
        asking,
        "INSERT INTO signal (execution_id, kind, step, action, payload, sender, sent_at, state)"
        " SELECT id, 'succeed', 'ask', 'invoke', '{}', 'kim@host', 1, 'pending'"
        " FROM workflow_execution",
    )
    finding = found(asking, "commands")
    assert finding["key"] == "asks:t1"
    assert "'succeed ask' by kim@host" in finding["message"]
    assert finding["mend"] == "wfe executions resume asks:t1"


def test_a_schedule_whose_workflow_is_gone(asking: Project) -> None:
    write(
        asking,
        "INSERT INTO schedule (name, workflow_id, origin, timing, definition, anchor,"
        " accounted_until, fired) VALUES ('nightly', 'nope', 'workflow', 'x', '{}', 1, 1, 0)",
    )
    finding = found(asking, "schedules")
    assert "'nightly' runs 'nope'" in finding["message"]
    assert finding["mend"] == "wfe schedules delete nightly -y"
    mend(asking, finding)
    assert asking.wfe("doctor").code == 0


def test_a_module_that_does_not_load(asking: Project) -> None:
    asking.write("workflows/broken.py", "import nowhere")
    finding = found(asking, "modules")
    assert "workflows/broken.py:1: ModuleNotFoundError" in finding["message"]
    assert finding["mend"] == "wfe workflows check"


def test_a_clock_that_was_set_back(asking: Project) -> None:
    write(asking, "UPDATE workflow_execution SET updated_at = updated_at + 7200000000")
    assert "a clock was set back" in found(asking, "clock")["message"]


def test_a_time_zone_that_is_none(asking: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Lundon")
    assert found(asking, "time zone")["mend"] == "unset TZ"


def test_a_text_in_the_place_of_the_database(project: Project) -> None:
    project.write("notes.txt", "not a database\n" * 100)
    (project.root / "notes.txt").chmod(0o600)
    ended = project.wfe("doctor", "--db", "notes.txt", "-o", "json")
    assert ended.code == 1
    (finding,) = findings(ended)["reading"]
    assert finding["message"] == f"{project.root / 'notes.txt'} is not a database."
    assert (
        finding["mend"] == f"mv -n {project.root / 'notes.txt'} {project.root / 'notes.txt.other'}"
    )
    mend(project, finding)
    assert project.wfe("doctor", "--db", "notes.txt").code == 0
    assert (project.root / "notes.txt.other").read_text().startswith("not a database")


def test_a_database_of_an_older_schema(project: Project) -> None:
    old = Path(__file__).parents[1] / "store/databases/v1.db.xz"
    project.db.parent.mkdir(mode=0o700)
    project.db.write_bytes(lzma.decompress(old.read_bytes()))
    project.db.chmod(0o600)
    (finding,) = findings(project.wfe("doctor", "-o", "json"))["reading"]
    assert finding["mend"] == "wfe db migrate"
    mend(project, finding)
    assert "reading" not in findings(project.wfe("doctor", "-o", "json"))


def test_a_damaged_database(asking: Project) -> None:
    with asking.db.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        for page in range(4096 * 4, size, 4096):
            file.seek(page)
            file.write(b"\xff" * 512)
    for name in ("-wal", "-shm"):
        asking.db.with_name(f"{asking.db.name}{name}").unlink(missing_ok=True)
    ended = asking.wfe("doctor", "-o", "json")
    assert ended.code == 1
    by_check = findings(ended)
    assert {"structure", "reading"} & set(by_check)
    assert "Traceback" not in ended.err


def test_the_mending_command_is_for_the_same_database(asking: Project) -> None:
    other = asking.root / "other.db"
    asking.wfe("run", "asks", "--tx", "t9", "--until", "waiting", "--db", str(other))
    (asking.root / "workflows/asks.py").write_text("")
    ended = asking.execute("doctor", "--db", str(other), "-o", "json")
    (finding,) = findings(ended)["workflows"]
    assert finding["mend"] == f"wfe executions resume asks:t9 --app FILE --db {other}"


def test_on_a_terminal_each_finding_has_its_command_below(asking: Project) -> None:
    asking.db.chmod(0o644)
    ended = asking.wfe("doctor", "--color", "always")
    assert ended.code == 1
    assert f"Mend it with: chmod 600 {asking.db}" in ended.out
    assert "finding" in ended.err


def test_a_database_that_cannot_be_written_to_is_found() -> None:
    with open_folder() as folder, ordinary_user():
        path = folder / "wfe db"
        path.touch()
        assert database.writable(path).is_ok
        path.chmod(0o400)
        (finding,) = database.writable(path).findings
        assert str(path) in finding.message
        assert finding.mend == f"chmod u+w '{path}'"
        subprocess.run(shlex.split(finding.mend), check=True, timeout=30)
        assert database.writable(path).is_ok


def test_nothing_is_said_of_the_mode_of_a_file_that_is_no_database(project: Project) -> None:
    project.write("README.md", "A text, which everybody may read.\n").chmod(0o644)
    ended = project.wfe("doctor", "--db", str(project.root / "README.md"), "-o", "json")
    assert list(findings(ended)) == ["reading"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of somebody else's is needed")
def test_what_is_somebody_elses_cannot_be_mended_by_its_mode() -> None:
    with open_folder() as folder:
        path = folder / "wfe.db"
        path.touch(mode=0o600)
        folder.chmod(0o755)
        with ordinary_user():
            findings = database.writable(path).findings
    assert [finding.message.split(" ")[0] for finding in findings] == [str(folder), str(path)]
    assert [finding.mend for finding in findings] == [None, None]


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_on_a_terminal_claims_stand_below_each_other(
    asking: Project, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = re.sub(r"\x1b\[[\d;]*m", "", asking.wfe("doctor", "--color", "always").out)
    lines = shown.splitlines()
    assert all(re.match(r"✓ ok     \S.{11} \S| {22}\S", line) for line in lines), shown
    width = columns + len(str(asking.db))  # a path is never broken
    assert all(len(line) <= (width if str(asking.db) in line else columns) for line in lines)
    assert "structure    a quick look finds its pages whole" in shown


# --- who is told of ends -------------------------------------------------------------------------

FALLS = """
from wfe import PermanentStepFailure, step, workflow

@step
def fall() -> None:
    raise PermanentStepFailure("down")

@workflow("falls")
def falls():
    fall()
"""


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('on_finish = "no-such-program ops"', "runs 'no-such-program'"),
        ('on_finish = "./tell.sh"', "runs './tell.sh'"),
        ('on_finish = "workflow:notify"', "names the workflow 'notify'"),
    ],
)
def test_who_is_told_of_ends_has_to_be_there(project: Project, line: str, what: str) -> None:
    project.write("workflows/falls.py", FALLS)
    project.write("wfe.toml", line)
    finding = found(project, "on_finish")
    assert what in finding["message"]
    assert "wfe.toml" in finding["message"]


def test_a_notice_that_nobody_sends_is_sent_by_the_command_it_names(project: Project) -> None:
    project.write("workflows/falls.py", FALLS)
    assert project.wfe("run", "falls", "--tx", "t1").code == 10
    (execution,) = project.wfe("executions", "list", "-o", "json").document
    (row,) = read(project, "SELECT id, version FROM workflow_execution")
    write(project, "INSERT INTO execution_notice VALUES (?, ?, 0, NULL)", *row)
    finding = found(project, "notices")
    assert finding["key"] == execution["key"]
    assert "nothing here says who is to be" in finding["message"]
    project.write("wfe.toml", 'on_finish = "touch told"')
    mend(project, found(project, "notices"))
    assert (project.root / "told").exists()
    assert project.execute("doctor").code == 0


# --- how expressions are read --------------------------------------------------------------------


def test_a_schedule_that_fires_otherwise_than_before_is_found(asking: Project) -> None:
    day = 86_400_000_000
    fires = [[n * day + 1, "6.0.0"] for n in range(1, 4)]
    values = ("0 0 * * * in UTC", '{"cron": "0 0 * * *"}', json.dumps(fires))
    columns = "name, workflow_id, origin, timing, definition, anchor, accounted_until, fired, fires"
    write(
        asking,
        f"INSERT INTO schedule ({columns}) VALUES ('asks', 'asks', 'command', ?, ?, 0, 0, 0, ?)",
        *values,
    )
    finding = found(asking, "readings")
    assert "The schedule asks fired at 1970-01-02T00:00:00" in finding["message"]
    assert "by croniter 6.0.0, and would not by croniter" in finding["message"]
    assert finding["mend"] == "wfe schedules preview '0 0 * * *'"
    assert asking.execute(*shlex.split(finding["mend"])[1:]).code == 0


def read(project: Project, question: str) -> list[Any]:
    connection = sqlite3.connect(project.db)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()
